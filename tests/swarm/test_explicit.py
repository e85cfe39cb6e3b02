"""What chance decided can be written down: the script does the same, and pieces of it can be taken away."""

import msgspec
import pytest

from ordercast.model.config import GroupConfig, SequencerConfig
from ordercast.model.faults import (
    Crash,
    Join,
    Leave,
    Loss,
    Miss,
    Pause,
    Return,
    Split,
    Suspicion,
    Twice,
    UnitKind,
)
from ordercast.model.runs import Channel, Network, Pattern, RunConfig, ScriptedSend, Workload
from ordercast.protocols.membership.submissions import Submissions
from ordercast.simulator import simulate
from ordercast.swarm.draw import draw_config
from ordercast.swarm.reductions import (
    explicit,
    size_of,
    smaller,
    with_faults,
    with_fewer_destinations,
    with_sends,
    without_nodes,
)
from ordercast.swarm.run_audit import INCOMPLETE, WRONG_CONTENT
from ordercast.swarm.shrink import shrink
from ordercast.swarm.soak import soak_config
from ordercast.trace.schema import EventField, EventRow

replace = msgspec.structs.replace


def happened(config: RunConfig) -> list[EventRow]:
    """All that happened; why something was lost is left out, for a script has one reason only."""
    rows: list[EventRow] = []
    simulate(config, rows=rows)
    return [(*row[:9], None, row[EventField.TRANSMISSION]) if row[EventField.EVENT] == "lose" else row for row in rows]


@pytest.mark.parametrize("protocol", ["spo", "st", "prito", "sequencer"])
def test_the_script_of_a_run_does_what_chance_did(protocol: str) -> None:
    """To the last event, whatever lost the units: only a group that sends all at once takes its time otherwise."""
    compared = 0
    for number in range(8):
        config = draw_config(number, protocol=protocol, most_nodes=5, receipts=120)
        if config.workload.pattern is Pattern.EVERYBODY or config.network.receive_buffer:
            continue
        script = explicit(config)
        assert all(isinstance(fault, Miss | Twice | Pause | Crash) for fault in script.faults)
        assert happened(script) == happened(config), f"number {number}"
        compared += any(isinstance(fault, Miss) for fault in script.faults)
    assert compared >= 4


def test_what_a_buffer_had_no_room_for_is_missed_without_it() -> None:
    network = Network(receive_time=5_000, receive_buffer=4)
    config = RunConfig(
        protocol="spo",
        group=GroupConfig(nodes=6),
        network=network,
        workload=Workload(messages=10, pattern=Pattern.BURSTY, burst=10),
    ).with_default_timeouts()
    script = explicit(config)
    assert len(script.faults) == simulate(config).counters.lost > 0
    assert script.network.receive_buffer == 0
    result = simulate(script)
    assert result.complete
    assert result.counters.lost > 0


def test_a_script_says_itself_in_json_and_others_are_silent_about_it() -> None:
    plain = RunConfig(protocol="spo", group=GroupConfig(nodes=3))
    assert "script" not in plain.to_json(), "the names of runs that were there before do not change"
    script = (ScriptedSend(node=2, to=(0,), at=7), ScriptedSend(node=0, messages=3))
    config = replace(plain, workload=Workload(script=script))
    assert RunConfig.from_json(config.to_json()) == config
    rows = [row for row in happened(config) if row[EventField.EVENT] == "send"]
    assert [(row[EventField.TIME], row[EventField.NODE], row[EventField.DESTINATIONS]) for row in rows] == [
        (0, 0, (0, 1, 2))
    ] * 3 + [(7, 2, (0,))]


A_SCRIPT = RunConfig(
    protocol="spo",
    group=GroupConfig(nodes=4, first_seq=(0, 1, 2, 3), sequencer=SequencerConfig(node=3, resilience=3)),
    workload=Workload(
        script=(
            ScriptedSend(node=0, to=(1, 2)),
            ScriptedSend(node=0, to=(1,), at=5),
            ScriptedSend(node=0, to=(3,), at=9),
            ScriptedSend(node=2, to=(0, 3)),
        )
    ),
    faults=(
        Miss(node=1, source=0, nth=2),
        Miss(node=3, source=0, nth=3),
        Twice(node=0, source=2, nth=1),
        Miss(node=3, source=2, nth=1, kind=UnitKind.CONTROL),
        Crash(node=1, at=4),
        Split(side=(0, 1), at=1, lasting=2),
        Loss(rate=0.1),
    ),
)


