"""A run as SVG: time goes to the right, each node is a line, each arrival an arrow; elements have tooltips.

The picture stands by itself: no script, no font or style from elsewhere. It follows the reader's light or dark scheme.
"""

from collections.abc import Iterable, Iterator
from itertools import pairwise

from ordercast.drawing.layout import LINE, SHIFT, SMALL, Layout, PlacedMoment, lay_out, text_width
from ordercast.drawing.scene import FOREIGN, DrawnArrival, DrawnTransmission, Mark, Names, Row, Scene, make_scene
from ordercast.drawing.shapes import STYLE, arrow, cross, departure, echo, group, line, lost_echo, mark, words
from ordercast.model.nodes import name_of

_NARROWEST = 760  # so that the legend has room
_SIDE = 16
_NAMES = 52  # where the lanes begin, after their names
_MEANINGS = {
    "send": "numbered, not transmitted then",
    "receive": "arrived, kept for later",
    "accept": "accepted",
    "preack": "pre-acknowledged",
    "ack": "acknowledged",
    "deliver": "delivered",
    FOREIGN: "not for this node",
    "discard": "discarded",
    "timeout": "timer fired",
    "stop": "stopped to agree",
    "resume": "agreed, and goes on",
    "view": "membership changed",
    "abort": "gave the group up",
    "crash": "stopped",
}
_KINDS = {"data": "data", "copy": "copy (sent again)", "control": "without data", "request": "request"}


def draw_svg(rows: Iterable[Row], nodes: int, *, names: Names | None = None, steps: bool = False) -> str:
    """The run as an SVG document.

    `names` are what messages are called; without them they are called by source and number. With `steps` the times of
    the rows count steps, rather than nanoseconds.
    """
    scene = make_scene(rows, nodes, names, steps=steps)
    layout = lay_out(scene)
    foot = layout.lane(nodes - 1) + layout.below + 24
    run = [
        *_ground(scene, layout, foot),
        *_arrows(scene, layout),
        *(part for spot in layout.spots.values() for part in _marks(spot, layout, scene)),
    ]
    width = max(_NAMES + _SIDE + max(end - start for start, end in pairwise(layout.rows)), _NARROWEST)
    row_svgs, bottom = _rows(scene, layout, foot + 26)
    legend, height = _legend(scene, width, bottom + 10)
    caption = _caption(scene)
    size = f'width="{width:.0f}" height="{height:.0f}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" role="img" {size} viewBox="0 0 {width:.0f} {height:.0f}">',
            f"<title>Space-time diagram: {caption}</title>",
            f"<style>{STYLE}</style>",
            '<defs><g id="run">',
            *run,
            "</g></defs>",
            f'<rect class="paper" {size}/>',
            words(caption, _SIDE, 24, "quiet"),
            *row_svgs,
            *legend,
            "</svg>\n",
        ]
    )


def _rows(scene: Scene, layout: Layout, height: float) -> tuple[list[str], float]:
    """Windows on the run below each other, each with the names of the lanes before it; and where they end."""
    parts = []
    y = 36.0
    for start, end in pairwise(layout.rows):
        width = end - start
        parts += [words(name_of(node), _SIDE, y + layout.lane(node) + 5, "name") for node in range(scene.nodes)]
        parts.append(words(scene.unit, _SIDE, y + height - 8, "time"))
        parts.append(
            f'<svg class="stave" x="{_NAMES}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" '
            f'viewBox="{start:.1f} 0 {width:.1f} {height:.1f}"><use href="#run"/></svg>'
        )
        y += height + 18
    return parts, y


def _caption(scene: Scene) -> str:
    arrivals = [arrival for flight in scene.flights for arrival in flight.arrivals]
    messages = {message for flight in scene.flights for message in flight.messages}
    counts = {
        "node": scene.nodes,
        "message": len(messages),
        "transmission": len(scene.flights),
        "loss": sum(arrival.lost for arrival in arrivals),
    }
    return ", ".join(
        f"{count} {noun}{'' if count == 1 else 'es' if noun == 'loss' else 's'}" for noun, count in counts.items()
    )


def _ground(scene: Scene, layout: Layout, foot: float) -> Iterator[str]:
    """Guides, lanes, cuts in the time, and the times along the bottom."""
    crashes = scene.crashes()
    free = 0.0
    for time, x in layout.times.items():
        label = scene.when(time)
        half = text_width(label, SMALL) / 2
        if x - half >= free and not any(x - half < cut < x + half for cut in layout.rows):
            yield line(x, 0, x, foot + 4, "guide")
            yield words(label, x, foot + 18, "time", "middle")
            free = x + half + 8
    for node in range(scene.nodes):
        y = layout.lane(node)
        end = layout.times[crashes[node]] if node in crashes else layout.rows[-1]
        yield line(0, y, end, y, "lane")
        for x in layout.breaks:
            if x < end:
                yield f'<path class="paper" d="M{x - 4:.1f} {y - 4:.1f}h8v8h-8z"/>'
                yield f'<path class="cut" d="M{x - 6:.1f} {y + 6:.1f}l4 -12M{x + 2:.1f} {y + 6:.1f}l4 -12"/>'


