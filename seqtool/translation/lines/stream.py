"""Translates a stream of lines block by block: N lines in, N lines out, in order, whatever they hold."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Protocol

from seqtool.durations import name_lines
from seqtool.errors import SeqtoolError
from seqtool.progress import Progress, ShowProgress, ignore
from seqtool.translation.engines.interface import SearchOptions
from seqtool.translation.lines.long_lines import LONG_BYTES, translate_long
from seqtool.translation.lines.reading import decode_line
from seqtool.translation.results import Translation
from seqtool.translation.translator import Translator

Form = Callable[[Translation, int], str]
MOST_DETAILED = 1 << 20  # bytes of a line that is translated with scores, tokens and alignment


class Sink(Protocol):
    """Where translated blocks go."""

    n_done: int  # blocks that are there already

    def skip(self, index: int, lines: list[bytes]) -> None:
        """Pass over a block that needs no translation here."""
        ...

    def write(self, index: int, lines: list[bytes], block: list[bytes]) -> None:
        """Take the translations of a block's lines, each with its line break."""
        ...


@dataclass
class Summary:
    """What a translation came to."""

    n_lines: int = 0
    n_invalid: int = 0
    n_split: int = 0
    n_replaced: int = 0
    n_doubtful: int = 0


def plain_form(translation: Translation, number: int) -> str:
    """One line: the text."""
    return translation.text


def n_best_form(translation: Translation, number: int) -> str:
    """One line per hypothesis: line number, score and text, separated by tabs."""
    return "\n".join(f"{number}\t{one.score:.6f}\t{one.text}" for one in translation.hypotheses)


def json_form(n_best: int) -> Form:
    """Return a form of one JSON object per line."""

    def form(translation: Translation, number: int) -> str:
        return json.dumps(translation.to_dict(n_best), ensure_ascii=False)

    return form


class LineTranslator:
    """Translates blocks of lines, and reports problems by line number."""

    def __init__(
        self,
        translator: Translator,
        options: SearchOptions | None = None,
        form: Form = plain_form,
        prefix: str = "",
        notify: Callable[[str], None] | None = None,
    ) -> None:
        self.summary = Summary()
        self._translator = translator
        self._options = options or translator.make_options()
        self._form = form
        self._prefix = prefix
        self.notify = notify or (lambda note: None)
        self._longest = translator.longest_part(self._options)

    def translate(self, block: list[bytes], first: int, progress: Callable[[float], None] | None = None) -> list[bytes]:
        """Return the output for each line of a block whose first line has the number `first`."""
        if any(len(line) >= LONG_BYTES for line in block):
            return self._translate_with_long(block, first, progress)
        texts, valid = zip(*map(decode_line, block), strict=True)
        prefixes = [self._prefix] * len(texts) if self._prefix else None
        done = self._translator.translate(texts, self._options, prefixes=prefixes, progress=progress)
        self._report(done, valid, first)
        return [self._form(translation, number).encode() + b"\n" for number, translation in enumerate(done, first)]

    def _translate_with_long(
        self, block: list[bytes], first: int, progress: Callable[[float], None] | None
    ) -> list[bytes]:
        """Translate a block with very long lines in it: each of these by itself, and what is between them together."""
        done: list[bytes] = []
        for is_long, group in groupby(block, lambda line: len(line) >= LONG_BYTES):
            if not is_long:
                done += self.translate(list(group), first + len(done))
                continue
            for line in group:
                done += self._translate_long(line, first + len(done), progress)
        return done

    def _translate_long(self, line: bytes, number: int, progress: Callable[[float], None] | None) -> list[bytes]:
        """Translate one very long line: its text piece by piece, or, up to a lower limit, with all details."""
        form = self._form.form if isinstance(self._form, FirstTranslation) else self._form
        if form is not plain_form:
            if len(line) > MOST_DETAILED:
                raise SeqtoolError(
                    f"line {number:,}: has {len(line):,} bytes, but only lines of up to {MOST_DETAILED >> 20} MiB are "
                    "translated with scores and tokens; split it, or ask for plain text"
                )
            text, is_valid = decode_line(line)
            prefixes = [self._prefix] if self._prefix else None
            found = self._translator.translate([text], self._options, prefixes=prefixes, progress=progress)
            self._report(found, [is_valid], number)
            return [self._form(found[0], number).encode() + b"\n"]
        long = translate_long(self._translator, line, self._options, self._prefix, progress)
        self._count(1, [] if long.is_valid else [number], [number], long.n_replaced, [number] * long.n_doubtful)
        return [long.text + b"\n"]

    def _report(self, translations: list[Translation], valid: Sequence[bool], first: int) -> None:
        """Count what happened, and name the lines that had a problem."""
        numbered = list(enumerate(translations, first))
        invalid = [number for number, is_valid in enumerate(valid, first) if not is_valid]
        split = [number for number, translation in numbered if translation.n_parts > translation.n_sentences]
        doubtful = [number for number, translation in numbered for _ in range(translation.n_doubtful)]
        n_replaced = sum(translation.n_replaced for translation in translations)
        self._count(len(translations), invalid, split, n_replaced, doubtful)

    def _count(self, n_lines: int, invalid: list[int], split: list[int], n_replaced: int, doubtful: list[int]) -> None:
        summary = self.summary
        summary.n_lines += n_lines
        summary.n_invalid += len(invalid)
        summary.n_split += len(split)
        summary.n_replaced += n_replaced
        summary.n_doubtful += len(doubtful)
        if invalid:
            self.notify(f"{name_lines(invalid)}: not valid UTF-8; the bad bytes were read as U+FFFD")
        if split:
            self.notify(f"{name_lines(split)}: longer than {self._longest} tokens; translated in parts")
        if doubtful:
            self.notify(f"{name_lines(doubtful)}: the translation is empty or looping, and no better one was found")


