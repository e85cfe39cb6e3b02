"""The picture itself: what is drawn where, far and near, and how one moves in it."""

import json
import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from ordercast.cli.shared.stories import page_of_story
from ordercast.viewer.traces import Traces
from tests.viewer.browser import Page
from tests.viewer.pictures import all_along, along, colour, colours_at, page_of, pixel, place, spot
from tests.viewer.traces import many, one_loss, row, write

STORY = Path(__file__).parent.parent.parent / "examples" / "stories" / "st-one-loss.toml"
SVG = "{http://www.w3.org/2000/svg}"


def texts(page: Page) -> list[tuple[str, float, float]]:
    """All that is written in the picture, and where."""
    found = ET.fromstring(page.evaluate("app.picture()"))  # noqa: S314 (our own)
    return [(each.text or "", float(each.get("x", 0)), float(each.get("y", 0))) for each in found.iter(f"{SVG}text")]


@pytest.mark.parametrize("dark", [False, True])
def test_messages_losses_copies_levels_and_frozen_spans_are_drawn_where_they_happen(
    page: Page, tmp_path: Path, dark: bool
) -> None:
    page.show(page_of(tmp_path, write(tmp_path / "t", one_loss())), dark=dark)
    assert along(page, (100, 0), (200, 1), 0.3) == {"data"}
    assert along(page, (400, 0), (500, 2), 0.3) == {"level"}, "a copy is gold"
    # The loss is broken: red and nothing by turns; its last part, before the lane, is missing.
    parts = all_along(page, (100, 0), (200, 2), [share / 100 for share in range(20, 94, 2)])
    assert {"lose"} in parts[:30]
    assert set() in parts[:30]
    assert parts[-3:] == [set()] * 3
    assert pixel(page, 100, 0, down=-8) == colour(page, "send")
    for time, down in ((500, 10), (702, 17), (802, 24)):  # accepted, pre-acknowledged, acknowledged
        x, y = spot(page, time, 2)
        assert "level" in colours_at(page, x, y + down, 1), (time, down)
        assert "level" not in colours_at(page, x, y + down + 3.5, 0), (time, down)
    frozen, before, other = (pixel(page, time, node, down=-30) for time, node in ((450, 2), (280, 2), (450, 1)))
    assert frozen != before
    assert frozen[0] - frozen[2] > before[0] - before[2] + 15, "orange"
    assert other[0] - other[2] < frozen[0] - frozen[2] - 15, "only E3 is frozen"
    assert page.taken_errors() == []


def test_lanes_begin_and_end_with_views_and_show_who_is_the_sequencer_now(page: Page, tmp_path: Path) -> None:
    rows = [
        *(row(node, 0, 0, "view", None, 1, destinations=(0, 1), detail="first") for node in (0, 1)),
        *(row(node, 1, 40_000, "view", None, 2, destinations=(0, 1, 2)) for node in (0, 1, 2)),
        *(row(node, 2, 80_000, "view", None, 3, destinations=(1, 2)) for node in (1, 2)),
        row(0, 9, 70_000, "crash"),
        row(1, 9, 100_000, "timeout"),
    ]
    config = json.dumps({"group": {"sequencer": {"node": 0}}})
    page.show(page_of(tmp_path, write(tmp_path / "t", rows, protocol="sequencer", config=config)))
    here = {(time, node): pixel(page, time, node, down=30) for time in (20_000, 60_000, 90_000) for node in range(3)}
    assert here[20_000, 2] != here[60_000, 2] == here[90_000, 2], "E3 joins at 40"
    assert here[20_000, 0] == here[60_000, 0] != here[90_000, 0], "E1 crashes at 70"
    assert here[20_000, 1] == here[60_000, 1] == here[90_000, 1]
    said = texts(page)
    assert sorted(text for text, _, _ in said if text.startswith("view")) == sorted(
        ["view 1", "view 1", "view 2", "view 2", "view 2", "view 3", "view 3"]
    )
    assert [round(y) for text, _, y in said if text == "crashes"] == [round(spot(page, 0, 0)[1]) + 4]

    def sequencer() -> list[int]:
        [below] = [y for text, _, y in texts(page) if text == "sequencer"]
        return [node for node in range(3) if 0 < below - spot(page, 0, node)[1] < 30]

    assert sequencer() == [0], "in the middle of the picture it is E1"
    page.evaluate("app.first.show(82000, 99000)")
    page.settle()
    assert sequencer() == [1], "behind view 3 it is the first of those that remain"


