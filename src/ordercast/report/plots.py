"""The plot of a result: measured values as marks with intervals, formulas as lines, published numbers as hollow marks.

Colour is never the only distinction: each measured series has its own mark and is labelled at its end. Colours are
those of Okabe and Ito, which are safe for colour-blind readers. In a page the plot takes its colours from the page, so
that it follows light and dark mode.
"""

import io
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from html import escape
from pathlib import Path
from textwrap import wrap
from typing import Any, NamedTuple

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter, NullLocator

from ordercast.evaluation.results import Axis, Point, Result, Role, Series

INK, FAINT, PAPER = "#1b1f24", "#d8dce1", "#fefefe"
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#aa4499", "#997700", "#56606b")
_MARKS = ("o", "s", "^", "D", "v", "P")
_LINES: Mapping[Role, Any] = {Role.CORRECTED: "-", Role.PRINTED: (0, (4, 2.5)), Role.BOUND: (0, (1, 1.5))}
_SECOND_LINE = (0, (6, 1.5, 1, 1.5))  # another formula for the same series
_SETTINGS: Any = {
    "svg.fonttype": "none",  # text stays text: small, sharp, and accessible
    "svg.hashsalt": "ordercast",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9.5,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "text.color": INK,
    "figure.facecolor": PAPER,
    "axes.facecolor": PAPER,
}
_WIDTH, _HEIGHT = 6.6, 3.6
_PLACE = (0.105, 0.145, 0.545, 0.825)  # of the axes in the figure; the rest is for names
_NAME_SIZE = 8.5
_LINE = 1.25 * _NAME_SIZE / 72 / (_HEIGHT * _PLACE[3])  # the height of a line of a name, as a share of the axes
_NAME_WIDTH = 27  # characters
_FEW_PLACES = 7


def draw(result: Result) -> Figure:
    """The plot of a result."""
    with mpl.rc_context(_SETTINGS):
        figure = Figure(figsize=(_WIDTH, _HEIGHT))
        axes = figure.add_axes(_PLACE)
        _scale(axes, result)
        ends = []
        for series, look in _looks(result):
            with _grouped(axes, series):
                last = _draw_series(axes, series, look)
            if last is not None:
                ends.append((last, series, look))
        _describe(axes, result)
        _name_at_ends(axes, ends)
    return figure


@contextmanager
def _grouped(axes: Axes, series: Series) -> Iterator[None]:
    """What is drawn meanwhile is of this series: in the SVG it is found by a name that begins with the series'."""
    before = set(axes.get_children())
    yield
    for place, artist in enumerate(each for each in axes.get_children() if each not in before):
        artist.set_gid(f"series-{series.name}-{place}")


class Spot(NamedTuple):
    """Where a point is in the picture: shares of its width and of its height, from the left and from the top."""

    series: str
    point: Point
    left: float
    top: float


def spots(result: Result) -> list[Spot]:
    """The places of all points that have a value."""
    figure = draw(result)
    axes = figure.axes[0]
    to_figure = axes.transData + figure.transFigure.inverted()
    found = []
    for series in result.series:
        for point in series.points:
            if point.y is not None and (point.y > 0 or not result.y.log):
                left, up = to_figure.transform((point.x, point.y))
                found.append(Spot(series.name, point, float(left), 1 - float(up)))
    return found


class Look(NamedTuple):
    """How a series is drawn."""

    colour: str
    mark: str
    line: Any


def _looks(result: Result) -> list[tuple[Series, Look]]:
    """Measured series differ by colour and mark; what is said about one has its colour, and a line of its own kind."""
    own = {
        series.name: (COLOURS[place % len(COLOURS)], _MARKS[place % len(_MARKS)])
        for place, series in enumerate(result.measured())
    }
    found, seen = [], set()
    for series in result.series:
        colour, mark = own.get(series.name) or own.get(series.of) or (INK, "o")
        kind = (series.of, series.role)
        line = _SECOND_LINE if series.of and kind in seen else _LINES.get(series.role, "")
        seen.add(kind)
        found.append((series, Look(colour, mark, line)))
    return found


def _draw_series(axes: Axes, series: Series, look: Look) -> tuple[float, float] | None:
    points = [point for point in series.points if point.y is not None]
    if not points:
        return None
    xs, ys = [point.x for point in points], [point.y or 0.0 for point in points]
    if series.role is Role.MEASURED:
        axes.errorbar(
            xs,
            ys,
            yerr=_errors(points),
            fmt=look.mark,
            color=look.colour,
            markersize=5,
            capsize=2.5,
            linewidth=1.1,
            zorder=4,
        )
    elif series.role is Role.PUBLISHED:
        axes.plot(xs, ys, "o", color=look.colour, markersize=9, markerfacecolor="none", markeredgewidth=1.1, zorder=3)
    else:
        axes.plot(xs, ys, linestyle=look.line, color=look.colour, linewidth=1.3, alpha=0.9, zorder=2)
    return max(zip(xs, ys, strict=True))


def _errors(points: Sequence[Point]) -> list[list[float]]:
    down = [max(0.0, (p.y or 0.0) - p.estimate.low) if p.estimate else 0.0 for p in points]
    up = [max(0.0, p.estimate.high - (p.y or 0.0)) if p.estimate else 0.0 for p in points]
    return [down, up]