def _arrows(scene: Scene, layout: Layout) -> Iterator[str]:
    """Control units first, so that data lies above them."""
    for flight in sorted(scene.flights, key=lambda flight: flight.kind in {"data", "copy"}):
        start = layout.departure(flight), layout.lane(flight.node)
        for arrival in flight.arrivals:
            end = layout.times[arrival.time], layout.lane(arrival.node)
            lost = " lost" if arrival.lost else ""
            tip = _tip(scene, flight, arrival)
            spot = layout.spots[arrival.time, arrival.node]
            if arrival.node == flight.node:
                shape = (lost_echo if arrival.lost else echo)(*end, -spot.side)
                yield group(f"echo{lost}", tip, shape)
            else:
                shape = arrow(flight.kind, start, end, lost=arrival.lost, marked=bool(spot.columns))
                yield group(f"arrow{lost} {_look(flight)}", tip, shape)


def _look(flight: DrawnTransmission) -> str:
    return flight.kind if flight.kind in _KINDS else "control"


def _tip(scene: Scene, flight: DrawnTransmission, arrival: DrawnArrival) -> str:
    name = flight.label if flight.kind in {"copy", "request"} else flight.name
    end = "arrived" if not arrival.lost else f"lost ({arrival.why})" if arrival.why else "lost"
    return (
        f"{name}, {name_of(flight.node)} to {name_of(arrival.node)}: "
        f"left {_at(scene, flight.time)}, {end} {_at(scene, arrival.time)}"
    )


def _at(scene: Scene, time: int) -> str:
    return f"step {time}" if scene.steps else f"{scene.when(time, 3)} µs"


def _marks(spot: PlacedMoment, layout: Layout, scene: Scene) -> Iterator[str]:
    """What a node did at a moment, with labels."""
    moment = spot.moment
    x, y = layout.times[moment.time], layout.lane(moment.node)
    when = f"{name_of(moment.node)}, {_at(scene, moment.time)}"
    for column in spot.columns:
        at = x + column.offset
        base = y + (20 if spot.side > 0 else -12) + spot.side * LINE * spot.row(column)
        lines = column.lines if spot.side > 0 or column.flights else tuple(reversed(column.lines))
        style, anchor, shift = "quiet", "middle", 0
        if column.mark:
            classes, shape = mark(column.mark.event, at, y)
            text = " ".join(column.mark.lines())
            tip = f"{when}: {_MEANINGS[column.mark.event]}{': ' if text else ''}{text}"
            yield group(f"mark {column.mark.event} {classes}", tip, shape)
            style = {"level": "known", "alarm": "alarm"}.get(classes, style)
        for flight in column.flights:
            yield group(f"mark {_look(flight)}", f"{when}: {flight.label}", departure(flight.kind, at, y))
            style, anchor, shift = _look(flight), "end", SHIFT
        for place, text in enumerate(lines):
            yield words(text, at + shift, base + spot.side * LINE * place, f"halo {style}", anchor)


def _legend(scene: Scene, width: float, top: float) -> tuple[list[str], float]:
    """The legend of what occurs in the picture; and where the picture ends."""
    arrivals = [(flight, arrival) for flight in scene.flights for arrival in flight.arrivals]
    entries: list[tuple[str, float, str]] = []
    for kind, meaning in _KINDS.items():
        if any(_look(flight) == kind for flight in scene.flights):
            shape = arrow(kind, (0, 0), (40, 0)) + departure(kind, 0, 0)
            entries.append((group(f"arrow-key {kind}", "", shape), 44, meaning))
    if any(arrival.lost for _, arrival in arrivals):
        entries.append((group("lost", "", line(0, 0, 24, 0) + cross(28, 0)), 40, "lost"))
    if any(arrival.node == flight.node for flight, arrival in arrivals):
        entries.append((group("echo", "", echo(20, 6, -1)), 28, "its own unit came back"))
    seen = {doing.event for moment in scene.moments for doing in moment.doings if isinstance(doing, Mark)}
    for event, meaning in _MEANINGS.items():
        if event in seen:
            classes, shape = mark(event, 4, 0)
            entries.append((group(classes, "", shape), 14, meaning))
    parts = []
    x, y = 22.0, top
    for shape, room, meaning in entries:
        taken = room + 0.9 * text_width(meaning) + 22
        if x + taken > width and x > 22:
            x, y = 22.0, y + 24
        parts.append(f'<g transform="translate({x:.1f} {y:.1f})">{shape}{words(meaning, room, 4)}</g>')
        x += taken
    numbers = "" if scene.named else "1.0 is message 0 of E1, 1.0–2 are its messages 0 to 2. "
    cut = "" if scene.steps else "; // is an idle time cut"
    note = f"{numbers}Crowded moments are drawn wider{cut}."
    parts.append(words(note, _SIDE, y + 26, "quiet"))
    return parts, y + 42
