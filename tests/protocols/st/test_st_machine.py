"""ST, sound rules: invariants of the state, levels, texts; for every machine: `contract`."""

from random import Random

import msgspec

from ordercast.model.machine import Drained, Input, Level, Reached, Receive, Submit, TimerFired
from ordercast.model.nodes import everybody
from ordercast.protocols.st.channel_logs import OWN, RECEIVED
from ordercast.protocols.st.machine import St
from tests.protocols.st.driver import E1, E2, E3, Group, Node, Outputs, Peer

NODES = 3
Step = tuple[int, Input, Outputs]
"""At which node, what went in, what came out."""


class Walk:
    """A group that wanders at random on one channel: what is sent comes, or is lost, and timers fire as they like."""

    def __init__(self, seed: int, nodes: int = NODES) -> None:
        chance = self.chance = Random(seed)
        self.size = nodes
        self.config = {
            "window": chance.choice([1, 2, 4, 16]),
            "quota": chance.choice([1, 2, 64]),
            "log_limit": chance.choice([1, 3, 400]),
            "polls_to_abort": 10**9,
        }
        self.loss = chance.choice([0.0, 0.05, 0.2])
        self.group = Group(nodes, **self.config)

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
            return Submit(chance.randint(1, everybody(self.size)), (1,) * chance.randint(1, 3), b"xyz")
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
    normal, recovery, finished = node.machine.normal, node.machine.recovery, node.machine.finished
    config = normal.config
    assert len(normal.log) <= config.log_limit + 1
    assert normal.acknowledged_count <= normal.preacknowledged_count <= len(normal.log)
    assert len(normal.accepted.logs[OWN]) <= config.window
    assert recovery.active == ("reset" in node.running)
    assert recovery.answered_late_node == ("answer" in node.running)
    if not recovery.active:
        accepted = normal.log[normal.preacknowledged_count :]
        assert accepted == list(normal.accepted.logs[RECEIVED])
        assert (
            normal.last_shows_gap,
            normal.unplaced,
            recovery.missing,
            recovery.done,
        ) == (False, {}, set(), 0)
        assert [reply for reply in recovery.replies if reply is not None] == []
        if normal.unfinished() or normal.status_due:
            assert "status" in node.running
    if normal.unfinished():
        assert node.machine.waits_for()
    assert all(epoch < normal.epoch for epoch, _ in finished.packets)


def test_the_levels_rise_one_after_the_other_and_deliveries_follow() -> None:
    for seed in range(12):
        walk = Walk(seed)
        for _ in range(600):
            walk.step()
        walk.group.settle(rounds=400)
        for me, node in enumerate(walk.group.nodes):
            rising = [
                [
                    output.packet
                    for output in node.did
                    if isinstance(output, Reached) and output.level is level and output.packet.destinations >> me & 1
                ]
                for level in Level
            ]
            assert sorted(map(repr, rising[0])) == sorted(map(repr, rising[1]))
            assert rising[1] == rising[2], "what is pre-acknowledged is acknowledged in the same order"
            assert len(node.did.delivered) == len(rising[2])


# --- what it says of itself ---


def sizes(machine: St) -> tuple[int, ...]:
    return msgspec.structs.astuple(machine.log_sizes())


def test_it_says_what_it_holds_and_for_whom_it_waits() -> None:
    e1, e2, e3 = Node(E1, window=1), Peer(E2), Peer(E3)
    e1.hears(e2.sends("a", E1, E2))
    e1.hears(*e1.fires("status").units)
    e1.hears(e3.expecting(0, 1, 0).ready())
    assert e1.machine.waits_for() == ("1 packets received wait to be known as accepted by {E2}",)
    e1.hears(e2.expecting(0, 1, 0).ready())
    assert e1.machine.waits_for() == ("1 packets received wait to be known as pre-acknowledged by {E2}",)
    e1.submits("b", E2)
    e1.submits("c", E2)
    assert e1.machine.waits_for() == (
        "1 submissions wait for the window",
        "1 packets received wait to be known as pre-acknowledged by {E2}",
        "1 packets sent wait to be known as accepted by {E1,E2,E3}",
    )
    assert sizes(e1.machine) == (1, 1, 0, 0, 1)


def test_it_says_what_it_waits_for_while_it_has_stopped() -> None:
    e1, e2, e3 = Node(E1), Peer(E2), Peer(E3)
    g, h, late = e3.sends("g", E1), e3.sends("h", E1), e2.sends("late", E1)
    e1.hears(h, late)
    assert sizes(e1.machine) == (0, 0, 2, 0, 0)
    waits = ["epoch 0 is being agreed on", "the replies of {E2,E3} are missing", "{E1,E2,E3} may still lack something"]
    assert list(e1.machine.waits_for()) == waits
    e1.hears(e2.reply(sent=[late]), e3.reply(sent=[g, h]))
    waits[1] = "the packet 0 of E3 is missing"
    assert list(e1.machine.waits_for()) == waits
    e1.hears(g, e2.done())
    assert e1.machine.waits_for() == ("epoch 0 is being agreed on", "{E3} may still lack something")
    e1.hears(e3.done())
    [left] = e1.machine.waits_for()
    assert left == "3 packets of finished epochs wait until {E2,E3} is known to have finished"
    assert sizes(e1.machine) == (0, 0, 0, 0, 3)
