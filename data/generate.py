"""Write the demo corpus: python data/generate.py [--out DIR]."""

import argparse
from pathlib import Path

from generator.chooser import Chooser
from generator.corpus import build_corpus, write_corpus
from generator.drafts import PATTERNS


def show_samples(count: int) -> None:
    """Print some sentences of every pattern, for proofreading."""
    chooser = Chooser(count)
    for pattern in PATTERNS:
        print(f"\n{pattern.name}: {pattern.write.__doc__}")
        for _ in range(count):
            pair = pattern.write(chooser)
            print(f"  {pair.english}\n      {pair.german}")


def main() -> None:
    """Read the command line and write the files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent, help="folder to write to")
    parser.add_argument("--samples", type=int, metavar="N", help="print N sentences of every pattern and write nothing")
    arguments = parser.parse_args()
    if arguments.samples:
        show_samples(arguments.samples)
        return
    arguments.out.mkdir(parents=True, exist_ok=True)
    write_corpus(build_corpus(), arguments.out)


if __name__ == "__main__":
    main()
