"""What every order offers to views besides: a member alone, silent members, numbers that go on, and what is fetched."""

from typing import Any

import pytest

from ordercast.model.config import GroupConfig, RecoveryPolicy, Rules, SequencerConfig
from ordercast.model.errors import ConfigError
from ordercast.model.machine import Abort, Deliver, Level, Numbered, Reached, Receive, Send, SetTimer, Submit, Suspect
from ordercast.model.machine import TimerFired as Fired
from ordercast.model.nodes import everybody
from ordercast.model.units import Packet
from ordercast.protocols.membership.epoch import Cut, EpochReport, moved
from ordercast.protocols.registry import FLUSHES, flush_class, make_machine
from ordercast.protocols.sequencer.flush import SequencerFlush
from ordercast.protocols.sequencer.machine import Sequencer
from ordercast.protocols.sequencer.units import Broadcast, Flush, Offer
from ordercast.protocols.st.flush import StFlush
from ordercast.protocols.to.flush import ToFlush


def machine_of(protocol: str, place: int, nodes: int, **settings: Any) -> Any:
    config = GroupConfig(nodes=nodes, views=True, **settings)
    return make_machine(protocol, place, config)


@pytest.mark.parametrize("protocol", FLUSHES)
@pytest.mark.parametrize("resilience", [0, 2])
def test_a_member_alone_has_everything_at_once(protocol: str, resilience: int) -> None:
    sequencer = SequencerConfig(history=2, resilience=resilience)
    machine = machine_of(protocol, 0, 1, window=2, quota=2, log_limit=2, sequencer=sequencer)
    flush = flush_class(protocol)(machine)
    flush.start(7)
    for number in range(9):
        out = machine.handle(Submit(1, (1, 1), b"xy", priority=number))
        packet = next(output.packet for output in out if isinstance(output, Numbered))
        assert packet.first == 7 + 2 * number
        assert [output.level for output in out if isinstance(output, Reached)] == [1, 2, 3]
        assert [output.packet for output in out if isinstance(output, Deliver)] == [packet]
        assert not [output for output in out if isinstance(output, Send | SetTimer | Abort)]
    if protocol in {"to", "prito", "prio"}:
        assert machine.deliveries.count == 9
    assert machine.waits_for() == ()
    assert set(vars_of(machine.log_sizes())) == {0}
    again = machine_of(protocol, 0, 1, window=2, quota=2, log_limit=2, sequencer=sequencer)
    again.restore(machine.snapshot())
    assert again == machine
    cut = type(flush).cut({0: flush.report()}, 1)
    assert cut.ends == (9,)
    assert flush.lacks(cut) == ()
    assert flush.finish(cut, {}) == []
    assert (flush.left_over(cut), flush.next_message(cut)) == ([], 25)


def vars_of(sizes: Any) -> list[int]:
    return [getattr(sizes, name) for name in sizes.__struct_fields__]


@pytest.mark.parametrize("protocol", FLUSHES)
@pytest.mark.parametrize("place", [0, 1])
def test_nobody_aborts_because_of_silence(protocol: str, place: int) -> None:
    """And a member that waits for ever comes to a state that it has been in before, but for its stamps."""
    sequencer = SequencerConfig(suspect_after=1)
    machine = machine_of(protocol, place, 3, polls_to_abort=2, quota=1, sequencer=sequencer)
    out = machine.handle(Submit(0b111, (1,), b"x"))
    sent = 0
    for _ in range(100):
        fired = [output.name for output in out if isinstance(output, SetTimer)]
        out = [output for name in fired for output in machine.handle(Fired(name))]
        assert not [output for output in out if isinstance(output, Abort)]
        sent += sum(isinstance(output, Send) for output in out)
        machine.handle(Suspect(0b100 if place else 0b110))
    assert sent > 20
    assert "agreed" not in " ".join(machine.waits_for())
    assert max(counters(machine)) <= 2


def counters(machine: Any) -> list[int]:
    """How often others left it without an answer, as far as it counts."""
    if isinstance(machine, Sequencer):
        return [machine.timers.unanswered, *machine.orderer.unanswered]
    return list(getattr(machine, "spo", machine).backoff.unanswered)


def test_a_sequencer_within_a_view_agrees_on_nothing_by_itself() -> None:
    machine = Sequencer(1, GroupConfig(nodes=3, views=True))
    out = machine.handle(Receive(Flush(0, 0, (1, 0), 0)))
    assert [output.why for output in out if hasattr(output, "why")] == ["stray"]
    out = machine.handle(Receive(Offer(Packet(2, 7, 0, (), 0, (1,), b"x"), 1, 0, direct=True)))
    assert [output.why for output in out if hasattr(output, "why")] == ["stray"]
    assert machine.agreement.promised is None


