"""The printed ST, rule by rule: sections 3.1 to 3.4 and 4.1, and the ends of 4.4."""

import pytest

from ordercast.model.config import GroupConfig, PaperRules
from ordercast.model.machine import (
    Abort,
    CancelTimer,
    Discard,
    Level,
    Output,
    Reached,
    Receive,
    Resumed,
    Send,
    SetTimer,
    Submit,
    TimerFired,
)
from ordercast.model.units import Packet, Unit
from ordercast.protocols.spo.units import Data, Ready, RetransmitRequest, Status
from ordercast.protocols.st.paper.machine import StPaper
from ordercast.protocols.st.paper.state import Stage
from ordercast.protocols.st.units import Reset, ResetAgreement, ResetOrder
from tests.protocols.one_channel import E1, E2, E3
from tests.protocols.st_paper.entity import PaperGroup, agree, log_of, logs_of, once, paper_group, speak, whole_log

ALL = 0b111
ZERO = (0, 0, 0)


def machine_of(me: int, window: int = 32, **paper: object) -> StPaper:
    return StPaper(me, GroupConfig(nodes=3, window=window, paper=PaperRules(**paper)))  # type: ignore[arg-type]


def data(source: int, seq: int, to: int = ALL, number: int | None = None, expects: tuple[int, ...] = ZERO) -> Data:
    numbers = (seq if number is None else number,) * 3
    return Data(Packet(source, to, seq, numbers, seq, (1,), b"x"), Status(1, expects, free=1000))


def ready(
    source: int, seq: int, expects: tuple[int, ...], number: int | None = None, free: int = 1000, wants: int = 0
) -> Ready:
    return Ready(source, seq, (seq if number is None else number,) * 3, Status(1, expects, free=free), wants)


def sent(outputs: list[Output]) -> list[Unit]:
    return [output.unit for output in outputs if isinstance(output, Send)]


def reached(outputs: list[Output]) -> list[tuple[Level, int, int]]:
    return [(out.level, out.packet.source, out.packet.seq) for out in outputs if isinstance(out, Reached)]


def submit(machine: StPaper, to: int = ALL) -> list[Unit]:
    return sent(machine.handle(Submit(to, (1,), b"x")))


# --- 3.2 transmission ---


def test_3_2_a_packet_carries_its_numbers_and_what_was_accepted() -> None:
    group = paper_group()
    group.submit_all("a1:23 b1:3")
    group.hear(E2, "a", "b")
    group.submit_all("c2:1 d1:123")
    a, b, c, d = (group.said(letter) for letter in "abcd")
    assert [unit.packet.seq for unit in (a, b, c, d)] == [1, 2, 1, 3]
    assert [unit.packet.seq_to for unit in (a, b, c, d)] == [(1, 1, 1), (1, 2, 2), (1, 1, 1), (1, 2, 3)]
    assert c.status.expects == (3, 1, 1)
    assert d.status.expects == (1, 1, 1), "E1 has not heard its own"


@pytest.mark.parametrize(("window", "buffers", "divisor", "many"), [(2, 99, 1, 2), (9, 6, 1, 2), (9, 12, 4, 1)])
def test_3_2_flow_condition(window: int, buffers: int, divisor: int, many: int) -> None:
    """At most min(W, minBUF / (H n)) may be under way; what all nodes have heard is not."""
    machine = machine_of(E1, window, initial_buffers=buffers, buffer_divisor=divisor)
    assert sum(len(submit(machine, 0b010)) for _ in range(5)) == many
    for node in (E1, E2):
        assert sent(machine.handle(Receive(ready(node, 0, (1, 0, 0), free=buffers)))) == []
    (opened,) = sent(machine.handle(Receive(ready(E3, 0, (1, 0, 0), free=buffers))))
    assert isinstance(opened, Data)
    assert opened.packet.seq == many