def test_a_node_is_taken_away_with_all_that_names_it() -> None:
    left = without_nodes(A_SCRIPT, {1})
    assert left.group.nodes == 3
    assert left.group.first_seq == (0, 2, 3)
    assert (left.group.sequencer.node, left.group.sequencer.resilience) == (2, 2)
    assert left.workload.scripted_sends() == (
        ScriptedSend(node=0, to=(1,)),
        ScriptedSend(node=0, to=(2,), at=9),
        ScriptedSend(node=1, to=(0, 2)),
    )
    assert left.faults == (
        Miss(node=2, source=0, nth=3),
        Twice(node=0, source=1, nth=1),
        Miss(node=2, source=1, nth=1, kind=UnitKind.CONTROL),
        Split(side=(0,), at=1, lasting=2),
        Loss(rate=0.1),
    )


def test_a_sending_is_taken_away_and_faults_stay_with_their_packets() -> None:
    left = with_sends(A_SCRIPT, [0, 2, 3])
    assert [sending.at for sending in left.workload.scripted_sends() or ()] == [0, 9, 0]
    assert left.faults[:2] == (Miss(node=3, source=0, nth=2), Twice(node=0, source=2, nth=1))
    assert left.faults[2:] == A_SCRIPT.faults[3:]


def test_destinations_are_taken_away_one_at_a_time() -> None:
    fewer = [config.workload.scripted_sends() or () for config in with_fewer_destinations(A_SCRIPT)]
    assert [(script[0].to, script[3].to) for script in fewer] == [
        ((2,), (0, 3)),
        ((1,), (0, 3)),
        ((1, 2), (3,)),
        ((1, 2), (0,)),
    ]


def test_sizes_are_counted_in_nodes_messages_and_faults() -> None:
    assert str(size_of(A_SCRIPT)) == "4 nodes, 4 messages, 7 faults"
    talker = RunConfig(protocol="spo", group=GroupConfig(nodes=3), workload=Workload(pattern=Pattern.TALKER))
    assert size_of(talker).messages == 100
    assert size_of(replace(talker, network=Network(channel=Channel.ONE))).nodes == 3


# --- groups whose members change ---


def test_a_run_of_a_changing_group_is_reproduced_by_its_script() -> None:
    config = next(
        config
        for config in (soak_config(number, views=True) for number in range(5, 500, 7))
        if len(config.faults) > 5 and config.workload.pattern is not Pattern.EVERYBODY
    )
    told = explicit(config)
    assert {type(fault) for fault in told.faults} >= {Miss, Join}
    assert happened(told) == happened(config)


CHANGING = RunConfig(
    protocol="spo",
    group=GroupConfig(nodes=6, views=True),
    faults=(
        Join(node=2, at=1),
        Return(node=1, at=9),
        Crash(node=1, at=3),
        Return(node=4, at=20),
        Suspicion(node=2, by=0, at=5),
        Leave(node=3, at=7),
    ),
)
"""Node 4 is the new incarnation of node 1, and node 5 that of node 4."""


def test_new_incarnations_go_with_what_they_were() -> None:
    left = without_nodes(CHANGING, {1})
    assert left.group.nodes == 3
    assert left.faults == (Join(node=1, at=1), Suspicion(node=1, by=0, at=5), Leave(node=2, at=7))
    assert without_nodes(CHANGING, {5}).faults == (*CHANGING.faults[:3], *CHANGING.faults[4:])


def test_without_a_return_there_is_one_node_less() -> None:
    fewer = with_faults(CHANGING, [0, 1, 2, 4, 5])
    assert (fewer.group.nodes, fewer.faults) == (5, (*CHANGING.faults[:3], *CHANGING.faults[4:]))
    fewest = with_faults(CHANGING, [0, 3])
    assert (fewest.group.nodes, fewest.faults) == (4, (Join(node=2, at=1),))


def test_reductions_that_make_no_sense_are_left_out() -> None:
    crash = RunConfig(
        protocol="spo", group=GroupConfig(nodes=2, views=True), faults=(Join(node=0, at=5), Crash(node=0, at=6))
    )
    assert all(RunConfig.from_json(one.to_json()) == one for one in smaller(crash))
    assert {one.group.nodes for one in smaller(crash)} == {2}


def test_a_failing_run_of_a_changing_group_is_shrunk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Members that forget what was not in the cut."""
    monkeypatch.setattr(Submissions, "resubmit", lambda *_: None)
    config = RunConfig(
        protocol="po",
        group=GroupConfig(nodes=4, views=True),
        workload=Workload(messages=6),
        faults=(
            Loss(rate=0.1),
            Join(node=3, at=100_000),
            Suspicion(node=1, by=0, at=200_000),
            Leave(node=3, at=10**8),
        ),
        seed=1,
    )
    for kind, messages in ((INCOMPLETE, 1), (WRONG_CONTENT, 2)):  # the next message gets the number of the lost one
        shrunk = shrink(config, kind=kind, seconds=20)
        assert shrunk.minimal
        assert (shrunk.after.nodes <= 2, shrunk.after.messages, shrunk.after.faults) == (True, messages, 1)
