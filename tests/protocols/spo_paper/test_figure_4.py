"""JP Figure 4: Examples 3.1 to 3.4, step by step, under the printed rules and under the sound ones."""

from collections.abc import Callable
from typing import Any

import pytest

from ordercast.model.machine import Discard, Level
from ordercast.model.nodes import members, name_of
from ordercast.model.units import Packet
from ordercast.protocols.spo.machine import Spo
from ordercast.protocols.spo.paper import SpoPaper
from ordercast.protocols.spo.units import Data, Ready, RetransmitRequest
from tests.audit.figures import golden
from tests.protocols.spo_paper.figure_4 import FIGURE, STEPS, receipts, told
from tests.protocols.spo_paper.group import E1, E2, E3, Group

GOLDEN = golden("golden-spo-st.json")
SENT: dict[str, dict[str, Any]] = {unit["id"]: unit for step in STEPS for unit in step["sent"]}
TEXT: dict[str, dict[str, Any]] = FIGURE["text_determined"]


def printed() -> Group[SpoPaper]:
    return Group(SpoPaper, first_seq=tuple(FIGURE["ISS"]))


def sound() -> Group[Spo]:
    return Group(Spo, first_seq=tuple(FIGURE["ISS"]), lenient=True)


def variables(group: Group[SpoPaper], node: int) -> dict[str, Any]:
    """All variables of an entity under the papers' names."""
    machine = group.machines[node]
    return {
        "TSEQ": machine.next_seq,
        "PSEQ": machine.next_seq_to,
        "TREQ": machine.expected,
        "PREQ": machine.expected_to_me,
        "AL": machine.accepted_below,
        "PAL": machine.preacknowledged_below,
        "RPL": {name_of(j): [group.label(unit) for unit in log] for j, log in enumerate(machine.accepted)},
        "PPL": {name_of(j): [group.label(unit) for unit in log] for j, log in enumerate(machine.preacknowledged)},
        "APL": {name_of(j): group.delivered_of(node, j) for j in group.nodes},
        "SL": [group.label(unit) for unit in machine.sent],
        "timer": [f"wait-{j}" in group.timers[node] for j in group.nodes],
    }


def lowest(bounds: list[list[int]], packet: Packet) -> int:
    """MinAL_j(p) or minPAL_j(p)."""
    return min(bounds[packet.source][node] for node in members(packet.destinations))


def fields(unit: Data) -> dict[str, Any]:
    """What a unit carries, under the papers' names."""
    return {
        "SRC": name_of(unit.source),
        "DST": [name_of(node) for node in members(unit.packet.destinations)],
        "TSEQ": unit.packet.seq,
        "PSEQ": list(unit.packet.seq_to),
        "ACK": list(unit.status.expects),
    }


# --- the printed rules ---


@pytest.mark.parametrize("step", range(1, 10))
def test_figure_4_every_variable_of_every_entity(step: int) -> None:
    group = told(printed(), step)
    assert {name_of(node): variables(group, node) for node in group.nodes} == STEPS[step - 1]["state"]


@pytest.mark.parametrize("letter", "abcdefghij")
def test_figure_4_every_unit_is_sent_as_printed(letter: str) -> None:
    group = told(printed(), 9)
    assert {"id": letter, **fields(group.sent[letter])} == SENT[letter]


def test_example_3_1_transmission_and_acceptance() -> None:
    group = told(printed(), 2, sends_in_the_last=False)
    expected = TEXT["step2"]
    assert group.machines[E1].next_seq == expected["E1.TSEQ"]
    assert group.machines[E1].next_seq_to == expected["E1.PSEQ"]
    assert [machine.expected[E1] for machine in group.machines] == [expected["TREQ_1 everywhere"]] * 3
    assert [bool(machine.accepted[E1]) for machine in group.machines] == [False, True, True], "E1 discards a"


def test_example_3_2_preacknowledgment() -> None:
    before, after = told(printed(), 3), told(printed(), 4)
    a, expected = before.sent["a"].packet, TEXT["step4"]
    assert "a" in [before.label(unit) for unit in before.machines[E1].sent]
    assert "a" not in [after.label(unit) for unit in after.machines[E1].sent], "(4) E1 need not send it again"
    for node in (E2, E3):
        machine = after.machines[node]
        assert before.levels[node]["a"] is Level.ACCEPTED
        assert after.levels[node]["a"] is Level.PREACKNOWLEDGED
        assert machine.accepted_below[E1] == expected["AL_1*"]
        assert lowest(machine.accepted_below, a) == expected["minAL_1(a)"]
        assert [row[E1] for row in machine.preacknowledged_below] == expected["PAL_*1 at E2,E3"]


def test_example_3_3_acknowledgment() -> None:
    five, six = told(printed(), 5), told(printed(), 6)
    sent, expected = six.sent, TEXT["step6"]
    for node in (E1, E3):
        machine = five.machines[node]
        assert five.levels[node]["c"] is Level.PREACKNOWLEDGED
        assert lowest(machine.accepted_below, sent["c"].packet) == TEXT["step5"]["minAL_1(c)"]
    for machine in six.machines:
        assert lowest(machine.accepted_below, sent["b"].packet) == expected["minAL_2(b)"]
        assert lowest(machine.accepted_below, sent["d"].packet) == expected["minAL_3(d)"]
    for node in (E2, E3):
        machine = six.machines[node]
        assert five.levels[node]["a"] is Level.PREACKNOWLEDGED
        assert lowest(machine.preacknowledged_below, sent["a"].packet) == expected["minPAL_1(a)"]
        assert six.delivered[node] == ["a"]


