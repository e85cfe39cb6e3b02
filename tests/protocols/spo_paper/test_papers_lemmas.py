"""SPO: definitions, lemmas, theorem and evaluation of the papers (EN 2, 3, 4.3, 4.4, 5; JP 2, 4).

What a node claims to know is judged by the audit, which has never seen a protocol, from what happened at all nodes.
"""

from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ordercast.audit.completeness import complete
from ordercast.audit.levels import accepted_truthfully, acknowledged_truthfully, preacknowledged_truthfully
from ordercast.audit.order import same_order, sender_order_kept
from ordercast.audit.services import Property
from ordercast.model.config import LossInference
from ordercast.model.machine import Level
from ordercast.protocols.spo.machine import Spo
from tests.audit.figures import Figure, figure_of, golden
from tests.protocols.spo_paper.group import E1, E2, E3, Group, paper_group

GOLDEN = golden("golden-spo-st.json")
EN_FIGURE_1, JP_FIGURES_2_3 = GOLDEN["services"][:2]
SEEDS = st.integers(0, 2**32)
STEPS = st.integers(0, 200)
READINGS = st.sampled_from(LossInference)


def holds(promise: Property, group: Group[Any]) -> bool:
    return not any(promise(group.logs()))


# --- 2: correct receipt (JP 2.1) ---


def letters(figure: Figure, truth: Property) -> list[str]:
    """What is claimed and not true."""
    return [figure.letters(violation) for violation in truth(figure.logs())]


def test_2_a_accepted_is_all_that_the_source_sent_to_me_before() -> None:
    """Literally all that it sent; selectively, all that it sent to me, which is what the accept condition checks."""
    figure = Figure(["a23 b3 c23"], [""])
    figure.nodes, figure.steps = 3, [*figure.steps, 0, 0]
    figure.add(E2, "accept", "a")
    figure.add(E2, "accept", "c")
    assert letters(figure, accepted_truthfully) == []
    figure.add(E3, "accept", "a")
    figure.add(E3, "accept", "c")
    assert letters(figure, accepted_truthfully) == ["c b"]


@pytest.mark.parametrize(
    ("cause", "effect", "truth"),
    [("accept", "preack", preacknowledged_truthfully), ("preack", "ack", acknowledged_truthfully)],
    ids=["2_b_preacknowledged", "2_c_acknowledged"],
)
def test_2_b_2_c_every_destination_has_it_one_level_lower(cause: str, effect: str, truth: Property) -> None:
    figure = Figure(["a23", "", ""], ["", "", ""])
    figure.add(E2, cause, "a", time=1)
    figure.add(E2, effect, "a", time=3)
    assert letters(figure, truth) == ["a"], "E3 has not"
    figure.add(E3, cause, "a", time=4)
    assert letters(figure, truth) == ["a"], "too late"
    figure.rows.pop()
    figure.add(E3, cause, "a", time=2)
    assert letters(figure, truth) == [], "E1 is no destination"


# --- 3: services (JP 2.2, 2.3) ---


def sublog(log: list[str], of: list[list[str]]) -> list[str]:
    return [letter for letter in log if letter in {name for name, _ in of}]


def test_3_2_definitions_and_example_3_1() -> None:
    """EN Figure 1: selectively correct, so an SPO service; not order-equivalent, so no STO service."""
    sent, received = EN_FIGURE_1["SL"], EN_FIGURE_1["RL"]
    logs = figure_of(sent, received).logs()
    assert [list(promise(logs)) for promise in (sender_order_kept, complete)] == [[], []]
    assert (not list(same_order(logs))) is EN_FIGURE_1["order_equivalent"]
    assert {name: set(log) for name, log in received.items()} == {
        "E1": set("cdgxypq"), "E2": set("adefgxyp"), "E3": set("abcgyzp")
    }  # fmt: skip
    assert ["".join(sublog(received[name], sent["E1"])) for name in sorted(received)] == ["cdg", "adefg", "abcg"]


def test_3_2_what_is_not_selectively_content_preserved_or_not_order_preserved() -> None:
    sent, received = EN_FIGURE_1["SL"], EN_FIGURE_1["RL"]
    for first, broken in (
        ("x", []),
        ("d", [sender_order_kept]),
        ("a", [complete]),
    ):  # of another; too early; not for E1
        log = [first, *(letter for letter in received["E1"] if letter != first)]
        logs = figure_of(sent, {**received, "E1": log}).logs()
        assert [promise for promise in (sender_order_kept, complete) if any(promise(logs))] == broken
    lacking = {**received, "E1": received["E1"][1:]}
    assert any(complete(figure_of(sent, lacking).logs()))