def test_3_2_buffers_of_others_count() -> None:
    machine = machine_of(E1)
    machine.handle(Receive(ready(E2, 0, ZERO, free=3)))
    assert (len(submit(machine)), len(submit(machine))) == (1, 0)


@pytest.mark.parametrize(("verbatim", "stamps"), [(True, [1, 2, 1]), (False, [1, 2, 3])])
def test_3_2_transmissions_are_stamped_and_a_verbatim_copy_keeps_its_stamp(verbatim: bool, stamps: list[int]) -> None:
    machine = machine_of(E1, verbatim_copies=verbatim)
    units = [*submit(machine), *submit(machine), *sent(machine.handle(TimerFired("wait-0")))]
    assert [unit.status.stamp for unit in units if isinstance(unit, Data)] == stamps


def test_3_2_held_packets_take_buffers() -> None:
    machine = machine_of(E1, initial_buffers=50)
    machine.handle(Receive(data(E2, 0)))
    machine.handle(Receive(data(E2, 1, 0b010)))
    (unit,) = submit(machine)
    assert isinstance(unit, Data)
    assert unit.status.free == 49


# --- 3.1 receive-ready units ---


def test_3_1_ready_comes_when_nothing_was_sent_for_a_period() -> None:
    group = paper_group()
    group.submit_all("a1:123")
    assert group.timers[E1].keys() == {"ready", "wait-1"}
    group.submit_all("b1:123")
    group.fire(E1, "ready")
    assert group.labels() == ["a", "b"]
    group.fire(E1, "ready")
    assert group.labels() == ["a", "b", "RR E1"]


def test_3_1_ready_takes_no_number_and_passes_a_closed_window() -> None:
    group = paper_group(window=1)
    group.submit_all("a1:2 b1:2")
    group.fire(E1, "ready")
    unit = group.said("RR E1")
    assert (unit.next_seq, unit.next_seq_to) == (2, (1, 2, 1))
    assert group.settle()
    assert group.delivered[E2] == ["a", "b"]


def test_3_1_ready_is_owed_for_what_is_for_others() -> None:
    group = paper_group()
    group.submit_all("a1:2")
    assert group.timers[E3].keys() == set()
    group.hear(E3, "a")
    assert group.discarded[E3] == [("a", "foreign")]
    assert group.timers[E3].keys() == {"ready"}
    speak(group, E3)
    assert group.said("RR E3").status.expects == (2, 1, 1)


def test_3_1_ready_is_owed_to_who_waits() -> None:
    machine = machine_of(E1)
    assert machine.handle(Receive(ready(E2, 0, ZERO, wants=0b110))) == []
    assert machine.handle(Receive(ready(E2, 0, ZERO, wants=0b101))) == [SetTimer("ready", 100_000)]


def test_3_1_ready_brings_over_the_loss_of_what_was_for_others() -> None:
    """What S11 leaves behind; and an older one takes nothing back."""
    machine = machine_of(E3)
    machine.handle(Receive(data(E1, 1, 0b010, number=0)))
    assert machine.expected == [0, 0, 0]
    machine.handle(Receive(ready(E1, 2, ZERO, number=0)))
    assert machine.expected == [2, 0, 0]
    machine.handle(Receive(ready(E1, 1, ZERO, number=0)))
    assert machine.expected == [2, 0, 0]


# --- 3.3, 3.4 ---


def test_3_3_preacknowledged_when_all_destinations_expect_a_higher_number() -> None:
    """Not `≤`, as the text has it."""
    machine = machine_of(E1)
    machine.handle(Receive(data(E2, 0, 0b011)))
    machine.handle(Receive(data(E2, 1, 0b011, expects=(0, 1, 0))))
    assert reached(machine.handle(Receive(ready(E1, 0, (0, 0, 0))))) == []
    assert reached(machine.handle(Receive(ready(E1, 0, (0, 1, 0))))) == [(Level.PREACKNOWLEDGED, E2, 0)], "not E3"


