"""Each part of the machine alone, with the parts that it knows and nothing else."""

from collections.abc import Collection
from typing import Any

import pytest

from ordercast.model.machine import CancelTimer, Deliver, Output, Send, SetTimer, Submit
from ordercast.model.units import Packet, Unit
from ordercast.protocols.sequencer.loss_detection import Ranges
from ordercast.protocols.sequencer.orderer import FullHistory, Orderer
from ordercast.protocols.sequencer.reception import Reception
from ordercast.protocols.sequencer.sender import Sender
from ordercast.protocols.sequencer.timers import Timers
from ordercast.protocols.sequencer.units import (
    Accepted,
    Acknowledgment,
    Broadcast,
    Fetch,
    Flush,
    Flushed,
    Install,
    NextView,
    NumberAnnouncement,
    Offer,
    Propose,
    Refused,
    SequencerStatus,
    Supply,
    Synchronise,
)
from ordercast.protocols.sequencer.view import CurrentView
from ordercast.protocols.sequencer.view_agreement import OrderedLog, ViewAgreement
from ordercast.protocols.sequencer.window import SendWindow
from tests.protocols.driver import E1, E2, E3, E4, E5, name_of_packet
from tests.protocols.sequencer.driver import broadcast, config, packet, status


def sent(out: list[Output]) -> list[Unit]:
    return [output.unit for output in out if isinstance(output, Send)]


def delivered(out: list[Output]) -> list[str]:
    return [name_of_packet(output.packet) for output in out if isinstance(output, Deliver)]


def timers_set(out: list[Output]) -> list[str]:
    return [output.name for output in out if isinstance(output, SetTimer)]


# --- the state of all of them ---


def test_a_part_takes_its_state_back_alone() -> None:
    view, other = CurrentView(E3, config(5, resilience=2)), CurrentView(E3, config(5, resilience=2))
    view.enter(NextView(4, 0b11100, E3, 17, "why"))
    assert other != view
    other.restore(view.snapshot())
    assert vars(other) == vars(view)
    assert (other.number, other.is_sequencer, other.others, other.resilience) == (4, True, (E4, E5), 2)


# --- the current view ---


@pytest.mark.parametrize(
    ("me", "members", "sequencer", "resilience", "at_once"),
    [(E2, 0b11111, E1, 2, True), (E4, 0b11111, E1, 2, False), (E4, 0b11001, E1, 2, True), (E2, 0b10010, E5, 1, True)],
)
def test_the_first_members_besides_the_sequencer_hold_a_broadcast(
    me: int, members: int, sequencer: int, resilience: int, *, at_once: bool
) -> None:
    view = CurrentView(me, config(5, resilience=2))
    view.enter(NextView(1, members, sequencer, 0, ""))
    assert (view.resilience, view.acknowledges_at_once) == (resilience, at_once)


# --- timers ---


def test_timers_are_spread_by_node_and_back_off_and_stopped_if_they_run() -> None:
    out: list[Output] = []
    timers = Timers(E2)
    timers.set("need", 1000, 0, out)
    timers.need_backoff = 2
    timers.set("need", 1000, 0, out)
    Timers(E3).set("need", 1000, 0, out)
    durations = [output.after for output in out if isinstance(output, SetTimer)]
    assert len(set(durations)) == 3
    assert all(1000 <= duration < 2000 for duration in durations)
    timers.need = timers.status = True
    stopped: list[Output] = []
    timers.stop(stopped)
    assert stopped == [CancelTimer("need"), CancelTimer("status")]
    assert (timers.need, timers.status) == (False, False)


# --- the window ---


def test_a_window_numbers_packets_and_messages() -> None:
    window = SendWindow(E2, config(window=2))
    window.waiting.extend([Submit(0b111, (1, 1), b"ab"), Submit(0b111, (1,), b"c", 3)])
    first, second = window.next_packet(), window.next_packet()
    assert [(found.seq, found.first, found.payload, found.priority) for found in (first, second)] == [
        (0, 0, b"ab", 0),
        (1, 2, b"c", 3),
    ]
    assert not window.has_room()
    assert (window.find(1), window.find(2)) == (second, None)
    window.outstanding.popleft()
    assert window.has_room()