def test_jp_example_2_1_the_mc_service_of_figure_2_and_the_spo_service_of_figure_3() -> None:
    figures = JP_FIGURES_2_3
    mc, spo = figure_of(figures["SL"], figures["RL_MC_Fig2"]), figure_of(figures["SL"], figures["RL_SPO_Fig3"])
    assert list(sender_order_kept(mc.logs())) == []
    everything = {letter for log in figures["SL"].values() for letter, _ in log}
    lost = {name: sorted(everything - set(log)) for name, log in figures["RL_MC_Fig2"].items()}
    assert {name: log for name, log in lost.items() if log} == figures["lost_Fig2"]
    assert [list(promise(spo.logs())) for promise in (sender_order_kept, complete)] == [[], []]
    assert (not list(same_order(spo.logs()))) is figures["order_equivalent_Fig3"]


@pytest.mark.parametrize(
    ("figure", "received"), [(EN_FIGURE_1, EN_FIGURE_1["RL"]), (JP_FIGURES_2_3, JP_FIGURES_2_3["RL_SPO_Fig3"])]
)
def test_example_3_1_and_jp_example_2_1_are_what_the_sound_rules_give(
    figure: dict[str, Any], received: dict[str, list[str]]
) -> None:
    """Sent as in the figure and heard as in JP Figure 2, with its losses, each sender's are received as in it."""
    group = Group(Spo)
    for source, name in enumerate(sorted(figure["SL"])):
        for letter, to in figure["SL"][name]:
            group.submit(source, letter, to)
    for node, name in enumerate(sorted(received)):
        for letter in figure.get("lost_Fig2", {}).get(name, []):
            source = group.submitted[letter][0]
            group.hear(node, *[it for it in group.under_way(source, node) if it < letter])
            group.lose(node, letter)
    assert group.settle()
    for node, name in enumerate(sorted(received)):
        for source, sent in enumerate(figure["SL"][by] for by in sorted(figure["SL"])):
            assert group.delivered_of(node, source) == sublog(received[name], sent)


# --- lemmas and theorem ---


@settings(max_examples=100, deadline=None)
@given(SEEDS, STEPS, READINGS, st.booleans())
def test_lemma_4_1_printed(seed: int, steps: int, reading: LossInference, verbatim: bool) -> None:
    """What satisfies the PACK condition is pre-acknowledged, under every reading (JP Lemma 4.1)."""
    group = paper_group(reading, paper={"verbatim_copies": verbatim})
    group.wander(Random(seed), steps)
    assert holds(preacknowledged_truthfully, group)
    assert holds(accepted_truthfully, group)
    assert holds(sender_order_kept, group)


@settings(max_examples=100, deadline=None)
@given(SEEDS, STEPS)
def test_lemma_4_1_and_lemma_4_2_sound(seed: int, steps: int) -> None:
    """Both hold, whatever the destinations."""
    group = Group(Spo, window=4)
    group.wander(Random(seed), steps)
    assert holds(accepted_truthfully, group)
    assert holds(preacknowledged_truthfully, group)
    assert holds(acknowledged_truthfully, group)


def test_lemma_4_2_printed_is_false() -> None:
    """Without a loss: x{2,3} is acknowledged at E2, and E3 has only accepted it (A1; JP Lemma 4.2)."""
    group = paper_group()
    for source, letter, to, heard_by in ((E1, "x", "23", (E2, E3)), (E2, "q", "2", (E2,)), (E3, "s", "2", (E2,))):
        group.submit(source, letter, to)
        for node in heard_by:
            group.hear(node, letter)
    group.submit(E2, "r", "2")
    group.hear(E2, "r")
    assert (group.levels[E2]["x"], group.levels[E3]["x"]) == (Level.ACKNOWLEDGED, Level.ACCEPTED)
    assert not holds(acknowledged_truthfully, group)


@settings(max_examples=100, deadline=None)
@given(SEEDS, STEPS, READINGS)
def test_lemma_4_2_printed_holds_if_everything_is_for_everybody(seed: int, steps: int, reading: LossInference) -> None:
    """And if a copy says what the first transmission said."""
    group = paper_group(reading)
    group.wander(Random(seed), steps, to="123")
    assert holds(acknowledged_truthfully, group)


