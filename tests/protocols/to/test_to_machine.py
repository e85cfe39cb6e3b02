"""TO and PriTO, sound rules: invariants of the state, one order, texts; for every machine: `contract`."""

from random import Random
from typing import Any

from ordercast.model.machine import Drained, Input, Level, LogSizes, Receive, Submit, TimerFired
from ordercast.model.nodes import everybody
from ordercast.protocols.prito.units import RunMarker
from ordercast.protocols.to.recovery import Mode
from ordercast.protocols.to.units import OrderedData
from tests.protocols.to.driver import E1, E2, E3, Group, Node, Outputs, Peer

NODES = 3
Step = tuple[int, Input, Outputs]
"""At which node, what went in, what came out."""


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

    def run(self, steps: int) -> None:
        """So many times."""
        for _ in range(steps):
            self.step()

    def step(self) -> Step:
        """Something happens."""
        me = self.chance.randrange(self.size)
        event = self._draw(me)
        out = self.group.put(self.group.nodes[me].handle(event))
        return me, event, out

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
    normal = machine.recovery.mode.value == Mode.NORMAL.value  # of a copy of the module, perhaps
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
