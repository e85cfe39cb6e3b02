"""ST, sound rules, while nothing is lost: transmission, acceptance, the levels above it, statuses and the window."""

import msgspec

from ordercast.model.config import Timing
from ordercast.model.machine import Drained, Echo, SetTimer, Submit
from ordercast.model.runs import Channel
from ordercast.protocols.spo.units import Data, Ready, RetransmitRequest
from ordercast.protocols.st.channel_logs import OWN, RECEIVED
from ordercast.protocols.st.units import ResetReply
from tests.protocols.st.driver import E1, E2, E3, Group, Node, Outputs, Peer

ALL = (E1, E2, E3)


def echo(node: Node, outputs: Outputs) -> Outputs:
    """The channel brings a node's own units back."""
    return node.hears(*outputs.units)


def test_it_needs_one_channel_and_its_own_echo() -> None:
    machine = Node(E1).machine
    assert (machine.needs, machine.echo) == (Channel.ONE, Echo.CHANNEL)


# --- acceptance ---


def test_what_comes_next_is_accepted_and_what_is_for_others_only_counted() -> None:
    e1, e2 = Node(E1), Peer(E2)
    assert e1.hears(e2.sends("a", E1, E3)).accepted == ["a"]
    out = e1.hears(e2.sends("b", E3))
    assert (out.accepted, out.discards) == ([], ["foreign"])
    assert (e1.machine.normal.expected[E2], e1.machine.normal.expected_to_me[E2]) == (2, 1)
    assert [packet.payload for packet in e1.machine.normal.log] == [b"a"]


def test_losses_of_what_is_for_others_are_no_gap() -> None:
    e1, e2 = Node(E1), Peer(E2)
    e2.sends("a", E2)
    e2.sends("b", E3)
    assert e1.hears(e2.sends("c", E1)).accepted == ["c"]
    e2.sends("d", E3)
    assert not e1.hears(e2.ready()).stops
    assert e1.machine.normal.expected[E2] == 4


def test_duplicates_are_thrown_away_and_say_nothing() -> None:
    e1, e2 = Node(E1), Peer(E2)
    mine, foreign = e2.sends("a", E1), e2.sends("b", E3)
    e1.hears(mine, foreign)
    for packet in mine.packet, foreign.packet:
        before = e1.machine.normal.accepted.acknowledged_below[E2]
        out = e1.hears(Data(packet, e2.expecting(0, 9, 9).status()))
        assert (out.discards, out.accepted) == (["duplicate"], [])
        assert e1.machine.normal.accepted.acknowledged_below[E2] == before
    assert e1.machine.normal.expected == [0, 2, 0]


def test_a_late_status_takes_nothing_back() -> None:
    e1, e2 = Node(E1), Peer(E2)
    first, early, late = e2.ready(), e2.ready(), e2.expecting(0, 0, 3).ready()
    e1.hears(late, early)
    assert e1.machine.normal.accepted.acknowledged_below[E2] == (0, 0, 3)
    assert e1.hears(e2.sends("a", E3), first).stops == []
    assert e1.machine.normal.expected[E2] == 1


def test_strays_are_thrown_away() -> None:
    assert Node(E1).hears(RetransmitRequest(E2, (0, 0, 0))).discards == ["stray"]


def test_own_packets_count_only_as_the_channel_brings_them_back() -> None:
    e1, e2, e3 = Node(E1), Peer(E2), Peer(E3)
    sent = e1.submits("a", *ALL)
    assert (sent.accepted, e1.machine.normal.expected[E1]) == ([], 0)
    assert echo(e1, sent).accepted == ["a"]
    assert e1.hears(e2.expecting(1, 0, 0).ready(), e3.expecting(1, 0, 0).ready()).preacknowledged == []
    status = e1.fires("status")
    assert e1.machine.normal.accepted.acknowledged_below[E1] == (0, 0, 0), "said, but not yet heard"
    assert echo(e1, status).preacknowledged == ["a"]