def test_what_views_need_of_a_group() -> None:
    assert GroupConfig(nodes=1, views=True).polls_limit() == 0
    assert GroupConfig(nodes=2).polls_limit() == 64
    for settings, why in (
        ({"nodes": 1}, "a group has 2 to 1024 nodes, not 1"),
        ({"nodes": 0, "views": True}, "a group has 1 to 1024 nodes, not 0"),
        ({"nodes": 2, "views": True, "sequencer": SequencerConfig(node=1)}, "the sequencer is node 0, not 1"),
        ({"nodes": 2, "views": True, "rules": Rules.PAPER}, "views need the sound rules"),
    ):
        with pytest.raises(ConfigError, match=why):
            GroupConfig(**settings)
    with pytest.raises(ConfigError, match="unknown protocol 'no'; choose one of: po, prio, prito"):
        flush_class("no")


# --- what is to all ---


@pytest.mark.parametrize("protocol", ["spo", "st"])
def test_what_is_left_over_is_to_all_if_it_was_submitted_so(protocol: str) -> None:
    """Whether it has a number or not; named members stay these, also if they are all. What is with all is forgotten."""
    machines = [machine_of(protocol, place, 2, window=2) for place in (0, 1)]
    flush = flush_class(protocol)(machines[0])
    events = [Submit(0b11, (1,), b"x", to_all=number != 1) for number in range(3)]
    units = [output.unit for event in events for output in machines[0].handle(event) if isinstance(output, Send)]
    assert len(units) == 2, "the window is full"
    assert flush.left_over(Cut((0, 0))) == events
    assert flush.left_over(Cut((1, 0))) == events[1:]
    while units:
        unit = units.pop(0)
        for machine in machines:
            out = machine.handle(Receive(unit))
            for name in [output.name for output in out if isinstance(output, SetTimer)]:
                out += machine.handle(Fired(name)) if name == "status" else []
            units += [output.unit for output in out if isinstance(output, Send)]
    assert not [flush.is_to_all(seq) for seq in range(3) if flush.is_to_all(seq)]


# --- numbers that go on ---


@pytest.mark.parametrize("protocol", ["spo", "st"])
def test_messages_without_destinations_keep_their_numbers(protocol: str) -> None:
    machine = machine_of(protocol, 0, 3)
    flush = flush_class(protocol)(machine)
    flush.start(5)
    events = [Submit(mask, (1,) * count, b"abc"[:count]) for mask, count in ((4, 2), (3, 1), (4, 1), (6, 1), (4, 3))]
    for event in events:
        machine.handle(event)
    cut = type(flush).cut({place: EpochReport((0, 0, 0), (0, 0, 0)) for place in range(2)}, 3)
    assert flush.left_over(cut) == events
    left, skips = moved(flush.left_over(cut), {0: 0, 1: 1})
    assert left == [Submit(3, (1,), b"a", skips=2), Submit(2, (1,), b"a", skips=1)]
    assert skips == 3

    later = machine_of(protocol, 0, 2)
    flush = flush_class(protocol)(later)
    flush.start(5)
    numbered = [output.packet.first for event in left for output in later.handle(event) if isinstance(output, Numbered)]
    assert numbered == [7, 9]
    cut = Cut((0, 0))
    assert flush.next_message(cut) == 7
    assert flush.left_over(cut) == [Submit(3, (1,), b"a"), Submit(2, (1,), b"a", skips=1)]
    assert moved(flush.left_over(cut), {0: 0}) == ([Submit(1, (1,), b"a")], 2)


@pytest.mark.parametrize("protocol", FLUSHES)
def test_what_waits_for_the_window_is_left_over_behind_what_was_sent(protocol: str) -> None:
    machine = machine_of(protocol, 1, 3, window=2)
    events = [Submit(everybody(3), (1,), bytes([number]), priority=number) for number in range(5)]
    for event in events:
        machine.handle(event)
    flush = flush_class(protocol)(machine)
    cut = type(flush).cut({1: flush.report(), 2: flush_class(protocol)(machine_of(protocol, 2, 3)).report()}, 3)
    before = flush.report()
    assert flush.left_over(cut) == events
    assert flush.next_message(cut) == 0
    assert flush.finish(cut, {}) == []
    assert flush.left_over(cut) == events
    assert before.expected[2] == 0


@pytest.mark.parametrize("protocol", FLUSHES)
def test_what_has_been_delivered_counts_in_a_report_though_no_log_has_it_any_more(protocol: str) -> None:
    machines = [machine_of(protocol, place, 2) for place in (0, 1)]
    waiting: list[Any] = [(machines[0], Submit(0b11, (1,), payload)) for payload in (b"x", b"y")]
    delivered = 0
    while waiting:
        machine, event = waiting.pop(0)
        for output in machine.handle(event):
            if isinstance(output, Send):
                waiting += [(each, Receive(output.unit)) for each in machines]
            elif isinstance(output, SetTimer) and (delivered < 4 or output.name == "status"):
                waiting.append((machine, Fired(output.name)))
            delivered += isinstance(output, Deliver)
    assert delivered == 4
    assert {flush_class(protocol)(machine).report().expected[0] for machine in machines} == {2}


# --- cuts ---


