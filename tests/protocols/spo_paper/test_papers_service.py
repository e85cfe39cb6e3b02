"""SPO as printed: the service where nothing that matters is lost (EN 3.3, 5.1; JP 2.3, 4.1)."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordercast.audit.levels import acknowledged_truthfully, preacknowledged_truthfully
from ordercast.model.config import LossInference
from ordercast.protocols.spo.paper import SpoPaper
from tests.audit.figures import golden
from tests.protocols.spo_paper.group import Group, nodes_of, paper_group

EN_FIGURE_1, JP_FIGURES_2_AND_3 = golden("golden-spo-st.json")["services"][:2]
NAMES = ("E1", "E2", "E3")
DESTINATIONS = st.sampled_from(["1", "2", "3", "12", "13", "23", "123"])


def everything_sent(figure: dict[str, Any]) -> Group[SpoPaper]:
    """All units of a figure are under way to everybody, and nobody has heard anything."""
    group = paper_group()
    for source, name in enumerate(NAMES):
        for letter, to in figure["SL"][name]:
            group.submit(source, letter, to)
    return group


def accepted(group: Group[SpoPaper], node: int) -> list[str]:
    """In the order of acceptance."""
    return list(group.levels[node])


def test_jp_example_2_1_printed_heard_as_in_figure_2_is_received_as_in_figure_3() -> None:
    """Figure 2 has all that arrives, E2 missing c and E3 missing q, neither of which is for it."""
    figures = JP_FIGURES_2_AND_3
    group = everything_sent(figures)
    for node, name in enumerate(NAMES):
        for letter in figures["RL_MC_Fig2"][name]:
            source = group.submitted[letter][0]
            while (first := group.under_way(source, node)[0]) in figures["lost_Fig2"].get(name, []):
                group.lose(node, first)
            group.hear(node, letter)
        assert accepted(group, node) == figures["RL_SPO_Fig3"][name]
    assert group.requests == []


def test_example_3_1_printed_is_received_as_in_figure_1() -> None:
    """EN 3.3. What is not for a node it hears, in its turn, before the next that is."""
    group = everything_sent(EN_FIGURE_1)
    for node, name in enumerate(NAMES):
        for letter in EN_FIGURE_1["RL"][name]:
            source = group.submitted[letter][0]
            while node not in nodes_of(group.submitted[first := group.under_way(source, node)[0]][1]):
                group.hear(node, first)
            group.hear(node, letter)
        assert accepted(group, node) == EN_FIGURE_1["RL"][name]


@given(st.lists(st.tuples(st.integers(0, 2), st.just("") | DESTINATIONS), max_size=150))
def test_theorem_5_1_printed_without_losses_on_one_channel_all_is_accepted(draws: list[tuple[int, str]]) -> None:
    """JP: Theorem 4.3. On 1C, where all hear one order, nothing overtakes, and condition (2) always holds."""
    group = paper_group(window=1000)
    heard = [0, 0, 0]

    def hears_next(node: int) -> bool:
        """Whether there was anything: the order of the channel is that in which all was sent."""
        if heard[node] == len(group.sent):
            return False
        group.hear(node, list(group.sent)[heard[node]])
        heard[node] += 1
        return True

    for node, to in draws:
        if to:
            group.submit(node, f"p{len(group.submitted)}", to)
        else:
            hears_next(node)
    for node in group.nodes:
        while hears_next(node):
            pass
        assert accepted(group, node) == [letter for letter, (_, to) in group.submitted.items() if node in nodes_of(to)]
    assert group.requests == []


@pytest.mark.parametrize("reading", LossInference)
def test_theorem_5_1_printed_in_turns_to_everybody_all_but_two_rounds_are_delivered(reading: LossInference) -> None:
    """E1 says only in round r + 1 that it has what it sent in round r, and that is heard of by the end of r + 2."""
    group, rounds = paper_group(reading), 12
    sent = [[f"{name}{turn}" for turn in range(rounds)] for name in "abc"]
    for turn in range(rounds):
        for source in group.nodes:
            group.submit(source, sent[source][turn], "123")
            group.all_hear(sent[source][turn])
    for node in group.nodes:
        assert len(group.delivered[node]) >= 3 * (rounds - 2)
        for source in group.nodes:
            delivered = group.delivered_of(node, source)
            assert delivered == sent[source][: len(delivered)]
    assert not any(preacknowledged_truthfully(group.logs()))
    assert not any(acknowledged_truthfully(group.logs()))
