"""The parts of TO, each alone: a log, the window, the quota, back-off, recovery, reception with a policy."""

from collections.abc import Sequence

import pytest

from ordercast.model.config import GroupConfig
from ordercast.model.machine import Deliver, Discard, Level, Output, Reached, Submit
from ordercast.model.units import Packet
from ordercast.protocols.shared.backoff import Backoff
from ordercast.protocols.to.delivery import ChannelOrder, Deliveries, DeliveryPolicy
from ordercast.protocols.to.reception import Reception
from ordercast.protocols.to.recovery import Mode, Recovery, cut_of
from ordercast.protocols.to.transmission import Transmission
from ordercast.protocols.to.unanimous_log import UnanimousLog
from ordercast.protocols.to.units import CarryingVector, EpochVector, PolicyUnit
from tests.protocols.to.driver import E1, E2, E3, Peer


def packet(source: int, seq: int) -> Packet:
    return Packet(source, 0b11, seq, (), seq, (1,), b"x")


# --- a log that all must acknowledge ---


def log_of(*entries: tuple[int, int, str]) -> UnanimousLog[str]:
    log: UnanimousLog[str] = UnanimousLog(2, (0, 0))
    log.entries.extend(entries)
    return log


def test_the_top_leaves_when_all_have_acknowledged_it_and_what_is_behind_it_waits() -> None:
    log = log_of((E1, 0, "a"), (E2, 0, "x"))
    log.acknowledged_below[E1] = (1, 1)
    assert (log.take_acknowledged(), log.waiting_for, log.blockers()) == ([], E2, 0b10)
    log.acknowledged_below[E2] = (0, 1)
    assert log.take_acknowledged() == [], "x is acknowledged by all, and stands behind a"
    log.acknowledged_below[E2] = (1, 1)
    assert (log.take_acknowledged(), log.waiting_for, log.blockers()) == (["a", "x"], 0, 0)


def test_the_node_that_holds_the_top_back_follows_from_the_rest() -> None:
    log = log_of((E1, 0, "a"))
    log.acknowledged_below[E1] = (1, 0)
    log.take_acknowledged()
    other = log_of()
    other.restore(log.snapshot())
    assert (other, other.waiting_for) == (log, E2)


def test_new_contents_are_looked_at_from_the_first_node_on() -> None:
    log = log_of((E1, 0, "a"))
    log.acknowledged_below[E1] = (1, 0)
    log.take_acknowledged()
    log.refill([(E2, 4, "x")], [(5, 4), (5, 5)])
    assert (log.take_acknowledged(), log.waiting_for) == ([], E1)
    log.acknowledged_below[E1] = (5, 5)
    assert log.take_acknowledged() == ["x"]


# --- transmission ---


def transmission(window: int = 16) -> Transmission:
    return Transmission(E1, GroupConfig(nodes=2, window=window))


def send(part: Transmission, count: int) -> None:
    for _ in range(count):
        part.sent.append((part.next_seq, part.number(Submit(0b11, (1, 1), b"xy", 3))))
        part.next_seq += 1


def test_packets_and_messages_are_numbered_one_by_one() -> None:
    part = transmission()
    found = [part.number(Submit(0b11, (1, 1), b"xy", 3)) for _ in range(2)]
    assert [(each.seq, each.first, each.priority) for each in found] == [(0, 0, 3), (1, 2, 3)]


def test_the_window_counts_what_is_not_confirmed() -> None:
    part = transmission(window=2)
    send(part, 2)
    assert not part.window_is_open()
    part.confirm(1)
    assert not part.window_is_open(), "only the oldest can be confirmed"
    part.confirm(0)
    assert part.window_is_open()
    assert part.congestion_window == 2, "no more than the window"


def test_what_is_rolled_back_is_sent_again_in_order_half_as_much_at_a_time() -> None:
    part = transmission(window=5)
    part.roll_back()
    assert part.congestion_window == 5, "nothing was discarded"
    send(part, 3)
    part.roll_back()
    assert [each.seq for each in part.resend] == [0, 1, 2]
    assert (part.sent, part.discarded_below, part.congestion_window) == (type(part.sent)(), 3, 2)
    part.sent.append((7, part.resend.popleft()))
    part.roll_back()
    assert [each.seq for each in part.resend] == [0, 1, 2], "before what waited already"
    assert (part.discarded_below, part.congestion_window) == (3, 1)
    part.confirm(7)
    assert part.congestion_window == 1, "nothing is under way"