def test_a_packet_that_does_not_fit_any_more_is_as_good_as_lost() -> None:
    e1, e2 = Node(E1, nodes=2, quota=1), Peer(E2, nodes=2)
    assert e1.hears(e2.sends("a", E1), e2.sends("b", E1)).accepted == ["a", "b"]
    assert e1.hears(e2.sends("c", E1)).discards == ["full"]
    assert not e1.machine.recovery.active
    ahead = e1.hears(e2.sends("d", E1))
    assert (ahead.discards, ahead.stops) == (["full"], []), "nor can a packet ahead of the gap keep its place"
    assert e1.hears(e2.sends("e", E2)).stops == ["gap"]


# --- pre-acknowledgment and acknowledgment ---


def test_lemma_a_preacknowledgment_waits_for_all_nodes() -> None:
    """y goes to E1 and E3. What E2 sent to E1 before y may be missing until E2 is heard to have heard y."""
    e1, e2, e3 = Node(E1), Peer(E2), Peer(E3)
    e1.hears(e3.sends("y", E1, E3))
    echo(e1, e1.fires("status"))
    assert e1.hears(e3.preacknowledging(0, 0, 1).ready()).preacknowledged == []
    out = e1.hears(e2.preacknowledging(0, 0, 1).ready())
    assert (out.preacknowledged, out.delivered) == (["y"], ["y"])


def test_data_say_what_a_status_says() -> None:
    e1, e2, e3 = Node(E1), Peer(E2), Peer(E3)
    e1.hears(e2.sends("a", E1))
    echo(e1, e1.fires("status"))
    e1.hears(e3.expecting(0, 1, 0).ready())
    assert e1.hears(e2.expecting(0, 1, 0).sends("b", E3)).preacknowledged == ["a"]


def test_lemma_a_only_units_that_are_accepted_count() -> None:
    e1, e2, e3 = Node(E1), Peer(E2), Peer(E3)
    e1.hears(e3.sends("y", E1, E3))
    echo(e1, e1.fires("status"))
    e1.hears(e3.expecting(0, 0, 1).ready())
    e2.sends("g", E1)  # lost
    out = e1.hears(e2.expecting(0, 0, 1).sends("h", E1))
    assert (out.stops, out.preacknowledged) == (["gap"], [])
    assert out.of(ResetReply)[0].preacknowledged == 0


def test_levels_rise_in_the_order_of_the_channel() -> None:
    """b could rise before a, but a came first."""
    e1, e2, e3 = Node(E1), Peer(E2), Peer(E3)
    e1.hears(e2.sends("a", E1), e3.sends("b", E1))
    echo(e1, e1.fires("status"))
    e1.hears(e2.expecting(0, 0, 1).ready())
    assert e1.hears(e3.expecting(0, 0, 1).ready()).preacknowledged == []
    assert e1.hears(e2.expecting(0, 1, 1).ready()).preacknowledged == []
    assert e1.hears(e3.expecting(0, 1, 1).ready()).preacknowledged == ["a", "b"]


def test_acknowledgment_waits_for_the_destinations_alone() -> None:
    e1, e2, e3 = Node(E1), Peer(E2), Peer(E3)
    e1.hears(e2.sends("a", E1, E2))
    echo(e1, e1.fires("status"))
    out = e1.hears(e2.expecting(0, 1, 0).ready(), e3.expecting(0, 1, 0).ready())
    assert (out.preacknowledged, out.acknowledged) == (["a"], [])
    out = e1.hears(e2.preacknowledging(0, 1, 0).ready())
    assert (out.acknowledged, out.delivered) == (["a"], ["a"])


