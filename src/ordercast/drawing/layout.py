"""The layout of the SVG: columns within a moment, moments along the time, lanes below each other.

Time runs to the right, but not to one scale. Usually a pixel is a fixed number of nanoseconds; a long idle time is cut
to a fixed width, and where much happens at one node at once, the picture is drawn wider, so that labels do not overlap.
A run too wide for the page is broken into several rows, where no label is in the way. Widths of texts are estimates
from their lengths, on the wide side.
"""

from dataclasses import dataclass
from math import ceil, inf
from typing import NamedTuple

from ordercast.drawing.scene import DrawnMoment, DrawnTransmission, Mark, Scene

LABEL = 12  # font sizes
SMALL = 10
LINE = 14  # from one line of a label to the next
FLIGHT = 96  # the length of a typical flight along the time axis
BREAK = 72  # a cut in the time axis
ROW_WIDTH = 1400  # about the maximum width of a row of the picture

_LETTER = 0.66  # the width of a letter, for a font of size 1
_LEAST = 4  # between two instants
_MARK = 9  # half of what a mark takes on its lane
SHIFT = 7  # how far the label of a unit that leaves reaches past its mark


def text_width(text: str, size: int = LABEL) -> float:
    """An estimate, on the wide side."""
    return len(text) * size * _LETTER


@dataclass(frozen=True, slots=True)
class LabelColumn:
    """One mark on a lane, or all transmissions of a moment, with label lines."""

    offset: float
    """From where the moment begins."""
    mark: Mark | None
    flights: tuple[DrawnTransmission, ...]
    lines: tuple[str, ...]

    @property
    def reach(self) -> float:
        """Half of what it takes on the lane and, with the centred label of a mark, beside it."""
        return _MARK if self.flights else max(_MARK, max(map(text_width, self.lines), default=0) / 2 + 3)


@dataclass(frozen=True, slots=True)
class PlacedMoment:
    """A moment in its place: all labels on one side of the lane, those of marks next to it, those of units beyond."""

    moment: DrawnMoment
    columns: tuple[LabelColumn, ...]
    side: int
    """-1 is above the lane, 1 below."""

    def departure(self) -> float:
        """Where its transmissions leave, from where it begins."""
        return next((column.offset for column in self.columns if column.flights), 0)

    def row(self, column: LabelColumn) -> int:
        """How many lines from the lane the label of a column begins."""
        return max((len(other.lines) for other in self.columns if other.mark), default=0) if column.flights else 0

    def reaches(self) -> dict[int, tuple[float, float]]:
        """How far it reaches to the left and right: on the lane (0), and on each line above (-1, …) or below (1, …)."""
        if not self.columns:
            return {0: (_LEAST, _LEAST)}
        reaches: dict[int, tuple[float, float]] = {0: (_MARK, self.columns[-1].offset + _MARK)}
        for column in self.columns:
            left, right = column.reach - column.offset, column.offset + column.reach
            if column.flights:
                left, right = max(map(text_width, column.lines)) - SHIFT - column.offset, column.offset + SHIFT + _MARK
            for place in range(len(column.lines)):
                line = self.side * (1 + self.row(column) + place)
                before = reaches.get(line, (left, right))
                reaches[line] = max(left, before[0]), max(right, before[1])
        return reaches


@dataclass(frozen=True, slots=True)
class Layout:
    """The whole picture in pixels."""

    times: dict[int, float]
    """Where each instant is."""
    spots: dict[tuple[int, int], PlacedMoment]
    """By time and node."""
    breaks: tuple[float, ...]
    rows: tuple[float, ...]
    """Where the rows begin, and where the last one ends."""
    pitch: float
    above: float
    """How far labels reach above a lane."""
    below: float
    """How far they reach below it."""

    def lane(self, node: int) -> float:
        """How far down the lane of a node is."""
        return self.above + self.pitch * node

    def departure(self, flight: DrawnTransmission) -> float:
        """Where a flight leaves its lane."""
        return self.times[flight.time] + self.spots[flight.time, flight.node].departure()