def test_the_lane_of_a_member_that_was_killed_ends_with_the_view_without_it(page: Page, tmp_path: Path) -> None:
    """It could not record its end; in view 2 it is not yet missed, and a view of before says nothing of later ones."""
    rows = [
        *(row(node, 0, 0, "view", None, 1, destinations=(0, 1, 2)) for node in (0, 1, 2)),
        *(row(node, 1, 20_000, "view", None, 2, destinations=(0, 1, 2)) for node in (0, 1)),
        *(row(node, 2, 60_000 + node, "view", None, 3, destinations=(0, 1)) for node in (0, 1)),
        row(0, 3, 100_000, "timeout"),
    ]
    page.show(page_of(tmp_path, write(tmp_path / "t", rows)))
    here = {(time, node): pixel(page, time, node, down=30) for time in (40_000, 80_000) for node in (0, 2)}
    assert here[40_000, 2] == here[40_000, 0] == here[80_000, 0] != here[80_000, 2]
    [(x, y)] = [(x, y) for text, x, y in texts(page) if text == "not in view 3"]
    assert (round(x), round(y)) == (round(spot(page, 60_000, 2)[0]) + 5, round(spot(page, 0, 2)[1]) + 4)


def test_a_process_that_starts_again_is_told_and_who_never_comes_in_is_never_a_member(
    page: Page, tmp_path: Path
) -> None:
    rows = [
        *(row(node, 0, 0, "view", None, 0, destinations=(0, 1)) for node in (0, 1)),
        row(1, 5, 20_000, "crash"),
        row(2, 0, 40_000, "restart", 1, 7),
        *(row(node, 6, 60_000, "view", None, 1, destinations=(0, 2)) for node in (0, 2)),
        row(3, 0, 70_000, "timeout"),
        row(0, 7, 100_000, "timeout"),
    ]
    page.show(page_of(tmp_path, write(tmp_path / "t", rows, nodes=4)))
    here = {(time, node): pixel(page, time, node, down=30) for time in (50_000, 90_000) for node in range(4)}
    assert here[50_000, 0] == here[90_000, 0]
    assert here[50_000, 2] != here[90_000, 2] == here[90_000, 0], "a member from view 1 on"
    assert here[50_000, 3] == here[90_000, 3] == here[90_000, 1], "E4 never comes into a view"
    [(x, y)] = [(x, y) for text, x, y in texts(page) if text == "E2 starts again, 7 in its log"]
    assert round(x) == round(spot(page, 40_000, 2)[0]) + 4
    assert abs(y - spot(page, 0, 2)[1]) < page.evaluate("app.first.painter.lane") / 2


def test_records_of_members_have_arrows_by_message_since_each_numbers_for_itself(page: Page, tmp_path: Path) -> None:
    """Number 7 is a message of the one that the other received as 8, and of the other one a message of its own."""
    config = json.dumps({"live": {"members": ["ann", "bob"], "one_clock": True}})
    anns = [
        row(0, 0, 1_000, "transmit", 0, 0, detail="data", transmission=7),
        row(0, 1, 3_500, "receive", 1, 0, transmission=8),
        row(0, 2, 9_000, "transmit", 0, 0, detail="copy", transmission=9),
    ]
    bobs = [
        row(1, 0, 2_000, "receive", 0, 0, transmission=8),
        row(1, 1, 3_000, "transmit", 1, 0, detail="data", transmission=7),
        row(1, 2, 9_500, "receive", 0, 0, transmission=9),
        row(1, 3, 10_000, "receive", 0, 5, transmission=10),
    ]
    traces = [
        write(tmp_path / str(node), rows, nodes=2, node=node, config=config) for node, rows in enumerate((anns, bobs))
    ]
    page.show(page_of(tmp_path, *traces))
    flights = """app.first.shownEntries.flatMap(({ tile: { time, node, flights } }) => {
        const name = (row) => row < 0 ? null : [time[row], node[row]].join(), pairs = [];
        for (let at = 0; at < flights.length; at += 2) pairs.push([name(flights[at]), name(flights[at + 1])]);
        return pairs })"""
    found = {(start, end) for start, end in page.evaluate(flights)}
    assert found == {
        ("1000,0", "2000,1"),
        ("3000,1", "3500,0"),
        ("9000,0", "9500,1"),
        (None, "10000,1"),
    }, "by message, and by the latest transmission of it; what nobody recorded has no beginning"
    assert along(page, (1_000, 0), (2_000, 1), 0.5) == {"data"}
    assert Traces(traces).run("r").margin > 1_000, "some 1,000 ns: as long as messages fly"