def test_3_4_acknowledged_by_what_preacknowledged_packets_said() -> None:
    machine = machine_of(E1, preacknowledged_time_out=False)
    machine.handle(Receive(data(E2, 0, 0b001)))
    assert reached(machine.handle(Receive(ready(E1, 0, (0, 1, 0))))) == [(Level.PREACKNOWLEDGED, E2, 0)]
    machine.handle(Receive(data(E1, 0, 0b001, expects=(0, 1, 0))))
    assert reached(machine.handle(Receive(ready(E1, 1, (1, 1, 0))))) == [
        (Level.PREACKNOWLEDGED, E1, 0),
        (Level.ACKNOWLEDGED, E2, 0),
    ]


# --- 4.1 ---


def test_4_1_hearsay_makes_nobody_ask() -> None:
    """E2 says that it has heard of E1 what E3 has not: E3 waits, whether or not it was for E3."""
    machine = machine_of(E3)
    out = machine.handle(Receive(ready(E2, 0, (1, 0, 0))))
    assert sent(out) == []
    assert machine.waits_for() == ("misses from E1 its number 0 on",)


@pytest.mark.parametrize("verbatim", [True, False])
def test_4_1_the_sender_sends_again_what_is_not_accepted_in_time(verbatim: bool) -> None:
    group = paper_group(paper=PaperRules(verbatim_copies=verbatim))
    group.submit_all("x2:1 a1:2")
    group.hear(E1, "x")
    group.fire(E1, "wait-1")
    assert group.copies == ["a"]
    _, copy = (unit for unit in group.channel if group.label(unit) == "a")
    assert isinstance(copy, Data)
    assert copy.status.expects == ((1, 1, 1) if verbatim else (1, 2, 1))
    assert "wait-1" not in group.timers[E1], "once"


def test_4_1_what_all_destinations_accepted_is_not_sent_again() -> None:
    machine = machine_of(E1)
    submit(machine, 0b110)
    submit(machine, 0b110)
    assert CancelTimer("wait-0") not in machine.handle(Receive(ready(E2, 0, (1, 0, 0))))
    assert CancelTimer("wait-0") in machine.handle(Receive(ready(E3, 0, (1, 0, 0))))
    assert sent(machine.handle(TimerFired("wait-0"))) == []
    assert len(sent(machine.handle(TimerFired("wait-1")))) == 1


def test_4_1_a_kept_packet_is_kept_once() -> None:
    unit = data(E1, 1)
    machine = machine_of(E3, keeps_behind_gap=True)
    assert Discard(unit, "gap") not in machine.handle(Receive(unit))
    assert Discard(unit, "gap") in machine.handle(Receive(unit))
    assert (machine.log_sizes().held, machine.log_sizes().accepted) == (1, 0)
    machine = machine_of(E3, keeps_behind_gap=False)
    assert Discard(unit, "gap") in machine.handle(Receive(unit))
    assert machine.log_sizes().held == 0


def test_4_1_a_kept_packet_is_held_until_its_own_copy_is_inserted() -> None:
    """RET (2) takes packets in their order: g, which h was kept behind, makes h the next one, and not yet accepted."""
    group = paper_group(keeps=True)
    group.submit_all("g1:13 h1:13")
    group.drain([(E3, "g")])
    agree(group, E1, E2, E3, until="RST_ACK E3")
    sizes = []
    for letter in ("", "g"):
        group.hear(E3, *letter)
        held = group.machines[E3].log_sizes()
        sizes.append((log_of(group, E3), held.held, held.accepted))
    assert sizes == [("h", 1, 0), ("g h", 1, 1)]


def test_4_1_an_old_ready_shows_no_loss() -> None:
    """It names the number to E3 that is expected, and a packet to others that came since is no loss of E3."""
    machine = machine_of(E3)
    machine.handle(Receive(data(E1, 0, to=0b010)))
    assert machine.handle(Receive(ready(E1, 0, ZERO))) == []
    assert machine.expected[E1] == 1


