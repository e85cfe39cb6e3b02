"""What a host owes a machine: inputs one at a time, outputs in their order, timers, echoes, and word of a lull."""

from collections.abc import Callable
from typing import ClassVar

import pytest

from ordercast.model.config import GroupConfig, Rules
from ordercast.model.declared_state import Snapshot
from ordercast.model.faults import Fault, Loss, Miss
from ordercast.model.machine import (
    CancelTimer,
    Deliver,
    Drained,
    Echo,
    Input,
    Level,
    LogSizes,
    Numbered,
    Output,
    Reached,
    Receive,
    Send,
    SetTimer,
    Submit,
    TimerFired,
)
from ordercast.model.runs import Channel, Network, Pattern, RunConfig, Workload
from ordercast.model.units import Packet
from ordercast.protocols.registry import PROTOCOLS
from ordercast.protocols.spo.units import Data, Ready, Status
from ordercast.simulator.counters import Counters
from ordercast.simulator.simulation import Simulation
from ordercast.trace.schema import EventRow
from tests.simulator.rows import Row, of

Play = Callable[["Puppet", Input], list[Output]]


class Puppet:
    """A machine without rules of its own: it keeps what it is handed and does what the test says."""

    echo: ClassVar[Echo] = Echo.NONE
    needs: ClassVar[Channel] = Channel.MANY
    has_views: ClassVar[bool] = False
    play: ClassVar[Play]

    def __init__(self, me: int, config: GroupConfig) -> None:
        self.me, self.nodes = me, config.nodes
        self.sent = 0
        self.inputs: list[Input] = []

    def handle(self, event: Input) -> list[Output]:
        self.inputs.append(event)
        return type(self).play(self, event)

    def snapshot(self) -> Snapshot:
        return ()

    def restore(self, snapshot: Snapshot) -> None:
        """It has no state that matters."""

    def waits_for(self) -> tuple[str, ...]:
        return ()

    def log_sizes(self) -> LogSizes:
        return LogSizes(0, 0, 0, 0, 0)

    def packet(self) -> Packet:
        """The next packet of its own, to everybody."""
        self.sent += 1
        everybody = (1 << self.nodes) - 1
        return Packet(self.me, everybody, self.sent - 1, (0,) * self.nodes, self.sent - 1, (1,), b"x")


class SafePuppet(Puppet):
    """It hears itself by a loop-back."""

    echo = Echo.SAFE


class ChannelPuppet(Puppet):
    """It hears itself like everybody else."""

    echo = Echo.CHANNEL


def speak(puppet: Puppet, event: Input) -> list[Output]:
    """Sends what is submitted."""
    if not isinstance(event, Submit):
        return []
    packet = puppet.packet()
    return [Numbered(packet), Send(Data(packet, Status(1, ())))]


ONCE = Workload(messages=1, pattern=Pattern.TALKER)
ALIKE = Network(jitter=0)


