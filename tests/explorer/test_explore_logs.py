"""Groups whose members have durable logs: every schedule of small groups, and what the search notices.

Syncs come at any moment, a crash leaves any beginning of what was not synced, and whoever is started again finds that.
What a majority was told to be on its disks is at the beginning of all later views, wherever the crash is; a view that
began anew follows the last one; and logs end equal.
"""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from ordercast.explorer import node_disk
from ordercast.explorer.explore import explore
from ordercast.explorer.log_scenarios import LOG_SCENARIOS, log_scenario
from ordercast.explorer.node_disk import LOST, NodeDisk
from ordercast.explorer.notation import parse_schedule
from ordercast.explorer.scenario import Scenario
from ordercast.explorer.scenarios import scenario
from ordercast.explorer.schedule_files import ScheduleFile, read_schedule, write_schedule
from ordercast.explorer.state_space import StateSpace
from ordercast.model.errors import ConfigError
from ordercast.model.runs import WITH_LOGS, Channel
from ordercast.model.units import Packet
from ordercast.protocols.membership.view import Incarnation, founding_view
from ordercast.protocols.restart import assessment, durable_node, machine
from ordercast.protocols.restart.assessment import Assessment, Here
from ordercast.protocols.restart.node_log import NodeLog, WriteNote, WritePacket
from ordercast.protocols.restart.standing import Standing, decode_standing, encode_standing
from tests.explorer.test_reduction import finals

BOTH = ("E1", "E2")
STANDING = Standing(founding_view((Incarnation("E1", 0, "0"), Incarnation("E2", 1, "1")), b"founding"))
SMALL = ("restart", "restart-all", "restart-all-loss", "restart-all-damage")


def group(protocol: str, *lines: str, **how: Any) -> Scenario:
    if protocol == "sequencer":
        how = {"resilience": 1, "channel": Channel.MANY, **how}
    return scenario(protocol, lines, views=True, logs=True, **how)


@pytest.mark.parametrize(
    ("protocol", "name"),
    [*((protocol, name) for protocol in ("to", "sequencer") for name in SMALL), ("to", "restart-all-again")],
)
def test_every_schedule_of_a_small_group_is_right(protocol: str, name: str) -> None:
    report = explore(log_scenario(protocol, name), 60_000, reduced=True)
    assert report.exhausted, str(report)
    assert report.states > 500


@pytest.mark.soak
@pytest.mark.parametrize("name", LOG_SCENARIOS)
@pytest.mark.parametrize("protocol", sorted(WITH_LOGS))
def test_every_schedule_of_a_named_search_or_the_shortest_of_them(protocol: str, name: str) -> None:
    report = explore(log_scenario(protocol, name), 1_000_000, reduced=True)
    assert report.counterexample is None, str(report)


COMPARED = {
    "to": group("to", "", "a", "", "", returns=BOTH),
    "to-damage": group("to", "", "a", "", "", returns=BOTH, damages=1),
    "sequencer": group("sequencer", "", "a", "", "", returns=BOTH),
    "sequencer-again": group("sequencer", "", "a", "", "", returns=("E2", "E3")),
}


@pytest.mark.parametrize("name", COMPARED)
def test_the_final_states_are_the_same_with_reduction(name: str) -> None:
    every, states = finals(COMPARED[name], reduced=False)
    some, fewer = finals(COMPARED[name], reduced=True)
    assert some == every
    assert len(every) > 1
    assert fewer <= states


# --- what can happen ---


def test_a_crash_leaves_any_beginning_of_what_was_not_synced() -> None:
    packets = [Packet(0, 1, number, (), number, (1,), b"x") for number in range(2)]
    disk = NodeDisk().write(WriteNote(b"n")).sync().write(WritePacket(packets[0])).write(WritePacket(packets[1]))
    assert [disk.crash(left).packets for left in disk.crashes()] == [(), (packets[0],), tuple(packets)]
    assert {disk.crash(left).note for left in disk.crashes()} == {b"n"}, "what was synced stays"
    synced = NodeDisk().write(WriteNote(encode_standing(STANDING))).write(WritePacket(packets[0])).sync()
    synced = synced.write(WritePacket(packets[1])).sync()
    assert synced.crashes() == [0]
    assert synced.crash(LOST) == NodeDisk()
    damaged = [synced.crash(left) for left in synced.damages()[1:]]
    assert [each.packets for each in damaged] == [(), (packets[0],)]
    assert {decode_standing(each.note) for each in damaged} == {replace(STANDING, complete=False, forgot=True)}, (
        "no vote"
    )


