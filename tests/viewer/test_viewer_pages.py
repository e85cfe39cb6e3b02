"""The page in a browser, as people use it: from a file and from the server, with mouse and keys, light and dark."""

import json
import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from threading import Thread
from xml.etree import ElementTree as ET

import pytest

from ordercast.trace.incremental_writer import IncrementalTraceWriter
from ordercast.viewer.export import Range, exported
from ordercast.viewer.rules import witnesses_in
from ordercast.viewer.server import ViewerServer
from ordercast.viewer.traces import Traces
from tests.viewer.browser import NEEDED, Page, browser
from tests.viewer.traces import HOSTILE, many, one_loss, row, write

PIXEL = """(() => {{ const [x, y] = {place}, g = app.first.canvas.getContext("2d");
return Array.from(g.getImageData(x, y, 1, 1).data).slice(0, 3) }})()"""
COLOUR = """(() => {{ const g = document.createElement("canvas").getContext("2d");
g.fillStyle = app.first.painter.colours.{name}; g.fillRect(0, 0, 1, 1);
return Array.from(g.getImageData(0, 0, 1, 1).data).slice(0, 3) }})()"""


@pytest.fixture(scope="module", name="page")
def opened_page() -> Iterator[Page]:
    """One browser for all tests: to start it takes longer than a test."""
    with browser() as page:
        yield page


def pixel(page: Page, time: float, node: int) -> list[int]:
    place = f"[app.first.painter.x({time}), app.first.painter.y({node})]"
    found: list[int] = page.evaluate(PIXEL.format(place=place))
    return found


def colour(page: Page, name: str) -> list[int]:
    found: list[int] = page.evaluate(COLOUR.format(name=name))
    return found


@NEEDED
def test_a_file_shows_the_story_of_a_loss_and_runs_nothing_of_the_trace(page: Page, tmp_path: Path) -> None:
    config = json.dumps({"live": {"members": [HOSTILE, "bob", "eve"]}})
    rows = [*one_loss(), row(1, 9, 950, "timeout", detail=HOSTILE)]
    traces = Traces([write(tmp_path / HOSTILE.replace("/", "|"), rows, config=config)])
    file = tmp_path / "page.html"
    file.write_bytes(exported(traces, ["r"], Range()).page)
    for dark in (False, True):
        page.show(file.as_uri(), dark=dark)
        assert "21 events here: 21 drawn one by one" in page.text("status")
        assert pixel(page, 802, 2) == colour(page, "deliver")
        assert pixel(page, 200, 2) == colour(page, "lose")
    page.evaluate("app.first.canvas.focus()")
    page.key("]")
    page.key("[")
    x, y = page.evaluate(
        "(() => { const box = app.first.canvas.getBoundingClientRect();"
        "return [box.left + app.first.painter.x(802), box.top + app.first.painter.y(2)] })()"
    )
    page.click(x, y)
    page.until("byId('panel').innerText.includes('What it waited for')")
    said = page.text()
    assert f"Message {HOSTILE}#0" in said
    assert "300 ns: eve lost it (loss) and had to be sent another copy" in said
    assert "eve was stopped (it noticed that a message is missing) until 600 ns: 1 asked, 1 inserted" in said
    assert "all waited for eve" in said
    page.key("+")
    page.key("Escape")
    page.until("byId('panel').innerText.includes('The run')")
    page.evaluate("app.panel.help()")
    picture = page.evaluate("app.picture()")
    ET.fromstring(picture)  # noqa: S314 (our own)
    assert HOSTILE[:4] in unescape(picture), "as much as there is room for"
    page.show(file.as_uri() + "#", width=400, height=700, touch=True)
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    assert page.evaluate("window.hacked") is None
    assert page.taken_errors() == []
    assert [each for each in page.taken_requests() if not each.startswith(("file:", "about:", "data:"))] == []


@NEEDED
def test_the_server_shows_density_then_events_and_a_violation(page: Page, tmp_path: Path) -> None:
    rows = many(3_000)
    swapped = [row(2, 10_000, 400_000, "deliver", 0, 2_000), row(1, 10_000, 400_001, "deliver", 0, 2_000)]
    trace = write(tmp_path / "t", [*rows, *swapped], protocol="to")
    verdict = {
        "properties": {
            "same_order": {
                "witnesses": [
                    {
                        "run": "r",
                        "sentence": "E2 and E3 differ",
                        "messages": [[0, 5], [1, 5]],
                        "nodes": [1, 2],
                        "places": [],
                    }
                ]
            }
        }
    }
    server = ViewerServer(Traces([trace]), witnesses=witnesses_in(verdict))
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        page.show(server.address)
        page.until("byId('panel').innerText.includes('Violated: same_order')")
        said = page.text()
        assert "Any two members deliver the messages that both have in the same order." in said
        assert "E2 and E3 differ" in said
        assert "Message E1#5" in said
        assert "Message E2#5" in said
        assert page.evaluate("document.querySelectorAll('.logs .witness').length") == 4
        assert page.evaluate("app.first.from > 0 && app.first.to < 10000"), "it opens at the witness"
        page.evaluate("app.first.whole()")
        page.settle()
        counts = re.findall(r"([\d,]+) (?:events here|drawn one by one|not shown one by one)", page.text("status"))
        total, single, dense = (int(count.replace(",", "")) for count in counts)
        assert (total, single + dense) == (12_002, 12_002)
        assert dense > 10_000
        page.evaluate("app.guarded(() => app.search('E2#77'))")
        page.until("byId('panel').innerText.includes('Message E2#77')")
        page.settle()
        assert "not shown" not in page.text("status")
        page.evaluate("app.guarded(() => app.search('teleport'))")
        page.until("byId('status').innerText.includes('is no message, member, event or time')")
        assert page.taken_errors() == []
        assert {each.split("/")[2] for each in page.taken_requests() if each.startswith("http")} == {
            f"127.0.0.1:{server.server_port}"
        }
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@NEEDED
@pytest.mark.soak
def test_two_runs_move_together(page: Page, tmp_path: Path) -> None:
    traces = Traces([write(tmp_path / name, many(500), run=name) for name in ("a", "b")])
    file = tmp_path / "page.html"
    file.write_bytes(exported(traces, ["a", "b"], Range()).page)
    page.show(file.as_uri())
    assert page.evaluate("app.views.map((view) => view.run.name)") == ["a", "b"]
    page.evaluate("app.first.zoom(0.25)")
    assert page.evaluate("app.views[1].from === app.views[0].from && app.views[1].to === app.views[0].to")
    assert page.taken_errors() == []


@NEEDED
@pytest.mark.soak
def test_a_page_follows_a_trace_that_grows(page: Page, tmp_path: Path) -> None:
    writer = IncrementalTraceWriter(tmp_path, "member", "r")
    writer.begin({"protocol": "po", "nodes": 2, "complete": False, "node": 0})
    begun, second = 10**15, 10**9
    writer.append([row(0, 0, begun, "send", 0, 0, destinations=(0, 1), size=8)])
    server = ViewerServer(Traces([tmp_path]), follow=True)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        page.show(server.address)
        for number in range(1, 4):
            writer.append([row(0, number, begun + number * second, "send", 0, number, destinations=(0, 1), size=8)])
            page.until(f"byId('status').textContent.includes('{number + 1} events here: {number + 1} drawn')")
            assert page.evaluate(f"app.first.to > {number * second}")
        assert page.taken_errors() == []
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
