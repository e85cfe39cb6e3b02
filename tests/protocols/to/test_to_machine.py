"""TO and PriTO, sound rules: what every machine guarantees its host, whatever it receives."""

from random import Random
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from ordercast.model.machine import Drained, Input, Level, LogSizes, Output, Receive, Submit, TimerFired
from ordercast.model.nodes import everybody
from ordercast.model.units import Packet, Unit
from ordercast.protocols.prito.units import RunMarker
from ordercast.protocols.spo.units import RetransmitRequest
from ordercast.protocols.to.epoch_agreement import Mode
from ordercast.protocols.to.units import (
    CarryingVector,
    EpochVector,
    Heading,
    OrderedData,
    OrderedReady,
    Standing,
)
from tests.protocols.to.driver import E1, E2, E3, Group, Node, Outputs, Peer

NODES = 3
Step = tuple[int, Input, Outputs]
"""At which node, what went in, what came out."""


def in_bytes(outputs: list[Output]) -> bytes:
    return msgspec.json.encode([(type(output).__name__, output) for output in outputs])


class Walk:
    """A group that wanders at random on one channel: what is sent comes, or is lost, and timers fire as they like."""

    def __init__(self, seed: int, nodes: int = NODES) -> None:
        chance = self.chance = Random(seed)
        self.size = nodes
        self.config: dict[str, Any] = {
            "priorities": seed % 3 > 0,
            "window": chance.choice([1, 2, 4, 16]),
            "quota": chance.choice([1, 2, 64]),
            "polls_to_abort": 10**9,
        }
        self.loss = chance.choice([0.0, 0.02, 0.1])
        self.group = Group(nodes, **self.config)
        self.steps: list[Step] = []

    def fresh(self, me: int) -> Node:
        return Node(me, self.size, **self.config)

    def run(self, steps: int) -> None:
        """So many times."""
        for _ in range(steps):
            self.step()

    def step(self) -> Step:
        """Something happens."""
        me = self.chance.randrange(self.size)
        event = self._draw(me)
        out = self.group.put(self.group.nodes[me].handle(event))
        self.steps.append((me, event, out))
        return self.steps[-1]

    def _draw(self, me: int) -> Input:
        chance, node, queue = self.chance, self.group.nodes[me], self.group.queues[me]
        kind = chance.random()
        if kind < 0.1:
            lengths = (1,) * chance.randint(1, 3)
            return Submit(everybody(self.size), lengths, b"xyz"[: len(lengths)], chance.randint(1, 3))
        if kind < 0.2 and node.running:
            name = chance.choice(sorted(node.running))
            del node.running[name]
            return TimerFired(name)
        if not queue:
            return Drained()
        unit = queue.popleft()
        return Drained() if chance.random() < self.loss else Receive(unit)


def test_equal_inputs_give_equal_outputs() -> None:
    stops = 0
    for seed in range(6):
        walk = Walk(seed)
        for _ in range(500):
            walk.step()
        again = [walk.fresh(me) for me in range(NODES)]
        for me, event, out in walk.steps:
            assert in_bytes(again[me].handle(event)) == in_bytes(out)
        assert [node.machine.snapshot() for node in again] == [node.machine.snapshot() for node in walk.group.nodes]
        stops += sum(len(node.did.stops) for node in again)
    assert stops > 20, "the walks go back"


def test_a_machine_that_is_always_restored_does_the_same_for_ever() -> None:
    for seed in range(8):
        walk = Walk(seed)
        snapshots = [walk.fresh(me).machine.snapshot() for me in range(NODES)]
        for _ in range(300):
            me, event, out = walk.step()
            twin = walk.fresh(me)
            twin.machine.restore(snapshots[me])
            assert twin.machine.snapshot() == snapshots[me]
            assert in_bytes(twin.handle(event)) == in_bytes(out)
            snapshots[me] = twin.machine.snapshot()
            assert snapshots[me] == walk.group.nodes[me].machine.snapshot()
            hash(snapshots[me])


