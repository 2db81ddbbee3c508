"""What `seqtool translate --show-attention` adds: a picture of what the model looked at in the first line."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from seqtool.errors import OptionError, SeqtoolError
from seqtool.process import rank

if TYPE_CHECKING:
    from seqtool.translation.results import Translation


LONGEST_DRAWN = 1000  # characters


class FirstTranslation:
    """Passes translations on to the form they are printed in, and keeps the first that can be drawn."""

    def __init__(self, form: "Callable[[Translation, int], str]") -> None:
        self.form = form
        self.found: Translation | None = None

    def __call__(self, translation: "Translation", number: int) -> str:
        length = max(len(translation.source), len(translation.text))
        if self.found is None and translation.text and translation.n_parts == 1 and length <= LONGEST_DRAWN:
            self.found = translation
        return self.form(translation, number)


def check_picture(out: Path | None, resume: bool) -> None:
    """Refuse a file that could not be written, before a model is loaded."""
    if out is not None and resume:
        raise OptionError("--show-attention draws the first line, which --resume may not see; leave out one of them")
    if out is None or str(out) == "-":
        return
    if out.suffix.lower() != ".svg":
        raise OptionError(f"{out}: attention is drawn as SVG; give --show-attention a name that ends in .svg, or -")
    if out.is_dir() or not out.parent.is_dir() or not os.access(out.parent, os.W_OK):
        raise SeqtoolError(
            f"{out}: cannot be written; give --show-attention a file in a folder that exists, to write to"
        )


def draw_attention(model: Path, first: FirstTranslation, out: Path) -> None:
    """Write the map of the first translation as SVG, or print it as text on stderr where `out` is "-"."""
    if rank() != 0:
        return  # of several processes the first has the first line
    if first.found is None:
        raise SeqtoolError(
            "--show-attention: there is no line to draw; "
            f"give a line that is neither blank nor longer than {LONGEST_DRAWN:,} characters"
        )
    from seqtool.evaluation.report.attention_map import attention_svg, attention_text
    from seqtool.evaluation.report.attention_reading import AttentionReader
    from seqtool.files import write_whole

    found = AttentionReader(model).read(first.found.source, first.found.text)
    if str(out) == "-":
        print(attention_text(found.src_tokens, found.tgt_tokens, found.average()), file=sys.stderr)
    else:
        try:
            write_whole(out, attention_svg(found.src_tokens, found.tgt_tokens, found.average()))
        except OSError as error:
            raise SeqtoolError(
                f"{out}: cannot be written ({error.strerror}); the translation is complete, only the picture is missing"
            ) from None
        print(f"seqtool: the attention of the first line is drawn in {out}", file=sys.stderr)
