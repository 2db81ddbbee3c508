"""How far the ctranslate2 engine agrees with the torch engine on a test set, in float32 and in int8.

    python benchmarks/engines_agree.py MODEL_DIR SOURCE REFERENCE

Prints the share of lines that both engines translate alike, and the BLEU of each, beam 5.
"""

import argparse
import shutil
import tempfile
from pathlib import Path

from seqtool import Translator
from seqtool.evaluation.scores.metrics import score_bleu_chrf
from seqtool.run_directory import RunDir
from seqtool.translation.export.ctranslate2 import export_ctranslate2


def read_lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").removesuffix("\n").split("\n")


def translate(model: Path, lines: list[str], engine: str) -> list[str]:
    return [found.text for found in Translator.load(model, engine=engine).translate(lines, beam=5)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("source", type=Path)
    parser.add_argument("reference", type=Path)
    args = parser.parse_args()
    lines, references = read_lines(args.source), [read_lines(args.reference)]
    expected = translate(args.model, lines, "torch")
    bleu = score_bleu_chrf(expected, references)[0]
    print(f"torch: BLEU {bleu.score:.2f}  {bleu.signature}")
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "model"
        shutil.copytree(args.model, model, ignore=shutil.ignore_patterns("checkpoints", "prepared", "ctranslate2"))
        for quantization, wanted in (("float32", "99 % alike, BLEU within 0.1"), ("int8", "BLEU within 0.3")):
            export_ctranslate2(RunDir(model), quantization)
            found = translate(model, lines, "ctranslate2")
            alike = sum(a == b for a, b in zip(expected, found, strict=True))
            score = score_bleu_chrf(found, references)[0].score
            print(
                f"ctranslate2 {quantization}: {alike} of {len(lines)} lines alike ({100 * alike / len(lines):.1f} %), "
                f"BLEU {score:.2f}, difference {score - bleu.score:+.2f} (wanted: {wanted})"
            )


if __name__ == "__main__":
    main()