def test_a_status_says_what_waits_to_be_preacknowledged() -> None:
    e1, e2, e3 = Node(E1), Peer(E2), Peer(E3)
    e1.hears(e2.sends("a", E1), e2.sends("b", E1), e3.sends("c", E2))
    said = e1.fires("status")
    status = said.of(Ready)[0].status
    assert (status.expects, status.preacknowledged_below) == ((0, 2, 1), (0, 0, 1))
    echo(e1, said)
    assert e1.hears(e2.expecting(0, 2, 1).ready(), e3.expecting(0, 1, 1).ready()).preacknowledged == ["a"]
    assert e1.fires("status").of(Ready)[0].status.preacknowledged_below == (0, 1, 1)


def test_a_sender_that_is_no_destination_learns_how_far_it_got() -> None:
    e1, e2, e3 = Node(E1), Peer(E2), Peer(E3)
    sent = e1.submits("a", E2, E3)
    assert echo(e1, sent).accepted == []
    echo(e1, e1.fires("status"))
    assert e1.hears(e2.preacknowledging(1, 0, 0).ready()).preacknowledged == []
    out = e1.hears(e3.expecting(1, 0, 0).ready())
    assert (out.preacknowledged, out.acknowledged) == (["a"], [])
    out = e1.hears(e3.preacknowledging(1, 0, 0).ready())
    assert (out.acknowledged, out.delivered) == (["a"], [])
    assert not e1.machine.normal.unfinished()


def test_what_goes_to_its_sender_alone_waits_for_everybody_all_the_same() -> None:
    group = Group()
    group.submit(E1, "a", E1)
    group.hear_all()
    assert group.delivered() == ["", "", ""]
    group.settle()
    assert group.delivered() == ["a", "", ""]


# --- statuses ---


def test_a_status_without_data_takes_no_number() -> None:
    e1 = Node(E1)
    echo(e1, e1.submits("a", E2))
    first, second = (e1.fires("status").of(Ready)[0] for _ in range(2))
    assert (first.next_seq, second.next_seq) == (1, 1)
    assert (first.next_seq_to, second.next_seq_to) == ((0, 1, 0), (0, 1, 0))
    assert first.status.stamp < second.status.stamp


def test_a_status_passes_a_closed_window() -> None:
    e1 = Node(E1, window=1)
    e1.submits("a", E2)
    assert e1.submits("b", E2).units == []
    assert len(e1.fires("status").of(Ready)) == 1


def test_who_asks_is_answered_and_who_only_says_is_not() -> None:
    e1, e2 = Node(E1), Peer(E2)
    assert e1.hears(e2.ready()).timers == []
    assert e1.hears(e2.ready(wants=True)).timers == ["status"]
    answer = e1.fires("status")
    assert [unit.wants for unit in answer.of(Ready)] == [0]
    assert answer.timers == []


def test_a_packet_for_others_is_answered_too() -> None:
    e1, e2 = Node(E1), Peer(E2)
    assert e1.hears(e2.sends("a", E3)).timers == ["status"]
    assert [unit.wants for unit in e1.fires("status").of(Ready)] == [0]


def test_who_waits_asks_everybody() -> None:
    e1, e2 = Node(E1), Peer(E2)
    e1.hears(e2.sends("a", E1))
    assert [unit.wants for unit in e1.fires("status").of(Ready)] == [0b111]


def test_half_a_window_unsaid_is_said_at_once() -> None:
    e1, e2, e3 = Node(E1, window=4), Peer(E2), Peer(E3)
    assert e1.hears(e2.sends("a", E1), e3.sends("b", E1)).units == []
    assert len(e1.hears(e2.sends("c", E1)).of(Ready)) == 1
    assert e1.hears(e2.sends("d", E1)).units == []


def test_when_nothing_more_waits_what_is_unsaid_is_said() -> None:
    e1, e2 = Node(E1), Peer(E2)
    assert e1.drained().units == []
    e1.hears(e2.sends("a", E1))
    assert len(e1.drained().of(Ready)) == 1
    assert e1.drained().units == []


