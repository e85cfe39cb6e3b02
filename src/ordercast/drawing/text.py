"""A run in the terminal: time goes down, each node is a column, each line is an instant at which something happened.

An arrow stands on the line where its unit arrives, its tail left open: it set out earlier, where the same name has
its square. On the lane stands what became of it at once. What does not fit on a line goes on the next, without a
time. A time without events is one dotted line, whatever its length.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from textwrap import wrap
from typing import NamedTuple, TypeAlias

from rich.text import Text

from ordercast.drawing.scene import FATES, FOREIGN, DrawnMoment, DrawnTransmission, Mark, Names, Row, Scene, make_scene
from ordercast.model.config import require
from ordercast.model.nodes import name_of

_NARROWEST = 10  # columns of a lane
_WIDEST = 32
_APART = "  "  # between two texts on one line
_CROSS = "✗"

_GLYPHS = {
    "data": ("■", "sent"),
    "copy": ("□", "sent again"),
    "control": ("▫", "unit without data"),
    "send": ("◇", "numbered, not transmitted then"),
    "receive": ("○", "arrived, kept for later"),
    "accept": ("◔", "accepted"),
    "preack": ("◑", "pre-acknowledged"),
    "ack": ("◕", "acknowledged"),
    "deliver": ("●", "delivered"),
    FOREIGN: ("◦", "not for this node"),
    "discard": ("⊘", "discarded"),
    "echo": ("↺", "its own unit came back"),
    "timeout": ("◷", "timer fired"),
    "stop": ("[", "stopped to agree"),
    "resume": ("]", "agreed, and goes on"),
    "view": ("◈", "membership changed"),
    "abort": ("!", "gave the group up"),
    "crash": ("╳", "stopped"),
}

Cells: TypeAlias = dict[int, str]
"""What stands in which columns of a line."""


class _Stroke(NamedTuple):
    """The characters of an arrow; tails and heads for both directions, to the right first."""

    shaft: str
    crossing: str
    tails: str
    heads: str
    meaning: str


_STROKES = {
    "data": _Stroke("─", "┼", "╶╴", "►◄", "data"),
    "copy": _Stroke("═", "╪", "══", "►◄", "copy"),
    "control": _Stroke("┈", "┊", "┈┈", "▷◁", "without data"),
    "lost": _Stroke("┄", "┼", "┄┄", _CROSS * 2, "lost"),
    "lost control": _Stroke("┈", "┊", "┈┈", _CROSS * 2, "lost, without data"),
}


def draw_text(
    rows: Iterable[Row], nodes: int, width: int = 100, *, names: Names | None = None, steps: bool = False
) -> str:
    """The run as text, no line longer than `width`; see `draw_svg` for the rest."""
    scene = make_scene(rows, nodes, names, steps=steps)
    sheet = _Sheet(scene, width)
    lines = [sheet.names(scene.unit)]
    last = None
    for time in scene.instants():
        if last is not None and scene.is_idle(time - last):
            lines.append(sheet.idle(time))
        lines += sheet.instant(time)
        last = time
    return "\n".join([*lines, sheet.names(""), "", *_legend(scene, width)]) + "\n"


def paint(picture: str) -> Text:
    """The same text in colour: losses red, copies and requests set apart, control units grey."""
    text = Text(picture, no_wrap=True)
    for pattern, style in _COLOURS.items():
        text.highlight_regex(pattern, style)
    return text


_NAME = r"(?: [\w.,–…]+(?: [\w.,–…]+)* )?"
_COLOURS = {
    rf"┈[┈┊]*{_NAME}┈*[▷✗]|[◁✗]┈*{_NAME}[┈┊]*┈": "bright_black",
    r"┈[┈┊]* asks [^│┈]+┈*[▷✗]|[◁✗]┈* asks [^│┈]+[┈┊]*┈": "yellow",
    rf"┄[┄┼]*{_NAME}┄*✗|✗┄*{_NAME}[┄┼]*┄": "red",
    rf"═[═╪]*{_NAME}═*►|◄═*{_NAME}[═╪]*═|□ copy \S+": "magenta",
    r"▫ (status|poll|reply|done|control)|◷": "bright_black",
    r"▫ (asks( [\w.,–…]+)+|request)": "yellow",
    r"■ \S+": "bold blue",
    r"[○◔◑◕●]": "green",
    r"⊘|╳|! [^│]*": "red",
    r"(?m)^ *[\d.]+(?= )": "bright_black",
}


class _Sheet:
    """The columns of the picture, and the lines that each instant takes."""

    def __init__(self, scene: Scene, width: int) -> None:
        self.crashes = scene.crashes()
        self._when = scene.when
        self.moments: dict[int, list[DrawnMoment]] = {}
        for moment in scene.moments:
            self.moments.setdefault(moment.time, []).append(moment)
        self.margin = max(len(label) for label in (scene.unit, *map(scene.when, (0, *self.moments)))) + 3
        self.cell = min((width - self.margin) // scene.nodes, _WIDEST)
        require(
            self.cell >= _NARROWEST,
            f"a picture of {scene.nodes} nodes needs a width of {self.margin + _NARROWEST * scene.nodes} columns, "
            f"not {width}: widen it, draw it as SVG, or take fewer nodes",
        )
        self.lanes = [self.margin + self.cell * node for node in range(scene.nodes)]

    def names(self, unit: str) -> str:
        """The line that names the lanes."""
        return self._render(unit, {lane: name_of(node) for node, lane in enumerate(self.lanes)})

    def idle(self, time: int) -> str:
        """The line that stands for a time without events."""
        return self._render("···", dict.fromkeys(self._alive(time), "┊"))

    def instant(self, time: int) -> list[str]:
        """All that happened at one instant, on as many lines as it needs."""
        lines: list[Cells] = [{}]
        for moment in self.moments[time]:
            row = 0
            for flight, arrival in moment.arrivals:
                if arrival.node != flight.node:
                    row = max(row, _lay(lines, self._arrow(moment, flight, lost=arrival.lost)))
            self._write(lines, row, self.lanes[moment.node], _words(moment))
        alive = dict.fromkeys(self._alive(time), "│")
        return [self._render("" if at else self._when(time), alive | line) for at, line in enumerate(lines)]

    def _alive(self, time: int) -> list[int]:
        """The lanes of the nodes that had not stopped before."""
        return [lane for node, lane in enumerate(self.lanes) if time <= self.crashes.get(node, time)]

    def _render(self, label: str, cells: Cells) -> str:
        line = label.rjust(self.margin - 2)
        for column in sorted(cells):
            line = line.ljust(column) + cells[column]
        return line.rstrip()

    def _arrow(self, moment: DrawnMoment, flight: DrawnTransmission, *, lost: bool) -> Cells:
        """An arrow from the sender's lane to this one, with the name of the unit near its head."""
        here, there = self.lanes[moment.node], self.lanes[flight.node]
        stroke = _stroke(flight, lost=lost)
        leftward = here < there
        back = 1 if leftward else -1
        short = 1 if not lost else 2 if self.cell < 20 else 4  # a lost unit stops short of the lane
        alive = self._alive(moment.time)
        cells = {
            column: stroke.crossing if column in alive else stroke.shaft for column in range(here + back, there, back)
        }
        cells[there - back] = stroke.tails[leftward]
        cells |= {here + back * step: " " for step in range(1, short)}
        cells[here + back * short] = stroke.heads[leftward]
        fate = None if lost else moment.fate(flight)
        if fate:
            cells[here] = _GLYPHS[fate.event][0]
        name = flight.name
        if fate and fate.event == "discard" and len(name + fate.note) < self.cell - 4 - short:
            name += f" {fate.note}"
        return cells | self._name_on_shaft(name, here, back, short)

    def _name_on_shaft(self, name: str, here: int, back: int, short: int) -> Cells:
        """A name in the middle of an arrow's last stretch, between its head and the lane before."""
        low, high = sorted((here + back * (short + 1), here + back * (self.cell - 2)))
        text = f" {_shortened(name, high - low - 1)} "
        start = low + (high - low + 1 - len(text)) // 2
        return {start + at: letter for at, letter in enumerate(text)}

    def _write(self, lines: list[Cells], row: int, lane: int, words: Sequence[str]) -> None:
        """Puts words beside a lane, the glyph of the first on it, from this row on wherever there is room."""
        column = lane + len(_APART) if lane in lines[row] else lane
        for long in words:
            word = _shortened(long, self.cell - 2)
            while column + len(word) >= lane + self.cell or any(
                at in lines[row] for at in range(column, column + len(word) + 1)
            ):
                row, column = row + 1, lane
                lines += [{}] * (row == len(lines))
            lines[row] = lines[row] | {column + at: letter for at, letter in enumerate(word)}
            column += len(word + _APART)


