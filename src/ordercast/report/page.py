"""The report: a self-contained HTML page."""

import base64
import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from ordercast.evaluation.results import SUMMARY, Evaluation, Point, Result, Role, Series, as_json, load
from ordercast.model.errors import ConfigError, reason_of
from ordercast.report.plots import inline_svg, save, spots

PAGE = "report.html"
_NOTHING = 1e-6  # of a value: an interval this narrow is rounding
PLOTS = "plots"
RUNS = "runs"
_PROTOCOLS = {
    "spo": "SPO: any subset, each sender's order",
    "st": "ST: any subset, one order for all common destinations",
    "prito": "PriTO: one order, urgent first",
    "sequencer": "The sequencer's broadcast",
    "all": "All protocols",
}
_ROLES = {
    Role.MEASURED: "measured",
    Role.CORRECTED: "corrected",
    Role.PRINTED: "printed formula",
    Role.PUBLISHED: "published",
    Role.BOUND: "bound",
}


@dataclass(frozen=True)
class TableColumn:
    """A column of a table of values."""

    heading: str
    role: str
    cells: tuple[str, ...]


MakePage = Callable[[str, str], bytes]
"""Makes the page of a run, of its configuration and what it is called."""


def build(
    folder: Path, verdicts: Sequence[Path] = (), *, plots: bool = True, make_page: MakePage | None = None
) -> Path:
    """Builds the page, and plots, from the results in a folder and the verdicts of audits; returns its path.

    `make_page`: for each measured point, its first run becomes a page that the point links to.
    """
    evaluation = load(folder / SUMMARY, Evaluation)
    found = [load(path, Result) for name in evaluation.experiments if (path := folder / f"{name}.json").exists()]
    missing = [name for name in evaluation.experiments if name not in {result.name for result in found}]
    said = {str(path): read_verdict(path) for path in verdicts}
    try:
        linked = {} if make_page is None else _write_runs(folder, found, make_page)
        page = render(evaluation, found, missing, said, linked)
        (folder / PAGE).write_text(page, encoding="utf-8")
        if plots:
            (folder / PLOTS).mkdir(exist_ok=True)
            for result in found:
                save(result, folder / PLOTS)
    except OSError as error:
        raise ConfigError(
            f"cannot write the report into {folder}: {reason_of(error)}; choose another folder"
        ) from error
    return folder / PAGE


def _write_runs(folder: Path, results: Sequence[Result], make_page: MakePage) -> dict[str, str]:
    """The first run of each measured point as a page; by its configuration, where the page is."""
    (folder / RUNS).mkdir(exist_ok=True)
    linked: dict[str, str] = {}
    for result in results:
        for series in result.measured():
            for point in series.points:
                if point.config and point.config not in linked:
                    name = f"{result.name}-{series.name}-{point.x:g}.html"
                    called = f"{result.title}: {series.label}, {result.x.label} {point.x:g}"
                    (folder / RUNS / name).write_bytes(make_page(point.config, called))
                    linked[point.config] = f"{RUNS}/{name}"
    return linked


