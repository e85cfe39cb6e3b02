"""The plots of the page as people use them: values, series switched off, runs; on paper; and without JavaScript."""

import json
from pathlib import Path

import msgspec

from ordercast.evaluation.results import Result
from ordercast.report import build
from tests.report.test_page import folder_with, result
from tests.viewer.browser import NEEDED, browser

HOSTILE = "</script><script>window.hacked=1</script>"


def with_runs(found: Result) -> Result:
    series = found.series[0]
    points = tuple(
        msgspec.structs.replace(point, config=json.dumps({"seed": place})) for place, point in enumerate(series.points)
    )
    return msgspec.structs.replace(
        found, series=(msgspec.structs.replace(series, points=points, label=HOSTILE), *found.series[1:])
    )


@NEEDED
def test_plots_answer_and_print_and_do_without_scripts(tmp_path: Path) -> None:
    made: list[tuple[str, str]] = []

    def make_page(config: str, title: str) -> bytes:
        made.append((config, title))
        return b"<p>the run"

    file = build(folder_with(tmp_path, with_runs(result())), plots=False, make_page=make_page)
    called = f"A title & more: {HOSTILE}, places"
    assert made == [('{"seed": 0}', f"{called} 1"), ('{"seed": 1}', f"{called} 10")]
    with browser() as page:
        page.open(file.as_uri())
        assert page.evaluate("document.querySelectorAll('.point').length") == 9
        # A point is where the plot has its mark: what is drawn there has the colour of the series.
        page.evaluate("document.querySelectorAll('.point')[1].focus()")
        said = page.evaluate("document.querySelector('.value').innerText")
        assert said.startswith("31 ± 4 ms")
        assert HOSTILE in said
        assert "at places 10, 5 runs" in said
        page.key("Enter")
        assert page.evaluate("document.querySelector('.run a').getAttribute('href')") == "runs/first-m-10.html"
        shares = "getComputedStyle(document.querySelector('[id^=first-series-m-]')).opacity"
        assert page.evaluate(shares) == "1"
        page.evaluate("document.querySelector('.toggles input').click()")
        assert page.evaluate(shares) == "0.07"
        assert page.evaluate("document.querySelectorAll('.point[data-series=m]')[0].hidden")
        page.media(media="print")
        assert page.evaluate(shares) == "1", "all series are on paper"
        assert page.evaluate("getComputedStyle(document.querySelector('.toggles')).display") == "none"
        assert page.evaluate("window.hacked === undefined")
        assert page.taken_errors() == []
        page.open(file.as_uri(), scripts=False)
        assert "✓" in page.html()
        assert page.html().count("<svg") == 1
        assert "<td>31 ± 4</td>" in page.html()


@NEEDED
def test_no_plot_is_cut_off_on_a_phone_or_a_tablet(tmp_path: Path) -> None:
    """Everything that is drawn, the names of series at the right too, is within the window."""
    file = build(folder_with(tmp_path, result()), plots=False)
    drawn = "[...document.querySelectorAll('figure, figure *')]"
    beyond = f"{drawn}.filter(one => one.getBoundingClientRect().right > innerWidth + 1)"
    with browser() as page:
        for width in (360, 400, 700, 1280):
            page.open(file.as_uri(), width=width, touch=width < 700)
            assert page.evaluate("document.querySelectorAll('figure svg path').length") > 9
            assert page.evaluate(f"{beyond}.length") == 0, width
            assert page.evaluate("document.documentElement.scrollWidth") <= width