def test_a_member_of_st_that_is_a_round_behind_counts_with_what_the_next_begins_with() -> None:
    reports = {0: EpochReport((3, 9), round=1), 1: EpochReport((0, 4), round=0, base=(3, 7))}
    assert StFlush.cut(reports, 3) == Cut((3, 7), round=1)
    assert StFlush.agree(reports)
    assert not StFlush.agree({0: EpochReport((3, 9), round=1), 1: EpochReport((0, 4), round=0)})
    assert not StFlush.agree({0: EpochReport((3, 9), round=2), 1: EpochReport((0, 4), round=0, base=(3, 7))})


def test_a_member_of_to_that_is_a_round_behind_counts_with_what_its_round_began_with() -> None:
    installed = EpochReport((2, 5), round=4, base=(3, 9), units=(4, 9))
    behind = EpochReport((3, 7), round=3, units=(6, 12))
    assert ToFlush.cut({0: installed, 1: behind}, 3) == Cut((1, 5), round=4, base=(3, 9), units=(3, 9))
    begun = EpochReport((2, 6), round=4, units=(4, 11))
    assert ToFlush.cut({0: installed, 1: begun}, 3) == Cut((2, 5), round=4, units=(4, 9))


# --- the sequencer's order: what is fetched ---


def numbered(number: int, commit_below: int = 0) -> Broadcast:
    packet = Packet(0, 7, number, (), number, (1,), bytes([number]))
    return Broadcast(packet, 0, 0, number, commit_below, 0)


def test_how_many_must_report() -> None:
    for nodes, resilience, needed in ((5, 0, 1), (5, 1, 4), (5, 2, 3), (3, 7, 1), (1, 1, 1), (2, 1, 1)):
        config = GroupConfig(nodes=nodes, views=True, sequencer=SequencerConfig(resilience=resilience))
        assert SequencerFlush.reports_needed(config) == needed
    assert StFlush.reports_needed(GroupConfig(nodes=5, views=True)) == 1


def test_what_is_lacking_is_fetched_and_changes_no_report() -> None:
    """V18: what is put aside is not received in the epoch."""
    config = GroupConfig(nodes=3, views=True, sequencer=SequencerConfig(resilience=1))
    holder, other = Sequencer(1, config), Sequencer(2, config)
    for number in range(4):
        holder.handle(Receive(numbered(number, commit_below=2)))
    other.handle(Receive(numbered(0)))
    other.handle(Receive(numbered(2)))
    flushes = SequencerFlush(holder), SequencerFlush(other)
    reports = {place: flush.report() for place, flush in enumerate(flushes, start=1)}
    cut = SequencerFlush.cut(reports, 3)
    assert cut == Cut((4, 0, 0), numbered_below=4)
    assert flushes[0].lacks(cut) == ()
    ranges = flushes[1].lacks(cut)
    assert ranges == ((1, 2), (3, 4))
    before = other.snapshot()
    supplied = dict(flushes[0].supply((*ranges, (9, 11))))
    assert sorted(supplied) == [1, 3]
    assert other.snapshot() == before
    assert flushes[1].report() == reports[2]

    for flush, accepted, given in ((flushes[0], [], [2, 3]), (flushes[1], [1, 2, 3], [0, 1, 2, 3])):
        out = flush.finish(cut, supplied)
        at = [(output.level, output.packet.seq) for output in out if isinstance(output, Reached)]
        assert [number for level, number in at if level is Level.ACCEPTED] == accepted
        assert [number for level, number in at if level is Level.STABLE] == [0, 1, 2, 3]
        assert [number for level, number in at if level is Level.ACKNOWLEDGED] == [0, 1, 2, 3]
        assert [output.packet.seq for output in out if isinstance(output, Deliver)] == given
    assert flushes[0].problem(cut) is None
    assert flushes[1].problem(cut) is None
    assert flushes[0].problem(Cut((3, 0, 0), numbered_below=3)) == "what was received is above the cut"


def test_what_a_sequencer_gave_itself_alone_is_left_over_when_the_others_go_on_without_it() -> None:
    """They may never have had it: an excluded member sends it again, and calls nothing of it stable."""
    sequencer = Sequencer(0, GroupConfig(nodes=3, views=True))
    flush = SequencerFlush(sequencer)
    for payload in (b"x", b"y"):
        out = sequencer.handle(Submit(everybody(3), (1,), payload))
        assert [each.packet.payload for each in out if isinstance(each, Deliver)] == [payload], "it has no resilience"
    assert [each.payload for each in flush.left_over(Cut((1, 0, 0), numbered_below=1))] == [b"y"]
    assert flush.next_message(Cut((1, 0, 0), numbered_below=1)) == 1
    assert flush.left_over(Cut((2, 0, 0), numbered_below=2)) == [], "who goes on has all of it below the cut"
    assert flush.next_message(Cut((2, 0, 0), numbered_below=2)) == 2


def test_other_orders_fetch_nothing() -> None:
    flush = StFlush(machine_of("st", 0, 2, recovery=RecoveryPolicy.GO_BACK_N))
    assert flush.supply(((0, 5),)) == ()
    assert flush.lacks(Cut((0, 0))) == ()
    assert flush.problem(Cut((0, 0))) is None
    assert flush.problem(Cut((1, 0))) == "something below the cut is missing"