# --- the reception ---


def reception(me: int = E3, **options: Any) -> Reception:
    settings = config(**options)
    return Reception(me, settings, CurrentView(me, settings), SendWindow(me, settings), Timers(me))


def test_a_receiver_delivers_in_order_and_shows_its_gaps() -> None:
    log, out = reception(), list[Output]()
    for number, name in ((0, "a"), (3, "d"), (2, "c")):
        log.receive_broadcast(broadcast(number, name), out)
    assert delivered(out) == ["a"]
    assert timers_set(out) == ["gap"], "one timer for all of them"
    assert log.missing() == log.due_gaps() == ((1, 2),)
    log.gaps_requested(out)
    assert log.due_gaps() == (), "requested once"
    log.receive_broadcast(broadcast(1, "b", stable=1), out)
    assert delivered(out) == ["a", "b", "c", "d"]
    assert sorted(log.history) == [1, 2, 3], "what every member has leaves the history"
    assert (log.packet(1), log.packet(0), log.packet(9)) == (packet(E2, 1, "b"), None, None)


def test_a_receiver_waits_for_the_resilience_degree() -> None:
    log, out = reception(resilience=1), list[Output]()
    log.receive_broadcast(broadcast(0, "a", commit=0), out)
    assert delivered(out) == []
    log.update_bounds(E1, 1, 0, out)
    assert delivered(out) == ["a"]


@pytest.mark.parametrize("number_first", [True, False])
def test_a_number_and_its_packet_may_come_in_either_order(*, number_first: bool) -> None:
    log, out = reception(), list[Output]()
    number, data = NumberAnnouncement(0, E1, 0, ((E2, 0),), 1, 0), Offer(packet(E2, 0, "a"), 0, 0, direct=True)
    if number_first:
        log.receive_announcement(number, out)
        assert (delivered(out), log.missing()) == ([], ((0, 1),))
        log.keep_unnumbered(data, out)
    else:
        log.keep_unnumbered(data, out)
        assert (delivered(out), log.missing()) == ([], ())
        log.receive_announcement(number, out)
    assert delivered(out) == ["a"]
    assert not log.unnumbered
    assert not log.announced


def test_a_receiver_ends_a_view_at_the_cut() -> None:
    log, out = reception(), list[Output]()
    log.receive_broadcast(broadcast(0, "a"), out)
    log.receive_broadcast(broadcast(3, "d"), out)
    assert log.lacking(3, {2}) == ((1, 2),)
    view = NextView(1, 0b110, E2, 3, "why")
    log.end_view(view, {1: packet(E2, 1, "b"), 2: packet(E2, 2, "c")}, out)
    log.start_view(view)
    log.deliver(out)
    assert delivered(out) == ["a", "b", "c"]
    assert (log.received_below, log.known_below, log.ahead) == (3, 3, {}), "d was numbered by the old view alone"


# --- the orderer ---


def orderer(nodes: int = 3, **options: Any) -> Orderer:
    settings = config(nodes, **options)
    view, timers = CurrentView(E1, settings), Timers(E1)
    return Orderer(E1, settings, view, Reception(E1, settings, view, SendWindow(E1, settings), timers), timers)


def test_an_orderer_numbers_each_sender_in_its_order() -> None:
    part, out = orderer(), list[Output]()
    for source, seq in ((E2, 1), (E3, 0), (E2, 0)):
        part.receive_offer(Offer(packet(source, seq, f"{source}{seq}"), 0, 0), out)
    units = [unit for unit in sent(out) if isinstance(unit, Broadcast)]
    assert [(unit.number, name_of_packet(unit.packet)) for unit in units] == [(0, "20"), (1, "10"), (2, "11")]
    assert part.take_offer(packet(E2, 0, "10"), out, direct=False) == "duplicate"
    assert part.take_offer(packet(E2, 2 + 8, "x"), out, direct=False) == "ahead"