def test_what_was_discarded_before_is_named_with_its_number() -> None:
    part = transmission()
    send(part, 2)
    assert part.discarded_before() is None, "never yet"
    part.roll_back()
    part.next_seq = 5
    assert part.discarded_before() == (5, part.resend[0]), "it waits to be sent again"
    part.sent.append((4, part.resend.popleft()))
    assert part.discarded_before() == (4, part.sent[0][1])
    part.sent.clear()
    part.resend.clear()
    assert part.discarded_before() is None


# --- deliveries ---


def test_a_quota_is_free_again_when_the_last_has_delivered() -> None:
    part = Deliveries(E1, GroupConfig(nodes=3, quota=1))
    out: list[Output] = []
    part.own_undelivered = 1
    part.deliver(packet(E2, 0), out)
    part.deliver(packet(E1, 0), out)
    assert (part.count, list(part.own_positions), len(out)) == (2, [1], 2)
    part.delivered_by[E2], part.delivered_by[E3] = 2, 1
    assert not part.has_room(), "E3 has delivered the first only"
    assert part.behind() == 0b101
    part.delivered_by[E3] = 2
    assert part.has_room()
    assert (part.own_undelivered, list(part.own_positions)) == (0, [])


def test_the_policy_of_to_delivers_what_is_acknowledged() -> None:
    policy = ChannelOrder(GroupConfig(nodes=2), Deliveries(E1, GroupConfig(nodes=2)))
    p, q = packet(E1, 0), packet(E2, 0)
    policy.enter(p, 0)
    policy.enter(q, 1)
    out: list[Output] = []
    policy.acknowledge([p, q], out)
    level = Level.ACKNOWLEDGED
    assert out == [Reached(level, p), Deliver(p), Reached(level, q), Deliver(q)]
    assert (policy.acknowledged_count, policy.deliveries.count) == (2, 2)
    assert policy.delivered_on_abort([p]) == [p]
    assert (policy.held(7), policy.waits_for(), policy.timer_to_set(), policy.has_unit()) == (7, (), 0, False)


# --- back-off ---


# --- recovery ---


def recovery() -> Recovery:
    """That of E1 of two."""
    part, _ = reception()
    return Recovery(E1, GroupConfig(nodes=2), part.transmission, part, part.backoff)


def test_a_vector_is_fixed_and_says_who_is_missing_and_whether_it_is_installed() -> None:
    part, expected = recovery(), [1, 2]
    part.fix_vector(expected, None)
    expected[0] = 9
    assert part.own_vector(0b10) == EpochVector(E1, 1, (1, 2), installed=False, wants=0b10)
    part.install()
    assert (part.epoch, part.mode) == (1, Mode.INSTALLED)
    assert part.own_vector(0) == EpochVector(E1, 1, (1, 2), installed=True, wants=0)


def test_a_packet_goes_with_the_vector() -> None:
    part, own = recovery(), packet(E1, 3)
    part.fix_vector([1, 2], (7, own))
    assert part.own_vector(0) == CarryingVector(own, EpochVector(E1, 1, (1, 2), installed=False, wants=0), 7)


def test_all_vectors_give_the_cut_and_the_first_of_each_node_counts() -> None:
    part, peer = recovery(), Peer(E2, 2)
    part.fix_vector([3, 1], None)
    assert (part.collected(), part.blockers()) == ([], 0b10)
    assert part.collect(peer.vector(2, 4), peer.vector(2, 4))
    assert not part.collect(peer.vector(0, 0), peer.vector(0, 0))
    assert cut_of(part.collected()) == [2, 1]
    part.install()
    assert part.blockers() == 0b11
    assert part.note_installed(0b01)
    assert not part.note_installed(0b01), "that is no news"
    assert part.blockers() == 0b10
    assert part.finish() == 3, "E2 had accepted three more of its own"
    assert (part.mode, part.vectors) == (Mode.NORMAL, [None, None])


def test_who_has_installed_early_is_known_to_have() -> None:
    part, vector = recovery(), Peer(E2, 2).vector(0, 0, installed=True)
    part.fix_vector([0, 0], None)
    part.collect(vector, vector)
    assert part.installed == 0b10


