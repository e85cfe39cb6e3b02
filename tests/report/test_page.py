"""The page: it needs nothing but itself, shows every value, and says what is missing instead of hiding it."""

import base64
import csv
import io
import json
import re
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest

from ordercast.evaluation import Size, experiments
from ordercast.evaluation.results import (
    Axis,
    ClaimResult,
    Estimate,
    Evaluation,
    Method,
    Point,
    Result,
    Role,
    Series,
    store,
)
from ordercast.model.errors import ConfigError
from ordercast.report import PAGE, build
from ordercast.report.page import number
from ordercast.report.plots import COLOURS, draw, inline_svg, spread_out

SECTIONS = {"first", "second"}


def estimate(value: float, half: float) -> Estimate:
    return Estimate(value, value - half, value + half, 5, Method.STUDENT)


def result(name: str = "first", **changes: object) -> Result:
    measured = Series(
        "m",
        "what was measured <here>",
        Role.MEASURED,
        (Point(1, 2.5, estimate(2.5, 0.25), runs=5), Point(10, 31.0, estimate(31, 4), runs=5)),
    )
    fields: dict[str, object] = {
        "name": name,
        "protocol": "spo",
        "source": "A paper, Figure 99",
        "title": "A title & more",
        "x": Axis("places", log=True),
        "y": Axis("time", "ms", log=True),
        "series": (
            measured,
            Series("p", "printed", Role.PRINTED, (Point(1, 2.0), Point(10, 20.0)), of="m"),
            Series("c", "corrected", Role.CORRECTED, (Point(1, 2.4), Point(10, 30.0)), of="m"),
            Series("b", "bound", Role.BOUND, (Point(1, 50.0), Point(10, 50.0))),
            Series("t", "the table", Role.PUBLISHED, (Point(1, 2.25),), of="m"),
        ),
        "findings": (
            ClaimResult(True, "It agrees.", "each value within 7 % of it"),
            ClaimResult(False, "It differs. For a reason."),
            ClaimResult(None, "Unknown."),
        ),
        "setting": "Five nodes.",
        "seeds": 5,
        "configs": {"m": '{"protocol":"spo"}'},
    }
    return Result(**(fields | changes))  # type: ignore[arg-type]


def folder_with(folder: Path, *results: Result, size: str = "full") -> Path:
    names = tuple(sorted(SECTIONS | {one.name for one in results}))
    versions = {"Python": "3.11.9", "ordercast": "0.1.0"}
    store(folder, "evaluation.json", Evaluation("ordercast evaluate --out x", size, versions, names, "2026-01-02"))
    for one in results:
        store(folder, f"{one.name}.json", one)
    return folder


