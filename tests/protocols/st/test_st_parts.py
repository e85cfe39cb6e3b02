"""ST, sound rules: its parts alone, each with a state of its own."""

from ordercast.model.config import GroupConfig
from ordercast.model.machine import Output
from ordercast.protocols.shared.backoff import MAX_FACTOR, Backoff
from ordercast.protocols.st.finished_epochs import FinishedEpochs
from ordercast.protocols.st.normal_operation import NormalOperation
from ordercast.protocols.st.recovery import Recovery
from tests.protocols.st.driver import E1, E2, E3, Outputs, Peer

NODES = 3


def normal_of(me: int = E1) -> NormalOperation:
    return NormalOperation(me, GroupConfig(nodes=NODES), FinishedEpochs(NODES), Backoff(NODES, limit=2))


# --- normal operation: where losses are detected ---


def test_normal_data_in_order_show_no_loss_and_a_gap_in_the_numbers_to_me_does() -> None:
    normal, e2 = normal_of(), Peer(E2)
    first, lost, third = e2.sends("a", E1), e2.sends("b", E1), e2.sends("c", E1)
    del lost
    assert not normal.receive_data(first, [])
    assert normal.receive_data(third, [])
    assert ([packet.payload for packet in normal.log], normal.last_shows_gap) == ([b"a", b"c"], True)


def test_normal_a_lost_packet_to_others_is_no_loss() -> None:
    normal, e2 = normal_of(), Peer(E2)
    e2.sends("a", E3)
    assert not normal.receive_data(e2.sends("b", E1), [])


def test_normal_a_status_shows_that_the_last_packet_is_lost() -> None:
    normal, e2 = normal_of(), Peer(E2)
    e2.sends("a", E1)
    assert normal.receive_ready(e2.ready(), [])


def test_loss_a_gap_is_a_number_to_me_above_the_next_whatever_went_to_others() -> None:
    normal, e2 = normal_of(), Peer(E2)
    normal.receive_data(e2.sends("a", E1), [])
    assert normal.shows_gap(E2, seq=1, number=2)
    assert normal.shows_gap(E2, seq=2, number=2)
    assert not normal.shows_gap(E2, seq=0, number=2), "it was received before"
    assert not normal.shows_gap(E2, seq=1, number=1)


def test_normal_a_loss_is_inferred_from_what_a_peer_acknowledges() -> None:
    normal, e2 = normal_of(), Peer(E2)
    assert not normal.loss_inferred_from_peers()
    normal.receive_ready(e2.expecting(0, 0, 1).ready(), [])
    assert normal.loss_inferred_from_peers()


# --- recovery ---


def started(me: int = E1) -> tuple[NormalOperation, Recovery, Outputs]:
    normal, out = normal_of(me), Outputs()
    recovery = Recovery(normal)
    recovery.start("gap", out)
    return normal, recovery, out


def test_recovery_is_complete_when_all_nodes_lack_nothing() -> None:
    _, recovery, _ = started()
    out: list[Output] = []
    recovery.receive(Peer(E2).reply(), out)
    assert recovery.done == 0, "no order without all replies"
    recovery.receive(Peer(E3).reply(), out)
    assert (recovery.order, recovery.done) == ((), 0b001)
    recovery.receive(Peer(E2).done(), out)
    assert not recovery.is_complete()
    recovery.receive(Peer(E3).done(), out)
    assert recovery.is_complete()


def test_recovery_requests_what_another_node_sent_and_takes_it_from_there() -> None:
    normal, recovery, _ = started()
    e2, e3 = Peer(E2), Peer(E3)
    unit, out = e2.sends("a", E1), Outputs()
    recovery.receive(e2.reply(sent=[unit]), out)
    recovery.receive(e3.reply(), out)
    assert (recovery.missing, recovery.blockers()) == ({(E2, 0)}, 0b110)
    recovery.keep_packet(unit.packet, out)
    assert (recovery.missing, list(normal.unplaced)) == (set(), [(E2, 0)])
    assert out.accepted == ["a"]


def test_recovery_hands_what_is_left_over_to_the_finished_epochs() -> None:
    normal, recovery, _ = started()
    e2, e3 = Peer(E2), Peer(E3)
    unit, out = e2.sends("a", E1), Outputs()
    for received in (e2.reply(sent=[unit]), e3.reply(), e2.done(), e3.done()):
        recovery.receive(received, out)
    recovery.keep_packet(unit.packet, out)
    recovery.finish(out)
    assert list(normal.finished.packets) == [(0, unit.packet)]
    assert (normal.expected, normal.expected_to_me) == ([0, 1, 0], [0, 1, 0])
    assert (recovery.active, recovery.done, recovery.missing) == (False, 0, set())


# --- finished epochs, back-off ---


def test_finished_packets_wait_until_every_node_was_heard_in_a_later_epoch() -> None:
    finished, packet = FinishedEpochs(NODES), Peer(E2).sends("a", E1).packet
    assert finished.blockers() == 0
    finished.extend(0, [packet])
    finished.epoch_seen = [1, 2, 0]
    assert (finished.take_acknowledged(), finished.blockers()) == ([], 0b100)
    finished.epoch_seen[E3] = 1
    assert (finished.take_acknowledged(), finished.blockers()) == ([packet], 0)


def test_normal_a_new_wait_begins_without_back_off() -> None:
    normal, out = normal_of(), Outputs()
    normal.backoff.factor, normal.backoff.progress = MAX_FACTOR, True
    normal.start_status_timer(out)
    assert (normal.backoff.factor, normal.backoff.progress) == (1, False)
    status = normal.config.timing.status
    assert status <= out.durations["status"] < 2 * status
