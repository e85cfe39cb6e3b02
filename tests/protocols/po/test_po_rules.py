"""PO: what it does otherwise than SPO. Everything to everybody; nothing kept behind a gap; sources go back."""

from typing import Any

from ordercast.model.config import Timing
from ordercast.model.units import Packet
from ordercast.protocols.spo.units import Data
from tests.protocols.po.driver import ALL, E1, E2, E3, Node, Outputs, Peer, sent_by


def asked(first: int, high: int, of: int = E1) -> Any:
    """A request for everything of one source from a number on; the other number is the highest known."""
    return ((of, ((first, high),)),)


def numbers(packets: list[Packet]) -> list[int]:
    return [packet.seq for packet in packets]


def copies(out: Outputs) -> list[int]:
    return numbers([unit.packet for unit in out.copies])


# --- destinations ---


def test_what_is_for_everybody_is_numbered_and_transmitted() -> None:
    out = Node(E1).submits(*ALL)
    assert [numbers(out.numbered), numbers(out.accepted), len(out.data)] == [[0], [0], 1]


# --- gaps ---


def test_what_comes_ahead_of_a_gap_is_not_kept() -> None:
    node, e1 = Node(E2), Peer(E1)
    first, second, third = sent_by(e1, 3)
    assert numbers(node.hears(first).accepted) == [0]
    out = node.hears(third)
    assert [out.discards, out.accepted, node.machine.log_sizes().held] == [["gap"], [], 0]
    assert numbers(node.hears(e1.repeats(second)).accepted) == [1], "and nothing behind it"
    assert numbers(node.hears(e1.repeats(third)).accepted) == [2]


def test_gaps_of_other_sources_do_not_matter() -> None:
    node, e1, e3 = Node(E2), Peer(E1), Peer(E3)
    node.hears(sent_by(e1, 2)[1])
    assert [packet.source for packet in node.hears(*sent_by(e3, 2)).accepted] == [E3, E3]


def test_everything_from_the_first_missing_number_on_is_asked_for_at_once() -> None:
    node, e1 = Node(E2), Peer(E1)
    units = sent_by(e1, 4)
    assert node.hears(units[0]).requests == []
    assert node.hears(units[3]).requests == [asked(1, 4)]


def test_it_is_asked_for_once_however_much_comes_after_it() -> None:
    node, e1 = Node(E2), Peer(E1)
    _, *rest = sent_by(e1, 4)
    out = node.hears(*rest)
    out += node.fires("cooldown")
    out += node.hears(*sent_by(e1, 3), e1.ready())
    assert out.requests == [asked(0, 2)]


def test_while_copies_come_in_order_nothing_is_asked_for() -> None:
    node, e1 = Node(E2), Peer(E1)
    units = sent_by(e1, 4)
    node.hears(units[3])
    node.fires("cooldown")
    out = node.hears(*map(e1.repeats, units))
    assert [numbers(out.accepted), out.requests] == [[0, 1, 2, 3], []]


def test_nor_when_others_have_something_to_say() -> None:
    node, e1 = Node(E2), Peer(E1)
    units = sent_by(e1, 3)
    node.hears(units[2])
    node.fires("cooldown")
    node.hears(e1.repeats(units[0]))
    assert node.hears(Peer(E3).ready()).requests == []


def test_a_copy_that_is_lost_in_its_turn_is_a_new_gap() -> None:
    node, e1 = Node(E2), Peer(E1)
    units = sent_by(e1, 4)
    node.hears(units[3])
    node.fires("cooldown")
    assert node.hears(e1.repeats(units[0]), e1.repeats(units[2])).requests == [asked(1, 4)]
    node.fires("cooldown")
    assert node.hears(e1.repeats(units[1]), e1.ready()).requests == [asked(2, 4)], "a status may show it, too"


def test_two_requests_for_new_gaps_keep_their_distance() -> None:
    node, e1 = Node(E2), Peer(E1)
    units = sent_by(e1, 4)
    out = node.hears(units[3])
    assert Timing().cooldown <= out.timers["cooldown"] < 2 * Timing().cooldown
    assert node.hears(e1.repeats(units[0]), e1.repeats(units[2])).requests == []
    out = node.fires("cooldown")
    assert out.requests == [asked(1, 4)]
    assert "cooldown" in out.timers


def test_what_comes_behind_an_old_gap_within_the_cooldown_asks_nothing_when_it_ends() -> None:
    """Meanwhile the first copies have come, and the others are under way."""
    node, e1 = Node(E2), Peer(E1)
    _, *rest = units = sent_by(e1, 4)
    node.hears(*rest, e1.repeats(units[0]))
    assert node.fires("cooldown") == []


def test_a_cooldown_that_ends_with_nothing_new_asks_nothing() -> None:
    node, e1 = Node(E2), Peer(E1)
    node.hears(sent_by(e1, 2)[1])
    assert node.fires("cooldown") == []


def test_gaps_of_several_sources_are_asked_for_in_one_request() -> None:
    node, e1, e3 = Node(E2), Peer(E1), Peer(E3)
    units = sent_by(e1, 3)
    node.hears(units[2], sent_by(e3, 2)[1], e1.repeats(units[0]), e1.repeats(units[2]))
    assert node.fires("cooldown").requests == [asked(1, 3) + asked(0, 2, of=E3)]