def test_lemma_4_2_random_walks_get_as_far_as_acknowledgment() -> None:
    """Or the properties above would say nothing."""
    makers: list[Callable[[], Group[Any]]] = [paper_group, lambda: paper_group(LossInference.NONE), lambda: Group(Spo)]
    for make in makers:
        groups = [make() for _ in range(20)]
        for seed, group in enumerate(groups):
            group.wander(Random(seed), 200, to="123")
        assert sum(bool(group.lost and group.copies and any(group.delivered)) for group in groups) >= 10


@settings(max_examples=100, deadline=None)
@given(SEEDS, STEPS, st.sampled_from([1, 2, 32]), st.sampled_from([1, 3, 256]), st.booleans())
def test_theorem_5_1_sound(seed: int, steps: int, window: int, quota: int, infer_losses: bool) -> None:
    """After any losses the sound rules give the SPO service, and then nobody speaks any more (JP Theorem 4.3)."""
    group = Group(Spo, window=window, quota=quota, infer_losses=infer_losses)
    group.wander(Random(seed), steps)
    group.settle(rounds=50, lossy=Random(seed))
    assert group.settle(rounds=5000)
    assert group.complete()
    assert group.broken_promises() == set()


# --- 5.2: performance (JP 4.2) ---


@pytest.mark.parametrize("row", GOLDEN["spo_table1"]["rows"], ids=lambda row: f"m{row['m']}")
def test_5_2_table_1(row: dict[str, Any]) -> None:
    """N_PO = N_TO / n, and N_SPO = N_TO / n * m / n."""
    n, everything = GOLDEN["spo_table1"]["n"], GOLDEN["spo_table1"]["N_TO"]
    assert row["N_PO"] == everything / n
    assert row["N_SPO"] == everything / n * row["m"] / n


def copies_after_one_loss(chance: Random, nodes: int, of_each: int, m: int) -> list[str]:
    """E1 and E2 send to m random nodes each time; the last node loses the first unit of E1, and asks when it can."""
    group = paper_group(LossInference.NONE, nodes=nodes, window=of_each)
    asking = nodes - 1
    for turn in range(of_each):
        for source, name in ((E1, "a"), (E2, "b")):
            some = chance.sample(group.nodes, m)
            if asking not in some and name + str(turn) == "a0":
                some[0] = asking  # the loss is one that matters
            group.submit(source, f"{name}{turn}", "".join(str(node + 1) for node in some))
    group.hear(asking, *group.under_way(E2, asking))
    group.lose(asking, "a0")
    while not group.requests:
        group.hear(asking, group.under_way(E1, asking)[0])
    for source in (E1, E2):
        group.hear(source, f"RETRANS E{asking + 1}")
    return group.copies


@pytest.mark.parametrize("m", [8, 4, 2])
def test_5_2_measured_what_is_resent_after_a_loss_is_a_share_of_m_in_n(m: int) -> None:
    """Without acceptance condition (2): what follows the loss, of its source only and for the asking node only.

    That is the lost unit and a share m/n of the 39 behind it: 30 times 39 draws, so that 0.06 is four deviations.
    """
    chance, nodes, of_each, losses = Random(m), 8, 40, 30
    share = 0.0
    for _ in range(losses):
        copies = copies_after_one_loss(chance, nodes, of_each, m)
        assert copies[0] == "a0"
        assert all(letter.startswith("a") for letter in copies), "other sources resend nothing"
        share += (len(copies) - 1) / (of_each - 1) / losses
    assert share == pytest.approx(m / nodes, abs=0.06 if m < nodes else 1e-9)


def test_5_2_with_acceptance_condition_2_other_sources_resend_too() -> None:
    """What acknowledges the lost unit is discarded as well: the table holds without condition (2) only."""
    copies = {}
    for reading in (LossInference.ALL, LossInference.NONE):
        group = paper_group(reading)
        group.submit(E1, "a", "123")
        group.hear(E1, "a")
        group.hear(E2, "a")
        group.lose(E3, "a")
        group.submit(E2, "b", "123")
        group.hear(E3, "b")
        group.expire(E3)
        group.hear(E1, "RETRANS E3")
        group.hear(E2, "RETRANS E3")
        copies[reading] = group.copies
    assert copies == {LossInference.ALL: ["a", "b"], LossInference.NONE: ["a"]}