class FirstTranslation:
    """Passes translations on to the form they are printed in, and keeps the first that is neither blank nor long."""

    def __init__(self, form: Form, longest: int) -> None:
        """Keep none whose source or text has more characters than `longest`."""
        self.form = form
        self.longest = longest
        self.found: Translation | None = None

    def __call__(self, translation: Translation, number: int) -> str:
        length = max(len(translation.source), len(translation.text))
        if (
            self.found is None
            and translation.text
            and translation.n_parts == translation.n_sentences
            and length <= self.longest
        ):
            self.found = translation
        return self.form(translation, number)


class InputProgress:
    """How far a translation has come in its input."""

    def __init__(self, show: ShowProgress, total_bytes: int) -> None:
        """Report with the share done if the size of the input is known (not 0)."""
        self.n_lines = self._n_bytes = 0
        self._show, self._total_bytes = show, total_bytes

    def report(self, block: list[bytes], share: float) -> None:
        """Report that `share` of the present block is done."""
        n_bytes = self._n_bytes + share * (sum(map(len, block)) + len(block))
        done = n_bytes / self._total_bytes if self._total_bytes else None
        self._show(Progress("translating", self.n_lines + round(share * len(block)), unit="lines", share=done))

    def add(self, block: list[bytes]) -> None:
        """Count a block as done."""
        self.n_lines += len(block)
        self._n_bytes += sum(map(len, block)) + len(block)


def translate_blocks(
    worker: LineTranslator,
    blocks: Iterable[list[bytes]],
    sink: Sink,
    *,
    is_mine: Callable[[int], bool] | None = None,
    show: ShowProgress = ignore,
    total_bytes: int = 0,
) -> Summary:
    """Translate blocks into a sink; those that it has already, and other processes', are passed over.

    total_bytes is the size of the input (0: unknown), for `show`.
    """
    progress = InputProgress(show, total_bytes)
    for index, lines in enumerate(blocks):
        if index < sink.n_done or (is_mine is not None and not is_mine(index)):
            sink.skip(index, lines)
        else:
            progress.report(lines, 0.0)
            sink.write(index, lines, worker.translate(lines, progress.n_lines + 1, partial(progress.report, lines)))
        progress.add(lines)
    return worker.summary