def _stroke(flight: DrawnTransmission, *, lost: bool) -> _Stroke:
    carries = flight.kind in {"data", "copy"}
    if lost:
        return _STROKES["lost" if carries else "lost control"]
    return _STROKES[flight.kind if carries else "control"]


def _lay(lines: list[Cells], arrow: Cells) -> int:
    """Puts an arrow on the first row where it crosses nothing; returns that row."""
    row = next((row for row, line in enumerate(lines) if not line.keys() & arrow.keys()), len(lines))
    lines[row:] = [{**(lines[row] if row < len(lines) else {}), **arrow}, *lines[row + 1 :]]
    return row


def _words(moment: DrawnMoment) -> list[str]:
    """What a node did at an instant, as text, without what its arrows show."""
    arrived = {message for flight, _ in moment.arrivals if flight.node != moment.node for message in flight.messages}
    words = [
        f"{_CROSS if arrival.lost else _GLYPHS['echo'][0]} {flight.name}"
        for flight, arrival in moment.arrivals
        if flight.node == moment.node
    ]
    for doing in moment.doings:
        if isinstance(doing, DrawnTransmission):
            words.append(f"{_GLYPHS.get(doing.kind, _GLYPHS['control'])[0]} {doing.label}")
            continue
        left = tuple(message for message in doing.messages if doing.event not in FATES or message not in arrived)
        if left or not doing.messages:
            words.append(f"{_GLYPHS[doing.event][0]} {' '.join(replace(doing, messages=left).lines())}".rstrip())
    return words


