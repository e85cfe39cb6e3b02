"""The page in a browser, as people use it: from a file and from the server, with mouse and keys, light and dark."""

import json
import re
import shutil
from html import unescape
from pathlib import Path
from threading import Thread
from xml.etree import ElementTree as ET

from ordercast.cli.shared.stories import page_of_story
from ordercast.trace.incremental_writer import IncrementalTraceWriter
from ordercast.viewer.export import Range, exported
from ordercast.viewer.rules import witnesses_in
from ordercast.viewer.server import ViewerServer
from ordercast.viewer.traces import Traces
from tests.viewer.browser import Page
from tests.viewer.pictures import colour, pixel
from tests.viewer.traces import HOSTILE, many, one_loss, row, write

EXAMPLES = Path(__file__).parent.parent.parent / "examples"


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
    assert "300 ns: eve lost it (loss) and needed another copy" in said
    assert "eve was frozen (it noticed that a message is missing) until 600 ns: it asked for what it lacked (1)" in said
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


def test_the_story_of_one_loss_is_gone_through_by_keys_alone(page: Page, tmp_path: Path) -> None:
    file = tmp_path / "story.html"
    file.write_bytes(page_of_story(EXAMPLES / "stories" / "st-one-loss.toml"))
    page.show(file.as_uri(), dark=True)
    assert "ST, the sound rules: one message is lost" in page.text()
    assert "Who notices that it lacks a message freezes" in page.text(), "what the protocol promises"
    for _ in range(12):
        page.key("n")
    said = page.text()
    assert "step 12 of 45" in said
    assert "It freezes. It accepts nothing new" in said
    assert "stops (gap)" in said
    assert re.search(r"normal\.log\s+z\s+z, p", said), "what differs from the step before"
    assert re.search(r"E3\s+z p\s+g\s+nothing", said), "who had what, and lacked what"
    page.evaluate("app.first.paint()")  # which a frame of the browser does soon
    line = page.evaluate("app.first.painter.x(12000)")
    assert pixel(page, 12000, 0) == colour(page, "chosen"), f"the step is marked at {line}"
    page.key("p")
    assert "step 11 of 45" in page.text()
    page.evaluate("app.goTo(44)")
    assert "g before z: E1, E2 had both in this order" in page.text()
    assert "Why the order came out as it did" in page.text()
    page.evaluate("app.guarded(() => app.search('\"z'))")
    page.until("byId('panel').innerText.includes('Message z')")
    page.key("Escape")
    assert page.taken_errors() == []


def test_losses_are_told_and_runs_compared_and_ranges_saved(page: Page, tmp_path: Path) -> None:
    late = [row(0, 90, 90_000, "timeout"), row(0, 91, 90_100, "timeout")]
    other = [each for each in one_loss() if each[3] not in {"lose", "stop", "resume"}]
    traces = Traces(
        [write(tmp_path / "a", [*one_loss(), *late], run="a"), write(tmp_path / "b", [*other, *late], run="b")]
    )
    file = tmp_path / "page.html"
    file.write_bytes(exported(traces, ["a"], Range()).page)
    page.show(file.as_uri())
    page.evaluate("app.tellFirstLoss(app.first)")
    page.until("byId('panel').innerText.includes('What happened to E1#0')")
    words = page.evaluate("app.story.steps.map((step) => step.words)")
    assert words[0] == "E1 sends E1#0"
    assert "E3 does not receive E1#0 (loss)" in words
    assert "E3 freezes (it noticed that a message is missing)" in words
    assert "E1, E2, E3: delivers E1#0" in words
    page.key("Escape")
    page.evaluate("app.first.whole()")
    page.settle()
    wide = page.evaluate("app.first.painter.x(800) - app.first.painter.x(200)")
    page.key("x")
    page.settle()
    assert page.evaluate("app.first.painter.x(800) - app.first.painter.x(200)") > 5 * wide, "the gap is left out"
    found = json.loads(page.saved("Perfetto"))
    assert {each["ph"] for each in found["traceEvents"]} == {"M", "X", "s", "f"}
    assert [each["dur"] for each in found["traceEvents"] if each["name"] == "frozen"] == [0.3]
    assert page.saved("PNG").startswith(b"\x89PNG")
    ET.fromstring(page.saved("SVG"))  # noqa: S314 (our own)
    file.write_bytes(exported(traces, ["a", "b"], Range()).page)
    page.show(file.as_uri() + "?two")
    page.until("byId('panel').innerText.includes('1 difference, in rings')")
    assert "E1#0 is lost only here, at E3, in the upper run" in page.text()
    assert page.evaluate("[...app.views[0].chosen.differs].length") == 1
    assert page.taken_errors() == []


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
        for number in (1, 2):
            writer.append([row(0, number, begun + number * second, "send", 0, number, destinations=(0, 1), size=8)])
            page.until(f"byId('status').textContent.includes('{number + 1} events here: {number + 1} drawn')")
            assert page.evaluate(f"app.first.to > {number * second}")
        page.evaluate("app.first.show(1e9, 1.5e9)")
        config = '{"live": {"members": ["ann", "bob", "eve"], "one_clock": true}}'
        writer.describe({"protocol": "po", "nodes": 3, "complete": True, "node": 0, "config": config})
        page.until("app.first.run.names.join() === 'ann,bob,eve'")
        page.until("Boolean(app.first.counted)")
        assert page.evaluate("[app.first.from, app.first.to].join()") == "1000000000,1500000000", "the window stays"
        assert page.evaluate("app.first.label.textContent").endswith("complete")
        page.evaluate("app.first.whole()")
        assert page.taken_errors() == []
        shutil.rmtree(tmp_path / "events")
        page.until("byId('status').className === 'wrong'")
        said = f"{tmp_path} is gone: it was deleted or moved; say where it is, and follow it anew"
        assert page.text("status") == said
        thread.join()
        assert str(server.gone) == said, "which ends the command"
        page.evaluate("app.wrongUntil = 0; app.redraw()")
        page.until("byId('status').textContent.includes('3 events here')")
        assert page.text("status").endswith(said), "what was read stays"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_server_that_is_gone_and_a_file_that_is_broken_meanwhile_are_told_in_the_page(
    page: Page, tmp_path: Path
) -> None:
    trace = write(tmp_path, many(3_000), batch=500)
    server = ViewerServer(Traces([trace]))
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        page.show(server.address)
        for file in (trace / "events").iterdir():
            file.write_bytes(b"PAR1 but not more PAR1")
        server.traces.run("r").events._full.clear()
        page.evaluate("app.guarded(() => app.source.message('r', 0, 999))")
        page.until("byId('status').className === 'wrong'")
        assert "it is damaged or not a Parquet file" in page.text("status")
        page.lose_network()
        page.evaluate("app.guarded(() => app.source.message('r', 0, 998))")
        page.until("byId('status').innerText === 'the server does not answer; start ordercast view again'")
        page.taken_errors()  # the browser names the requests that failed
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