def test_example_3_4_failure() -> None:
    group = told(printed(), 8)
    assert group.machines[E3].expected[E1] == TEXT["step8"]["E3.TREQ_1"]
    assert group.sent["i"].status.expects[E1] == TEXT["step8"]["i.ACK_1"]
    assert (E3, Discard(group.sent["i"], "hearsay")) in group.outputs
    assert group.requests == [], "E3 does not know yet whether h was for it"
    receipts(group, 9)
    assert group.machines[E3].expected_to_me[E1] == TEXT["step9"]["E3.PREQ_1"]
    assert group.sent["j"].packet.seq_to[E3] == TEXT["step9"]["j.PSEQ_3"]
    [(node, request)] = group.requests
    assert node == E3
    assert isinstance(request, RetransmitRequest)
    assert list(request.expects) == FIGURE["retrans"]["ACK"]
    assert request.expects[E1] == TEXT["step9"]["RETRANS.ACK_1"]


def resent(group: Group[SpoPaper]) -> Group[SpoPaper]:
    """E3's request is heard, and what is resent is under way to E3."""
    group.all_hear("RETRANS E3")
    assert group.under_way(E1, E3) == FIGURE["retrans"]["resent_by_E1"]
    assert group.under_way(E2, E3) == FIGURE["retrans"]["resent_by_E2"]
    return group


@pytest.mark.parametrize("outcome", FIGURE["retrans"]["outcomes"], ids=lambda it: "".join(it["arrival_order_at_E3"]))
def test_example_3_4_retransmission_in_both_orders_of_arrival(outcome: dict[str, Any]) -> None:
    """In the second order j overtakes i and is discarded; nothing will ever ask for it again (C6)."""
    group = resent(told(printed(), 9))
    group.hear(E3, *outcome["arrival_order_at_E3"])
    found, expected = variables(group, E3), outcome["E3"]
    assert (found["TREQ"], found["PREQ"]) == (expected["TREQ"], expected["PREQ"])
    assert found["RPL"]["E1"] == expected["RPL_from_E1"]
    assert found["RPL"]["E2"] == expected["RPL_from_E2"]
    assert any(found["timer"]) == expected["any_timer_running"]
    assert group.settle()
    assert (found["TREQ"] == group.machines[E1].expected) == outcome["complete"]


def test_figure_4_copies_repeat_the_first_transmission() -> None:
    group = resent(told(printed(), 9))
    assert list(group.links[E1, E3]) == [group.sent["h"], group.sent["j"]]
    assert list(group.links[E2, E3]) == [group.sent["i"]]


# --- the same story under the sound rules ---


def test_figure_4_sound_i_is_accepted_at_e3_in_step_8() -> None:
    before, after = told(sound(), 7), told(sound(), 8)
    assert "i" not in before.levels[E3]
    assert after.levels[E3]["i"] is Level.ACCEPTED
    assert after.machines[E3].expected == GOLDEN["spo_star_fig4"]["steps"][7]["state"]["E3"]["TREQ"]
    assert after.requests == []


def test_figure_4_sound_asks_for_h_alone_and_holds_j() -> None:
    group = told(sound(), 9)
    [(node, request)] = group.requests
    assert isinstance(request, Ready)
    h, j = group.sent["h"].packet, group.sent["j"].packet
    assert (node, request.missing) == (E3, ((E1, ((h.seq_to[E3], h.seq_to[E3] + 1),)),))
    assert list(request.status.expects) == GOLDEN["spo_star_fig4"]["retrans"]["ACK"]
    assert group.machines[E3].retransmission.out_of_order[E1] == {j.seq_to[E3]: j}
    group.all_hear("RETRANS E3")
    assert group.copies == ["h"]
    assert not {"h", "j"} & set(group.levels[E3])
    group.hear(E3, "h")
    assert [letter for letter in group.levels[E3] if letter in "hij"] == ["i", "h", "j"]


def test_figure_4_sound_everything_is_acknowledged_everywhere() -> None:
    group = told(sound(), 9)
    assert group.settle()
    assert {
        name_of(node): {name_of(source): group.delivered_of(node, source) for source in group.nodes}
        for node in group.nodes
    } == GOLDEN["spo_star_fig4"]["final_APL"]
    assert group.copies == ["h"], "nothing else was missing"
    assert group.broken_promises() == set()


@pytest.mark.parametrize("rules", [printed, sound])
def test_figure_4_packets_are_numbered_alike_under_both_rules(rules: Callable[[], Group[Any]]) -> None:
    group = told(rules(), 9)
    for letter, unit in SENT.items():
        packet = group.sent[letter].packet
        assert (packet.seq, list(packet.seq_to)) == (unit["TSEQ"], unit["PSEQ"])