def test_that_too_is_said_for_which_others_wait_to_go_on() -> None:
    """That a packet for others was heard, and that one of ours was pre-acknowledged; but questions are not answered."""
    e1, e2, e3 = Node(E1), Peer(E2), Peer(E3)
    e1.hears(e2.sends("a", E3))
    assert [unit.status.expects for unit in e1.drained().of(Ready)] == [(0, 1, 0)]
    e1.hears(e2.sends("b", E1, E2))
    echo(e1, e1.drained())
    assert e1.hears(e2.expecting(0, 2, 0).ready(wants=True)).preacknowledged == []
    assert e1.drained().units == []
    assert e1.hears(e3.expecting(0, 2, 0).ready()).preacknowledged == ["b"]
    assert [unit.status.preacknowledged_below for unit in e1.drained().of(Ready)] == [(0, 2, 0)]
    assert e1.drained().units == []


def test_who_has_just_spoken_does_not_speak_when_its_timer_fires() -> None:
    e1, e2 = Node(E1), Peer(E2)
    e1.hears(e2.sends("a", E1))
    e1.submits("b", E2)
    assert e1.fires("status").units == []
    assert len(e1.fires("status").of(Ready)) == 1


def test_while_nothing_moves_statuses_become_rarer() -> None:
    e1, e2, e3 = Node(E1, timing=Timing(status=1000)), Peer(E2), Peer(E3)
    e1.hears(e2.sends("a", E1, E2))
    waits = [e1.running["status"] // 1000]
    for _ in range(5):
        echo(e1, e1.fires("status"))
        waits.append(e1.running["status"] // 1000)
    assert all(least <= wait < 2 * least for wait, least in zip(waits, (1, 2, 4, 4, 4, 4), strict=True)), waits
    e1.hears(e2.expecting(0, 1, 0).ready(), e3.expecting(0, 1, 0).ready())
    out = e1.fires("status")
    assert [output.after // 1000 for output in out if isinstance(output, SetTimer)] == [1]


def test_each_status_of_one_that_waits_polls_or_with_polls_late_only_those_of_the_timer() -> None:
    for late in (False, True):
        e1, e2 = Node(E1, polls_late=late), Peer(E2)
        e1.hears(e2.sends("a", E1, E2))
        (at_once,) = e1.handle(Drained()).of(Ready)
        assert at_once.wants == (0 if late else 0b111)
        assert e1.fires("status").units == [], "something was sent since"
        (by_timer,) = e1.fires("status").of(Ready)
        assert by_timer.wants == 0b111, "what it waits for has not come"


def test_a_timer_of_one_that_waits_for_nothing_answers_and_does_not_poll() -> None:
    e1, e2 = Node(E1, polls_late=True), Peer(E2)
    e1.hears(e2.ready(wants=True))
    (answer,) = e1.fires("status").of(Ready)
    assert answer.wants == 0


def test_who_has_spoken_meanwhile_speaks_soon_again() -> None:
    e1, e2 = Node(E1, timing=Timing(status=1000)), Peer(E2)
    e1.hears(e2.sends("a", E1))
    for _ in range(3):
        e1.fires("status")
    assert e1.running["status"] >= 4000
    e1.submits("b", E2)
    assert e1.fires("status").units == []
    assert e1.running["status"] < 2000


def test_whatever_rises_makes_statuses_frequent_again() -> None:
    """A submission waits for the window all the time, so that it never falls silent."""
    e1, e2, e3 = Node(E1, timing=Timing(status=1000)), Peer(E2), Peer(E3)
    echo(e1, e1.submits("a", E2))
    e2.free = 0
    e1.hears(e2.ready())
    e1.submits("b", E2)
    for heard in (e2.expecting, e3.expecting, e2.preacknowledging):
        for _ in range(3):
            echo(e1, e1.fires("status"))
        assert e1.running["status"] >= 4000
        risen = e1.hears(heard(1, 0, 0).ready())
        e1.fires("status")
        assert (e1.running["status"] < 2000) == bool(risen.preacknowledged or risen.acknowledged)
    assert e1.did.acknowledged == ["a"]


def test_in_the_end_there_is_silence() -> None:
    group = Group()
    for node, name, to in (E1, "a", ALL), (E2, "b", (E1,)), (E3, "c", (E2, E3)):
        group.submit(node, name, *to)
    group.settle()
    assert group.delivered() == ["a b", "a c", "a c"]
    for here in group.nodes:
        assert (here.running, here.machine.waits_for()) == ({}, ())
        assert (here.machine.normal.unfinished(), here.machine.normal.status_due) == (False, False)


# --- submission and the window ---


def test_a_batch_is_one_packet_and_counts_its_messages() -> None:
    e1 = Node(E1)
    first, second = (
        e1.handle(Submit(0b10, lengths, bytes(sum(lengths)), priority))
        for lengths, priority in (((1, 2, 3), 0), ((4,), 5))
    )
    packets = [Outputs(out).of(Data)[0].packet for out in (first, second)]
    assert [(packet.seq, packet.first, packet.lengths) for packet in packets] == [(0, 0, (1, 2, 3)), (1, 3, (4,))]
    assert [packet.seq_to for packet in packets] == [(0, 0, 0), (0, 1, 0)]
    assert packets[1].priority == 5


def test_the_window_waits_for_everybody_who_may_not_have_heard() -> None:
    e1, e2, e3 = Node(E1, window=2), Peer(E2), Peer(E3)
    out = Outputs([*e1.submits("a", E2), *e1.submits("b", E2), *e1.submits("c", E2)])
    assert len(out.of(Data)) == 2
    echo(e1, out)
    assert e1.fires("status").units == []  # the second data unit was a status
    echo(e1, e1.fires("status"))
    assert e1.hears(e2.expecting(2, 0, 0).ready()).of(Data) == []
    assert len(e1.hears(e3.expecting(1, 0, 0).ready()).of(Data)) == 1
    assert len(e1.machine.normal.accepted.logs[OWN]) == 2


def test_the_window_closes_altogether_when_somebody_is_full_and_a_status_opens_it() -> None:
    e1, e2 = Node(E1), Peer(E2)
    e2.free = 2  # of three nodes
    e1.hears(e2.ready())
    assert e1.submits("a", E2).units == []
    assert len(e1.fires("status").of(Ready)) == 1
    e2.free = 3
    assert len(e1.hears(e2.ready()).of(Data)) == 1
    assert e1.submits("b", E2).units == []


def test_what_is_held_here_closes_the_window_too() -> None:
    e1, e2 = Node(E1, quota=1), Peer(E2)
    e1.hears(e2.sends("a", E1))
    assert e1.drained().of(Ready)[0].status.free == 2
    assert e1.submits("b", E2).units == []
    assert len(e1.machine.normal.accepted.logs[RECEIVED]) == 1


def test_first_numbers_are_those_agreed_on() -> None:
    e1 = Node(E1, first_seq=(5, 0, 3))
    packet = e1.submits("a", E2).of(Data)[0].packet
    assert (packet.seq, packet.seq_to, packet.first) == (5, (5, 5, 5), 0)
    late = msgspec.structs.replace(Peer(E3).sends("z", E1).packet, seq=3, seq_to=(3, 3, 3))
    assert e1.hears(Data(late, Peer(E3).status())).accepted == ["z"]


def test_what_only_others_acknowledge_is_asked_about_as_often_as_it_is_heard_of() -> None:
    e1, e3 = Node(E1, infer_losses=True), Peer(E3)
    for _ in range(2):
        assert e1.hears(e3.expecting(0, 1, 0).ready(), e3.ready()).timers == ["hearsay"]
        assert [unit.wants for unit in e1.fires("hearsay").of(Ready)] == [0b111]
    assert Node(E1).hears(e3.ready()).timers == []