@pytest.mark.parametrize(("second", "ends"), [(5, True), (1, False)])
def test_a_run_of_priorities_ends_before_a_message_that_is_more_urgent(
    page: Page, tmp_path: Path, second: int, ends: bool
) -> None:
    """The two deliveries are in different tiles; the first may be out of sight, or many events between them."""
    sends = [row(0, seq, seq, "send", 0, seq, destinations=(0, 1), priority=(2, second)[seq]) for seq in (0, 1)]
    delivered = [row(1, seq, 50_000 + 100_000 * seq, "deliver", 0, seq) for seq in (0, 1)]
    crowd = [row(0, 2 + number, 70_000 + number, "timeout") for number in range(2_500)]
    rows = sorted([*sends, *delivered, *crowd, row(0, 9_999, 196_000, "timeout")], key=lambda each: each[2])
    page.show(page_of(tmp_path, write(tmp_path / "trace", rows, protocol="prito", nodes=2)))
    for from_, to, dense in ((-1, 196_001, True), (140_000, 160_000, False)):
        page.evaluate(f"app.first.show({from_}, {to})")
        page.settle()
        assert ("as density" in page.text("status")) is dense
        x, y = spot(page, 150_000, 1)
        assert ("level" in colours_at(page, x - 6.5, y - 9, 1)) is ends, "the upright line is gold"
    assert f"E1#1 !{second}" in {text for text, _, _ in texts(page)}, "with its priority"


def test_far_away_there_are_columns_and_all_is_counted(page: Page, tmp_path: Path) -> None:
    page.show(page_of(tmp_path, write(tmp_path / "t", many(3_000))))
    said = page.text("status")
    assert "12,000 events here" in said
    single, dense = (
        int(count.replace(",", "")) for count in re.findall(r"([\d,]+) (?:drawn|not shown) one by one", said)
    )
    assert single + dense == 12_000
    assert dense > 10_000
    lane, top = page.evaluate("[app.first.painter.lane, 22]")
    x, _ = spot(page, 150_000, 1)

    def column(share: float) -> set[str]:
        return colours_at(page, x, top + lane * (1 + share), 1)

    assert column(0.95) == {"send"}, "sends are the lowest part of a column"
    assert column(0.8) == {"deliver"}
    assert column(0.2) == set(), "twelve of 65,536 events of a full column are not tall"
    page.evaluate("document.querySelectorAll('#filters input')[5].click()")
    page.settle()
    assert column(0.8) == set()
    assert "3,000 events here" in page.text("status")
    assert "9,000 hidden by filters" in page.text("status")
    page.evaluate("app.first.centre(150000, 2000)")
    page.settle()
    shown = re.search(r"(\d+) events here: (\d+) drawn one by one", page.text("status"))
    assert shown is not None
    assert 20 <= int(shown[1]) == int(shown[2]) <= 22, "of 20 sends"


def window(page: Page) -> tuple[float, float]:
    begin, end = page.evaluate("[app.first.from, app.first.to]")
    return begin, end


def time_at(page: Page, x: float) -> float:
    """The time below a point of the page."""
    found: float = page.evaluate(
        f"app.first.from + ({x} - app.first.canvas.getBoundingClientRect().left - app.first.gutter)"
        " / (app.first.width - app.first.gutter) * app.first.span"
    )
    return found


def test_the_wheel_zooms_at_the_pointer_and_the_mouse_moves(page: Page, tmp_path: Path) -> None:
    page.show(page_of(tmp_path, write(tmp_path / "t", many(3_000))))
    x, y = place(page, 100_000, 1)
    wide = page.evaluate("app.first.span")
    page.wheel(x, y, -400)
    page.until(f"app.first.span < {0.9 * wide}")
    assert page.evaluate("app.first.span") == pytest.approx(wide * 1.0015**-400)
    assert time_at(page, x) == pytest.approx(100_000, abs=wide / 500), "what is below the pointer stays there"
    page.drag((x, y), (x + 120, y))
    assert time_at(page, x + 120) == pytest.approx(100_000, abs=wide / 500)
    before = window(page)
    page.wheel(x, y, 0, right=200)
    page.until(f"app.first.from > {before[0]}")
    assert page.evaluate("app.first.span") == pytest.approx(before[1] - before[0])
    page.wheel(x, y, 4000)
    page.until(f"app.first.span > {wide}")
    assert page.evaluate("app.first.span") <= 1.2 * 299_950 + 1000, "not beyond the run"