# --- 4.4 ---


def test_4_4_a_loss_is_said_once() -> None:
    machine = machine_of(E3)
    assert sent(machine.handle(Receive(data(E1, 1)))) == [Reset(E3, (0, 0, 0))]
    assert sent(machine.handle(Receive(data(E1, 2)))) == []


def test_4_4_who_has_heard_a_reset_sends_nothing_more() -> None:
    machine = machine_of(E3)
    machine.handle(Receive(data(E1, 0)))
    assert sent(machine.handle(Receive(Reset(E1, ZERO)))) == [ResetAgreement(E3, (0, 0, 0))]
    assert sent(machine.handle(Receive(Reset(E2, ZERO)))) == [], "only the first is answered"
    assert submit(machine) == []
    assert machine.log_sizes().waiting == 1
    machine.transmitted = False
    assert sent(machine.handle(TimerFired("ready"))) == []


def test_4_4_waiting_packets_follow_the_recovery() -> None:
    group = paper_group()
    group.submit_all("g1:13 h1:13")
    group.drain([(E3, "g")])
    group.all_hear("RST E3")
    group.submit_all("w2:123")
    assert "w" not in group.labels()
    agree(group, E1, E2, E3)
    assert group.settle()
    assert group.together() == ["g h w", "w", "g h w"]


@pytest.mark.parametrize("wrong", ["expects", "order"])
def test_4_4_disagreement_aborts(wrong: str) -> None:
    machine = machine_of(E1)
    machine.handle(Receive(Reset(E3, ZERO)))
    for node in (E1, E2, E3):
        machine.handle(Receive(ResetAgreement(node, ZERO)))
    order = (E1, E2, E3) if wrong == "expects" else (E2, E1, E3)
    bad = ResetOrder(E2, (0, 1, 0) if wrong == "expects" else ZERO, ZERO, ZERO, order)
    assert machine.handle(Receive(bad)) == [Abort("E2 found another sort line or order")]
    assert machine.handle(Receive(data(E1, 0))) == []
    assert submit(machine) == []


def test_4_4_what_came_before_the_own_agreement_is_compared_too() -> None:
    """(5) compares all RST_ACKs, whenever they came: at a node that heard one before the last RST_PAK as well."""
    machine = machine_of(E1)
    for unit in (Reset(E3, ZERO), ResetOrder(E2, (0, 1, 0), ZERO, ZERO, (E1, E2, E3))):
        machine.handle(Receive(unit))
    outputs = [machine.handle(Receive(ResetAgreement(node, ZERO))) for node in (E1, E2, E3)]
    assert outputs[-1][-1:] == [Abort("E2 found another sort line or order")]


def test_4_4_what_does_not_come_is_requested_until_it_does() -> None:
    group = paper_group()
    group.submit_all("f1:13 g1:13 z2:3 k1:2 h1:13")
    group.drain([(E3, "g")])
    agree(group, E1, E2, E3, until="RST_ACK E3")
    group.miss(E3, "g")
    discarded = len(group.discarded[E3])
    group.hear(E3, "h")
    assert group.discarded[E3][discarded:] == [("h", "gap")], "not before g"
    before = len(group.copies)
    group.fire(E3, "request")
    group.hear(E1, "g", "h", "RetransmitRequest E3")
    assert group.copies[before:] == ["g", "h"], "from the number on, and for E3"
    assert "request" in group.timers[E3]
    assert group.said("RetransmitRequest E3") == RetransmitRequest(E3, (2, 2, 1))
    group.hear_rest()
    assert group.machines[E3].stage is Stage.NORMAL
    assert "request" not in group.timers[E3]


