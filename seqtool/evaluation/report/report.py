"""Writes report.html: one file without outside resources that shows how a run went and what its model does."""

from collections.abc import Mapping, Sequence
from html import escape

from seqtool.errors import SeqtoolError
from seqtool.evaluation.report import parts, text_parts
from seqtool.evaluation.report.attention_reading import AttentionMap, AttentionReader, choose_maps
from seqtool.evaluation.report.card import Card, read_card
from seqtool.evaluation.report.card_text import describe_model
from seqtool.evaluation.report.history import TranslatedPair, read_translated_pairs
from seqtool.evaluation.report.markup import section
from seqtool.evaluation.report.page_text import fill_page
from seqtool.evaluation.scores.diagnosis import bucket_by_length, find_faults, sample_rows
from seqtool.evaluation.scores.frequency import group_by_frequency
from seqtool.evaluation.scores.metrics import MetricOptions, score_sentences, sentence_signatures
from seqtool.evaluation.scores.tokenizers import fit_options
from seqtool.files import write_whole
from seqtool.run_directory import RunDir

SAMPLES_OF_A_KIND = 4


def write_report(run: RunDir, attention: bool = True) -> list[str]:
    """Write report.html into a run directory, trained or still in training; return notes on what it lacks."""
    card = read_card(run, verify=False)
    pairs = read_translated_pairs(run)
    notes = []
    if not card.history.train and not card.history.valid:
        notes.append(f"{run.metrics} has no records yet, so there are no curves")
    if not pairs:
        notes.append("no validation translations are kept in this run, so there are no samples")
    maps: list[AttentionMap] = []
    if attention and pairs and run.weights.is_file():
        try:
            maps = read_maps(run, pairs)
        except (SeqtoolError, ImportError) as error:
            notes.append(f"no attention maps: {error}")
    counts = text_parts.count_training_words(run) if pairs else None
    write_whole(run.report, render_report(card, pairs, maps, counts))
    return notes


def read_maps(run: RunDir, pairs: Sequence[TranslatedPair]) -> list[AttentionMap]:
    """Read the attention of a few of the pairs, spread over the validation set."""
    reader = AttentionReader(run.path)
    if not reader.has_attention:
        raise SeqtoolError("this kind of model has no attention")
    spread = pairs[:: max(len(pairs) // 200, 1)]
    return choose_maps(reader, [(pair.src, pair.hyp) for pair in spread if pair.src.strip() and pair.hyp.strip()])


def render_report(
    card: Card,
    pairs: Sequence[TranslatedPair],
    maps: Sequence[AttentionMap],
    word_counts: Mapping[str, int] | None = None,
) -> str:
    """Put the page together; `word_counts` are those of the training targets."""
    sections = [
        parts.tiles(card),
        section(
            "Training",
            parts.curves(card.history),
            "The scores of the finished model, with its own beam and the chosen weights, are below; those of the "
            "validations on the way are made with a beam of their own, to be quick.",
        ),
        section("Scores", parts.score_table(card)),
        *quality_sections(card, pairs, word_counts),
        section(
            "Attention",
            parts.attention(maps),
            "What the decoder looks at: each row is a token of the translation, each column a token of the source. "
            "Half of these sentences are those whose word order changes most.",
        ),
        section("What check found in the corpus", text_parts.corpus_findings(card.data)),
        section("What was trained on what", parts.facts(card)),
        section("Notes of the run", parts.notes(card.history)),
    ]
    name = card.path.rstrip("/").rpartition("/")[2] or card.path
    return fill_page(f"seqtool run: {name}", describe_run(card), sections)


def quality_sections(card: Card, pairs: Sequence[TranslatedPair], word_counts: Mapping[str, int] | None) -> list[str]:
    """The sections that come from the validation translations."""
    if not pairs:
        return []
    sources, references = [pair.src for pair in pairs], [[pair.ref for pair in pairs]]
    hypotheses = [pair.hyp for pair in pairs]
    configured = card.config.train.bleu_tokenize if card.config else "auto"
    options, _ = fit_options(MetricOptions(), references[0], configured)
    scores = score_sentences(hypotheses, references, options)
    buckets = bucket_by_length(hypotheses, references, sources, options)
    signature = sentence_signatures(references, options)[0]
    groups = [] if word_counts is None else group_by_frequency(hypotheses, references[0], word_counts)
    return [
        section("By sentence length", parts.lengths(buckets, find_faults(hypotheses, references, sources))),
        section(
            "By word frequency",
            text_parts.frequencies(groups),
            "Words of the translations against those of the references, whatever their order, by how often the first "
            f"{text_parts.COUNTED_PAIRS:,} training pairs have them in the target.",
        ),
        section(
            "Sample translations",
            parts.samples(pairs, scores, sample_rows(scores, [len(src) for src in sources], SAMPLES_OF_A_KIND)),
            f"From the {len(pairs):,} validation pairs, by sentence chrF (<code>{escape(signature)}</code>). "
            "Words that differ are marked.",
        ),
    ]


def describe_run(card: Card) -> str:
    """One sentence under the title."""
    if card.state != "trained":
        return f"Still in training at step {card.history.last_step:,}."
    made = (card.manifest.created or "")[:10]
    return ". ".join(part for part in (describe_model(card), f"Trained {made}" if made else "") if part) + "."