def _scale(axes: Axes, result: Result) -> None:
    for axis, which in ((result.x, "x"), (result.y, "y")):
        if axis.log:
            axes.set(**{f"{which}scale": "log"})
    places = sorted({point.x for series in result.series for point in series.points})
    if len(places) <= _FEW_PLACES:
        axes.xaxis.set_major_locator(mpl.ticker.FixedLocator(places))
        axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    if result.y.log:
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.yaxis.set_minor_formatter(NullFormatter())


def _describe(axes: Axes, result: Result) -> None:
    axes.set_xlabel(_named(result.x))
    axes.set_ylabel(_named(result.y))
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color=FAINT, linewidth=0.6)
    axes.set_axisbelow(True)
    if not result.y.log and result.y.unit != "ms":
        axes.set_ylim(bottom=0)


def _named(axis: Axis) -> str:
    return f"{axis.label} ({axis.unit})" if axis.unit else axis.label


def _name_at_ends(axes: Axes, ends: Sequence[tuple[tuple[float, float], Series, Look]]) -> None:
    """Each series is named beside its right end, with its mark, moved up or down so that no two names meet."""
    axes.set(xlim=axes.get_xlim(), ylim=axes.get_ylim())  # what is beside the axes must not move them
    to_axes = axes.transData + axes.transAxes.inverted()
    ordered = sorted(ends, key=lambda end: float(to_axes.transform(end[0])[1]))
    names = [wrap(series.label, _NAME_WIDTH) for _, series, _ in ordered]
    heights = [len(lines) * _LINE + 0.25 * _LINE for lines in names]
    places = spread_out([float(to_axes.transform(end[0])[1]) for end in ordered], heights)
    for (_, series, look), lines, up in zip(ordered, names, places, strict=True):
        _sample(axes, series, look, up)
        name = axes.text(
            1.105,
            up,
            "\n".join(lines),
            transform=axes.transAxes,
            color=look.colour,
            fontsize=_NAME_SIZE,
            va="center",
            linespacing=1.15,
            fontweight="bold" if series.role is Role.MEASURED else "normal",
        )
        name.set_gid(f"name-{series.name}")


def _sample(axes: Axes, series: Series, look: Look, up: float) -> None:
    """What the series looks like, beside its name."""
    there: Any = {"transform": axes.transAxes, "clip_on": False, "color": look.colour}
    if series.role is Role.MEASURED:
        axes.plot([1.06], [up], look.mark, markersize=5, **there)
    elif series.role is Role.PUBLISHED:
        axes.plot([1.06], [up], "o", markersize=8, markerfacecolor="none", markeredgewidth=1.1, **there)
    else:
        axes.plot([1.03, 1.09], [up, up], linestyle=look.line, linewidth=1.3, **there)


def spread_out(
    wanted: Sequence[float], heights: Sequence[float], top: float = 1.02, bottom: float = -0.04
) -> list[float]:
    """Places near the wanted ones, which rise, so that nothing of these heights overlaps, from bottom to top."""
    places: list[float] = []
    floor = bottom
    for place, height in zip(wanted, heights, strict=True):
        places.append(max(place, floor + height / 2))
        floor = places[-1] + height / 2
    ceiling = top
    for number in reversed(range(len(places))):
        places[number] = min(places[number], ceiling - heights[number] / 2)
        ceiling = places[number] - heights[number] / 2
    return places


def save(result: Result, folder: Path) -> None:
    """The plot as SVG and as PNG."""
    figure = draw(result)
    with mpl.rc_context(_SETTINGS):
        figure.savefig(folder / f"{result.name}.svg", metadata={"Date": None})
        figure.savefig(folder / f"{result.name}.png", dpi=144, metadata={"Software": None})


def inline_svg(result: Result) -> str:
    """The plot for a page: without anything from elsewhere, in the colours of the page, and described in words."""
    written = io.StringIO()
    with mpl.rc_context(_SETTINGS):
        draw(result).savefig(written, format="svg", metadata={"Date": None})
    text = written.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'\s+xmlns(:\w+)?="[^"]*"', "", text)
    text = re.sub(r'(<svg[^>]*?) width="[^"]*" height="[^"]*"', r"\1", text, count=1)
    text = text.replace("xlink:href", "href")
    # Names of parts must differ between the plots of one page.
    text = re.sub(r'\bid="([^"]*)"', rf'id="{result.name}-\1"', text)
    text = re.sub(r'(href="#|url\(#)', rf"\1{result.name}-", text)
    text = re.sub(r"font: [^;\"]*?([\d.]+)px [^;\"]*", _plain_font, text)
    for name, colour in {"ink": INK, "faint": FAINT, "paper": PAPER}.items():
        text = text.replace(colour, f"var(--{name})")
    for number, colour in enumerate(COLOURS):
        text = text.replace(colour, f"var(--c{number})")
    words = escape(f"{result.title}. The values are in the table below.")
    return text.replace("<svg", f'<svg role="img" aria-label="{words}"', 1).strip()


def _plain_font(found: re.Match[str]) -> str:
    style = " ".join(word for word in ("italic", "bold", "700") if word in found.group(0).split("px")[0])
    return f"font: {style} {found.group(1)}px var(--plot-font)".replace("  ", " ")
