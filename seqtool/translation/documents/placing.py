"""Where markup goes in a translation: around the words that come from the words it was around.

Legend: a unit is a word of the translation (see word_units.py); a place is an offset in the source text; an element is
a pair of tags with what is between them.

An element is put around the run of units that agrees best with it: units that come from its text count for it, others
in between against it. Elements stay inside the elements that they were in, and do not overlap; neighbours may change
places, as words do. What has no text goes where the fewest words change sides. Tags that do not form pairs, and markup
so dense that this would take long, stay in their order, at places in proportion.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

GAP = 0.7  # what a unit from elsewhere costs an element that takes it in: one between two of its own is taken in
MAX_STEPS = 2_000_000  # a second or two


@dataclass(slots=True)
class Markup:
    """A tag, or something else that is no text, at a place in a text with single spaces."""

    kind: Literal["open", "close", "object"]
    raw: str
    name: str
    at: int
    space_before: str = ""  # of an object: the space on that side of it
    space_after: str = ""


@dataclass(slots=True)
class Origins:
    """Where the units of a translation come from, and how much each counts."""

    places: list[float]
    weights: list[float]
    in_proportion: list[float]  # the places if words kept their order, never falling


Events = list[int | Markup]  # the units, by number, and the markup, in the order in which they are written


def place(text: str, markup: Sequence[Markup], origins: Origins) -> Events:
    """Merge the markup of a source text with the units of its translation."""
    root = _find_elements(markup, len(text))
    events = _Placing(text, markup, root, origins).run() if root else None
    return _in_order(markup, origins) if events is None else events


def _in_order(markup: Sequence[Markup], origins: Origins) -> Events:
    events: Events = []
    done = 0
    for one in markup:
        bound = max(done, bisect_left(origins.in_proportion, one.at))
        events += [*range(done, bound), one]
        done = bound
    return [*events, *range(done, len(origins.places))]


@dataclass(slots=True, eq=False)
class _Element:
    start: int
    number: int  # counted as they open, so that those inside an element are number + 1 to last
    opening: Markup | None = None
    closing: Markup | None = None
    end: int = 0
    last: int = 0
    children: list["_Element"] = field(default_factory=list)


def _find_elements(markup: Sequence[Markup], length: int) -> _Element | None:
    """Return the tree of elements, with objects as elements without an end; None if tags do not form pairs."""
    root = _Element(0, 0, end=length)
    open_ones = [root]
    number = 0
    for one in markup:
        innermost = open_ones[-1]
        if one.kind == "close":
            if innermost.opening is None or innermost.opening.name != one.name:
                return None
            innermost.closing, innermost.end, innermost.last = one, one.at, number
            open_ones.pop()
            continue
        number += 1
        element = _Element(one.at, number, one, end=one.at, last=number)
        innermost.children.append(element)
        if one.kind == "open":
            open_ones.append(element)
    root.last = number
    return root if len(open_ones) == 1 else None


class _Placing:
    """Gives each element a run of units, from the outside to the inside."""

    def __init__(self, text: str, markup: Sequence[Markup], root: _Element, origins: Origins) -> None:
        self.text = text
        self.root = root
        self.places = origins.places
        self.weights = origins.weights
        self.labels = _label(text, markup, origins.places)
        self.steps = 0

    def run(self) -> Events | None:
        """Return units and markup in order; None if that would take too many steps."""
        events: Events = []
        todo: list[Markup | range | tuple[_Element, int, int]] = [(self.root, 0, len(self.places))]
        while todo:
            item = todo.pop()
            if isinstance(item, range):
                events += item
            elif isinstance(item, Markup):
                events.append(item)
            else:
                todo += reversed(self._expand(*item))
            if self.steps > MAX_STEPS:
                return None
        return events

    def _expand(self, element: _Element, first: int, end: int) -> list[Markup | range | tuple[_Element, int, int]]:
        """Return what an element is made of if units first to end are in it."""
        parts: list[Markup | range | tuple[_Element, int, int]] = [element.opening] if element.opening else []
        done = first
        for start, stop, child in sorted(self._arrange(element, first, end), key=lambda run: run[0]):
            parts += [range(done, start), (child, start, stop)]
            done = stop
        parts.append(range(done, end))
        return [*parts, element.closing] if element.closing else parts

    def _arrange(self, element: _Element, first: int, end: int) -> list[tuple[int, int, _Element]]:
        """Return the runs of an element's children: first those without units, each kind in its order."""
        if not element.children:
            return []
        outer = self._visible(element)
        if len(element.children) == 1 and self._visible(element.children[0]) == outer:
            return [(first, end, element.children[0])]
        self.steps += (end - first) + len(element.children)
        full = [child for child in element.children if self._is_full(child)]
        runs = self._best_runs(full, first, end)
        self._feed(full, runs, first, end)
        bare = [child for child in element.children if child.number not in runs]
        bounds = _outer_bounds(first, end, runs.values())
        self.steps += len(bare) * (end - first)
        placed = [] if self.steps > MAX_STEPS else [(self._bound(child, bounds, first, end), child) for child in bare]
        found = [(bound, bound, child) for bound, child in placed]
        return found + [(*runs[child.number], child) for child in full if child.number in runs]

    def _visible(self, element: _Element) -> tuple[int, int]:
        """Return the range of an element without the space at its ends."""
        start, end = element.start, element.end
        start += self.text.startswith(" ", start)
        return start, max(start, end - (end > 0 and self.text[end - 1] == " "))

    def _is_full(self, element: _Element) -> bool:
        start, end = self._visible(element)
        return start < end

    def _best_runs(self, children: list[_Element], first: int, end: int) -> dict[int, tuple[int, int]]:
        """Return the run with the largest sum for each child that has units; none takes in a unit of another child."""
        numbers = [child.number for child in children]
        best: dict[int, tuple[float, int, int]] = {}
        current, total, start = -1, 0.0, first
        for unit in range(first, end):
            index = bisect_right(numbers, self.labels[unit]) - 1
            if index < 0 or self.labels[unit] > children[index].last:
                total -= self.weights[unit] * GAP
                current = current if total > 0 else -1
                continue
            if numbers[index] != current:
                current, total, start = numbers[index], 0.0, unit
            total += self.weights[unit]
            if current not in best or total > best[current][0]:
                best[current] = (total, start, unit + 1)
        return {number: (start, stop) for number, (_, start, stop) in best.items()}

    def _feed(self, children: list[_Element], runs: dict[int, tuple[int, int]], first: int, end: int) -> None:
        """Give each child that has no units the nearest one that no other has, so that no link is left without text."""
        hungry = [child for child in children if child.number not in runs]
        if not hungry:
            return
        taken = {unit for start, stop in runs.values() for unit in range(start, stop)}
        free = sorted((self.places[unit], unit) for unit in range(first, end) if unit not in taken)
        for child in hungry:
            if not free:
                return
            middle = sum(self._visible(child)) / 2
            index = bisect_left(free, (middle, 0))
            if index == len(free) or (index and middle - free[index - 1][0] < free[index][0] - middle):
                index -= 1
            unit = free.pop(index)[1]
            runs[child.number] = (unit, unit + 1)

    def _bound(self, child: _Element, bounds: list[int], first: int, end: int) -> int:
        """Return the bound between units with the fewest units on the wrong side."""
        wrong = sum(place < child.start for place in self.places[first:end])  # what should be before, all after it
        best, fewest = bounds[0], wrong
        unit = first
        for bound in bounds:
            for place in self.places[unit:bound]:
                wrong += 1 if place >= child.start else -1
            unit = bound
            if wrong < fewest:
                best, fewest = bound, wrong
        return best


def _label(text: str, markup: Sequence[Markup], places: Sequence[float]) -> list[int]:
    """Return for each unit the number of the innermost element that it comes from."""
    starts, numbers = [0], [0]
    open_ones = [0]
    count = 0
    for one in markup:
        if one.kind == "close":
            open_ones.pop()
        else:
            count += 1
        if one.kind == "open":
            open_ones.append(count)
        starts.append(one.at + (one.kind == "open" and text.startswith(" ", one.at)))
        numbers.append(open_ones[-1])
    return [numbers[bisect_right(starts, place) - 1] for place in places]


def _outer_bounds(first: int, end: int, runs: Iterable[tuple[int, int]]) -> list[int]:
    """Return the bounds between units that are not inside a run."""
    inside = {bound for start, stop in runs for bound in range(start + 1, stop)}
    return [bound for bound in range(first, end + 1) if bound not in inside]
