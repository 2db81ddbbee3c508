"""What is to be scored: translations from a file, or made by a model, with the settings that they were made with."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from seqtool import __version__
from seqtool.errors import OptionError
from seqtool.evaluation.scores.metrics import MetricScore
from seqtool.evaluation.scores.reference_set import ReferenceSet, read_text_lines
from seqtool.manifest import ScoreEntry
from seqtool.progress import Progress, ShowProgress, ignore
from seqtool.run_directory import RunDir
from seqtool.translation.engines.settings import EngineSettings
from seqtool.unfinished import find_model


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


def check_can_translate(models: Sequence[Path], test_set: ReferenceSet) -> list[str]:
    """Return the sources that models are to translate; raise if there are none, or no such models."""
    if test_set.sources is None:
        raise OptionError(f"{name_models(models)} is a model, but the source to translate is not known; give `source`")
    for model in models:
        find_model(model)
    return test_set.sources


def name_models(models: Sequence[Path]) -> str:
    """Return the name of a model, or of several as an ensemble."""
    return " + ".join(str(model) for model in models)


def translate_set(
    models: Sequence[Path],
    test_set: ReferenceSet,
    settings: EngineSettings,
    search: Mapping[str, Any],
    show: ShowProgress = ignore,
    notify: Callable[[str], None] | None = None,
) -> SystemOutput:
    """Translate the sources of a test set with a model, or with several as an ensemble.

    `search` has the options of the search that are not the model's own.
    """
    sources = check_can_translate(models, test_set)
    from seqtool.translation.translator import Translator

    translator = Translator.with_engine(models, settings, notify=notify)
    options = translator.make_options(**search)

    def report(share: float) -> None:
        show(Progress("translating", round(share * len(sources)), unit="lines", share=share))

    translations = translator.translate(sources, options, progress=report)
    models_used = zip(translator.runs, translator.checksums, strict=True)
    weights = "+".join(checksums[run.weights.name] for run, checksums in models_used)
    decoding = {**translator.describe(options), "model": weights, "seqtool": __version__}
    lines = [translation.text for translation in translations]
    return SystemOutput(name_models(models), lines, [translation.score for translation in translations], decoding)


def describe_decoding(decoding: Mapping[str, Any]) -> str:
    """Decoding settings in a line, such as 'beam 5, length penalty 1.0, engine torch'."""
    shown = {key: value for key, value in decoding.items() if value is not None and value != ""}
    if isinstance(shown.get("model"), str):
        shown["model"] = shown["model"][:12]
    return ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in shown.items())


def name_differences(one: Mapping[str, Any] | None, other: Mapping[str, Any] | None) -> list[str]:
    """Return the settings in which two decodings differ, such as 'beam 5 and 1'; empty if one is not known."""
    if one is None or other is None:
        return []
    names = [name for name in {**one, **other} if name not in ("model", "seqtool")]
    return [
        f"{name.replace('_', ' ')} {one.get(name)} and {other.get(name)}"
        for name in names
        if one.get(name) != other.get(name)
    ]


def record_scores(run: RunDir, test_set: ReferenceSet, scores: Sequence[MetricScore], decoding: dict[str, Any]) -> None:
    """Write scores into a model's manifest; they replace earlier ones of the same set, metric and settings."""
    manifest = run.read_manifest()
    new = [
        ScoreEntry(
            set=test_set.name,
            metric=one.name,
            score=one.score,
            signature=one.signature,
            set_sha256=test_set.sha256,
            decoding=decoding,
        )
        for one in scores
    ]
    replaced = [identity(entry) for entry in new]
    kept = [entry for entry in manifest.scores if identity(entry) not in replaced]
    run.write_manifest(replace(manifest, scores=(*kept, *new)))


def identity(entry: ScoreEntry) -> tuple[Any, ...]:
    """Return all of a score but its value: what is scored, by what and how it was made."""
    return entry.set, entry.set_sha256, entry.metric, entry.signature, entry.decoding