def lay_out(scene: Scene) -> Layout:
    """Computes the layout."""
    spots = {(moment.time, moment.node): _spot(moment, scene.nodes) for moment in scene.moments}
    whole = _along_the_time(scene, spots, inf).right
    axis = _along_the_time(
        scene, spots, 1.06 * whole / ceil(whole / ROW_WIDTH) + FLIGHT / 2
    )  # so that the last one is not much shorter
    lines = [line for spot in spots.values() for line in spot.reaches()]
    above, below = LINE * -min([-1, *lines]) + 10, LINE * max([1, *lines]) + 10
    rows = (0.0, *axis.cuts, axis.right)
    return Layout(axis.times, spots, axis.breaks, rows, max(104, above + below + 36), above, below)


class _Axis(NamedTuple):
    """The time axis: where each instant is, where it is cut, where rows begin, where it ends."""

    times: dict[int, float]
    breaks: tuple[float, ...]
    cuts: tuple[float, ...]
    right: float


def _along_the_time(scene: Scene, spots: dict[tuple[int, int], PlacedMoment], row_width: float) -> _Axis:
    """Puts each instant as far right as its time and its labels ask; begins a new row when one is full."""
    times: dict[int, float] = {}
    breaks, cuts = [], [0.0]
    free: dict[tuple[int, int], float] = {}  # by node and line
    least, last = FLIGHT / 4, 0
    for time in scene.instants():
        here = [spots[time, node] for node in range(scene.nodes) if (time, node) in spots]
        x = least
        if times:
            step = BREAK if scene.is_idle(time - last) else (time - last) * FLIGHT / scene.flight_time
            x = max(x, times[last] + step)
        if x > cuts[-1] + row_width:
            cuts.append(max(least, *free.values()) + _LEAST)
            x, free = cuts[-1] + FLIGHT / 4, {}
        for spot in here:
            for line, (left, _) in spot.reaches().items():
                x = max(x, free.get((spot.moment.node, line), cuts[-1]) + left)
        if times and scene.is_idle(time - last):
            breaks.append((max(least, cuts[-1]) + x) / 2)
        for spot in here:
            free |= {(spot.moment.node, line): x + right for line, (_, right) in spot.reaches().items()}
        times[time], last = x, time
        least = x + max((spot.columns[-1].offset for spot in here if spot.columns), default=0) + _LEAST
    return _Axis(times, tuple(breaks), tuple(cuts[1:]), max([least, *free.values()]) + FLIGHT / 4)


def _spot(moment: DrawnMoment, nodes: int) -> PlacedMoment:
    """The labels of the outer lanes stand outside, those of the others where no arrow comes in."""
    columns = _columns(moment)
    origins = {flight.node for flight, arrival in moment.arrivals if not arrival.lost}
    if moment.node in {0, nodes - 1}:
        side = 1 if moment.node else -1
    elif origins:
        side = 1 if min(origins) < moment.node else -1
    else:
        side = -1
    return PlacedMoment(moment, columns, side)


def _columns(moment: DrawnMoment) -> tuple[LabelColumn, ...]:
    """The marks of a moment side by side, all its transmissions as one of them."""
    flights = tuple(doing for doing in moment.doings if isinstance(doing, DrawnTransmission))
    columns: list[LabelColumn] = []
    for doing in moment.doings:
        if isinstance(doing, Mark):
            column = LabelColumn(0, doing, (), doing.lines())
        elif doing is flights[0]:
            column = LabelColumn(0, None, flights, tuple(flight.label for flight in flights))
        else:
            continue
        offset = columns[-1].offset + columns[-1].reach + column.reach if columns else 0
        columns.append(LabelColumn(offset, column.mark, column.flights, column.lines))
    return tuple(columns)
