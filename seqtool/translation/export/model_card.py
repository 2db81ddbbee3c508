"""The model card: a README.md that goes with every exported model, made from what the run directory records."""

from pathlib import PurePath
from typing import Any

from seqtool import __version__
from seqtool.config import load_config
from seqtool.manifest import Manifest
from seqtool.run_directory import RunDir
from seqtool.translation.export.languages import Languages

PROGRAMS = {"huggingface": "transformers", "argos": "Argos Translate", "ctranslate2": "CTranslate2"}


def write_card(run: RunDir, languages: Languages | None, target: str, usage: str) -> str:
    """Return the text of a card for an export to `target`; `usage` is a piece of code or a command."""
    manifest, config = run.read_manifest(), load_config(run.config)
    title = "Translation model" if languages is None else f"{languages.names[0]} to {languages.names[1]} translation"
    parts = [
        front_matter(languages, target),
        f"# {title}",
        f"A {config.model.describe()}, with {count(manifest.model.parameters)} parameters, "
        f"exported by seqtool {__version__} for {PROGRAMS[target]}.",
        "## Use",
        usage,
        "Give it one sentence, or a short paragraph, at a time.",
        "## Intended use",
        intended_use(languages),
        "## Training data",
        "\n".join(data_lines(manifest)),
        "## Scores",
        "\n".join(score_lines(manifest)),
        "## Settings",
        "\n".join(setting_lines(run)),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def front_matter(languages: Languages | None, target: str) -> str:
    """Return the lines that Hugging Face's hub reads."""
    lines = ["---"]
    if languages:
        lines += ["language:", *(f"- {code}" for code in languages.codes)]
    lines += [
        "pipeline_tag: translation",
        "tags:",
        "- translation",
        f"- {PROGRAMS[target].lower().replace(' ', '-')}",
        "- seqtool",
    ]
    lines += ["library_name: transformers"] if target == "huggingface" else []
    return "\n".join([*lines, "---"])


def intended_use(languages: Languages | None) -> str:
    """Say what the model is for, and what it is not."""
    pair = f" from {languages.names[0]} to {languages.names[1]}" if languages else ""
    return (
        f"Machine translation{pair} of text like that of its training data. It can leave out, add or invert meaning; "
        "have a person check translations that matter."
    )


def data_lines(manifest: Manifest) -> list[str]:
    """Return what is known of the data, as a list."""
    data, training, parent = manifest.data, manifest.training, manifest.parent
    origin = (PurePath(parent.path).name if parent and parent.path else "", parent.source if parent else "")
    facts = [
        ("training pairs", count(data.pairs)),
        ("validation pairs", count(data.validation_pairs)),
        ("fingerprint of the data", data.fingerprint),
        ("weights", manifest.model.source),
        ("fine-tuned from", ": ".join(part for part in origin if part)),
        ("trained for", f"{count(training.steps)} steps" if training and training.steps else None),
    ]
    return [f"- {name}: {clean(value)}" for name, value in facts if value] or ["- not recorded"]


def score_lines(manifest: Manifest) -> list[str]:
    """Return the recorded scores with their signatures, as a table."""
    if not manifest.scores:
        return ["None recorded; `seqtool eval --record` computes scores and records them."]
    rows = [
        f"| {clean(one.set or '')} | {clean(one.metric or '')} | {one.score:.2f} | `{clean(one.signature or '')}` |"
        for one in manifest.scores
    ]
    return ["| set | metric | score | signature |", "| --- | --- | ---: | --- |", *rows]


def setting_lines(run: RunDir) -> list[str]:
    """Return the settings that shape the model and its search, as a list."""
    config = load_config(run.config)
    manifest = run.read_manifest()
    chosen, penalty = manifest.model.length_penalty, config.decode.length_penalty
    penalty = chosen if penalty == "auto" and chosen is not None else penalty
    lines = [
        f"- model: {config.model.describe()}",
        f"- tokenizer: {config.tokenizer.kind}, {config.tokenizer.vocab_size:,} tokens"
        + (", one vocabulary for both languages" if config.tokenizer.joint else ""),
        f"- search in seqtool: beam {config.decode.beam}, length penalty {penalty} (GNMT)",
    ]
    if manifest.training:  # an imported model was trained with settings that are not known
        lines.append(
            f"- training: label smoothing {config.train.label_smoothing:g}, dropout {config.model.dropout:g}, "
            f"{config.train.optimizer} with learning rate {config.train.lr:g}, seed {config.train.seed}"
        )
    return lines


def count(value: Any) -> str:
    """Return a whole number with its thousands apart, an unknown one as a word."""
    return f"{value:,}" if isinstance(value, int) else ""


def clean(value: Any) -> str:
    """Return a value as text that cannot break a line or a table."""
    return " ".join(str(value).split()).replace("|", r"\|")
