"""An engine, and a second one for what the first does not offer: made when it is first needed, once for all threads."""

import threading
from collections.abc import Callable, Sequence

from seqtool.durations import name_lines
from seqtool.errors import OptionError, SeqtoolError
from seqtool.translation.engines.interface import Engine, SearchOptions


class Engines:
    """Chooses between two engines by what is asked for."""

    def __init__(
        self,
        first: Engine,
        make_second: Callable[[], Engine] | None = None,
        notify: Callable[[str], None] | None = None,
    ) -> None:
        """Take the first engine, and how to make the second if there may be one; `notify` is called when it is made."""
        self.first = first
        self._make_second = make_second
        self._second: Engine | None = None
        self._making = threading.Lock()
        self._notify = notify or (lambda note: None)

    def close(self) -> None:
        """End the engines' threads and free their memory."""
        for engine in (self.first, self._second):
            if engine is not None:
                engine.close()

    def for_search(self, search: SearchOptions, n_source: int, n_prefix: int = 0) -> Engine:
        """Return the first engine that offers a search of sources of up to n_source tokens, with such prefixes."""
        missing = self.first.unsupported(search, n_source)
        if 0 < self.first.max_tokens < n_prefix:
            missing.append(f"`prefix` of {n_prefix:,} tokens")
        if not missing:
            return self.first
        cause = f"the {self.first.name} engine does not offer {', '.join(missing)}"
        if self._make_second is None:
            advice = "leave that out" if self.first.name == "torch" else "use `engine='torch'`"
            raise OptionError(f"{cause}; {advice}")
        return self._get_second(f"{cause}, so the slower torch engine is used")

    def for_pairs(self, lengths: Sequence[int], first_line: int) -> list[tuple[Engine, list[int]]]:
        """Return which pairs each engine scores, by the tokens of their longer sides; lines count from first_line."""
        long = [row for row, length in enumerate(lengths) if 0 < self.first.max_tokens < length]
        if not long:
            return [(self.first, list(range(len(lengths))))]
        lines = name_lines(first_line + row for row in long)
        cause = f"{lines}: longer than the {self.first.max_tokens:,} tokens that the {self.first.name} engine takes"
        if self._make_second is None:
            advice = "" if self.first.name == "torch" else ", or use `engine='torch'`"
            raise SeqtoolError(f"{cause}; shorten what is there{advice}")
        second = self._get_second(f"{cause}, so the slower torch engine is used")
        for row in long:
            if 0 < second.max_tokens < lengths[row]:
                raise SeqtoolError(
                    f"line {first_line + row:,}: its {lengths[row]:,} tokens are more than the {second.max_tokens:,} "
                    "that this model has positions for; shorten it"
                )
        return [(self.first, sorted(set(range(len(lengths))).difference(long))), (second, long)]

    def _get_second(self, note: str) -> Engine:
        """Return the second engine; the user is notified once."""
        assert self._make_second is not None
        with self._making:
            if self._second is None:
                self._notify(note)
                self._second = self._make_second()
            return self._second
