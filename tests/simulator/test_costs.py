"""What sending and receiving cost a node, what it sends itself, and how packets and interrupts are counted."""

from collections.abc import Callable

import pytest

from ordercast.model.config import GroupConfig
from ordercast.model.errors import ConfigError
from ordercast.model.faults import Crash, Loss, Pause
from ordercast.model.machine import Input, Output, Receive, Send, Submit
from ordercast.model.runs import Channel, Network, Pattern, RunConfig, Workload
from ordercast.protocols.spo.units import Data, Status
from ordercast.simulator.workloads import to_send
from tests.simulator.rows import make_config, of, run
from tests.simulator.test_host import ONCE, ChannelPuppet, Puppet, SafePuppet, Stage, speak

SLOW = Network(channel=Channel.ONE, propagation=50, jitter=0, send_time=1_000)
"""A unit leaves its node after a microsecond, and is everywhere 50 ns later."""


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Stage:
    return Stage(monkeypatch)


def sends(*to: int | None) -> Callable[[Puppet, Input], list[Output]]:
    """Sends a unit to each of these when something is submitted, and nothing else."""

    def play(puppet: Puppet, event: Input) -> list[Output]:
        return [Send(Data(puppet.packet(), Status(1, ())), to=node) for node in to if isinstance(event, Submit)]

    return play


# --- time to send ---


def test_units_leave_a_node_one_after_the_other(stage: Stage) -> None:
    rows = stage.run(sends(None, 1, None), network=SLOW)
    assert [row.time for row in of(rows, "transmit")] == [1_000, 2_000, 3_000]
    assert [row.time for row in of(rows, "receive") if row.node == 1] == [1_050, 2_050, 3_050]
    assert [row.time for row in of(rows, "receive") if row.node == 2] == [1_050, 3_050]


def test_a_node_takes_time_to_send_before_the_medium_does(stage: Stage) -> None:
    """Two senders get ready at the same time, and then wait for each other on the medium."""
    network = Network(channel=Channel.ONE, propagation=0, jitter=0, send_time=1_000, bits_per_second=1_000_000_000)
    rows = stage.run(speak, Workload(messages=1, pattern=Pattern.EVERYBODY, senders=(0, 1)), network)
    size = stage.counters.bytes // 2
    assert [row.time for row in of(rows, "transmit")] == [1_000, 1_000]
    assert sorted({row.time for row in of(rows, "receive")}) == [1_000 + 8 * size, 1_000 + 16 * size]


def test_sending_and_receiving_wait_for_each_other_at_a_node(stage: Stage) -> None:
    """Node 1 is handed two units, each for 300 ns; what the first makes it send waits for the second."""
    network = Network(channel=Channel.ONE, propagation=50, jitter=0, send_time=1_000, receive_time=300)

    def play(puppet: Puppet, event: Input) -> list[Output]:
        if isinstance(event, Submit):
            return [Send(Data(puppet.packet(), Status(1, ())), to=1)]
        answers = puppet.me == 1 and len(puppet.inputs) == 1
        return [Send(Data(puppet.packet(), Status(1, ())), to=2)] if answers else []

    rows = stage.run(play, Workload(messages=1, pattern=Pattern.EVERYBODY, senders=(0, 2)), network)
    assert [row.time for row in of(rows, "receive") if row.node == 1] == [1_350, 1_650]
    assert [row.time for row in of(rows, "transmit") if row.node == 1] == [2_650]


def test_a_node_that_only_sends_slowly_receives_when_it_has_sent(stage: Stage) -> None:
    """Node 0 sends one unit to node 1, which sends three to node 2."""

    def play(puppet: Puppet, event: Input) -> list[Output]:
        units = range(1 + 2 * puppet.me if isinstance(event, Submit) else 0)
        return [Send(Data(puppet.packet(), Status(1, ())), to=puppet.me + 1) for _ in units]

    rows = stage.run(play, Workload(messages=1, pattern=Pattern.EVERYBODY, senders=(0, 1)), SLOW)
    assert [row.time for row in of(rows, "receive") if row.node == 2] == [1_050, 2_050, 3_050]
    assert [row.time for row in of(rows, "receive") if row.node == 1] == [3_000], "when it came it was sending"


def test_what_has_not_left_a_node_when_it_crashes_never_does(stage: Stage) -> None:
    rows = stage.run(sends(None, None, None), network=SLOW, faults=(Crash(node=0, at=2_500),))
    assert [row.time for row in of(rows, "transmit")] == [1_000, 2_000]
    assert stage.counters.transmitted == 2