def test_an_orderer_keeps_what_is_not_acknowledged_by_all() -> None:
    part, out = orderer(), list[Output]()
    for seq in range(3):
        part.take_offer(packet(E2, seq, "m"), out, direct=False)
    part.note_acknowledged(E2, 3, out)
    assert (part.lagging(), part.reception.stable_below) == (0b100, 0)
    part.note_acknowledged(E3, 2, out)
    part.note_acknowledged(E3, 1, out)
    assert (part.acknowledged, part.lowest, part.reception.stable_below) == ([3, 3, 2], 2, 2)
    assert part.number_of == {(E2, 2): 2}


def test_an_orderer_with_a_full_history_waits_asks_and_synchronises() -> None:
    part, out = orderer(history=1), list[Output]()
    for seq in range(2):
        part.take_offer(packet(E2, seq, "m"), out, direct=False)
    assert (part.is_full(), part.full_history) == (True, FullHistory.WAITED)
    assert timers_set(out) == ["status"]
    out.clear()
    for _ in range(2):
        part.status_timer_fired(out)
    assert sent(out) == [SequencerStatus(0, E1, 1, 1, 0, 0b110), Synchronise(0, E1, 1, 1, 1, 0, 0b110)]
    out.clear()
    for node in (E2, E3):
        part.note_acknowledged(node, 1, out)
    assert sent(out) == [Synchronise(0, E1, 1, 2, 1, 1, 0b110)], "phase 2, and nothing is numbered yet"


def test_an_orderer_asks_who_lags_and_suspects_who_does_not_reply() -> None:
    part, out = orderer(suspect_after=1), list[Output]()
    part.take_offer(packet(E2, 0, "m"), out, direct=False)
    part.note_acknowledged(E2, 1, out)
    out.clear()
    part.start_status_timer(out)
    assert timers_set(out) == ["status"]
    suspects = [part.status_timer_fired(out) for _ in range(4)]
    assert suspects == [0, 0, 0, 0b100]
    assert sent(out) == [SequencerStatus(0, E1, 1, 1, 0, 0b100)] * 3


# --- the sender ---


def sender(**options: Any) -> Sender:
    settings = config(**options)
    view, window, timers = CurrentView(E3, settings), SendWindow(E3, settings), Timers(E3)
    return Sender(E3, settings, view, window, Reception(E3, settings, view, window, timers), timers)


def test_an_offer_carries_an_acknowledgment_and_is_repeated_until_it_has_a_number() -> None:
    part, out = sender(), list[Output]()
    part.reception.receive_broadcast(broadcast(0, "a"), out)
    part.window.waiting.append(Submit(0b111, (1,), b"m"))
    part.offer(part.window.next_packet(), out)
    mine = Offer(packet(E3, 0, "m"), 0, 1)
    assert sent(out) == [mine]
    part.settle(out)
    assert sent(out) == [mine], "the acknowledgment went with it"
    assert timers_set(out) == ["need"]
    out.clear()
    part.need_timer_fired(out)
    assert sent(out) == [], "it was only just offered"
    part.need_timer_fired(out)
    assert out == [Send(mine, again=True, to=E1)]
    part.reception.receive_broadcast(broadcast(1, "m", E3, 0), out)
    assert not part.window.outstanding


def test_a_sender_pauses_between_the_phases_of_a_synchronisation() -> None:
    part, out = sender(), list[Output]()
    assert not part.is_paused()
    part.receive_synchronise(Synchronise(0, E1, 1, 1, 0, 0, 0b100), out)
    assert part.is_paused()
    assert sent(out) == [Acknowledgment(0, E3, 0)]
    part.receive_synchronise(Synchronise(0, E1, 1, 2, 0, 0, 0), out)
    assert not part.is_paused()
    part.receive_synchronise(Synchronise(0, E1, 2, 1, 0, 0, 0), out)
    part.reception.receive_broadcast(broadcast(0, "a"), out)
    assert not part.is_paused(), "a later broadcast shows that it is over"


def test_a_sender_acknowledges_what_is_wanted_as_soon_as_it_is_received() -> None:
    part, out = sender(), list[Output]()
    part.receive_status(status(1, reply_from=0b100), out)
    assert sent(out) == []
    part.reception.receive_broadcast(broadcast(0, "a"), out)
    part.settle(out)
    assert sent(out) == [Acknowledgment(0, E3, 1)]