def test_4_4_nothing_rises_while_something_lacks() -> None:
    """E3 hears that all have accepted z, but must put g before it."""
    group = paper_group(keeps=True, time_out=False)
    group.submit_all("g2:13 z3:13")
    group.drain([(E3, "g")])
    group.submit_all("s3:13 h2:13")
    group.drain([])
    agree(group, E1, E2, E3, until="RST_ACK E3")
    group.miss(E3, "g")
    group.hear(E3, "h")
    speak(group, E1)
    group.hear(E3, "RR E1")
    assert logs_of(group)[E3] == "z s h"
    assert group.levels[E3]["z"] is Level.ACCEPTED
    group.fire(E3, "request")
    group.hear_rest()
    assert whole_log(group, E3) == "g z s h"


def agreed(machine: StPaper, has: tuple[int, ...], sent_to_all: tuple[int, ...], last_sorted: int) -> list[Output]:
    """E3 hears a whole agreement: others have all that was sent, E3 has this, and the sort line begins with its own."""
    machine.handle(Receive(Reset(E3, has)))
    line = (has[E1], has[E2], last_sorted)
    for node in (E3, E1, E2):
        machine.handle(Receive(ResetAgreement(node, line)))
    outputs: list[Output] = []
    for node in (E3, E1, E2):
        numbers = (sent_to_all[node],) * 3
        order = ResetOrder(node, line, has if node == E3 else sent_to_all, numbers, (E3, E1, E2))
        outputs += machine.handle(Receive(order))
    return outputs


def test_4_4_what_all_had_accepted_in_the_meantime_rises_when_nothing_lacks_any_more() -> None:
    """E3 lacks g of E1 and h of E2. By ORDR its own z is sorted before both, and E1 has said that it accepted z."""
    machine = machine_of(E3)
    submit(machine)
    for unit in (data(E3, 0), ready(E3, 1, (0, 0, 1)), ready(E2, 0, (0, 0, 1)), ready(E1, 1, (1, 0, 1))):
        machine.handle(Receive(unit))  # the last of them shows that g is lost, and is not accepted
    agreed(machine, has=(0, 0, 1), sent_to_all=(1, 1, 1), last_sorted=0)
    assert reached(machine.handle(Receive(data(E1, 0)))) == [(Level.ACCEPTED, E1, 0)]
    assert reached(machine.handle(Receive(ready(E1, 1, (1, 0, 1))))) == [], "h lacks still"
    out = machine.handle(Receive(data(E2, 0)))
    assert reached(out) == [(Level.ACCEPTED, E2, 0), (Level.PREACKNOWLEDGED, E3, 0)]
    assert Resumed(asked=2, inserted=2, resorted=3) in out
    assert machine.stage is Stage.NORMAL


def test_4_4_what_was_sent_after_the_agreement_is_accepted_and_not_inserted() -> None:
    """RET (2) inserts what was lost: below PS_ij. E2 lost nothing to E3, and what it sends now stands at the end."""
    machine = machine_of(E3)
    submit(machine)
    for unit in (data(E3, 0), ready(E1, 1, ZERO)):
        machine.handle(Receive(unit))
    agreed(machine, has=(0, 0, 1), sent_to_all=(1, 0, 1), last_sorted=0)
    machine.handle(Receive(data(E2, 0)))
    assert machine.stage is Stage.RECOVERING
    assert Resumed(asked=1, inserted=1, resorted=0) in machine.handle(Receive(data(E1, 0)))
    assert [unit.source for unit in machine.accepted] == [E1, E3, E2]


def test_4_4_what_is_before_the_sort_point_takes_every_level() -> None:
    """(6): it is acknowledged, and so pre-acknowledged before that."""
    machine = machine_of(E3)
    for unit in (data(E2, 0), ready(E1, 1, ZERO)):
        machine.handle(Receive(unit))
    out = agreed(machine, has=(0, 1, 0), sent_to_all=(1, 1, 0), last_sorted=0)
    assert reached(out) == [(Level.PREACKNOWLEDGED, E2, 0), (Level.ACKNOWLEDGED, E2, 0)]


