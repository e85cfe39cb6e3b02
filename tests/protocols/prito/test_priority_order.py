"""The delivery policy of PriTO and PriO, alone."""

from typing import Any

from ordercast.model.config import GroupConfig, PriorityConfig
from ordercast.model.declared_state import declared_names
from ordercast.model.machine import Deliver, Output
from ordercast.model.units import Packet
from ordercast.protocols.prito.delivery import PriorityOrder
from ordercast.protocols.prito.units import RunMarker
from ordercast.protocols.to.delivery import Deliveries
from tests.protocols.to.driver import E1, E2, Peer


class Policy:
    """A policy, and what it is told of a common sequence in which packets are written "h5": h of priority 5."""

    def __init__(self, **config: Any) -> None:
        group = GroupConfig(nodes=2, **config)
        self.policy = PriorityOrder(group, Deliveries(E1, group))
        self.sequence: list[Packet] = []

    def enters(self, *words: str) -> None:
        for word in words:
            position = len(self.sequence)
            packet = Packet(E2, 0b11, position, (), position, (1,), word[:1].encode(), int(word[1:]))
            self.policy.enter(packet, position)
            self.sequence.append(packet)

    def acknowledges(self, count: int) -> str:
        """The next so many of the sequence."""
        out: list[Output] = []
        first = self.policy.acknowledged_count
        self.policy.acknowledge(self.sequence[first : first + count], out)
        return delivered(out)

    def reaches(self, marker: RunMarker) -> str:
        out: list[Output] = []
        self.policy.reached(marker, out)
        return delivered(out)


def delivered(out: list[Output]) -> str:
    return " ".join(output.packet.payload.decode() for output in out if isinstance(output, Deliver))


def marker(through: int) -> RunMarker:
    return Peer(E2, 2).marker(through)


def test_the_first_goes_when_it_is_acknowledged_and_equals_keep_their_order() -> None:
    node = Policy()
    node.enters("a1", "b5", "c1", "d5")
    assert node.acknowledges(1) == "", "b and d stand before a"
    assert node.policy.overtaken == {0}
    assert node.acknowledges(1) == "b"
    assert node.acknowledges(2) == "d a c"
    assert (node.policy.overtaken, node.policy.held(0)) == (set(), 0)


def test_what_is_overtaken_is_told() -> None:
    node = Policy()
    node.enters("a1", "b5")
    assert node.policy.waits_for() == ()
    node.acknowledges(1)
    assert node.policy.waits_for() == ("1 acknowledged packets wait behind more urgent ones",)
    assert node.policy.held(1) == 2


def test_a_marker_delivers_what_it_covers_and_skips_what_is_not_acknowledged() -> None:
    node = Policy()
    node.enters("a1", "b1", "c5", "d9", "e1")
    node.acknowledges(2)
    assert node.reaches(marker(1)) == "a", "b stands behind a, c and d are not acknowledged"
    assert node.reaches(marker(1)) == "", "a second one finds nothing"
    assert node.policy.overtaken == {1}
    assert node.reaches(marker(2)) == "b"
    assert node.acknowledges(3) == "d c e"


def test_a_marker_takes_along_what_is_acknowledged_before_what_it_covers() -> None:
    node = Policy()
    node.enters("a1", "b5", "d9")
    node.acknowledges(2)
    assert node.reaches(marker(1)) == "b a"
    assert [entry[2].payload for entry in node.policy.by_priority] == [b"d"]


def test_the_timer_runs_once_for_what_no_marker_covers() -> None:
    node = Policy()
    policy = node.policy
    node.enters("a1", "b5", "c1")
    assert policy.timer_to_set() == 0
    node.acknowledges(1)
    assert (policy.timer_to_set(), policy.timer_to_set()) == (policy.run_timeout, 0)
    assert policy.run_timeout == GroupConfig(nodes=2).timing.run > 0
    policy.timer_fired()
    assert policy.has_unit()
    made = policy.make_unit(Peer(E1, 2).heading())
    assert made == Peer(E1, 2).marker(1)
    assert (policy.has_unit(), policy.timer_to_set()) == (False, 0), "its own marker covers a"


def test_a_marker_that_is_accepted_covers_too_and_never_less() -> None:
    node = Policy()
    node.enters("a1", "b1", "c5")
    node.acknowledges(2)
    node.policy.accepted(marker(1))
    assert node.policy.has_unit(), "b is not covered"
    node.policy.accepted(marker(2))
    node.policy.accepted(marker(1))
    assert not node.policy.has_unit()


def test_a_marker_covers_only_positions_that_are_taken() -> None:
    policy = Policy().policy
    assert [policy.is_possible(marker(through), 2) for through in (0, 2, 3)] == [True, True, False]


def test_without_run_synchronisation_no_timer_runs() -> None:
    node = Policy(priority=PriorityConfig(synchronises=False))
    node.enters("a1", "b5")
    node.acknowledges(1)
    assert node.policy.has_unit()
    assert node.policy.timer_to_set() == 0


def test_nothing_is_safe_when_the_group_is_given_up() -> None:
    node = Policy()
    node.enters("a1")
    assert list(node.policy.delivered_on_abort(node.sequence)) == []


def test_its_state_is_what_it_declares_and_no_arrangement_of_a_heap() -> None:
    node, other = Policy(), Policy()
    assert set(vars(node.policy)) == declared_names(PriorityOrder)
    node.enters("a1", "b5", "c3")
    node.acknowledges(1)
    other.policy.restore(node.policy.snapshot())
    other.sequence = node.sequence
    assert other.policy == node.policy
    other.policy.by_priority.sort(reverse=True)
    assert other.policy == node.policy