def test_restoring_forgets_everything_else() -> None:
    """A machine that was somewhere else before is the same as a fresh one."""
    for seed in range(6):
        walk, elsewhere = Walk(seed), Walk(seed)
        elsewhere.chance = Random(seed + 1000)
        for _ in range(300):
            walk.step()
            elsewhere.step()
        for me in range(NODES):
            used, snapshot = elsewhere.group.nodes[me], walk.group.nodes[me].machine.snapshot()
            used.machine.restore(snapshot)
            assert used.machine.snapshot() == snapshot


def test_the_fields_agree_with_each_other_at_every_step() -> None:
    for seed in range(12):
        walk = Walk(seed, nodes=2 + seed % 3)
        for _ in range(400):
            me, _, _ = walk.step()
            _check(walk.group.nodes[me])


def _check(node: Node) -> None:
    machine, config = node.machine, node.machine.config
    transmission, reception, policy = machine.transmission, machine.reception, machine.policy
    delivered = machine.deliveries.count
    assert delivered <= policy.acknowledged_count <= reception.preacknowledged_count
    assert len(transmission.sent) <= config.window
    assert machine.deliveries.own_undelivered <= config.quota
    units = [unit for _, _, unit in reception.accepted.entries]
    assert reception.unpreacknowledged == sum(isinstance(unit, OrderedData | RunMarker) for unit in units)
    normal = machine.agreement.mode.value == Mode.NORMAL.value  # of a copy of the module, perhaps
    assert normal != ("reset" in node.running)
    assert machine.status_timer == ("status" in node.running)
    assert machine.poll_timer == ("poll" in node.running)
    if normal:
        assert reception.pending <= ("status" in node.running)
        assert machine.unfinished() <= ("poll" in node.running)
    if machine.unfinished():
        assert machine.waits_for()
    undelivered = reception.preacknowledged_count - delivered
    sizes: LogSizes = machine.log_sizes()
    assert sizes.preacknowledged == undelivered
    assert sizes.accepted == len(units)
    assert undelivered + sum(isinstance(unit, OrderedData) for unit in units) <= config.quota * config.nodes


def test_everybody_delivers_everything_once_in_one_order_and_then_all_is_quiet() -> None:
    for seed in range(18):
        walk = Walk(seed, nodes=2 + seed % 3)
        for _ in range(500):
            walk.step()
        walk.group.settle(rounds=600)
        nodes = walk.group.nodes
        delivered = [[output for output in node.did if type(output).__name__ == "Deliver"] for node in nodes]
        assert all(log == delivered[0] for log in delivered)
        assert len(delivered[0]) == sum(len(node.did.numbered) for node in nodes)
        for node in nodes:
            rising = [node.did.reached(level) for level in Level]
            assert len(rising[0]) == len(delivered[0])
            assert rising[1] == rising[2], "what is pre-acknowledged is acknowledged in the same order"
            assert node.machine.waits_for() == ()


def test_what_one_has_delivered_is_always_the_beginning_of_what_another_has() -> None:
    for seed in range(18):
        walk = Walk(seed)
        for _ in range(500):
            me, _, out = walk.step()
            if out.delivered:
                logs = [node.did.delivered for node in walk.group.nodes]
                assert all(log[: len(logs[me])] == logs[me][: len(log)] for log in logs)


def test_log_sizes_say_what_waits() -> None:
    node = Node(E1, 2, window=1)
    node.submits("a", "b", "c")
    assert node.machine.log_sizes() == LogSizes(2, 1, 0, 0, 0)
    node.hears(Peer(1, 2).sends("x"))
    assert node.machine.log_sizes() == LogSizes(2, 1, 0, 1, 0)
    node.hears(Peer(1, 2).vector(0, 0))
    assert node.machine.log_sizes() == LogSizes(2, 1, 0, 0, 0), "x is thrown away, a waits to be sent again"
    assert "1 packets wait to be sent again" in node.machine.waits_for()