def test_4_4_who_goes_on_owes_a_status_though_it_waits_for_nothing() -> None:
    """What was sent again waits to be known as accepted: those who recovered do not wait to be asked."""
    machine = machine_of(E3)
    out = agreed(machine, has=ZERO, sent_to_all=ZERO, last_sorted=0)
    assert machine.stage is Stage.NORMAL
    assert not machine.unfinished()
    assert [output.name for output in out if isinstance(output, SetTimer)] == ["ready"]
    assert [type(unit) for unit in sent(machine.handle(TimerFired("ready")))] == [Ready]


def test_4_4_one_recovery_after_the_other() -> None:
    group = paper_group(keeps=True)
    for turn, (lost, node) in enumerate((("a", E3), ("d", E2), ("g", E3))):
        letters = "abcdefghi"[3 * turn : 3 * turn + 3]
        group.submit_all(" ".join(f"{letter}1:123" for letter in letters))
        group.drain([(node, lost)])
        agree(group, E1, E2, E3)
        assert [machine.stage for machine in group.machines] == [Stage.NORMAL] * 3
    assert group.settle()
    assert group.together() == ["a b c d e f g h i"] * 3


def test_4_4_what_nobody_received_is_recovered() -> None:
    group = paper_group(keeps=True)
    group.submit_all("g1:123 z2:13 h1:23")
    group.drain([(E1, "g"), (E2, "g"), (E3, "g")])
    assert group.settle()
    assert group.broken_promises() & {"complete", "same_order", "no_cycle"} == set()
    assert sorted(group.delivered[E1]) == ["g", "z"]


def test_4_4_a_lost_echo_is_a_loss() -> None:
    group = paper_group(keeps=True)
    group.submit_all("g1:12 h1:12")
    group.drain([(E1, "g")])
    assert group.settle()
    assert group.together() == ["g h", "g h", ""]


def test_4_4_who_has_stopped_sends_nothing_again() -> None:
    group = paper_group()
    group.submit_all("g1:13 h1:13")
    group.drain([(E3, "g")])
    group.all_hear("RST E3")
    for name in ("wait-1", "wait-2"):
        group.fire(E1, name)
    assert group.copies == []
    agree(group, E1, E2, E3)
    assert sorted(group.copies) == ["g", "h"]
    assert group.settle(lossy=once((E3, "RR E1")))
    assert group.together() == ["g h", "", "g h"]


def recovering() -> PaperGroup:
    """E3 has agreed on the sort line, and lost g a second time."""
    group = paper_group(keeps=True)
    group.submit_all("g1:13 h1:13")
    group.drain([(E3, "g")])
    agree(group, E1, E2, E3, until="RST_ACK E3")
    group.miss(E3, "g")
    group.hear(E3, "h")
    assert group.machines[E3].stage is Stage.RECOVERING
    return group


def test_4_4_what_is_sent_later_is_not_kept_before_what_lacks() -> None:
    group = recovering()
    group.submit_all("n1:13")
    group.hear(E3, "n")
    assert group.discarded[E3][-1] == ("n", "gap")
    assert logs_of(group)[E3] == "h", "kept since it showed the gap"


def test_4_4_who_recovers_takes_no_part_in_another_agreement() -> None:
    group = recovering()
    machine = group.machines[E3]
    before = machine.snapshot()
    for unit in (Reset(E2, ZERO), ResetAgreement(E2, ZERO), ResetOrder(E2, ZERO, ZERO, ZERO, (E2, E1, E3))):
        assert sent(machine.handle(Receive(unit))) == []
    assert machine.snapshot() == before


def test_4_4_a_repeated_agreement_counts_once() -> None:
    machine = machine_of(E1)
    machine.handle(Receive(Reset(E3, ZERO)))
    for node in (E1, E2, E2):
        assert sent(machine.handle(Receive(ResetAgreement(node, ZERO)))) == []
    assert len(sent(machine.handle(Receive(ResetAgreement(E3, ZERO))))) == 1
