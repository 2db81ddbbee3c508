"""Search options from what a user gave: names are checked, and words are turned into token ids."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from seqtool.config import DecodeConfig
from seqtool.corpus.tokenizer.interface import SPACE, SpecialIds, Tokenizer
from seqtool.errors import OptionError, SeqtoolError, suggest
from seqtool.translation.engines.interface import Engine, SearchOptions

ALWAYS_RECORDED = ("beam", "length_penalty", "coverage_penalty", "max_length_ratio")
# Translator.describe() records the last; the others do not change the best translation.
NEVER_RECORDED = ("n_best", "token_scores", "alignment", "split")


def make_options(config: DecodeConfig, target: Tokenizer, changes: Mapping[str, Any]) -> SearchOptions:
    """Lay a user's changes over a model's own decoding settings; banned and required may be given as words."""
    known = [field.name for field in dataclasses.fields(SearchOptions)]
    given = {name: value for name, value in changes.items() if value is not None}
    for name in given:
        if name not in known:
            raise OptionError(f"there is no search option '{name}'{suggest(name, known)}")
    for name in ("banned", "required"):
        if name in given:
            given[name] = token_ids(given[name], target, name)
    options = SearchOptions.from_config(config, **given)
    check_together(options, given)
    check_known(check_ids(options, [], target.special), target.vocab_size)
    return options


def check_together(options: SearchOptions, given: Mapping[str, Any]) -> None:
    """Raise if an option that was given would have no effect beside the others."""
    if not options.sample and (options.top_k or options.top_p < 1 or options.temperature != 1 or "seed" in given):
        raise OptionError("`temperature`, `top_k`, `top_p` and `seed` are for random sampling; add `sample=True`")
    if "diversity" in given and options.diverse_groups == 1:
        raise OptionError("`diversity` is a penalty between groups of beams; add `diverse_groups`")
    for name in ("beam", "patience", "diverse_groups", "required"):
        if options.sample and name in given:
            raise OptionError(f"`{name}` is for beam search, not for `sample`; leave out one of them")
    n_required = len(options.required)
    if n_required and options.diverse_groups > 1:
        raise OptionError("`required` cannot be combined with `diverse_groups`; leave out one of them")
    if n_required >= options.beam:
        raise OptionError(
            f"a beam of {options.beam} is too narrow to find good places for {n_required} required tokens; "
            f"give `beam={n_required + 1}` or more"
        )


def check_ids(options: SearchOptions, prefixes: Sequence[Sequence[int]], special: SpecialIds) -> int:
    """Raise if tokens are asked for that cannot be, or that contradict each other; return the highest."""
    wanted = {*options.required, *(token for prefix in prefixes for token in prefix)}
    if min(wanted | {*options.banned}, default=0) < 0:
        raise SeqtoolError(
            f"token {min(wanted | {*options.banned})} does not exist: token ids begin with 0; give another"
        )
    if special.eos in options.banned:
        raise OptionError("the end symbol cannot be banned: no translation could end; take it off the banned tokens")
    if {special.pad, special.bos, special.eos} & wanted:
        raise OptionError("begin, end and padding symbols cannot be required or stand in a prefix; leave them out")
    both = set(options.banned) & set(options.required)
    if both:
        raise OptionError(f"token {min(both)} is both banned and required; take it off one of the two")
    return max(wanted | {*options.banned}, default=0)


def check_known(token: int, vocab_size: int) -> None:
    """Raise if a vocabulary does not have a token."""
    if token >= vocab_size:
        raise SeqtoolError(f"token {token} is not in the vocabulary of {vocab_size} tokens; give one that is")


def describe_search(options: SearchOptions, engine: Engine) -> dict[str, Any]:
    """Return what a score is recorded with: the settings of a search, and the engine that made it."""
    recorded = {}
    for field in dataclasses.fields(SearchOptions):
        value = getattr(options, field.name)
        if field.name in ALWAYS_RECORDED or (field.name not in NEVER_RECORDED and value != field.default):
            recorded[field.name] = list(value) if isinstance(value, tuple) else value
    return {**recorded, "engine": engine.name, "quantization": engine.compute_type}


def token_ids(words: Iterable[str | int], target: Tokenizer, name: str) -> tuple[int, ...]:
    """Return the token ids of words (each must be one token of the target vocabulary) or pass ids through."""
    if isinstance(words, str):
        raise SeqtoolError(f"'{name}' is a list of words; write {name}=[{words!r}]")
    ids: list[int] = []
    for word in words:
        if isinstance(word, int):
            ids.append(word)
            continue
        forms = [word] if word.startswith(SPACE) else [SPACE + word, word]
        found = [form_id for form_id in target.ids_of(forms) if form_id != target.special.unk]
        if not found:
            pieces = " ".join(target.pieces(target.encode(word)))
            raise SeqtoolError(
                f"'{word}' cannot be {name}: it is not one token of this model's vocabulary but several ({pieces}); "
                "give one of these"
            )
        ids += found if name == "banned" else found[:1]
    return tuple(dict.fromkeys(ids))