def test_a_process_returns_with_what_its_disk_has_and_may_crash_again() -> None:
    space = StateSpace(group("to", "", "a", "", "", returns=("E2", "E3"), damages=1))
    lines = ["E2 crashes", "E3 returns as E2", "E3 crashes", "E4 returns as E3"]
    assert len(parse_schedule(space, lines)) == 4
    damaged = parse_schedule(space, ["E2 crashes, and its disk is lost", "E3 returns as E2"])
    assert len(damaged) == 2
    for too_early in ("E3 crashes", "E4 returns as E3"):
        with pytest.raises(ConfigError, match="is not enabled there"):
            parse_schedule(space, ["E2 crashes", too_early])


def test_what_is_not_possible_is_refused() -> None:
    for wrong in (("E3", "E2"), ("E2", "E4"), ("E2", "E2")):
        with pytest.raises(ConfigError, match="`returns` names founders, and those that return before, each once"):
            group("to", "", "a", "", "", returns=wrong)
    with pytest.raises(ConfigError, match="po has no logs, only "):
        group("po", "", "a")
    with pytest.raises(ConfigError, match="`logs` needs a group with views"):
        scenario("to", ["", "a"], logs=True)
    with pytest.raises(ConfigError, match="`damages` needs nodes with logs"):
        scenario("to", ["", "a"], views=True, damages=1)


def test_a_schedule_with_disks_is_written_and_read(tmp_path: Any) -> None:
    made = group("to", "", "a", "", "", returns=("E2", "E3"), damages=1)
    steps = ("E2 crashes, and its disk is lost", "E3 returns as E2", "E3 crashes", "E4 returns as E3")
    file = ScheduleFile(scenario=made, schedule=steps, sentence="none")
    write_schedule(tmp_path / "a.toml", file)
    assert read_schedule(tmp_path / "a.toml") == file


# --- what is broken is found ---


def no_majority_is_needed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(assessment, "_lacking", lambda *_: [])


def any_half_is_a_quorum(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(assessment, "is_quorum", lambda places, size: 2 * places.bit_count() >= size)


def what_is_written_counts_as_on_the_disk(patch: pytest.MonkeyPatch) -> None:
    unchanged = NodeLog.write

    def write(self: NodeLog, packet: Packet) -> WritePacket:
        found = unchanged(self, packet)
        self.durable = len(self.packets)
        return found

    patch.setattr(NodeLog, "write", write)


def views_are_told_before_they_are_on_the_disk(patch: pytest.MonkeyPatch) -> None:
    """One that decides alone tells of a view, is killed, and begins another one with the same number."""
    patch.setattr(durable_node, "DECISIONS", ())


def nothing_waits_for_the_disk(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(NodeLog, "hold", lambda *_: False)


def the_shortest_log_is_taken(patch: pytest.MonkeyPatch) -> None:
    unchanged = assessment.assess

    def assess(present: Sequence[Here], least: int, *, force: bool) -> Assessment:
        found = unchanged([replace(each, position=-each.position) for each in present], least, force=force)
        by_name = {each.me.name: each for each in present}
        holder = None if found.holder is None else by_name[found.holder.me.name]
        return replace(found, holder=holder)

    patch.setattr(machine, "assess", assess)


def who_has_forgotten_has_a_vote(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(node_disk, "forgetting", lambda note: note)


BROKEN: list[tuple[Callable[[pytest.MonkeyPatch], None], str, str]] = [
    (no_majority_is_needed, "restart", "view 1 of E3 began anew with {E2}, no quorum of view 0: {E1,E2}"),
    (any_half_is_a_quorum, "restart", "view 1 of E3 began anew with {E2}, no quorum of view 0: {E1,E2}"),
    (what_is_written_counts_as_on_the_disk, "restart", "packets of its log for durable, and 0 are on its disk"),
    (
        the_shortest_log_is_taken,
        "restart-most",
        "<a{1,2,3,4,5}> was told durable in view 0, and view 1 begins after <>",
    ),
    (who_has_forgotten_has_a_vote, "restart-most-damage", "was told durable in view 0, and view 1 begins after <>"),
    (views_are_told_before_they_are_on_the_disk, "restart-all-suspicion", "view 2 has E3 at E3, and E1, E4 at E4"),
    (nothing_waits_for_the_disk, "restart-all-suspicion", "view 2 has E3 at E3, and E1, E4 at E4"),
]
LONG = {who_has_forgotten_has_a_vote, nothing_waits_for_the_disk}


@pytest.mark.parametrize(
    ("rule", "name", "sentence"),
    [pytest.param(*each, marks=pytest.mark.soak if each[0] in LONG else (), id=each[0].__name__) for each in BROKEN],
)
def test_a_rule_taken_out_is_found(
    monkeypatch: pytest.MonkeyPatch, rule: Callable[[pytest.MonkeyPatch], None], name: str, sentence: str
) -> None:
    rule(monkeypatch)
    report = explore(log_scenario("sequencer", name), 60_000, reduced=True)
    assert report.counterexample is not None, str(report)
    assert sentence in report.counterexample.sentence
