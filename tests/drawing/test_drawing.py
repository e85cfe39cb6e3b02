import random
import re
from collections.abc import Sequence
from itertools import combinations, pairwise
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from rich.cells import cell_len

from ordercast.drawing import MOST_NODES, MOST_TRANSMISSIONS, Row, draw_svg, draw_text, paint
from ordercast.drawing.layout import LABEL, lay_out, text_width
from ordercast.drawing.scene import make_scene
from ordercast.model.errors import ConfigError
from ordercast.trace.schema import EventField
from tests.drawing.example_run import Teller, story

Element = ET.Element
GOLDEN = Path(__file__).with_name("story.txt")
HEADS = re.compile("[►◄▷◁]")


def parsed(rows: Sequence[Row], nodes: int = 3) -> Element:
    return ET.fromstring(draw_svg(rows, nodes))  # noqa: S314 - our own output


def with_class(root: Element, *names: str) -> list[Element]:
    """The shapes of the run, not those of the legend."""
    run = next(element for element in root.iter() if element.get("id") == "run")
    return [element for element in run.iter() if set(names) <= set(element.get("class", "").split())]


def tip(element: Element) -> str:
    return next((child.text or "" for child in element if child.tag.endswith("title")), "")


def picture(text: str) -> list[str]:
    """The lines between the names of the lanes."""
    lines = text.splitlines()
    return lines[1 : lines.index("")]


def rumour(nodes: int, messages: int, seed: int) -> list[Row]:
    """Some run that no protocol made: anybody sends, anything may be lost, much happens at the same instant."""
    chance, told, number = random.Random(seed), Teller(), 0
    counts = [0] * nodes
    happenings: list[tuple[int, int, int, str, tuple[int, int], int]] = []
    for _ in range(messages):
        node, time = chance.randrange(nodes), 10_000 * chance.randrange(150)
        message = node, counts[node]
        counts[node] += 1
        number += 1
        told.send(node, time, message, tuple(range(nodes))[: chance.randint(1, nodes)], transmission=number)
        for other in set(range(nodes)) - {node}:
            then = time + 10_000 * chance.randint(5, 10)
            happenings.append((then, other, number, chance.choice(["receive", "receive", "lose"]), message, node))
    for then, other, arrived, event, message, _ in sorted(happenings):
        told.say(other, then, event, message, transmission=arrived)
        for level in ("accept", "preack", "deliver")[: chance.randint(0, 3) if event == "receive" else 0]:
            told.say(other, then, level, message)
        if chance.random() < 0.3:
            number += 1
            told.transmit(other, then, chance.choice(["status", "request", "poll"]), number)
            for hearer in set(range(nodes)) - {other}:
                told.hear(hearer, then + 10_000 * chance.randint(5, 10), number)
    return told.rows


# --- the story, as text ---


def test_the_story_is_drawn_as_it_was_reviewed() -> None:
    assert draw_text(story(), 3) == GOLDEN.read_text(encoding="utf-8")


def test_text_has_an_arrow_or_a_cross_for_each_receiver() -> None:
    lines = "\n".join(picture(draw_text(story(), 3)))
    transmissions, lost = 8, 2
    assert len(HEADS.findall(lines)) == transmissions * 2 - lost
    assert lines.count("✗") == lost


def test_text_shows_a_loss_as_a_broken_arrow_that_stops_before_the_lane() -> None:
    (line,) = [line for line in draw_text(story(), 3).splitlines() if line.startswith("   91.0")]
    assert re.search(r"┄+ 1\.0 ┄+✗ +│$", line)
    assert not HEADS.search(line)


def test_text_marks_stand_in_their_lane_in_the_order_of_the_levels() -> None:
    header, *lines = draw_text(story(), 3).splitlines()
    e3 = header.index("E3")
    (line,) = [line for line in lines if line.startswith("  185.5")]
    assert line[e3:] == "◔ ◑ 2.0  ● 2.0  ▫ asks 1.0"


@pytest.mark.parametrize("width", [40, 60, 100, 160])
def test_text_keeps_its_width_and_its_columns(width: int) -> None:
    for line in draw_text(story(), 3, width).splitlines():
        assert len(line) <= width
        assert cell_len(line) == len(line)


