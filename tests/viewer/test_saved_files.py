"""What the page saves of a range: PNG, SVG, and JSON that Perfetto can open."""

import json
from base64 import b64encode
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pyarrow.parquet as pq
import pytest

from ordercast.model.config import GroupConfig
from ordercast.model.runs import Channel, Network, RunConfig, Workload
from ordercast.simulation import Loss, simulate
from ordercast.viewer.traces import Traces
from tests.viewer.browser import Page
from tests.viewer.pictures import colour, page_of, spot
from tests.viewer.traces import HOSTILE, many, one_loss, row, write

SVG = "{http://www.w3.org/2000/svg}"
MOST_DEPTH = 512
"""Slices on each other that Perfetto's importer takes."""
Event = dict[str, Any]


def imported(text: bytes) -> list[tuple[Event, Event]]:
    """Reads Chrome's trace event format as Perfetto's importer does; returns the slices at both ends of each arrow.

    By https://github.com/google/perfetto, `json_trace_parser`, `flow_tracker` and `slice_tracker`: what these count as
    an error fails.
    """
    document = json.loads(text)
    assert document["displayTimeUnit"] in {"ms", "ns"}
    events: list[Event] = document["traceEvents"]
    processes: dict[int, str] = {}
    threads: dict[int, int] = {}
    for event in events:
        assert type(event["pid"]) is int
        assert event["pid"] > 0, "0 is the idle process"
        if event["ph"] == "M" and event["name"] == "process_name":
            assert processes.setdefault(event["pid"], event["args"]["name"]) == event["args"]["name"]
        elif event["ph"] == "M" and event["name"] == "thread_name":
            assert event["tid"] not in threads, "names of threads are found by their numbers alone"
            threads[event["tid"]] = event["pid"]
        elif event["ph"] != "M":
            assert event["ph"] in {"X", "s", "f", "i"}
            assert threads[event["tid"]] == event["pid"]
            assert event["pid"] in processes
            assert isinstance(event["ts"], int | float)
            assert event["name"]
            assert isinstance(event["cat"], str)
    stacks: dict[int, list[Event]] = defaultdict(list)
    begun: dict[int, Event] = {}
    arrows = []
    timed = [event for event in events if event["ph"] != "M"]
    for event in sorted(timed, key=lambda event: event["ts"]):  # stable, as in the importer
        stack = stacks[event["tid"]]
        if event["ph"] in {"X", "i"}:
            end = event["ts"] + event.get("dur", 0)
            assert end >= event["ts"]
            while stack and stack[-1]["ts"] + stack[-1].get("dur", 0) <= event["ts"]:
                stack.pop()
            assert not stack or end <= stack[-1]["ts"] + stack[-1]["dur"] + 1e-9, "slices overlap and are not nested"
            stack.append(event)
            assert len(stack) < MOST_DEPTH
        else:
            assert type(event["id"]) is int
            assert stack, "an arrow's end needs a slice"
            assert stack[-1]["ts"] == event["ts"]
            if event["ph"] == "s":
                assert event["id"] not in begun, "each arrow has a number of its own"
                begun[event["id"]] = stack[-1]
            else:
                assert event["bp"] == "e", "bound to the slice that it is in, not to the next one"
                arrows.append((begun.pop(event["id"]), stack[-1]))
    assert begun == {}, "each arrow that begins ends"
    return arrows


def test_perfetto_opens_what_is_saved_with_all_arrows(page: Page, tmp_path: Path) -> None:
    late = [row(1, 90, 90_000, "stop", detail="gap"), row(2, 91, 91_000, "crash")]
    config = json.dumps({"live": {"members": [HOSTILE, "bob", "eve"]}})
    page.show(page_of(tmp_path, write(tmp_path / "t", [*one_loss(), *late], config=config)))
    saved = page.saved("Perfetto")
    arrows = Counter((one["name"], other["name"], one["pid"], other["pid"]) for one, other in imported(saved))
    message = f"{HOSTILE}#0"
    assert arrows == {
        (f"transmit {message}", f"receive {message}", 1, 2): 1,
        (f"transmit {message}", f"receive {message}", 1, 3): 1,
    }, "the first to E2, the copy to E3; what was lost arrives nowhere"
    events = json.loads(saved)["traceEvents"]
    [frozen] = [each for each in events if each["name"] == "frozen" and each["ph"] == "X"]
    assert (frozen["ts"], frozen["dur"], frozen["pid"]) == (0.3, 0.3, 3)
    assert frozen["args"] == {"why": "gap", "how": "1 asked, 1 inserted"}
    assert [each["pid"] for each in events if each["ph"] == "i"] == [2], "one that lasts beyond the range"
    assert {each["args"]["name"] for each in events if each["name"] == "process_name"} == {HOSTILE, "bob", "eve"}
    page.evaluate("app.first.show(250, 450)")
    page.settle()
    part = json.loads(page.saved("Perfetto"))["traceEvents"]
    assert {each["ts"] for each in part if each["ph"] != "M"} == {0.3, 0.4}, "only what is in sight"
    assert imported(json.dumps({"displayTimeUnit": "ns", "traceEvents": part}).encode()) == []


