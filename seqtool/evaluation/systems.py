"""What is to be scored: translations from a file, or made by a model, with the settings that they were made with."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from seqtool import __version__
from seqtool.errors import SeqtoolError
from seqtool.evaluation.metrics import MetricScore
from seqtool.evaluation.reference_set import ReferenceSet, read_text_lines
from seqtool.files import RunDir, sha256_of, to_json, write_whole


@dataclass(frozen=True, kw_only=True)
class DecodeSettings:
    """How models translate; what is None is left to the model's own configuration."""

    engine: str = "auto"
    device: str = "auto"
    threads: int = 0
    batch_tokens: int | None = None
    search: dict[str, Any] = field(default_factory=dict)  # beam, length_penalty, ... as SearchOptions names them


@dataclass(frozen=True)
class SystemOutput:
    """A system's translation of a test set; scores and decoding are known only where a model made it."""

    name: str
    lines: list[str]
    scores: list[float] | None = None
    decoding: dict[str, Any] | None = None


def read_output(path: Path, test_set: ReferenceSet) -> SystemOutput:
    """Read an existing translation."""
    lines = read_text_lines(path)
    test_set.check_lines(lines, str(path))
    return SystemOutput(str(path), lines)


def translate_set(
    models: Sequence[Path],
    test_set: ReferenceSet,
    settings: DecodeSettings,
    progress: Callable[[float], None] | None = None,
    notify: Callable[[str], None] | None = None,
) -> SystemOutput:
    """Translate the sources of a test set with a model, or with several as an ensemble."""
    name = " + ".join(str(model) for model in models)
    if test_set.sources is None:
        raise SeqtoolError(f"{name} is a model, but the source to translate is not known; give it with --source FILE")
    runs = [RunDir(model).require_model() for model in models]
    from seqtool.translation.translator import Translator

    translator = Translator.load(
        models,
        engine=settings.engine,
        device=settings.device,
        threads=settings.threads,
        batch_tokens=settings.batch_tokens,
        notify=notify,
    )
    translations = translator.translate(test_set.sources, progress=progress, **settings.search)
    options = translator.make_options(**settings.search)
    engine = translator.engine_for(options)
    decoding = {
        "beam": options.beam,
        "length_penalty": options.length_penalty,
        "max_length_ratio": options.max_length_ratio,
        **{key: value for key, value in settings.search.items() if value is not None},
        "engine": engine.name,
        "quantization": getattr(engine, "compute_type", "float32"),
        "model": "+".join(model_hash(run) for run in runs),
        "seqtool": __version__,
    }
    lines = [translation.text for translation in translations]
    return SystemOutput(name, lines, [translation.score for translation in translations], decoding)


def model_hash(run: RunDir) -> str:
    """Return the sha256 of a model's weights."""
    return sha256_of(run.weights)


def describe_decoding(decoding: Mapping[str, Any]) -> str:
    """Decoding settings in a line, such as 'beam 5, length penalty 1.0, engine torch'."""
    shown = {key: value for key, value in decoding.items() if value is not None and value != ""}
    if isinstance(shown.get("model"), str):
        shown["model"] = shown["model"][:12]
    return ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in shown.items())


def record_scores(run: RunDir, test_set: str, scores: Sequence[MetricScore], decoding: dict[str, Any]) -> None:
    """Write scores into a model's manifest; they replace earlier ones of the same set, metric and settings."""
    manifest = run.read_manifest()
    new = [
        {"set": test_set, "metric": one.name, "score": one.score, "signature": one.signature, "decoding": decoding}
        for one in scores
    ]
    same = ("set", "metric", "signature", "decoding")
    keys = [[entry[key] for key in same] for entry in new]
    kept = [entry for entry in manifest.get("scores", []) if [entry.get(key) for key in same] not in keys]
    write_whole(run.manifest, to_json({**manifest, "scores": [*kept, *new]}))