@pytest.mark.parametrize("seed", range(20))
def test_text_keeps_every_arrow_however_crowded(seed: int) -> None:
    nodes = 3 + seed % 3
    rows = rumour(nodes, 12, seed)
    lines = "\n".join(picture(draw_text(rows, nodes)))
    landed = [row for row in rows if row[EventField.EVENT] in {"receive", "hear", "lose"}]
    assert len(HEADS.findall(lines)) + lines.count("✗") == len(landed)


def test_a_silence_takes_one_line() -> None:
    assert [line.split() for line in picture(draw_text(story(), 3)) if "···" in line] == [["···", "┊", "┊", "┊"]]


def test_paint_changes_no_letter() -> None:
    text = draw_text(story(), 3)
    painted = paint(text)
    assert painted.plain == text
    assert {"red", "yellow", "magenta", "green"} <= {str(span.style) for span in painted.spans}


# --- the story, as SVG ---


def test_svg_has_an_arrow_or_a_cross_for_each_receiver() -> None:
    root = parsed(story())
    arrows, lost = with_class(root, "arrow"), with_class(root, "arrow", "lost")
    assert (len(arrows), len(lost)) == (16, 2)
    assert all(any(child.tag.endswith("polygon") for child in arrow) != (arrow in lost) for arrow in arrows)


def test_svg_shows_a_loss_as_a_line_that_stops_before_the_lane() -> None:
    layout = lay_out(make_scene(story(), 3))
    (lost,) = with_class(parsed(story()), "arrow", "lost", "data")
    (line,) = [child for child in lost if child.tag.endswith("line")]
    assert layout.lane(1) < float(line.get("y2", 0)) < layout.lane(2) - 20
    assert tip(lost) == "1.0, E1 to E3: left 10.000 µs, lost (loss) 91.000 µs"


def test_svg_marks_stand_in_their_lane_in_the_order_of_the_levels() -> None:
    layout = lay_out(make_scene(story(), 3))
    marks = [mark for mark in with_class(parsed(story()), "level") if tip(mark).startswith("E3, 185.500")]
    discs = [next(child for child in mark if child.tag.endswith("circle")) for mark in marks]
    assert [tip(mark).partition(": ")[2] for mark in marks] == [
        "accepted: 2.0",
        "pre-acknowledged: 2.0",
        "delivered: 2.0",
    ]
    assert {float(disc.get("cy", 0)) for disc in discs} == {layout.lane(2)}
    assert all(float(one.get("cx", 0)) < float(two.get("cx", 0)) for one, two in pairwise(discs))


def test_svg_tells_first_transmissions_copies_and_control_units_apart() -> None:
    root = parsed(story())
    kinds = ("data", "copy", "control", "request")
    assert [len(with_class(root, "mark", kind)) for kind in kinds] == [2, 1, 4, 1]
    assert [tip(mark) for mark in with_class(root, "mark", "request")] == ["E3, 185.500 µs: asks 1.0"]


def test_svg_stands_by_itself() -> None:
    svg = draw_svg(story(), 3)
    assert svg.count("http") == 1  # the name of the format
    assert "<script" not in svg
    assert "prefers-color-scheme: dark" in svg


@pytest.mark.parametrize("seed", range(20))
def test_svg_time_never_runs_back(seed: int) -> None:
    nodes = 3 + seed % 3
    layout = lay_out(make_scene(rumour(nodes, 12, seed), nodes))
    assert list(layout.times) == sorted(layout.times)
    assert all(one < two for one, two in pairwise(layout.times.values()))
    for (time, _), spot in layout.spots.items():
        later = [x for other, x in layout.times.items() if other > time]
        assert all(layout.times[time] + spot.departure() < x for x in later)


@pytest.mark.parametrize("seed", range(20))
def test_svg_labels_sit_neither_on_each_other_nor_on_the_end_of_a_row(seed: int) -> None:
    nodes = 3 + seed % 3
    rows = rumour(nodes, 12, seed)
    layout = lay_out(make_scene(rows, nodes))
    boxes = []
    for label in with_class(parsed(rows, nodes), "halo"):
        small = {"quiet", "control"} & set(label.get("class", "").split())
        width = 0.9 * text_width(label.text or "", 10 if small else LABEL)
        x = float(label.get("x", 0)) - width * {"end": 1.0, "middle": 0.5}[label.get("text-anchor", "")]
        boxes.append((x, x + width, float(label.get("y", 0)), label.text))
    assert len(boxes) > 24
    for one, two in combinations(boxes, 2):
        assert one[1] <= two[0] or two[1] <= one[0] or abs(one[2] - two[2]) >= 12, (one, two)
    for low, high, *_ in boxes:
        assert not any(low < cut < high for cut in layout.rows)


