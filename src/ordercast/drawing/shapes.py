"""The shapes of the SVG, each a string: marks on a lane, arrows, and the sheet of styles that colours them.

Acceptance, pre-acknowledgment, acknowledgment and delivery are one disc that fills by quarters: what the node knows.
"""

from html import escape
from math import hypot

STYLE = """
text { font: 12px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; fill: #1f2933; }
text.halo { stroke: #ffffff; stroke-width: 4px; stroke-linejoin: round; paint-order: stroke; }
text.name { font-size: 15px; font-weight: 600; }
text.small, text.time { font-size: 10px; fill: #6b7785; }
text.known { fill: #276749; }
text.data { fill: #1d4f91; font-weight: 600; }
text.copy { fill: #7b3fa8; font-weight: 600; }
text.request { fill: #a35f00; font-weight: 600; }
text.control, text.quiet { font-size: 10px; fill: #7d8894; }
text.alarm { fill: #c53030; }
.paper { fill: #ffffff; }
.lane { stroke: #aab4bf; stroke-width: 1.5; }
.guide { stroke: #f0f2f5; }
.cut { stroke: #6b7785; fill: none; }
.data line { stroke: #1d4f91; stroke-width: 1.6; } .data .solid { fill: #1d4f91; }
.copy line { stroke: #7b3fa8; stroke-width: 4; } .copy .solid { fill: #7b3fa8; }
.copy line.inner { stroke: #ffffff; stroke-width: 1.6; }
.copy .open { stroke: #7b3fa8; stroke-width: 2; }
.control line { stroke: #b4bdc7; stroke-width: 1; } .control .solid { fill: #97a2ae; }
.request line { stroke: #d08a1d; stroke-width: 1.2; } .request .solid { fill: #b8730a; }
.lost line { stroke: #d64545; stroke-width: 1.6; stroke-dasharray: 5 4; }
.lost.control line { stroke-width: 1; }
.lost path { stroke: #c53030; stroke-width: 2.2; fill: none; }
.open { fill: #ffffff; stroke: #6b7785; stroke-width: 1.4; }
.level .open { stroke: #2f855a; stroke-width: 1.6; } .level .solid { fill: #2f855a; }
.discard .open { stroke: #c53030; } .discard path { stroke: #c53030; stroke-width: 1.4; }
.timeout path { stroke: #6b7785; stroke-width: 1.2; fill: none; }
.alarm path { stroke: #c53030; stroke-width: 2.6; fill: none; }
.echo path { stroke: #97a2ae; stroke-width: 1.2; fill: none; } .echo .solid { fill: #97a2ae; }
.echo.lost path { stroke: #c53030; stroke-width: 2.2; }
.arrow:hover line { stroke-width: 3; }
@media (prefers-color-scheme: dark) {
text { fill: #e4e9ee; } text.halo { stroke: #14181d; } text.known { fill: #7fd1a5; }
text.data { fill: #8bb8f2; } text.copy { fill: #cda4ee; } text.request { fill: #f0b252; }
.paper, .open { fill: #14181d; } .lane { stroke: #57626e; } .guide { stroke: #1f252c; }
.data line { stroke: #6fa5ea; } .data .solid { fill: #6fa5ea; }
.copy line { stroke: #b98ae0; } .copy .solid { fill: #b98ae0; } .copy line.inner { stroke: #14181d; }
.control line { stroke: #4c5763; } .control .solid { fill: #6b7785; } .request line { stroke: #b07a22; }
.level .open { stroke: #5fbf8d; } .level .solid { fill: #5fbf8d; }
.lost line, .lost path { stroke: #ef6b6b; } .copy .open { stroke: #b98ae0; }
}
"""

_RADIUS = 5.5
_SHORT = 32  # how far from the lane a lost unit stops
_LEVELS = {"receive": 0, "accept": 1, "preack": 2, "ack": 3, "deliver": 4}
_ALARMS = {
    "crash": "M{w:.1f} {n:.1f}L{e:.1f} {s:.1f}M{w:.1f} {s:.1f}L{e:.1f} {n:.1f}",
    "abort": "M{x:.1f} {n:.1f}L{x:.1f} {mid:.1f}M{x:.1f} {low:.1f}L{x:.1f} {s:.1f}",
}


def group(classes: str, tip: str, *parts: str) -> str:
    """A group of shapes, with a tooltip."""
    title = f"<title>{escape(tip)}</title>" if tip else ""
    return f'<g class="{classes}">{title}{"".join(parts)}</g>'


def words(text: str, x: float, y: float, classes: str = "", anchor: str = "start") -> str:
    """A line of text."""
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{classes}" text-anchor="{anchor}">{escape(text)}</text>'


def line(x1: float, y1: float, x2: float, y2: float, classes: str = "") -> str:
    """A straight line."""
    style = f' class="{classes}"' if classes else ""
    return f'<line{style} x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def circle(x: float, y: float, radius: float, classes: str) -> str:
    """A circle."""
    return f'<circle class="{classes}" cx="{x:.1f}" cy="{y:.1f}" r="{radius}"/>'