def test_it_says_what_it_waits_for() -> None:
    node, two, three = Node(E1, window=1), Peer(E2), Peer(E3)
    assert node.machine.waits_for() == ()
    own = node.submits("a", "b")
    sent = ("1 submissions wait for the window", "1 packets sent are not known to be accepted by all")
    assert node.machine.waits_for() == sent
    said = node.hears_itself(own)
    assert node.machine.waits_for() == (*sent, "1 accepted units are not known to be accepted by {E1,E2,E3}")
    node.hears_itself(said)
    node.hears(two.expecting(1, 0, 0).standing())
    assert node.machine.waits_for() == (*sent, "1 accepted units are not known to be accepted by {E3}")
    node.hears(two.vector(1, 0, 0))
    assert node.machine.waits_for() == (sent[0], "recovery 1: waiting for the vectors of {E3}")
    node.hears(three.vector(0, 0, 0, installed=True))
    again = (sent[0], "1 packets wait to be sent again")
    assert node.machine.waits_for() == (*again, "recovery 1: waiting for {E2} to roll back")


def test_it_says_whose_acknowledgment_it_waits_for() -> None:
    node, two, three = Node(E1), Peer(E2), Peer(E3)
    node.hears(two.sends("x"))
    node.hears_itself(node.fires("status"))
    node.hears(two.expecting(1, 1, 0).standing(), three.expecting(1, 1, 0).standing())
    assert node.machine.waits_for() == ("1 packets are not known to be pre-acknowledged by {E1,E2,E3}",)
    node.hears_itself(node.fires("status"))
    assert node.machine.waits_for() == ("1 packets are not known to be pre-acknowledged by {E2,E3}",)
    assert node.machine.log_sizes() == LogSizes(0, 0, 0, 0, 1)


# --- any well-formed unit at any time ---

SMALL = st.integers(0, 4)
VECTOR = st.tuples(SMALL, SMALL, SMALL)
NODE = st.integers(0, NODES - 1)
EPOCH = st.integers(0, 2)
HEADINGS = st.builds(Heading, NODE, EPOCH, SMALL, VECTOR, SMALL, st.integers(0, 7))


@st.composite
def data(draw: st.DrawFn) -> OrderedData:
    heading = draw(HEADINGS)
    return OrderedData(Packet(heading.source, 7, draw(SMALL), (), draw(SMALL), (1,), b"x", draw(SMALL)), heading)


VECTORS = st.builds(EpochVector, NODE, st.integers(0, 3), VECTOR, st.booleans(), st.integers(0, 7))


@st.composite
def carrying(draw: st.DrawFn) -> CarryingVector:
    vector = draw(VECTORS)
    packet = Packet(vector.source, 7, draw(SMALL), (), draw(SMALL), (1,), b"x", draw(SMALL))
    return CarryingVector(packet, vector, draw(SMALL))


UNITS: st.SearchStrategy[Unit] = st.one_of(
    data(),
    st.builds(OrderedReady, HEADINGS),
    st.builds(RunMarker, HEADINGS, SMALL),
    st.builds(Standing, HEADINGS),
    VECTORS,
    carrying(),
    st.builds(RetransmitRequest, NODE, VECTOR),
)
EVENTS: st.SearchStrategy[Input] = st.one_of(
    st.builds(Receive, UNITS),
    st.builds(Submit, st.just(7), st.just((1,)), st.just(b"x"), SMALL),
    st.builds(TimerFired, st.sampled_from(["status", "poll", "reset", "run", "no such timer"])),
    st.just(Drained()),
)


@settings(deadline=None, max_examples=300)
@given(st.lists(EVENTS, max_size=40), st.booleans())
def test_no_well_formed_unit_brings_it_down(events: list[Input], priorities: bool) -> None:
    node = Node(E1, NODES, priorities=priorities, window=3, quota=2, polls_to_abort=5)
    for event in events:
        node.handle(event)
        node.machine.waits_for()
        node.machine.log_sizes()
        hash(node.machine.snapshot())


def test_an_unknown_timer_does_nothing() -> None:
    node = Node(E1, priorities=True)
    assert [node.handle(TimerFired(name)) for name in ("reset", "status", "poll", "run", "none")] == [[]] * 5