class Stage:
    """Runs three puppets that all play the same."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch
        self.puppets: list[Puppet] = []
        self.counters = Counters()

    def run(
        self,
        play: Play,
        workload: Workload = ONCE,
        network: Network = ALIKE,
        faults: tuple[Fault, ...] = (),
        kind: type[Puppet] = Puppet,
    ) -> list[Row]:
        """The rows of the run; the puppets stay behind."""
        self._monkeypatch.setattr(kind, "play", staticmethod(play), raising=False)
        self._monkeypatch.setitem(PROTOCOLS, "puppet", {Rules.SOUND: (kind.__module__, kind.__name__)})
        group = GroupConfig(nodes=3)
        config = RunConfig(protocol="puppet", group=group, network=network, workload=workload, faults=faults)
        rows: list[EventRow] = []
        simulation = Simulation(config, rows.extend)
        self.puppets = [machine for machine in simulation.machines if isinstance(machine, Puppet)]
        self.counters = simulation.run().counters
        return [Row(*row) for row in rows]


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Stage:
    return Stage(monkeypatch)


# --- outputs ---


def test_outputs_are_carried_out_in_their_order(stage: Stage) -> None:
    def play(puppet: Puppet, event: Input) -> list[Output]:
        if not isinstance(event, Submit):
            return []
        packet = puppet.packet()
        levels: list[Output] = [Reached(level, packet) for level in Level]
        return [Numbered(packet), *levels, Deliver(packet), Send(Data(packet, Status(1, ())))]

    rows = stage.run(play)
    assert [row.event for row in rows if row.node == 0] == ["send", "accept", "preack", "ack", "deliver", "transmit"]


@pytest.mark.parametrize("kind", [Puppet, SafePuppet, ChannelPuppet])
@pytest.mark.parametrize("to", [0, 2])
def test_a_unit_to_one_node_is_heard_there_only(stage: Stage, kind: type[Puppet], to: int) -> None:
    """Whoever sent it, and however it hears itself otherwise."""

    def play(puppet: Puppet, event: Input) -> list[Output]:
        return [Send(Data(puppet.packet(), Status(1, ())), to=to)] if isinstance(event, Submit) else []

    rows = stage.run(play, kind=kind)
    assert [row.node for row in of(rows, "receive")] == [to]


def test_units_without_data_are_heard_as_such(stage: Stage) -> None:
    def play(puppet: Puppet, event: Input) -> list[Output]:
        ready = Ready(puppet.me, 0, (0, 0, 0), Status(1, (0, 0, 0)))
        return [Send(ready)] if isinstance(event, Submit) else []

    rows = stage.run(play)
    assert [(row.node, row.event) for row in rows] == [(0, "transmit"), (1, "hear"), (2, "hear")]
    assert isinstance(stage.puppets[1].inputs[0], Receive)
    assert (stage.counters.control, stage.counters.received) == (1, 0)


# --- timers ---


def timeouts(rows: list[Row]) -> list[tuple[int, str | None]]:
    return [(row.time, row.detail) for row in of(rows, "timeout")]


def test_a_timer_fires_once_when_its_time_has_come(stage: Stage) -> None:
    def play(_: Puppet, event: Input) -> list[Output]:
        return [SetTimer("late", 900), SetTimer("soon", 100)] if isinstance(event, Submit) else []

    rows = stage.run(play)
    assert timeouts(rows) == [(100, "soon"), (900, "late")]
    assert stage.puppets[0].inputs[1:] == [TimerFired("soon"), TimerFired("late")]


@pytest.mark.parametrize(("second", "fires"), [(50, 50), (500, 500), (100, 100)])
def test_a_second_timer_of_a_name_replaces_the_first(stage: Stage, second: int, fires: int) -> None:
    def play(_: Puppet, event: Input) -> list[Output]:
        return [SetTimer("a", 100), SetTimer("b", 70), SetTimer("a", second)] if isinstance(event, Submit) else []

    rows = stage.run(play)
    assert sorted(timeouts(rows)) == sorted([(70, "b"), (fires, "a")])


def test_a_cancelled_timer_does_not_fire(stage: Stage) -> None:
    def play(_: Puppet, event: Input) -> list[Output]:
        if isinstance(event, Submit):
            return [SetTimer("a", 100), SetTimer("b", 50), CancelTimer("never set")]
        return [CancelTimer("a")]

    rows = stage.run(play)
    assert timeouts(rows) == [(50, "b")]


def test_a_timer_that_fired_can_be_set_again(stage: Stage) -> None:
    def play(puppet: Puppet, _: Input) -> list[Output]:
        return [SetTimer("a", 100)] if len(puppet.inputs) < 5 else []

    rows = stage.run(play)
    assert timeouts(rows) == [(100, "a"), (200, "a"), (300, "a"), (400, "a")]


def test_nodes_have_timers_of_their_own(stage: Stage) -> None:
    def play(puppet: Puppet, event: Input) -> list[Output]:
        return [SetTimer("a", 100 * (puppet.me + 1))] if isinstance(event, Submit) else []

    rows = stage.run(play, Workload(messages=1, pattern=Pattern.EVERYBODY))
    assert [(row.node, row.time) for row in of(rows, "timeout")] == [(0, 100), (1, 200), (2, 300)]


# --- echoes ---


def own_receipts(rows: list[Row]) -> list[Row]:
    return [row for row in of(rows, "receive") if row.node == row.source]


def test_without_an_echo_a_node_does_not_hear_itself(stage: Stage) -> None:
    rows = stage.run(speak, Workload(messages=5, pattern=Pattern.TALKER))
    assert len(of(rows, "receive")) == 2 * 5
    assert not own_receipts(rows)


@pytest.mark.parametrize(
    "network", [Network(), Network(receive_time=1_000_000, receive_buffer=1), Network(receive_buffer=1)]
)
def test_a_safe_echo_loses_nothing_and_comes_at_once(stage: Stage, network: Network) -> None:
    """Neither by loss nor by overrun: others do."""
    faults = (Loss(rate=0.5), Miss(node=0, source=0, nth=1))
    rows = stage.run(speak, Workload(messages=20, pattern=Pattern.EVERYBODY), network, faults, SafePuppet)
    assert of(rows, "lose")
    for node in range(3):
        mine = [row for row in own_receipts(rows) if row.node == node]
        assert [row.seq for row in mine] == list(range(20))
        sent = {row.seq: row.time for row in of(rows, "send") if row.node == node}
        assert all(row.time == sent[row.seq] for row in mine)


def test_an_echo_from_the_channel_takes_its_way_and_may_be_missed(stage: Stage) -> None:
    rows = stage.run(
        speak,
        Workload(messages=3, pattern=Pattern.TALKER, gap=1_000),
        faults=(Miss(node=0, source=0, nth=2),),
        kind=ChannelPuppet,
    )
    assert [(row.seq, row.time) for row in own_receipts(rows)] == [(0, 50_000), (2, 52_000)]
    assert [(row.node, row.seq) for row in of(rows, "lose")] == [(0, 1)]


def test_on_one_a_node_hears_itself_in_the_order_of_all(stage: Stage) -> None:
    network = Network(channel=Channel.ONE, jitter=40_000)
    workload = Workload(messages=30, pattern=Pattern.STEADY, gap=1_000)
    rows = stage.run(speak, workload, network, kind=ChannelPuppet)
    heard = [[row.transmission for row in of(rows, "receive") if row.node == node] for node in range(3)]
    assert len(heard[0]) == 90
    assert heard[0] == heard[1] == heard[2]


# --- lulls ---

FIVE_AT_ONCE = Workload(messages=5, pattern=Pattern.TALKER, gap=0)


def test_a_machine_is_told_when_nothing_more_waits(stage: Stage) -> None:
    """Five units at one instant, taken in one after the other: word comes once, after the last."""
    stage.run(speak, FIVE_AT_ONCE, Network(jitter=0, receive_time=10_000, drained=True))
    assert [type(event) for event in stage.puppets[1].inputs] == [Receive] * 5 + [Drained]


def test_a_machine_is_not_told_where_it_was_not_asked_for(stage: Stage) -> None:
    stage.run(speak, FIVE_AT_ONCE, Network(jitter=0, receive_time=10_000))
    assert [type(event) for event in stage.puppets[1].inputs] == [Receive] * 5