# --- what rows may say ---


def test_a_packet_of_several_messages_is_one_arrow() -> None:
    told = Teller()
    for seq in (0, 1, 2):
        told.say(0, 0, "send", (0, seq), destinations=(1,))
    for seq in (0, 1, 2):
        told.transmit(0, 0, "data", 1, (0, seq))
    for event in ("receive", "accept"):
        for seq in (0, 1, 2):
            told.say(1, 60_000, event, (0, seq), transmission=1 if event == "receive" else None)
    lines = picture(draw_text(told.rows, 2))
    assert lines[0].split() == ["0.0", "■", "1.0–2→{2}", "│"]
    assert lines[1].endswith("►◔")
    assert len(with_class(parsed(told.rows, 2), "arrow")) == 1


def test_a_message_that_waits_for_the_channel_is_shown_twice() -> None:
    told = Teller()
    told.say(0, 0, "send", (0, 0), destinations=(1, 2, 3, 4))
    told.transmit(0, 40_000, "data", 1, (0, 0))
    told.arrive(1, 90_000, 1, (0, 0))
    lines = picture(draw_text(told.rows, 5))
    assert lines[0].split()[1:3] == ["◇", "1.0→others"]
    assert lines[1].split()[1:3] == ["■", "1.0"]
    assert "►○" in lines[2]  # nothing became of it yet


def test_a_unit_that_its_sender_hears_or_misses_itself_is_no_arrow() -> None:
    told = Teller()
    told.send(0, 0, (0, 0), (0, 1), transmission=1)
    told.arrive(0, 50_000, 1, (0, 0), "accept")
    told.transmit(0, 60_000, "status", 2)
    told.say(0, 90_000, "lose", detail="loss", transmission=2)
    lines = picture(draw_text(told.rows, 2))
    assert lines[0].split()[1:3] == ["■", "1.0→all"]
    assert lines[1].split()[1:5] == ["↺", "1.0", "◔", "1.0"]
    assert lines[3].split()[1:3] == ["✗", "status"]
    root = parsed(told.rows, 2)
    assert (len(with_class(root, "echo")), len(with_class(root, "arrow"))) == (2, 0)


def test_svg_shows_what_a_sender_misses_of_its_own_beside_what_it_has_of_others() -> None:
    """Both at once: no mark in the lane covers the cross."""
    told = Teller()
    told.send(0, 0, (0, 0), (0, 1), transmission=1)
    told.send(1, 0, (1, 0), (1,), transmission=2)
    told.arrive(1, 50_000, 1, (0, 0), "accept")
    told.say(1, 50_000, "lose", (1, 0), detail="loss", transmission=2)
    (lost,) = with_class(parsed(told.rows, 2), "echo", "lost")
    *_, crossed = [child.get("d", "") for child in lost if child.tag.endswith("path")]
    _, top = map(float, re.findall(r"[\d.]+", crossed)[:2])
    bottom, lane = top + 9, lay_out(make_scene(told.rows, 2)).lane(1)
    assert not top - 6 < lane < bottom + 6  # a disc is 6 wide to each side


def test_a_timer_that_changes_nothing_is_not_shown() -> None:
    told = Teller()
    told.say(0, 0, "timeout", detail="guard")
    told.say(0, 9_000, "timeout", detail="repeat")
    told.transmit(0, 9_000, "poll", 1)
    told.hear(1, 60_000, 1)
    lines = picture(draw_text(told.rows, 2))
    assert lines[0].split() == ["9.0", "◷", "repeat", "▫", "poll", "│"]


def test_a_node_that_stopped_has_no_lane_any_more() -> None:
    told = Teller()
    told.say(1, 5_000, "crash")
    told.transmit(0, 10_000, "status", 1)
    told.hear(2, 60_000, 1)
    told.say(2, 60_000, "abort", detail="E2 <does> not & so on")
    lines = picture(draw_text(told.rows, 3))
    column = draw_text(told.rows, 3).splitlines()[0].index("E2")
    assert lines[0][column] == "╳"
    assert lines[1][column : column + 1] in {"", " "}
    assert "! E2 <does> not & so on" in lines[2]
    assert [tip(mark) for mark in with_class(parsed(told.rows), "mark", "abort")] == [
        "E3, 60.000 µs: gave the group up: E2 <does> not & so on"
    ]