def _shortened(text: str, room: int) -> str:
    return text if len(text) <= room else text[: room - 1] + "…"


def _legend(scene: Scene, width: int) -> list[str]:
    """The legend of what occurs in the picture."""
    arrivals = [(flight, arrival) for flight in scene.flights for arrival in flight.arrivals]
    strokes = {_stroke(flight, lost=arrival.lost) for flight, arrival in arrivals if arrival.node != flight.node}
    seen = {flight.kind if flight.kind in _GLYPHS else "control" for flight in scene.flights}
    seen |= {doing.event for moment in scene.moments for doing in moment.doings if isinstance(doing, Mark)}
    seen |= {"echo" for flight, arrival in arrivals if arrival.node == flight.node}
    arrows = [
        f"{stroke.shaft * 3}{stroke.heads[0]} {stroke.meaning}" for stroke in _STROKES.values() if stroke in strokes
    ]
    glyphs = [f"{glyph} {meaning}" for event, (glyph, meaning) in _GLYPHS.items() if event in seen]
    numbers = "" if scene.named else " 1.0 is message 0 of E1, 1.0–2 are its messages 0 to 2."
    notes = wrap(f"An arrow stands where it arrives.{numbers}", width)
    return [*_folded(arrows, width), *_folded(glyphs, width), *notes]


def _folded(entries: Iterable[str], width: int) -> list[str]:
    lines: list[str] = []
    for entry in entries:
        if lines and len(lines[-1]) + 3 + len(entry) <= width:
            lines[-1] += "   " + entry
        else:
            lines.append(entry)
    return lines
