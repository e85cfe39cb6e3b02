"""What a picture shows at a place: colours of sampled pixels, and where things are on the page."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ordercast.viewer.export import Range, exported
from ordercast.viewer.traces import Traces
from tests.viewer.browser import Page

NAMES = ("send", "data", "lose", "level", "deliver", "recovery", "chosen")
"""Colours that are told apart; `level` is also that of copies."""
_BLOCK = """(() => {{ const g = app.first.canvas.getContext("2d"), reach = {reach};
return Array.from(g.getImageData({x} - reach, {y} - reach, 2 * reach + 1, 2 * reach + 1).data) }})()"""
_COLOURS = """(() => {
const found = {}, g = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
for (const [name, colour] of Object.entries(app.first.painter.colours)) {
  g.clearRect(0, 0, 1, 1); g.fillStyle = colour; g.fillRect(0, 0, 1, 1);
  found[name] = Array.from(g.getImageData(0, 0, 1, 1).data).slice(0, 3);
}
return found })()"""
_LEAST = 0.35  # of a colour's distance from the background: what is thinner is an edge of something

Colour = tuple[int, int, int]


def page_of(folder: Path, *traces: Path, runs: tuple[str, ...] = ("r",), **more: Any) -> str:
    """The address of a file with some runs."""
    file = folder / "page.html"
    file.write_bytes(exported(Traces(traces), list(runs), Range(), **more).page)
    return file.as_uri()


def pixel(page: Page, time: float, node: int, *, down: float = 0) -> Colour:
    """One pixel of a lane."""
    x, y = spot(page, time, node)
    return _pixels(page, x, y + down, 0)[0]


def colour(page: Page, name: str) -> Colour:
    """What something is drawn with."""
    return _colours(page)[name]


def spot(page: Page, time: float, node: int) -> tuple[float, float]:
    """Where an event is in the picture."""
    x, y = page.evaluate(f"[app.first.painter.x({time}), app.first.painter.y({node})]")
    return x, y


def place(page: Page, time: float, node: int) -> tuple[float, float]:
    """Where it is on the page, for the mouse."""
    x, y = spot(page, time, node)
    left, top = page.evaluate(
        "(() => { const box = app.first.canvas.getBoundingClientRect(); return [box.left, box.top] })()"
    )
    return left + x, top + y


def colours_at(page: Page, x: float, y: float, reach: int = 2) -> set[str]:
    """The names of the colours that some pixel near a point has, as far as they are strong."""
    return _named(_pixels(page, x, y, reach), _colours(page))


def _named(pixels: Sequence[Colour], colours: Mapping[str, Colour]) -> set[str]:
    back = colours["back"]
    wanted = {name: _away(colours[name], back) for name in NAMES}
    found = set()
    for each in pixels:
        way = _away(each, back)
        name = max(NAMES, key=lambda name: _alike(way, wanted[name]))
        if math.hypot(*way) > _LEAST * math.hypot(*wanted[name]) and _alike(way, wanted[name]) > 0.98:
            found.add(name)
    return found


def along(page: Page, start: tuple[float, int], end: tuple[float, int], share: float) -> set[str]:
    """The colours at a part of the way from one event to another; each is a time and a node."""
    return all_along(page, start, end, [share])[0]


def all_along(page: Page, start: tuple[float, int], end: tuple[float, int], shares: Sequence[float]) -> list[set[str]]:
    """The same at several parts of the way."""
    (x0, y0), (x1, y1) = spot(page, *start), spot(page, *end)
    colours = _colours(page)
    return [_named(_pixels(page, x0 + share * (x1 - x0), y0 + share * (y1 - y0), 1), colours) for share in shares]


def _pixels(page: Page, x: float, y: float, reach: int) -> list[Colour]:
    found = page.evaluate(_BLOCK.format(x=round(x), y=round(y), reach=reach))
    return [(found[at], found[at + 1], found[at + 2]) for at in range(0, len(found), 4)]


def _colours(page: Page) -> dict[str, Colour]:
    return {name: (red, green, blue) for name, (red, green, blue) in page.evaluate(_COLOURS).items()}


def _away(colour: Colour, back: Colour) -> tuple[int, ...]:
    return tuple(one - other for one, other in zip(colour, back, strict=True))


def _alike(one: tuple[int, ...], other: tuple[int, ...]) -> float:
    """The cosine between two directions from the background."""
    long = math.hypot(*one) * math.hypot(*other)
    return sum(a * b for a, b in zip(one, other, strict=True)) / long if long else 0.0