# --- reception ---


class Note(PolicyUnit, frozen=True, gc=False, tag=99):
    """A unit of a policy."""


class Noting(DeliveryPolicy):
    """A policy that writes down what it is asked."""

    units = frozenset({Note})
    asked: list[str]

    def __init__(self, config: GroupConfig, deliveries: Deliveries) -> None:
        super().__init__(config, deliveries)
        self.asked = []

    def enter(self, packet: Packet, position: int) -> None:
        self.asked.append(f"enter {packet.source}.{packet.seq} at {position}")

    def acknowledge(self, packets: Sequence[Packet], out: list[Output]) -> None:
        del out
        self.asked += [f"acknowledge {each.source}.{each.seq}" for each in packets]

    def is_possible(self, unit: PolicyUnit, known_below: int) -> bool:
        self.asked.append(f"possible below {known_below}")
        return unit.heading.delivered == 0

    def accepted(self, unit: PolicyUnit) -> None:
        self.asked.append(f"accepted {unit.heading.seq}")

    def reached(self, unit: PolicyUnit, out: list[Output]) -> None:
        del out
        self.asked.append(f"reached {unit.heading.seq}")


def reception() -> tuple[Reception, Noting]:
    """That of E1 of two."""
    config = GroupConfig(nodes=2)
    policy = Noting(config, Deliveries(E1, config))
    return Reception(E1, config, Transmission(E1, config), policy, Backoff(2, 3)), policy


def test_a_policy_is_told_of_its_units_at_their_positions() -> None:
    part, policy = reception()
    own, peer = Peer(E1, 2), Peer(E2, 2)
    out: list[Output] = []
    data = peer.sends("x")
    assert part.receive(data, data.heading, out) == ""
    note = Note(peer.expecting(0, 1).heading())
    assert part.receive(note, note.heading, out) == ""
    assert policy.asked == ["possible below 1", "accepted 1"]
    assert (part.unpreacknowledged, part.pending, part.unreported) == (2, True, 1)
    assert part.acknowledgment() == (0, 2)
    assert (part.pending, part.pending_in_sequence, part.unreported) == (False, True, 0)
    for unit in (own.expecting(0, 2).standing(), peer.expecting(0, 2).standing()):
        part.receive(unit, unit.heading, out)
    assert policy.asked[2:] == ["enter 1.0 at 0", "reached 1"]
    assert (part.unpreacknowledged, part.pending, part.backoff.progress) == (0, True, True)


def test_what_the_policy_calls_impossible_is_discarded() -> None:
    part, _ = reception()
    peer, out = Peer(E2, 2), list[Output]()
    peer.delivered = 1
    note, before = Note(peer.heading()), part.snapshot()
    assert part.receive(note, note.heading, out) == ""
    assert out == [Discard(note, "impossible")]
    assert part.snapshot() == before


def test_what_is_below_the_cut_is_kept_and_the_rest_discarded() -> None:
    part, policy = reception()
    peer, out = Peer(E2, 2), list[Output]()
    for word in "xyz":
        unit = peer.sends(word)
        part.receive(unit, unit.heading, out)
    assert not part.contradicts([0, 0])
    part.roll_back([0, 2], out)
    assert (part.expected, part.unpreacknowledged, len(part.accepted.entries)) == ([0, 2], 0, 0)
    assert policy.asked == ["enter 1.0 at 0", "enter 1.1 at 1"]
    assert part.contradicts([0, 1]), "two are pre-acknowledged"
    assert part.begin_epoch(out) == 0
    assert policy.asked[2:] == ["acknowledge 1.0", "acknowledge 1.1"]
    assert not part.pending


# --- all of them ---


def test_a_policy_must_say_what_it_does() -> None:
    policy = DeliveryPolicy(GroupConfig(nodes=2), Deliveries(E1, GroupConfig(nodes=2)))
    heading = Peer(E2, 2).heading()
    with pytest.raises(NotImplementedError):
        policy.acknowledge([], [])
    with pytest.raises(NotImplementedError):
        policy.is_possible(Note(heading), 0)
    with pytest.raises(NotImplementedError):
        policy.make_unit(heading)
    assert policy.delivered_on_abort([packet(E1, 0)]) == (), "unless it says otherwise, nothing is safe"