# --- the view agreement ---


class Log:
    """Broadcasts as the agreement sees them."""

    def __init__(self, *names: str) -> None:
        self._packets = [packet(E1, number, name) for number, name in enumerate(names)]

    @property
    def received_below(self) -> int:
        return len(self._packets)

    def lacking(self, cut_below: int, supplied: Collection[int]) -> Ranges:
        missing = [number for number in range(self.received_below, cut_below) if number not in supplied]
        return tuple((number, number + 1) for number in missing)

    def packet(self, number: int) -> Packet | None:
        return self._packets[number] if number < len(self._packets) else None


def agreement(me: int, log: OrderedLog, nodes: int = 3, **options: Any) -> ViewAgreement:
    settings = config(nodes, **options)
    return ViewAgreement(me, settings, CurrentView(me, settings), log, Timers(me))


def test_an_agreement_decides_a_view_with_the_longest_log() -> None:
    coordinator, member = agreement(E2, Log("a")), agreement(E3, Log("a", "b"))
    out: list[Output] = []
    coordinator.suspect(0b001, out)
    [flush] = sent(out)
    assert flush == Flush(0, E2, (1, E2), 0b010)

    replies: list[Output] = []
    member.receive(flush, replies)
    [report] = sent(replies)
    assert report == Flushed(0, E3, (1, E2), 2, None)
    assert member.promised == (1, E2)

    out.clear()
    coordinator.receive(report, out)
    assert sent(out) == [], "E1 has some rounds to report"
    for _ in range(2):
        coordinator.view_timer_fired(out)
    view = NextView(1, 0b110, E2, 2, "E1 did not answer")
    assert sent(out)[-1] == Fetch(0, E2, (1, E2), ((1, 2),))

    replies.clear()
    member.receive(sent(out)[-1], replies)
    out.clear()
    coordinator.receive(sent(replies)[0], out)
    assert sent(out) == [Propose(0, E2, (1, E2), view, 0b010)]
    assert sorted(coordinator.supplied) == [1]

    replies.clear()
    assert member.receive(sent(out)[0], replies) is None
    assert sent(replies) == [Accepted(0, E3, (1, E2))]
    out.clear()
    assert coordinator.receive(sent(replies)[0], out) == view
    assert sent(out) == [Install(1, E2, view)]


def test_a_later_ballot_wins_and_takes_over_what_was_accepted() -> None:
    member, out = agreement(E3, Log("a"), 5), list[Output]()
    view = NextView(1, 0b11110, E2, 1, "E1 did not answer")
    member.receive(Propose(0, E2, (1, E2), view, 0), out)
    assert sent(out) == [Accepted(0, E3, (1, E2))]
    out.clear()
    member.receive(Flush(0, E4, (2, E4), 0), out)
    assert sent(out) == [Flushed(0, E3, (2, E4), 1, ((1, E2), view))]
    out.clear()
    member.receive(Propose(0, E2, (1, E2), view, 0), out)
    assert sent(out) == [Refused(0, E3, (1, E2), (2, E4))]


def test_what_is_supplied_without_a_proposal_is_not_kept() -> None:
    member = agreement(E3, Log())
    member.receive(Supply(packet(E1, 0, "a"), 0, E2, 0), [])
    assert not member.supplied


@pytest.mark.parametrize(("nodes", "resilience", "reports"), [(3, 0, 2), (5, 0, 3), (5, 1, 4), (5, 3, 3)])
def test_a_quorum_is_a_majority_and_all_but_the_resilience_degree(nodes: int, resilience: int, reports: int) -> None:
    part, out = agreement(E2, Log(), nodes, resilience=resilience, suspect_after=1, polls_to_abort=99), list[Output]()
    part.suspect(0b001, out)
    for reported in range(2, nodes):
        for _ in range(2):
            part.view_timer_fired(out)
        assert (part.proposal is not None) == (reported > reports)
        part.receive(Flushed(0, reported, (1, E2), 0, None), out)
    part.view_timer_fired(out)
    assert part.proposal is not None
