"""SPO as printed: the service where nothing goes wrong, and what a loss costs (EN 3.3, 5; JP 2.3, 4)."""

import json
from itertools import pairwise
from math import sqrt
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordercast.model.config import HearsayRule, PaperRules
from ordercast.model.nodes import members
from ordercast.protocols.spo_paper import SpoPaper
from tests.protocols.harness import E1, Group
from tests.protocols.spo.schedules import EVERYBODY

GOLDEN = json.loads((Path(__file__).parents[2] / "golden" / "golden-spo-st.json").read_text())
EN_FIGURE_1, JP_FIGURES_2_AND_3 = GOLDEN["services"][:2]
TABLE_1 = GOLDEN["spo_table1"]


def everything_sent(figure: dict[str, Any]) -> Group[SpoPaper]:
    """All units of a figure are under way to everybody, and nobody has heard anything."""
    group = Group(SpoPaper, echo_at_once=False)
    for source, name in enumerate(("E1", "E2", "E3")):
        for letter, to in figure["SL"][name]:
            group.submit(source, letter, [int(digit) - 1 for digit in to])
    return group


def test_jp_example_2_1_heard_as_in_figure_2_is_received_as_in_figure_3() -> None:
    """Figure 2 has all that arrives, E2 missing c and E3 missing q, neither of which is for it."""
    figures = JP_FIGURES_2_AND_3
    group = everything_sent(figures)
    for node, name in enumerate(("E1", "E2", "E3")):
        for letter in figures["RL_MC_Fig2"][name]:
            source = group.submitted[letter][0]
            while group.names(group.links[source, node])[0] in figures["lost_Fig2"].get(name, []):
                group.links[source, node].popleft()
            group.receive(node, letter)
        assert group.accepted[node] == figures["RL_SPO_Fig3"][name]
        assert not group.controls(node)


def test_example_3_1_is_received_as_in_figure_1() -> None:
    """EN 3.3. What is not for a node it hears, in its turn, before the next that is."""
    group = everything_sent(EN_FIGURE_1)
    for node, name in enumerate(("E1", "E2", "E3")):
        for letter in EN_FIGURE_1["RL"][name]:
            source = group.submitted[letter][0]
            while not group.submitted[group.names(group.links[source, node])[0]][1] >> node & 1:
                group.receive_next(node, source)
            group.receive(node, letter)
        assert group.accepted[node] == EN_FIGURE_1["RL"][name]


@given(st.lists(st.integers(0, 41), max_size=150))
def test_theorem_5_1_without_losses_on_one_channel_all_is_accepted(draws: list[int]) -> None:
    """JP: theorem 4.3. On 1C, where all hear one order, nothing overtakes, and condition (2) always holds."""
    group = Group(SpoPaper, window=1000)
    channel: list[int] = []  # the senders, in the order of the channel
    heard = [0, 0, 0]

    def hears_next(node: int) -> bool:
        while heard[node] < len(channel) and channel[heard[node]] == node:
            heard[node] += 1  # its own it has from the loop-back
        if heard[node] == len(channel):
            return False
        group.receive_next(node, channel[heard[node]])
        heard[node] += 1
        return True

    for draw in draws:
        to, (sends, node) = draw // 6 + 1, divmod(draw % 6, 3)
        if sends:
            group.submit(node, f"p{len(channel)}", members(to))
            channel.append(node)
        else:
            hears_next(node)
    for node in EVERYBODY:
        while hears_next(node):
            pass
        assert not group.controls(node)
        for source in EVERYBODY:
            assert group.of(group.accepted[node], source) == group.destined(node, source)


@pytest.mark.parametrize("rule", HearsayRule)
def test_theorem_5_1_in_turns_to_everybody_all_but_two_rounds_are_delivered(rule: HearsayRule) -> None:
    """E1 says only in round r + 1 that it has what it sent in round r, and that is heard of by the end of r + 2."""
    group, rounds = Group(SpoPaper, paper=PaperRules(condition_2=rule)), 12
    for turn in range(rounds):
        for node in EVERYBODY:
            group.submit(node, f"{turn}-{node}", EVERYBODY)
            group.everybody_receives(f"{turn}-{node}")
    for delivered in group.delivered:
        assert len(delivered) >= 3 * (rounds - 2)
        for source in EVERYBODY:
            turns = [int(name.split("-")[0]) for name in group.of(delivered, source)]
            assert all(later == earlier + 1 for earlier, later in pairwise([-1, *turns]))
    assert group.unfounded == []


BEHIND = 64
"""Units that each source sends between a loss and its repair."""
LOSSES = 10


def resent_behind_a_loss(chance: Random, m: int) -> int:
    """E1 of 16 sends one unit to E16, which loses it, and others to m random nodes each. What comes with the repair?"""
    nodes, loser = TABLE_1["n"], TABLE_1["n"] - 1
    rules = PaperRules(condition_2=HearsayRule.NONE)
    group = Group(SpoPaper, nodes, window=BEHIND + 1, paper=rules)
    group.submit(E1, "lost", [loser])
    for number in range(BEHIND):
        group.submit(E1, str(number), chance.sample(range(nodes), m))
    group.lose(loser, "lost")
    group.receive_all(loser, E1)
    group.receive_next(E1, loser)  # the first of its requests
    first, *behind = group.copies(E1)
    assert first == "lost"
    discarded = [name for name, why in group.discarded[loser] if why == "gap" and name in behind]
    assert discarded == behind, "what is resent is what was thrown away and is for it"
    return len(behind)


@pytest.mark.parametrize("row", TABLE_1["rows"], ids=lambda row: f"m{row['m']}")
def test_5_2_table_1_measured_without_condition_2(row: dict[str, Any]) -> None:
    """Of 16 * 64 units, which TO would discard, resent for a loss: 10 losses, within four standard deviations."""
    n, m = TABLE_1["n"], row["m"]
    chance = Random(m)
    share = sum(resent_behind_a_loss(chance, m) for _ in range(LOSSES)) / (LOSSES * n * BEHIND)
    deviation = sqrt(m / n * (1 - m / n) / (LOSSES * BEHIND)) / n
    assert share == pytest.approx(row["N_SPO"], abs=4 * deviation + 1e-12)


@pytest.mark.parametrize(("rule", "also_others"), [(HearsayRule.OTHERS, True), (HearsayRule.NONE, False)])
def test_5_2_with_condition_2_the_units_of_all_sources_are_resent(rule: HearsayRule, also_others: bool) -> None:
    """Whoever heard what E16 lost says so in all that it sends, and E16 throws all of it away: n times the table."""
    nodes, chance = TABLE_1["n"], Random(1)
    loser, sources = nodes - 1, range(nodes - 1)
    group = Group(SpoPaper, nodes, paper=PaperRules(condition_2=rule))
    group.submit(E1, "lost", range(nodes))
    for node in sources:
        group.receive(node, "lost")
    group.lose(loser, "lost")
    for node in sources:
        for number in range(8):
            group.submit(node, f"{node}-{number}", chance.sample(range(nodes), 4))
    for node in reversed(sources):  # E1 shows the gap when all others have been heard
        group.receive_all(loser, node)
    for node in sources:
        group.receive_next(node, loser)
        assert group.copies(node) == (group.destined(loser, node) if also_others or node == E1 else [])
    assert sum(len(group.destined(loser, node)) > 0 for node in sources) > 10, "there was something to throw away"