def test_keys_alone_go_from_the_whole_run_to_one_event_and_back(page: Page, tmp_path: Path) -> None:
    page.show(page_of(tmp_path, write(tmp_path / "t", many(3_000))))
    whole = window(page)
    for _ in range(60):
        page.key("Tab")
        if page.evaluate("document.activeElement === app.first.canvas"):
            break
    assert page.evaluate("document.activeElement.getAttribute('aria-label')").startswith("Space-time diagram of r.")
    page.key("+")
    halved = window(page)
    assert halved[1] - halved[0] == pytest.approx((whole[1] - whole[0]) / 2)
    page.key("ArrowRight")
    moved = window(page)
    assert moved[0] - halved[0] == pytest.approx(0.2 * (halved[1] - halved[0]))
    page.key("ArrowLeft")
    page.key("-")
    assert window(page) == pytest.approx(whole)
    page.key("Home")
    assert sum(window(page)) / 2 == pytest.approx(0, abs=1)
    page.key("End")
    assert sum(window(page)) / 2 == pytest.approx(299_950)
    for _ in range(40):
        page.key("+")
    assert page.evaluate("app.first.span") == 100, "nanoseconds, in which there is one datagram"
    page.settle()
    assert "4 events here: 4 drawn one by one" in page.text("status"), "the last message, delivered everywhere at once"
    page.key("]")
    page.key("Enter")
    page.until("byId('panel').innerText.includes('Message E3#999')")
    page.key("Escape")
    page.until("byId('panel').innerText.includes('The run')")
    page.key("0")
    assert window(page) == pytest.approx(whole)
    for _ in range(30):
        page.key("Shift+Tab")
        if page.evaluate("document.activeElement.parentElement.innerText.includes('sends')"):
            break
    page.key("Space")
    page.settle()
    assert "3,000 hidden by filters" in page.text("status"), "switched off with the space bar"
    page.key("/")  # goes to the search, also from there
    page.type("from E2 deliver E3")
    page.key("Enter")
    page.until("byId('panel').innerText.includes('Message E2#')")
    page.key("Shift+Tab")
    assert page.evaluate("document.activeElement.id") == "run", "and back to what is before the search"
    assert page.taken_errors() == []


def test_two_fingers_zoom_and_one_moves_and_asks_on_a_phone(page: Page, tmp_path: Path) -> None:
    page.show(page_of(tmp_path, write(tmp_path / "t", one_loss())), width=400, height=700, touch=True)
    x, y = place(page, 450, 1)
    wide = page.evaluate("app.first.span")
    page.touch(((x - 40, y), (x - 80, y)), ((x + 40, y + 5), (x + 80, y + 5)))
    page.until(f"app.first.span < {0.7 * wide}")
    assert page.evaluate("app.first.span") == pytest.approx(wide / 2, rel=0.02), "twice as far apart: half of the time"
    assert time_at(page, x) == pytest.approx(450, abs=wide / 60), "what was between the fingers is there still"
    page.touch(((x - 80, y), (x - 40, y)), ((x + 80, y), (x + 40, y)))
    assert page.evaluate("app.first.span") == pytest.approx(wide, rel=0.02)
    page.touch(((x, y), (x - 60, y)))
    assert time_at(page, x - 60) == pytest.approx(450, abs=wide / 60), "one finger moves"
    page.touch((place(page, 802, 2), place(page, 802, 2)), steps=1)
    page.until("byId('panel').innerText.includes('Message E1#0')")
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    assert page.evaluate("byId('panel').scrollWidth - byId('panel').clientWidth") == 0, "tables move in their frames"
    assert page.taken_errors() == []


def test_words_at_the_step_of_a_story_are_strong_or_pale_as_a_whole(page: Page, tmp_path: Path) -> None:
    file = tmp_path / "story.html"
    file.write_bytes(page_of_story(STORY))
    page.show(file.as_uri())
    page.evaluate("app.goTo(11)")
    page.settle()
    svg = ET.fromstring(page.evaluate("app.picture()"))  # noqa: S314 (our own)
    said = [(each.text, float(each.get("opacity", 1))) for each in svg.iter(f"{SVG}text")]
    strength = dict(said)
    assert strength["frozen: it noticed a gap"] == 1, "E3's freeze is what the step is about"
    assert strength["frozen: told by another"] < 0.5, "the others freeze later"
    assert sorted(alpha == 1 for text, alpha in said if text == "reply") == [False, False, True], "E3's alone was sent"
    assert strength["g"] == 1
    assert strength["g z p"] < 0.5


def test_what_happens_at_the_step_of_a_story_is_not_half_pale(page: Page, tmp_path: Path) -> None:
    page.show(page_of(tmp_path, write(tmp_path / "t", one_loss())))
    page.evaluate("app.guarded(() => app.tell(() => storyOfLoss(app.first, 0, 0)))")
    page.until("Boolean(app.story)")
    last = page.evaluate("app.story.steps.length") - 1

    def beside_the_line() -> set[str]:
        page.settle()
        page.evaluate("app.first.paint()")
        x, y = spot(page, 802, 2)
        return colours_at(page, x + 4, y, 1)

    page.evaluate(f"app.goTo({last})")
    assert beside_the_line() == {"chosen"}, "the delivery is at this step"
    page.evaluate(f"app.goTo({last - 2})")
    assert beside_the_line() == set(), "it is pale at the step of 702, before the last acknowledgment"