@pytest.mark.parametrize("protocol", ["st", "sequencer"])
def test_perfetto_opens_whole_runs_with_recoveries(page: Page, tmp_path: Path, protocol: str) -> None:
    run = RunConfig(
        protocol=protocol,
        group=GroupConfig(nodes=4),
        network=Network(channel=Channel.ONE),
        workload=Workload(messages=40, gap=20_000),
        faults=(Loss(rate=0.05),),
        seed=5,
    )
    trace = tmp_path / "t"
    simulate(run, trace)
    [name] = Traces([trace]).runs
    page.show(page_of(tmp_path, trace, runs=(name,)))
    arrows = imported(page.saved("Perfetto"))
    kinds = Counter(one["cat"] for one, _ in arrows)
    assert set(kinds) == {"transmit"}
    assert {other["cat"] for _, other in arrows} <= {"receive", "hear"}
    recorded = pq.read_table(trace / "events").to_pylist()
    flights = [each for each in recorded if each["event"] in {"receive", "hear"} and each["transmission"] is not None]
    assert len(arrows) == len(flights) > 500
    assert page.taken_errors() == []


def drawn(page: Page, kind: str, data: bytes, x: float, y: float) -> tuple[list[int], list[int]]:
    """How large a picture is as the browser opens it, and the colour at a place."""
    address = f"data:image/{kind};base64,{b64encode(data).decode()}"
    size, colour = page.evaluate(
        f"""(async () => {{ const image = new Image();
        image.src = "{address}";
        await image.decode();
        const canvas = document.createElement("canvas"); canvas.width = image.width; canvas.height = image.height;
        const g = canvas.getContext("2d"); g.drawImage(image, 0, 0);
        return [[image.width, image.height], Array.from(g.getImageData({round(x)}, {round(y)}, 1, 1).data)] }})()"""
    )
    return size, colour


def test_the_saved_picture_is_the_one_that_is_shown(page: Page, tmp_path: Path) -> None:
    address = page_of(tmp_path, write(tmp_path / "t", one_loss()))
    page.show(address, width=800, height=330)
    saved = page.saved("PNG")
    for time, node, name in ((802, 2, "deliver"), (200, 2, "lose")):
        size, found = drawn(page, "png", saved, *spot(page, time, node))
        assert size == page.evaluate("[app.first.width, app.first.height]")
        assert found == [*colour(page, name), 255]


def test_two_runs_beside_each_other_are_saved_both(page: Page, tmp_path: Path) -> None:
    other = [each for each in one_loss() if each[3] not in {"lose", "stop", "resume"}]
    traces = [write(tmp_path / "a", one_loss(), run="a"), write(tmp_path / "b", other, run="b")]
    page.show(page_of(tmp_path, *traces, runs=("a", "b")))
    page.until("byId('panel').innerText.includes('1 difference, in rings')")
    page.evaluate("app.redraw()")
    page.settle()
    width, above, below = page.evaluate("[app.first.width, app.first.height, app.views[1].height]")
    x, y = page.evaluate("(({ painter }) => [painter.x(802), painter.y(2)])(app.views[1])")
    for kind, button in (("png", "PNG"), ("svg+xml", "SVG")):
        size, found = drawn(page, kind, page.saved(button), x, above + y)
        assert (size, found) == ([width, above + below], [*colour(page, "deliver"), 255]), "the lower run is below"
    saved = page.saved("Perfetto")
    assert len(imported(saved)) == 2 * 2, "in each run a transmission to E2, and a copy to E3"
    names = [each["args"]["name"] for each in json.loads(saved)["traceEvents"] if each["name"] == "process_name"]
    assert names == [f"E{node}, {where} run" for where in ("upper", "lower") for node in (1, 2, 3)]
    assert page.taken_errors() == []


def test_the_svg_has_what_the_canvas_has_and_opens_as_a_picture(page: Page, tmp_path: Path) -> None:
    config = json.dumps({"live": {"members": [HOSTILE, "bob", "eve"]}})
    page.show(page_of(tmp_path, write(tmp_path / "t", one_loss(), config=config)))
    x, y = spot(page, 802, 2)
    deliver = page.evaluate("app.first.painter.colours.deliver")
    width, height = page.evaluate("[app.first.width, app.first.height]")
    data = page.saved("SVG").decode()
    found = ET.fromstring(data)  # noqa: S314 (our own)
    assert [found.get("width"), found.get("height")] == [str(width), str(height)]
    known = {f"{SVG}{name}" for name in ("svg", "title", "defs", "clipPath", "g", "path", "rect", "text", "image")}
    assert {each.tag for each in found.iter()} <= known
    assert not [name for each in found.iter() for name in each.attrib if name.startswith("on")]
    squares = "".join(each.get("d", "") for each in found.iter(f"{SVG}path") if each.get("fill") == deliver)
    assert f"M{round(x - 5, 2):g} {round(y - 5, 2):g}" in squares, "E3's delivery, where it is on the canvas"
    assert "bob" in {each.text for each in found.iter(f"{SVG}text")}
    size, shown = drawn(page, "svg+xml", data.encode(), x, y)
    assert (size, shown) == ([width, height], [*colour(page, "deliver"), 255]), "as the canvas is drawn"
    assert page.taken_errors() == []


def test_a_dense_part_is_in_the_svg_as_a_picture(page: Page, tmp_path: Path) -> None:
    page.show(page_of(tmp_path, write(tmp_path / "t", many(3_000))))
    found = ET.fromstring(page.saved("SVG"))  # noqa: S314 (our own)
    images = [each.get("href", "") for each in found.iter(f"{SVG}image")]
    assert images
    assert all(each.startswith("data:image/png;base64,") for each in images), "nothing is fetched"