class Elements(HTMLParser):
    """Collects what a page refers to, and whether its tags match."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.references: list[str] = []
        self.tags: set[str] = set()
        self.open: list[str] = []
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag not in {"meta", "br", "link", "img", "input"}:
            self.open.append(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.append(value or "")
            if name in {"href", "src", "xlink:href"}:
                self.references.append(value or "")

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag


def parsed(page: str) -> Elements:
    elements = Elements()
    elements.feed(page)
    assert not elements.open
    return elements


def test_the_data_of_the_page_can_be_downloaded(tmp_path: Path) -> None:
    """As CSV, a row for each point, and as the JSON that it was made of; and each comparison says what it asks."""
    page = build(folder_with(tmp_path, result(), result("second"))).read_text()
    assert page.count("Asked: each value within 7 % of it.") == 2
    found = dict(re.findall(r'<a download="([^"]+)" href="data:[^,"]+base64,([^"]+)">', page))
    assert set(found) == {f"{name}.{kind}" for name in SECTIONS for kind in ("csv", "json")}
    rows = list(csv.DictReader(io.StringIO(base64.b64decode(found["first.csv"]).decode())))
    assert len(rows) == sum(len(series.points) for series in result().series)
    assert rows[0] == {
        "series": "m",
        "label": "what was measured <here>",
        "role": Role.MEASURED.value,
        "places": "1.0",
        "time": "2.5",
        "low": "2.25",
        "high": "2.75",
        "runs": "5",
    }
    assert json.loads(base64.b64decode(found["second.json"])) == json.loads((tmp_path / "second.json").read_text())


def test_the_page_is_self_contained(tmp_path: Path) -> None:
    page = build(folder_with(tmp_path, result(), result("second"))).read_text()
    elements = parsed(page)
    assert not elements.tags & {"link", "img", "iframe", "object", "embed"}
    assert "src" not in elements.attributes, "scripts are in the page"
    assert all(reference.startswith(("#", "data:")) for reference in elements.references)
    named = [reference[1:] for reference in elements.references if reference.startswith("#")]
    assert set(named) <= set(elements.ids)
    assert len(elements.ids) == len(set(elements.ids))
    assert not re.search(r"https?:|//[a-z]+\.|@import|url\((?!#)", page)
    assert not any(name.startswith("on") for name in elements.attributes)
    assert set(re.findall(r"url\(#([^)]*)\)", page)) <= set(elements.ids)


def test_the_page_shows_values_sentences_and_how_it_was_run(tmp_path: Path) -> None:
    page = build(folder_with(tmp_path, result(), result("second"))).read_text()
    for wanted in (
        "A title &amp; more",
        "A paper, Figure 99",
        "2.5 ± 0.25",
        "31 ± 4",
        "<td>2.25</td>",
        "It differs. For a reason.",
        "what was measured &lt;here&gt;",
        "ordercast evaluate --out x",
        "ordercast evaluate --only first",
        "Python 3.11.9",
        "Student&#39;s t over runs",
        "of 6 comparisons 2 agree",
        "2 of\n2 tables and figures",
    ):
        assert wanted in page, wanted
    assert "Missing" not in page
    assert "prefers-color-scheme: dark" in page


def test_what_was_not_run_is_named(tmp_path: Path) -> None:
    page = build(folder_with(tmp_path, result())).read_text()
    assert re.search(r"Missing:</strong> second was not run", page)
    assert "No audit was handed in" in page


def test_quick_runs_say_so(tmp_path: Path) -> None:
    page = build(folder_with(tmp_path, result(), size="quick")).read_text()
    assert "<strong>quick</strong> runs with few seeds" in page
    assert "ordercast evaluate --only first --quick" in page


def test_trouble_is_told(tmp_path: Path) -> None:
    points = (
        Point(1, None, None, runs=5, failed=5),
        Point(10, 3.0, estimate(3, 1), runs=5, incomplete=2, stalled=1),
    )
    page = build(folder_with(tmp_path, result(series=(Series("m", "sick", Role.MEASURED, points),)))).read_text()
    for wanted in (
        "sick: 5 of 10 runs raised an error.",
        "sick: 2 of 10 runs did not acknowledge every message everywhere.",
        "sick: 1 of 10 runs stalled.",
        "sick: nothing could be measured at 1.",
        "<td>not measured</td>",
    ):
        assert wanted in page


def test_a_result_without_any_value_still_makes_a_page(tmp_path: Path) -> None:
    empty = Series("m", "nothing", Role.MEASURED, (Point(1, None, None, runs=1, failed=1),))
    assert "nothing could be measured" in build(folder_with(tmp_path, result(series=(empty,)))).read_text()


VERDICT = {
    "holds": False,
    "runs": 1200,
    "deliveries": 34567,
    "properties": {
        "same_order": {"holds": False, "violations": 3, "witnesses": [], "runs": 600},
        "complete": {"holds": True, "violations": 0, "witnesses": [], "runs": 1200},
    },
    "not_recorded": {"accepted_truthfully": 7},
}


def test_verdicts_of_audits_are_shown(tmp_path: Path) -> None:
    path = tmp_path / "verdict.json"
    path.write_text(json.dumps(VERDICT))
    page = build(folder_with(tmp_path / "results", result()), [path]).read_text()
    for wanted in ("A promise is broken", "1,200 runs", "34,567 deliveries", "✗ violated", "✓ holds", "not recorded"):
        assert wanted in page
    assert "same order" in page


def test_verdicts_in_files_of_one_name_are_all_shown(tmp_path: Path) -> None:
    paths = [tmp_path / name / "verdict.json" for name in ("spo", "st")]
    for path in paths:
        path.parent.mkdir()
        path.write_text(json.dumps(VERDICT))
    page = build(folder_with(tmp_path / "results", result()), paths).read_text()
    assert all(f"(<code>{path}</code>)" in page for path in paths)


def test_what_was_not_looked_into_everywhere_does_not_pass_for_kept(tmp_path: Path) -> None:
    path = tmp_path / "verdict.json"
    seen = {"holds": True, "violations": 0, "witnesses": [], "runs": 1, "counts": "at least"}
    told = {
        **VERDICT,
        "properties": {"no_cycle": seen},
        "incomplete_records": ["run r: the record of E2 is incomplete"],
    }
    path.write_text(json.dumps(told))
    page = build(folder_with(tmp_path / "results", result()), [path]).read_text()
    assert "– none seen" in page
    assert "at least 0" in page
    assert "✓ holds" not in page
    assert "the record of E2 is incomplete." in page


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"holds": true}',
        '{"holds":1,"runs":1,"deliveries":1,"properties":[]}',
        '{"holds":1,"runs":1,"deliveries":1,"properties":{"complete":{}}}',
        '{"holds":1,"runs":"many","deliveries":1,"properties":{}}',
    ],
)
def test_what_is_no_verdict_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "verdict.json"
    path.write_text(text)
    with pytest.raises(ConfigError, match="is not a verdict of ordercast audit"):
        build(folder_with(tmp_path / "results", result()), [path])


def test_a_folder_without_results_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="ordercast evaluate"):
        build(tmp_path)
    assert not (tmp_path / PAGE).exists()


def test_plots_are_kept_as_svg_and_png_and_made_alike_each_time(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, result())
    build(folder)
    first = {path.name: path.read_bytes() for path in (folder / "plots").iterdir()}
    page = (folder / PAGE).read_bytes()
    assert set(first) == {"first.svg", "first.png"}
    assert first["first.png"].startswith(b"\x89PNG")
    build(folder)
    assert {path.name: path.read_bytes() for path in (folder / "plots").iterdir()} == first
    assert (folder / PAGE).read_bytes() == page


def test_a_plot_takes_its_colours_from_the_page_and_is_named() -> None:
    svg = inline_svg(result())
    assert not any(colour in svg for colour in COLOURS)
    assert "var(--c0)" in svg
    assert "var(--ink)" in svg
    assert 'aria-label="A title &amp; more. The values are in the table below."' in svg
    assert "what was measured" in svg  # a name beside its curve, as text


def test_every_series_has_its_own_mark_and_its_name() -> None:
    for experiment in experiments(Size.TINY):
        series = [
            Series(curve.name, curve.label, Role.MEASURED, tuple(Point(spot.x, 1.0 + n) for spot in curve.spots))
            for n, curve in enumerate(experiment.curves)
        ]
        made = result(experiment.name, x=experiment.x, y=experiment.y, series=(*series, *experiment.references))
        (axes,) = draw(made).axes
        texts = [" ".join(text.get_text().split()) for text in axes.texts]
        assert sorted(texts) == sorted(one.label for one in made.series if one.points)
        marks = [container[0].get_marker() for container in axes.containers]
        assert len(set(marks)) == len(series)


def test_names_keep_their_distance_and_stay_near() -> None:
    assert spread_out([0.2, 0.8], [0.1, 0.1]) == [0.2, 0.8]
    close = spread_out([0.5, 0.5, 0.51], [0.1, 0.1, 0.1])
    assert all(after - before >= 0.0999 for before, after in pairwise(close))
    high = spread_out([0.99, 1.0], [0.1, 0.1], top=1.0)
    assert high == pytest.approx([0.85, 0.95])
    low = spread_out([-0.5, -0.4], [0.1, 0.1], bottom=0.0)
    assert low == pytest.approx([0.05, 0.15])


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (0.00125, "0.00125"),
        (0.0000123, "0.0000123"),
        (1.3249, "1.32"),
        (84.36, "84.4"),
        (1521, "1,521"),
        (999, "999"),
    ],
)
def test_numbers_as_people_write_them(value: float, text: str) -> None:
    assert number(value) == text


def test_an_interval_takes_two_digits_and_rounding_is_none(tmp_path: Path) -> None:
    points = (
        Point(1, 12.345, estimate(12.345, 1.2345), runs=5),
        Point(2, 250.0, estimate(250.0, 123.4), runs=5),
        Point(3, 7.93, estimate(7.93, 1e-12), runs=5),
        Point(4, 0.004, Estimate(0.004, 0.003, 0.006, 900, Method.WILSON), runs=5),
    )
    page = build(folder_with(tmp_path, result(series=(Series("m", "m", Role.MEASURED, points),)))).read_text()
    for wanted in ("12.3 ± 1.2<", "250 ± 123<", "<td>7.93</td>", "0.004 (0.003 to 0.006)"):
        assert wanted in page, wanted