def test_a_node_that_pauses_sends_the_rest_afterwards(stage: Stage) -> None:
    rows = stage.run(sends(None, None), network=SLOW, faults=(Pause(node=0, at=1_500, lasting=9_000),))
    assert [row.time for row in of(rows, "transmit")] == [1_000, 10_500]


def test_timers_are_suited_to_senders_that_are_slow() -> None:
    network, slow = Network(), Network(send_time=70_000)
    assert slow.round_trip(5, 100) - network.round_trip(5, 100) == 2 * 70_000
    with pytest.raises(ConfigError, match=r"network\.send_time must not be negative"):
        Network(send_time=-1)


@pytest.mark.parametrize("channel", [Channel.ONE, Channel.MANY])
def test_protocols_work_with_nodes_that_take_their_time(channel: Channel) -> None:
    work = Workload(messages=20, spread=0.6, gap=500_000)
    network = Network(channel=channel, send_time=20_000, receive_time=10_000)
    result, _ = run(
        make_config(4, network=network, workload=work, faults=[Loss(rate=0.1)], timing=work.timing(network, 4))
    )
    assert result.complete


# --- what a node sends itself ---


@pytest.mark.parametrize("kind", [Puppet, SafePuppet, ChannelPuppet])
@pytest.mark.parametrize("network", [Network(jitter=0, bits_per_second=9_600), Network(receive_buffer=1)])
def test_what_a_node_sends_itself_never_touches_the_network(stage: Stage, kind: type[Puppet], network: Network) -> None:
    """It takes no time, is neither lost nor counted, and keeps nobody else from sending."""
    rows = stage.run(sends(0, 0, 0), network=network, faults=(Loss(rate=0.9),), kind=kind)
    assert [(row.node, row.time) for row in of(rows, "receive")] == [(0, 0)] * 3
    assert [row.transmission for row in of(rows, "receive")] == [row.transmission for row in of(rows, "transmit")]
    assert (stage.counters.packets(), stage.counters.bytes, stage.counters.interrupts) == (0, 0, 0)


def test_what_a_node_sends_itself_waits_for_its_turn(stage: Stage) -> None:
    """It is handed over as slowly as any other unit, behind what the node had to do before."""
    network = Network(channel=Channel.ONE, propagation=50, jitter=0, send_time=1_000, receive_time=300)
    rows = stage.run(sends(None, 0), network=network)
    assert [row.time for row in of(rows, "receive") if row.node == 0] == [1_300]
    assert [row.time for row in of(rows, "receive") if row.node == 1] == [1_350]


# --- packets and interrupts ---


@pytest.mark.parametrize(("kind", "interrupts"), [(Puppet, 2), (SafePuppet, 2), (ChannelPuppet, 3)])
def test_a_broadcast_is_one_packet_and_an_interrupt_at_each_node_that_the_network_brings_it_to(
    stage: Stage, kind: type[Puppet], interrupts: int
) -> None:
    stage.run(speak, network=Network(jitter=0), kind=kind)
    assert (stage.counters.packets(), stage.counters.interrupts) == (1, interrupts)


def test_a_unit_to_one_node_is_one_interrupt(stage: Stage) -> None:
    stage.run(sends(2, 1), network=Network(jitter=0))
    assert (stage.counters.packets(), stage.counters.interrupts) == (2, 2)


def test_packets_and_interrupts_are_those_of_the_rows() -> None:
    work = Workload(messages=30, spread=0.5, gap=50_000)
    network = Network(receive_time=6_000, receive_buffer=4)
    result, rows = run(make_config(5, network=network, workload=work, faults=[Loss(rate=0.1)]))
    assert result.counters.packets() == len(of(rows, "transmit"))
    assert result.counters.interrupts == len(of(rows, "receive", "hear"))


# --- who sends ---


def test_the_nodes_that_send_can_be_named(stage: Stage) -> None:
    rows = stage.run(speak, Workload(messages=4, pattern=Pattern.STEADY, senders=(2, 1)))
    assert {row.node for row in of(rows, "send")} == {1, 2}
    config = RunConfig(protocol="spo", group=GroupConfig(nodes=3), workload=Workload(messages=4, senders=(2, 1)))
    assert to_send(config) == [0, 4, 4]
    assert {type(event) for event in stage.puppets[0].inputs} == {Receive}
    assert ONCE.senders == ()


def test_a_named_sender_must_be_in_the_group() -> None:
    with pytest.raises(ConfigError, match="the workload names E4, but the group's nodes are E1 to E3"):
        RunConfig(protocol="spo", group=GroupConfig(nodes=3), workload=Workload(senders=(3,)))