def test_rows_without_transmissions_are_marks_without_arrows() -> None:
    told = Teller()
    told.say(0, 0, "send", (0, 0), destinations=(1,))
    told.say(1, 60_000, "receive", (0, 0))
    told.say(1, 60_000, "deliver", (0, 0))
    assert not HEADS.search("\n".join(picture(draw_text(told.rows, 2))))
    assert [len(with_class(parsed(told.rows, 2), name)) for name in ("arrow", "deliver")] == [0, 1]


def test_units_that_take_no_time_are_drawn() -> None:
    told = Teller()
    told.send(1, 0, (1, 0), (0,), transmission=1)
    told.arrive(0, 0, 1, (1, 0), "accept")
    told.send(1, 1_000_000, (1, 1), (0,), transmission=2)
    told.arrive(0, 1_000_000, 2, (1, 1), "accept")
    assert len(HEADS.findall("\n".join(picture(draw_text(told.rows, 2))))) == 2
    assert len(with_class(parsed(told.rows, 2), "arrow")) == 2


def test_no_rows_give_bare_lanes() -> None:
    assert draw_text([], 2).startswith("  µs  E1")
    assert len(with_class(parsed([], 4), "lane")) == 4


def test_the_order_of_rows_does_not_matter() -> None:
    rows = story()
    shuffled = random.Random(7).sample(rows, len(rows))
    assert draw_text(shuffled, 3) == draw_text(rows, 3)
    assert draw_svg(shuffled, 3) == draw_svg(rows, 3)


# --- what is refused ---


def test_a_run_too_large_is_refused_with_what_to_do() -> None:
    told = Teller()
    for number in range(MOST_TRANSMISSIONS):
        told.transmit(0, number, "status", number)
    draw_text(told.rows, 2)
    told.transmit(0, 0, "status", MOST_TRANSMISSIONS)
    for draw in (draw_text, draw_svg):
        with pytest.raises(ConfigError, match=r"401 transmissions.*fewer messages or fewer nodes"):
            draw(told.rows, 2)


@pytest.mark.parametrize("nodes", [1, MOST_NODES + 1])
def test_a_group_too_small_or_too_large_is_refused(nodes: int) -> None:
    with pytest.raises(ConfigError, match="2 to 16 nodes"):
        draw_svg([], nodes)


def test_too_narrow_a_terminal_is_refused_with_the_width_it_takes() -> None:
    with pytest.raises(ConfigError, match="needs a width of 166 columns, not 100"):
        draw_text([], 16)
    assert draw_text([], 16, 166)


def test_an_event_of_a_strange_node_is_refused() -> None:
    with pytest.raises(ConfigError, match="an event is of node 2"):
        draw_text(story(), 2)


# --- urgency, and the dead ---


def test_a_message_is_shown_with_its_priority() -> None:
    rows: list[Row] = [
        (0, 0, 10, "send", 0, 0, (0, 1), 3, 5, None, None),
        (1, 0, 20, "send", 1, 0, (0,), 0, 5, None, None),
    ]
    assert "1.0→all !3" in draw_text(rows, 2)
    assert "2.0→{1} !0" in draw_text(rows, 2)
    assert "!" not in draw_text(story(), 3)


def test_what_a_dead_node_would_have_heard_ends_in_a_cross() -> None:
    told = Teller()
    told.send(0, 10_000, (0, 0), (0, 1, 2, 3), transmission=0)
    for node in (1, 2, 3):
        told.arrive(node, 60_000 + node, 0, (0, 0), "accept")
    told.say(3, 70_000, "crash")
    told.transmit(0, 100_000, "copy", 1, (0, 0))
    told.transmit(1, 100_000, "copy", 2, (0, 0))
    for node in (1, 2):
        told.arrive(node, 150_000, 1, (0, 0))
    told.arrive(0, 150_000, 2, (0, 0))  # nobody can tell that it was for E4 too
    lost = {
        (flight.number, arrival.node, arrival.why)
        for flight in make_scene(told.rows, 4).flights
        for arrival in flight.arrivals
        if arrival.lost
    }
    assert lost == {(1, 3, "crashed")}
    assert draw_text(told.rows, 4).count("✗") == 2  # one of them in the legend