def render(
    evaluation: Evaluation,
    results: Sequence[Result],
    missing: Sequence[str],
    verdicts: Mapping[str, Mapping[str, Any]],
    linked: Mapping[str, str] | None = None,
) -> str:
    """The page as text. `linked`: pages of runs, by their configurations."""
    environment = Environment(
        loader=PackageLoader("ordercast.report", "."),
        autoescape=select_autoescape(["html"]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    groups: dict[str, list[dict[str, object]]] = {}
    for result in results:
        groups.setdefault(_PROTOCOLS.get(result.protocol, result.protocol), []).append(_section(result, linked or {}))
    return environment.get_template("page.html").render(
        evaluation=evaluation,
        script=(files("ordercast.report") / "plots.js").read_text(encoding="utf-8"),
        groups=groups,
        results=results,
        missing=missing,
        verdicts=verdicts,
        agreeing=sum(finding.agrees is True for result in results for finding in result.findings),
        findings=sum(len(result.findings) for result in results),
    )


def read_verdict(path: Path) -> Mapping[str, Any]:
    """Reads a verdict that `ordercast audit --json` wrote."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        _ = document["holds"], int(document["runs"]), int(document["deliveries"])
        _ = [
            (found["holds"], int(found["runs"]), int(found["violations"])) for found in document["properties"].values()
        ]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigError(f"{path} is not a verdict of ordercast audit --json: {error}") from error
    else:
        return dict(document)


def _plot_data(result: Result, linked: Mapping[str, str]) -> dict[str, object]:
    """What the page's script needs of a plot: where its points are, what they are worth, and their runs."""
    labels = {series.name: series.label for series in result.series}
    roles = {series.name: _ROLES[series.role] for series in result.series}
    points = [
        {
            "series": spot.series,
            "left": round(spot.left, 5),
            "top": round(spot.top, 5),
            "x": f"{spot.point.x:g}",
            "y": _cell(spot.point),
            "runs": spot.point.runs,
            "config": spot.point.config,
            "page": linked.get(spot.point.config, ""),
        }
        for spot in spots(result)
    ]
    series = [{"name": name, "label": label, "role": roles[name]} for name, label in labels.items()]
    return {
        "name": result.name,
        "x": result.x.label,
        "y": result.y.label,
        "unit": result.y.unit,
        "series": series,
        "points": points,
    }


def _embedded(data: object) -> str:
    """JSON that may stand within a script element: nothing in it can end the element."""
    text = json.dumps(data, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _section(result: Result, linked: Mapping[str, str]) -> dict[str, object]:
    places = sorted({point.x for series in result.series for point in series.points})
    return {
        "result": result,
        "svg": inline_svg(result),
        "data": _embedded(_plot_data(result, linked)),
        "places": [f"{x:g}" for x in places],
        "columns": [_column(series, places) for series in result.series],
        "troubles": _troubles(result),
        "method": _method(result),
        "csv": _base64(_csv(result)),
        "json": _base64(as_json(result)),
    }


def _csv(result: Result) -> str:
    """A row for each point: the series, the place, the value and its interval."""
    text = io.StringIO()
    table = csv.writer(text)
    table.writerow(["series", "label", "role", result.x.label, result.y.label, "low", "high", "runs"])
    for series in result.series:
        for point in series.points:
            interval = (point.estimate.low, point.estimate.high) if point.estimate else ("", "")
            value = "" if point.y is None else point.y
            named = (series.name, series.label, series.role.value)
            table.writerow([*named, point.x, value, *interval, point.runs or ""])
    return text.getvalue()


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _column(series: Series, places: Sequence[float]) -> TableColumn:
    points = {point.x: point for point in series.points}
    return TableColumn(series.label, _ROLES[series.role], tuple(_cell(points.get(x)) for x in places))


def _cell(point: Point | None) -> str:
    if point is None:
        return ""
    if point.y is None:
        return "not measured"
    if point.estimate is None:
        return number(point.y)
    down, up = point.y - point.estimate.low, point.estimate.high - point.y
    if up + down <= _NOTHING * abs(point.y):
        return number(point.y)
    if abs(up - down) <= 0.02 * (up + down):
        return f"{number(point.y)} ± {number((up + down) / 2, digits=2)}"
    return f"{number(point.y)} ({number(point.estimate.low)} to {number(point.estimate.high)})"


def number(value: float, digits: int = 3) -> str:
    """A number with so many significant digits, without an exponent."""
    if value == 0:
        return "0"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    text = f"{value:.{digits}g}"
    return f"{value:.7f}".rstrip("0").rstrip(".") if "e-" in text else f"{value:.0f}" if "e" in text else text


def _troubles(result: Result) -> list[str]:
    """Sentences on runs that failed, stalled or did not complete, and on points without a value."""
    found = []
    for series in result.measured():
        total = sum(point.runs for point in series.points)
        for count, what in (
            (sum(point.failed for point in series.points), "raised an error"),
            (sum(point.incomplete for point in series.points), "did not acknowledge every message everywhere"),
            (sum(point.stalled for point in series.points), "stalled"),
        ):
            if count:
                found.append(f"{series.label}: {count} of {total} runs {what}.")
        empty = [f"{point.x:g}" for point in series.points if point.y is None]
        if empty:
            found.append(f"{series.label}: nothing could be measured at {', '.join(empty)}.")
    return found


def _method(result: Result) -> str:
    methods = {point.estimate.method.value for series in result.measured() for point in series.points if point.estimate}
    return "; ".join(sorted(methods))