def mark(event: str, x: float, y: float) -> tuple[str, str]:
    """The classes and the shape of a mark on a lane."""
    r = _RADIUS
    if event in _LEVELS:
        return "level", circle(x, y, r, "open") + _filling(_LEVELS[event], x, y)
    if event in _ALARMS:
        places = {"x": x, "w": x - r, "e": x + r, "n": y - r - 2, "s": y + r + 2, "mid": y + 1, "low": y + 4}
        return "alarm", f'<path d="{_ALARMS[event].format(**places)}"/>'
    if event == "discard":
        slash = f'<path d="M{x - 3.9:.1f} {y + 3.9:.1f}L{x + 3.9:.1f} {y - 3.9:.1f}"/>'
        return "discard", circle(x, y, r, "open") + slash
    if event in {"timeout", "stop", "resume"}:
        return "timeout", _of_time(event, x, y)
    if event in {"send", "view"}:
        return event, f'<path class="open" d="M{x - 6:.1f} {y:.1f}l6 -6l6 6l-6 6z"/>'
    return event, circle(x, y, 3.5, "open")  # not for this node


def _of_time(event: str, x: float, y: float) -> str:
    """A clock for a timer; brackets around the time in which a node had stopped."""
    if event == "timeout":
        return circle(x, y, _RADIUS, "open") + f'<path d="M{x:.1f} {y - 3.5:.1f}V{y:.1f}H{x + 3:.1f}"/>'
    side = 3 if event == "stop" else -3
    return f'<path d="M{x + side:.1f} {y - 7:.1f}H{x:.1f}V{y + 7:.1f}H{x + side:.1f}"/>'


def departure(kind: str, x: float, y: float) -> str:
    """The mark where a unit leaves."""
    half, style = {"data": (5.5, "solid"), "copy": (5, "open")}.get(kind, (3.2, "solid"))
    return f'<rect class="{style}" x="{x - half:.1f}" y="{y - half:.1f}" width="{2 * half}" height="{2 * half}"/>'


def arrow(
    kind: str, start: tuple[float, float], end: tuple[float, float], *, lost: bool = False, marked: bool = True
) -> str:
    """A line with a head that stops at the mark or lane it reaches; a lost one stops short of it, in a cross."""
    (x1, y1), (x2, y2) = start, end
    length = hypot(x2 - x1, y2 - y1)
    ux, uy = (x2 - x1) / length, (y2 - y1) / length
    if lost:
        cut = min(_SHORT / abs(uy) if uy else _SHORT, length / 2)
        x, y = x2 - ux * cut, y2 - uy * cut
        return line(x1, y1, x, y) + cross(x, y)
    bold = kind in {"data", "copy"}
    long, half = (9, 3.6) if bold else (6.5, 2.6)
    rest = _RADIUS + 1 if marked else 1
    x, y = x2 - ux * rest, y2 - uy * rest
    bx, by = x - ux * long, y - uy * long
    head = (
        f'<polygon class="solid" points="{x:.1f},{y:.1f} {bx - uy * half:.1f},{by + ux * half:.1f} '
        f'{bx + uy * half:.1f},{by - ux * half:.1f}"/>'
    )
    inner = line(x1, y1, bx, by, "inner") if kind == "copy" else ""
    return line(x1, y1, bx, by) + inner + head


def cross(x: float, y: float) -> str:
    """Where a unit was lost."""
    return f'<path d="M{x - 4.5:.1f} {y - 4.5:.1f}l9 9m0 -9l-9 9"/>'


def echo(x: float, y: float, side: int) -> str:
    """A unit that its own sender receives from the channel: a small arc above (-1) or below (1) the lane."""
    arc = f'<path d="M{x - 22:.1f} {y + side * 3:.1f}q11 {side * 15} 19 {side * 5}"/>'
    return arc + f'<path class="solid" d="M{x - 1:.1f} {y + side * 5:.1f}l-6 {side * 1}l3 {side * 5}z"/>'


def lost_echo(x: float, y: float, side: int) -> str:
    """A unit that its own sender loses: the arc ends in a cross beside the lane, where no mark can cover it."""
    arc = f'<path d="M{x - 26:.1f} {y + side * 2:.1f}q3 {side * 7} 8 {side * 8}"/>'
    return arc + cross(x - 17, y + side * 11)


def _filling(quarters: int, x: float, y: float) -> str:
    """A disc filled by quarters, clockwise from the top."""
    if quarters == 0:
        return ""
    if quarters == 4:
        return circle(x, y, _RADIUS, "solid")
    ex, ey = [(1, 0), (0, 1), (-1, 0)][quarters - 1]
    r = _RADIUS
    return (
        f'<path class="solid" d="M{x:.1f} {y:.1f}V{y - r:.1f}A{r} {r} 0 {int(quarters > 2)} 1 '
        f'{x + ex * r:.1f} {y + ey * r:.1f}Z"/>'
    )
