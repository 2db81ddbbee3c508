"""seqtool eval: score a model or a translation, compare systems, and look for what went wrong."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seqtool.cli import eval_options as opt
from seqtool.cli.options import EngineGroup, JsonOption, SearchGroup
from seqtool.cli.streams import notify
from seqtool.errors import OptionError, SeqtoolError

if TYPE_CHECKING:
    from seqtool.evaluation.scores.evaluation import Evaluation
    from seqtool.evaluation.scores.metrics import MetricOptions
    from seqtool.evaluation.scores.reference_set import ReferenceSet
    from seqtool.evaluation.scores.systems import SystemOutput
    from seqtool.translation.engines.settings import EngineSettings


def eval(
    files: opt.Files = None,
    model: opt.Models = None,
    hyp: opt.Hyp = None,
    source: opt.Source = None,
    vs: opt.Versus = None,
    test_set: opt.TestSet = None,
    langpair: opt.LangPair = None,
    per_sentence: opt.PerSentence = None,
    worst: opt.Worst = 3,
    output: opt.Output = None,
    record: opt.Record = False,
    json_: JsonOption = False,
    *,
    metric: opt.MetricGroup,
    comparison: opt.ComparisonGroup,
    search: SearchGroup,
    engine: EngineGroup,
) -> None:
    """Score a model, or an existing translation, against references.

    Prints BLEU, chrF, chrF++ and TER exactly as sacreBLEU computes them, with their signatures, then scores by
    sentence length and the outputs that went wrong. With --vs it also tests which differences are significant
    (the seed is sacreBLEU's: the environment variable SACREBLEU_SEED, or 12345).

    Example: seqtool eval -m run test.en test.de

    Example: seqtool eval --hyp out.de test.de --vs other.de
    """
    check_usage(files or [], model or [], hyp, source, test_set, langpair, record)
    from seqtool.evaluation.scores.evaluation import evaluate
    from seqtool.evaluation.scores.tokenizers import fit_options

    options, settings = metric.options((langpair or "").partition("-")[2]), engine.settings()
    show_sacrebleu_warnings()
    check_before_work(
        options, [path for path in (output, per_sentence) if path], model[0] if model and record else None
    )
    texts = read_test_set(files or [], bool(model), source, test_set, langpair)
    options, note = fit_options(options, texts.references[0], configured_tokenizer(model or []))
    if note:
        notify(note)
    system, *others = get_systems(hyp or model or [], vs or [], texts, settings, vars(search))
    failure = write_output(output, system) if output else None
    found = evaluate(texts, system, options, others, comparison.plan(), worst, with_sentences=per_sentence is not None)
    print_results(found, json_, metric.width)
    write_results(found, per_sentence, model[0] if model and record else None)
    if failure:
        raise failure


def check_usage(
    files: list[Path],
    model: list[Path],
    hyp: Path | None,
    source: Path | None,
    test_set: str | None,
    langpair: str | None,
    record: bool,
) -> None:
    """Raise what is wrong with the command itself before anything is read."""
    from seqtool.corpus.reading.corpus import names_pairs

    if bool(model) == bool(hyp):
        raise OptionError("give either -m DIR (translate, then score) or --hyp FILE (score), not both or none")
    if bool(test_set) != bool(langpair):
        raise OptionError("--test-set and --langpair belong together: --test-set wmt14 --langpair en-de")
    if test_set and (files or source):
        raise OptionError("--test-set brings its own source and references; give no files beside it")
    if not test_set and model and len(files) < 2 and not (files and names_pairs(files[0])):
        raise OptionError(
            "-m needs a source and at least one reference: seqtool eval -m DIR SRC REF, or a file with both: test.tsv"
        )
    if not test_set and hyp and not files:
        raise OptionError("--hyp needs at least one reference: seqtool eval --hyp FILE REF")
    if model and source:
        raise OptionError("--source is for --hyp; with -m the source is the first file")
    if record and not (model and len(model) == 1):
        raise OptionError("--record writes into the manifest of one model; give exactly one -m")


def check_before_work(options: "MetricOptions", outputs: list[Path], recorded: Path | None) -> None:
    """Raise what would fail after the translation, before it: a tokenizer, a place to write, a manifest."""
    from seqtool.evaluation.scores.metrics import build_metric
    from seqtool.run_directory import RunDir

    for name in {*options.metrics, "bleu"}:  # single sentences are scored by BLEU in any case
        build_metric(name, options)
    for path in outputs:
        if path.is_dir() or not os.access(path.parent, os.W_OK):
            raise SeqtoolError(f"{path}: cannot be written; give a file in a folder that exists, to write to")
    if recorded and not RunDir(recorded).manifest.is_file():
        raise SeqtoolError(f"{recorded}: has no manifest.json to record scores in; leave out --record")
    if recorded:
        RunDir(recorded).read_manifest()
    if recorded and not os.access(recorded, os.W_OK):
        raise SeqtoolError(f"{recorded}: cannot be written to; leave out --record")


def configured_tokenizer(models: list[Path]) -> str:
    """Return sacreBLEU's tokenizer that a model was validated with; "auto" without a model."""
    from seqtool.config import load_config
    from seqtool.unfinished import find_model

    return load_config(find_model(models[0]).config).train.bleu_tokenize if models else "auto"


def read_test_set(
    files: list[Path], has_model: bool, source: Path | None, test_set: str | None, langpair: str | None
) -> "ReferenceSet":
    """Read source and references from files, or get them from sacreBLEU."""
    from seqtool.corpus.reading.corpus import names_pairs
    from seqtool.evaluation.scores.reference_set import fetch_reference_set, read_reference_set

    if test_set and langpair:
        return fetch_reference_set(test_set, langpair)
    if has_model and not names_pairs(files[0]):
        return read_reference_set(files[0], files[1:])
    return read_reference_set(source, files)


def get_systems(
    first: Path | list[Path],
    others: list[Path],
    texts: "ReferenceSet",
    settings: "EngineSettings",
    search: Mapping[str, Any],
) -> "list[SystemOutput]":
    """Read translations from files, and make those of models.

    `first` is a file or the models of an ensemble, each of the others a file or a model. Files and models are checked
    before any translation is made.
    """
    from seqtool.evaluation.scores.systems import check_can_translate, read_output

    named = [first, *([path] if path.is_dir() else path for path in others)]
    ready = {}
    for index, one in enumerate(named):
        if isinstance(one, Path):
            ready[index] = read_output(one, texts)
        else:
            check_can_translate(one, texts)
    return [
        ready[index] if isinstance(one, Path) else translate_with(one, texts, settings, search)
        for index, one in enumerate(named)
    ]


def translate_with(
    models: list[Path], texts: "ReferenceSet", settings: "EngineSettings", search: Mapping[str, Any]
) -> "SystemOutput":
    """Translate with a model or an ensemble, with progress on stderr."""
    from seqtool.evaluation.scores.systems import translate_set
    from seqtool.progress import ProgressLine

    with ProgressLine("terminal") as line:
        return translate_set(models, texts, settings, search, line, notify)


def write_output(path: Path, system: "SystemOutput") -> OSError | None:
    """Write a translation before it is scored, which may take long; return what went wrong, to be raised after that."""
    from seqtool.files import write_whole

    try:
        write_whole(path, "".join(line + "\n" for line in system.lines))
    except OSError as error:
        return error
    return None


def write_results(found: "Evaluation", per_sentence: Path | None, model: Path | None) -> None:
    """Write what was asked for into files."""
    from seqtool.evaluation.scores.evaluation import sentence_table
    from seqtool.evaluation.scores.systems import record_scores
    from seqtool.files import write_whole
    from seqtool.run_directory import RunDir

    if per_sentence:
        write_whole(per_sentence, "".join(row + "\n" for row in sentence_table(found)))
    if model:
        record_scores(RunDir(model), found.test_set, found.scores, found.system.decoding or {})


def print_results(found: "Evaluation", as_json: bool, width: int | None) -> None:
    """Print one JSON object or the text."""
    from seqtool.evaluation.scores.evaluation_text import evaluation_text
    from seqtool.files import to_json

    if as_json:
        print(to_json(found.to_json(width)), end="")
        return
    for line in evaluation_text(found):
        print(line)


def show_sacrebleu_warnings() -> None:
    """Print sacreBLEU's warnings (text that looks tokenized, for one) on stderr in seqtool's form."""
    import logging

    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("seqtool: warning: sacreBLEU: %(message)s"))
    logger = logging.getLogger("sacrebleu")
    logger.setLevel(logging.WARNING)
    logger.addHandler(handler)
