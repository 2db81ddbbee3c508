"""Which of sacreBLEU's tokenizers fits a text: 13a if words have spaces between them, others by the script."""

from collections.abc import Iterable
from dataclasses import replace

from seqtool.corpus.scripts import name_writing, share_scripts
from seqtool.errors import SeqtoolError
from seqtool.evaluation.scores.metrics import MetricOptions, build_metric

USUAL = "13a"
CHARACTERS = "char"
TOKENIZERS = {"Japanese": "ja-mecab", "Chinese": "zh", "Korean": "ko-mecab"}  # in Thai, Lao, ... characters count
SPLIT_BY_TER = ("Japanese", "Chinese")  # in which TER can count characters as words


def choose_tokenizer(writing: str) -> tuple[str, str]:
    """Return the tokenizer for a text in this writing (see name_writing), and what a user should know of the choice."""
    if not writing:
        return USUAL, ""
    wanted = TOKENIZERS.get(writing, CHARACTERS)
    if is_at_hand(wanted):
        return wanted, f"the target is {writing}, so BLEU uses sacreBLEU's tokenizer {wanted}"
    return CHARACTERS, (
        f"the target is {writing}, but sacreBLEU's tokenizer {wanted} is not installed, so BLEU counts characters; "
        "for it: pip install 'seqtool[cjk]'"
    )


def fit_options(
    options: MetricOptions, references: Iterable[str], configured: str = "auto"
) -> tuple[MetricOptions, str]:
    """Fill in what the user left open, and return a note on it: the tokenizer that a model is configured with, else
    the one that the references need; and how TER splits them."""
    writing = name_writing(share_scripts(references))
    note = ""
    if writing in SPLIT_BY_TER:
        options = replace(options, ter_normalized=True, ter_asian_support=True)
    if options.tokenize is not None:
        return options, note
    if configured == "auto":
        configured, note = choose_tokenizer(writing)
    elif configured in TOKENIZERS.values() and not is_at_hand(configured):
        note = (
            f"the model was validated with sacreBLEU's tokenizer {configured}, which is not installed, so BLEU counts "
            "characters; for it: pip install 'seqtool[cjk]'"
        )
        configured = CHARACTERS
    return replace(options, tokenize=configured), note


def is_at_hand(tokenizer: str) -> bool:
    """Return whether sacreBLEU has all that one of its tokenizers needs."""
    try:
        build_metric("bleu", MetricOptions(tokenize=tokenizer))
    except SeqtoolError:
        return False
    return True
