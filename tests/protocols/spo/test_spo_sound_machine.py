"""SPO, sound rules: invariants of the state, strays, texts, lies; for every machine: `contract`."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from ordercast.model.machine import (
    Deliver,
    Discard,
    Drained,
    Input,
    Level,
    LogSizes,
    Reached,
    Receive,
    Submit,
    TimerFired,
)
from ordercast.model.nodes import everybody
from ordercast.model.units import Packet, Unit
from ordercast.protocols.spo.units import Data, Ready, RetransmitRequest, Status
from ordercast.protocols.st.units import ResetDone, ResetNeed, ResetReply
from tests.protocols.spo.driver import E1, E2, E3, Node, Outputs, Peer

NODES = 3
TIMERS = ("status", "poll", "cooldown", "repeat", "guard", "hearsay")
Step = tuple[int, Input, Outputs]
"""At which node, what went in, what came out."""


class Walk:
    """A group that wanders at random: anything sent may come, come late, come twice, or never."""

    def __init__(self, seed: int) -> None:
        chance = self.chance = Random(seed)
        self.config = {
            "window": chance.choice([1, 2, 4, 16]),
            "quota": chance.choice([1, 2, 4, 64]),
            "infer_losses": chance.random() < 0.5,
            "polls_to_abort": 10**9,
        }
        self.group = [self.fresh(me) for me in range(NODES)]
        self.channels: dict[tuple[int, int], list[Unit]] = {
            (sender, receiver): [] for sender in range(NODES) for receiver in range(NODES) if sender != receiver
        }
        self.heard: list[tuple[int, Unit]] = []

    def fresh(self, me: int) -> Node:
        return Node(me, NODES, **self.config)

    def step(self) -> Step:
        """Something happens."""
        chance = self.chance
        me = chance.randrange(NODES)
        event = self._draw(me)
        running = set(self.group[me].running)
        out = self.group[me].handle(event)
        assert not running & set(out.timers), "a timer that runs is never set again: it would be put off for ever"
        for unit in out.units:
            for (sender, _), channel in self.channels.items():
                if sender == me:
                    channel.append(unit)
        return me, event, out

    def _draw(self, me: int) -> Input:
        chance, node = self.chance, self.group[me]
        kind = chance.random()
        under_way = [sender for sender in range(NODES) if sender != me and self.channels[sender, me]]
        if kind < 0.15:
            return Submit(chance.randint(1, everybody(NODES)), (1,) * chance.randint(1, 3), b"xyz")
        if kind < 0.25 and node.running:
            name = chance.choice(sorted(node.running))
            del node.running[name]
            return TimerFired(name)
        if kind < 0.3 and self.heard:
            sender, unit = chance.choice(self.heard)
            if sender != me:
                return Receive(unit)
        if not under_way:
            return Drained()
        sender = chance.choice(under_way)
        unit = self.channels[sender, me].pop(0)
        if chance.random() < 0.2:
            return Drained()  # and the unit is lost
        self.heard.append((sender, unit))
        return Receive(unit)


def test_the_ladder_holds_at_every_step() -> None:
    """What the fields say of each other, and what the logs say of the outputs."""
    for seed in range(12):
        walk = Walk(seed)
        reached: dict[tuple[int, Level], list[Packet]] = {}
        delivered: dict[int, list[Packet]] = {me: [] for me in range(NODES)}
        for _ in range(300):
            me, _, out = walk.step()
            for output in out:
                if isinstance(output, Reached):
                    reached.setdefault((me, output.level), []).append(output.packet)
                elif isinstance(output, Deliver):
                    delivered[me].append(output.packet)
            _check_state(walk.group[me])
        for me in range(NODES):
            _check_levels(me, [reached.get((me, level), []) for level in Level], delivered[me])


def _check_state(node: Node) -> None:
    machine, config = node.machine, node.machine.config
    for source in range(NODES):
        if source != machine.me:
            assert machine.expected[source] <= machine.seen[source]
            assert machine.expected_to_me[source] <= machine.seen_to_me[source]
        seqs = [p.seq for p in (*machine.preacknowledged.logs[source], *machine.accepted.logs[source])]
        assert machine.buffered[source] == len(seqs) <= config.quota
        assert seqs == sorted(set(seqs))
        assert len(machine.retransmission.out_of_order[source]) + machine.buffered[source] <= config.quota
        assert all(number > machine.expected_to_me[source] for number in machine.retransmission.out_of_order[source])
    for pending in (machine.accepted, machine.preacknowledged):
        waiting = [log for logs in pending.waiting_for for log in logs]
        assert sorted(waiting) == [log for log, packets in enumerate(pending.logs) if packets], "one node for each head"
    assert len(machine.sent) <= config.window
    if machine.unfinished():
        assert "poll" in node.running
        assert machine.blockers([True] * len(machine.heads()))
    if machine.status_due:
        assert "status" in node.running
    if machine.expected_to_me != machine.seen_to_me:
        assert "repeat" in node.running
    assert bool(machine.retransmission.just_retransmitted) == ("guard" in node.running)
    assert machine.retransmission.cooling_down == ("cooldown" in node.running)


def _check_levels(me: int, levels: list[list[Packet]], delivered: list[Packet]) -> None:
    accepted, preacknowledged, acknowledged = levels
    for_me = [packet for packet in acknowledged if packet.destinations >> me & 1]
    assert delivered == for_me
    for source in range(NODES):
        mine = [
            [packet.seq for packet in level if packet.source == source and packet.destinations >> me & 1]
            for level in (accepted, preacknowledged, acknowledged)
        ]
        assert mine[0] == sorted(set(mine[0])), "in the order of the source, each once"
        assert mine[1] == mine[0][: len(mine[1])]
        assert mine[2] == mine[1][: len(mine[2])]


# --- strays ---


def test_stray_units_are_discarded_and_change_nothing() -> None:
    """My own units, which no channel hands me, and the units of other rules."""
    node, me, e1 = Node(E2), Peer(E2), Peer(E1)
    node.hears(e1.sends(E2, E3))
    node.submits(E1)
    before = node.machine.snapshot()
    status = Status(99, (9, 9, 9), (9, 9, 9), 0)
    for unit in (
        me.sends(E1, E2),
        Data(Packet(E2, 0b111, 40, (9, 9, 9), 0, (1,), b"x"), status),
        me.ready(wants=[E2]),
        Ready(E2, 5, (5, 5, 5), status, 0b111, ((E2, ((0, 1),)),)),
        RetransmitRequest(E1, (0, 0, 0)),
        RetransmitRequest(E2, (0, 0, 0)),
        ResetReply(E1, 0, 0, (0, 0, 0), (), (), 0),
        ResetNeed(E1, 0, 0, (), 0),
        ResetDone(E1, 0),
    ):
        assert node.hears(unit) == [Discard(unit, "stray")]
        assert node.machine.snapshot() == before


# --- words ---


def test_what_a_node_waits_for_in_words() -> None:
    node, e1, e3 = Node(E2, window=1), Peer(E1), Peer(E3)
    assert node.machine.waits_for() == ()
    node.submits(E1, E3)
    node.submits(E1)
    node.hears(e1.sends(E2, E3), e1.sends(E2, E3))
    e3.sends(E2)
    e3.sends(E2)
    node.hears(e3.accepts(E1, below=1).ready())
    assert node.machine.waits_for() == (
        "1 submissions wait for the window",
        "1 packets sent are not known to be accepted by {E1,E3}",
        "of E3, numbers 0–1 to me are missing",
        "1 packets wait to be known as accepted by {E3}",
        "1 packets wait to be known as pre-acknowledged by {E3}",
    )


def test_how_much_a_node_holds() -> None:
    node, e1, e3 = Node(E2, window=1), Peer(E1), Peer(E3)
    node.submits(E1, E3)
    node.submits(E1)
    node.submits(E1)
    node.hears(*[e1.sends(E2, E3) for _ in range(3)])
    e3.sends(E2)
    node.hears(e3.accepts(E1, below=1).sends(E2))
    assert node.machine.log_sizes() == LogSizes(waiting=2, sent=1, held=1, accepted=2, preacknowledged=1)


# --- whatever a network brings ---


def test_a_packet_whose_numbers_contradict_what_came_before_is_not_kept() -> None:
    """Its place in all that was sent is new, and its place in what was sent to me is taken."""
    node, e1 = Node(E2, quota=4), Peer(E1)
    node.hears(e1.sends(E2), e1.sends(E2))
    status = e1.ready().status
    for seq in range(2, 50):
        out = node.hears(Data(Packet(E1, 1 << E2, seq, (0, 1 - seq, 0), 0, (1,), b"x"), status))
        assert out.discards == ["duplicate"]
    assert node.machine.log_sizes().held == 0


number = st.integers(-3, 12) | st.integers(-(1 << 70), 1 << 70)
vector = st.tuples(number, number, number)
status = st.builds(Status, number, vector, vector, number)
nodes_set = st.integers(1, everybody(NODES))
missing = st.lists(st.tuples(number, st.lists(st.tuples(number, number), max_size=3).map(tuple)), max_size=3).map(tuple)


def units(sources: st.SearchStrategy[int]) -> st.SearchStrategy[Unit]:
    """Every field is what it must be, and says what it likes."""
    packet = st.builds(
        Packet, sources, nodes_set, number, vector, number, st.just((1,)), st.just(b"x"), st.integers(0, 9)
    )
    return st.one_of(
        st.builds(Data, packet, status),
        st.builds(Ready, sources, number, vector, status, st.integers(0, everybody(NODES)), missing),
        st.builds(RetransmitRequest, sources, vector),
    )


def inputs(sources: st.SearchStrategy[int]) -> st.SearchStrategy[list[Input]]:
    return st.lists(
        st.one_of(
            units(sources).map(Receive),
            units(sources).map(Receive),
            st.builds(Submit, nodes_set, st.just((1,)), st.just(b"x")),
            st.sampled_from(TIMERS).map(TimerFired),
            st.just(Drained()),
        ),
        max_size=30,
    )


configs = st.fixed_dictionaries(
    {
        "window": st.sampled_from([1, 2, 32]),
        "quota": st.sampled_from([1, 3, 256]),
        "infer_losses": st.booleans(),
        "polls_to_abort": st.just(10**9),
    }
)


def _answers(node: Node) -> bool:
    """Whether who asks for its status gets one, with data or without."""
    out = node.hears(Peer(E1).ready(wants=[E2]))
    return len([*out.units, *node.drained().units]) > 0


@given(config=configs, events=inputs(st.integers(0, NODES - 1)))
def test_no_well_formed_unit_raises_whatever_its_numbers(config: dict[str, int], events: list[Input]) -> None:
    node = Node(E2, **config)
    for event in events:
        node.handle(event)
    assert node.machine.log_sizes().held <= NODES * config["quota"]
    node.machine.waits_for()
    assert _answers(node)


@given(config=configs, events=inputs(st.just(E1)))
def test_the_lies_of_one_node_do_not_touch_what_another_sends(config: dict[str, int], events: list[Input]) -> None:
    node, e3 = Node(E2, **config), Peer(E3)
    for event in events:
        node.handle(event)
    alone, shared = e3.sends(E2), e3.sends(E2, E3)
    assert alone.packet in node.hears(alone).delivered
    assert shared.packet in node.hears(shared).accepted
    assert shared.packet in node.hears(e3.preacknowledges(E3, below=2).ready()).delivered