def test_a_new_gap_of_one_source_does_not_ask_anew_for_that_of_another() -> None:
    node, e1, e3 = Node(E2), Peer(E1), Peer(E3)
    node.hears(sent_by(e1, 2)[1])
    node.fires("cooldown")
    assert node.hears(sent_by(e3, 2)[1]).requests == [asked(0, 2, of=E3)]


def test_it_is_asked_for_again_until_it_comes() -> None:
    node, e1 = Node(E2), Peer(E1)
    units = sent_by(e1, 3)
    out = node.hears(units[2])
    assert Timing().repeat <= out.timers["repeat"] < 2 * Timing().repeat
    out = node.fires("repeat")
    assert out.requests == [asked(0, 3)]
    assert 2 * Timing().repeat <= out.timers["repeat"] < 4 * Timing().repeat, "nothing came"
    node.hears(e1.repeats(units[0]))
    out = node.fires("repeat")
    assert out.requests == [asked(1, 3)]
    assert Timing().repeat <= out.timers["repeat"] < 2 * Timing().repeat, "something came"
    node.hears(e1.repeats(units[1]), e1.repeats(units[2]))
    assert node.fires("repeat") == []


def test_a_repeat_that_runs_is_not_set_anew() -> None:
    node, e1 = Node(E2), Peer(E1)
    _, *rest = sent_by(e1, 3)
    assert ["repeat" in node.hears(unit).timers for unit in rest] == [True, False]


def test_a_status_shows_a_gap_too() -> None:
    node, e1 = Node(E2), Peer(E1)
    sent_by(e1, 2)
    assert node.hears(e1.ready()).requests == [asked(0, 2)]


def test_what_would_be_refused_is_not_asked_for() -> None:
    node, e1 = Node(E2, quota=1), Peer(E1)
    units = sent_by(e1, 3)
    assert node.hears(units[0], units[2]).requests == []
    assert node.fires("repeat").requests == []


# --- going back ---


def source_of(count: int, **config: Any) -> tuple[Node, list[Data]]:
    node = Node(E1, **config)
    return node, [unit for _ in range(count) for unit in node.submits(*ALL).data]


def test_a_source_goes_back_and_sends_again_everything_from_there_on() -> None:
    node, units = source_of(5)
    out = node.hears(Peer(E2).accepts(E1, 2).ready(missing=asked(2, 4)))
    assert [unit.packet for unit in out.copies] == [unit.packet for unit in units[2:]], (
        "what came after the request too"
    )
    assert all(unit.status.stamp > units[-1].status.stamp for unit in out.copies), "with a fresh status"
    assert out.data == []


def test_it_does_not_go_back_twice_to_the_same_number_in_a_short_while() -> None:
    node, _ = source_of(4)
    out = node.hears(Peer(E2).accepts(E1, 1).ready(missing=asked(1, 4)))
    assert [copies(out), Timing().guard <= out.timers["guard"] < 2 * Timing().guard] == [[1, 2, 3], True]
    e3 = Peer(E3)
    assert copies(node.hears(e3.accepts(E1, 1).ready(missing=asked(1, 4)))) == []
    assert copies(node.hears(e3.accepts(E1, 2).ready(missing=asked(2, 4)))) == [], "nor to one behind it"


def test_it_does_so_later() -> None:
    node, _ = source_of(4)
    e2 = Peer(E2).accepts(E1, 1)
    node.hears(e2.ready(missing=asked(1, 4)))
    node.fires("guard")
    out = node.hears(e2.ready(missing=asked(1, 4)))
    assert [copies(out), "guard" in out.timers] == [[1, 2, 3], True]


def test_it_goes_further_back_at_any_time() -> None:
    """Whoever asks for an earlier number throws away what was just sent again: it needs all of it."""
    node, _ = source_of(4)
    node.hears(Peer(E2).accepts(E1, 2).ready(missing=asked(2, 4)))
    out = node.hears(Peer(E3).accepts(E1, 1).ready(missing=asked(1, 4)))
    assert [copies(out), "guard" in out.timers] == [[1, 2, 3], False]


def test_what_was_sent_since_may_be_lost_and_asked_for_at_once() -> None:
    node, _ = source_of(3)
    node.hears(Peer(E2).accepts(E1, 1).ready(missing=asked(1, 3)))
    node.submits(*ALL)
    node.submits(*ALL)
    assert copies(node.hears(Peer(E3).accepts(E1, 3).ready(missing=asked(3, 4)))) == [3, 4]


def test_a_late_request_for_what_has_come_since_is_overtaken() -> None:
    node, _ = source_of(4)
    e2 = Peer(E2).accepts(E1, 1)
    late = e2.ready(missing=asked(1, 4))
    assert copies(node.hears(e2.accepts(E1, 3).ready(), late)) == []


def test_a_request_to_others_or_for_nothing_is_not_answered() -> None:
    node, _ = source_of(2)
    e2 = Peer(E2)
    assert copies(node.hears(e2.ready(missing=asked(0, 2, of=E3)))) == []
    assert copies(node.hears(e2.ready(missing=((E1, ()),)))) == []
    assert copies(node.hears(e2.accepts(E1, 2).ready(missing=asked(2, 4)))) == []
