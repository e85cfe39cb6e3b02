"""Propositions 1 to 4 and Theorem 5 of the ST paper: where they hold, and where they do not.

Channels are drawn: each packet is sent before anything is heard, and every source ends with one to everybody that is
not lost, so that data show all losses and nothing is pre-acknowledged before the agreement. That is the case that the
paper's proofs have in mind. What goes wrong beyond it is in `test_st_counterexamples`.
"""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ordercast.model.units import Packet
from ordercast.protocols.spo.units import Data, Status
from ordercast.protocols.st.paper.recovery import sorted_log
from tests.audit.figures import golden
from tests.protocols.one_channel import E1, E2, E3
from tests.protocols.st_paper import precedence
from tests.protocols.st_paper.entity import FIGURE_3, PaperGroup, agree, paper_group, whole_log

FIGURE_5 = ["x c p z", "a x b y q", "a x z q"]
EXAMPLE_2 = golden("golden-spo-st.json")["st_example2"]
ORDERS = st.permutations([E1, E2, E3])
SUBSETS = ("1", "2", "3", "12", "13", "23", "123")
WORDS = st.lists(st.tuples(st.sampled_from("123"), st.sampled_from(SUBSETS)), min_size=2, max_size=7)
LETTERS = "abcdefg"
PROMISED = {"same_order", "no_cycle", "sender_order_kept", "complete"}


def told(words: list[tuple[str, str]], losses: list[tuple[int, str]], order: list[int]) -> PaperGroup:
    """A channel with its losses, and the recovery from them; what shows a gap is kept."""
    group = paper_group(keeps=True, time_out=False)
    for letter, (source, to) in zip(LETTERS, words, strict=False):
        group.submit_all(f"{letter}{source}:{to}")
    group.submit_all("x1:123 y2:123 z3:123")
    group.drain(losses)
    for last in ("RST_ACK E1", "RST_ACK E2", "RST_ACK E3") if losses else ("",):
        agree(group, *order, until=last)
    return group


def channel_of(group: PaperGroup) -> list[str]:
    return list(group.submitted)


# --- the definitions, on the paper's example ---


def test_definitions_on_figure_5_and_6() -> None:
    assert list(precedence.failure_section(FIGURE_5, E3, "c")) == EXAMPLE_2["failure_section_f3(c)"]
    assert sorted(precedence.to_be_sorted(FIGURE_5, "c")) == sorted(EXAMPLE_2["T(c)"])
    assert precedence.sort_line(FIGURE_5, "c") == EXAMPLE_2["sort_line"]


def test_proposition_1_on_figure_5() -> None:
    """c may stand between x and z, and nowhere else; and there the printed rules put it."""
    places = precedence.insertions(FIGURE_5[E3], "c")
    good = [log for log in places if precedence.is_consistent([*FIGURE_5[:2], log])]
    assert good == ["a x c z q"]
    group = paper_group(keeps=True)
    group.submit_all(FIGURE_3)
    group.drain([(E3, "c")])
    assert group.settle()
    assert group.together()[E3] == good[0]


# --- proposition 1 ---


@settings(max_examples=100, deadline=None)
@given(WORDS, st.integers(0, 20), ORDERS)
def test_proposition_1_holds_for_common_destinations(words: list[tuple[str, str]], pick: int, order: list[int]) -> None:
    """One packet is lost by one destination: what any two nodes both have, they have in one order, that of the channel.

    More is not true: there may be a cycle through three of them (see `test_one_loss_is_enough_for_a_cycle`).
    """
    destined = [(int(node) - 1, letter) for letter, (_, to) in zip(LETTERS, words, strict=False) for node in to]
    node, lost = destined[pick % len(destined)]
    group = told(words, [(node, lost)], order)
    group.hear_rest()
    logs = [whole_log(group, node) for node in group.nodes]
    for log, entity in zip(logs, "123", strict=True):
        assert sorted(log.split()) == sorted(letter for letter, (_, to) in group.submitted.items() if entity in to)
    assert precedence.agree_on_order(logs)


def test_proposition_1_does_not_say_where_the_rules_insert() -> None:
    """S2: E3 puts c before v, outside of its failure section."""
    logs = ["u v c d", "u", "v"]
    assert precedence.failure_section(logs, E3, "c") == ("v", "")
    group = paper_group(keeps=True)
    group.submit_all("u2:12 v1:13 c1:13 d1:1")
    group.drain([(E3, "u"), (E3, "c")])
    group.hear_rest()
    assert whole_log(group, E3) == "c v"
    assert not precedence.is_consistent([*logs[:2], whole_log(group, E3)])


# --- proposition 2 ---


@settings(max_examples=100, deadline=None)
@given(WORDS, st.sets(st.tuples(st.integers(0, 2), st.integers(0, 6)), min_size=1, max_size=4), ORDERS)
def test_proposition_2_holds_for_the_order_of_what_precedes_sort_points(
    words: list[tuple[str, str]], picks: set[tuple[int, int]], order: list[int]
) -> None:
    """Whatever is lost: what step (6) acknowledges is in the order of the channel everywhere."""
    losses = [(node, LETTERS[place]) for node, place in sorted(picks, key=lambda pick: pick[1]) if place < len(words)]
    shown = [(node, letter) for node, letter in losses if str(node + 1) in words[LETTERS.index(letter)][1]]
    if not shown:
        return
    group = told(words, losses, order)
    channel = channel_of(group)
    for letters in group.delivered:
        assert letters == sorted(letters, key=channel.index)


def test_proposition_2_does_not_hold_for_its_information() -> None:
    """What precedes the sort point of E3 lacks g, which E1 has before y."""
    group = paper_group(time_out=False)
    group.submit_all("g2:13 y3:13")
    group.drain([(E3, "g")])
    for word in ("p1:13", "s3:3", "r1:3", "t3:3", "u3:3"):
        group.submit_all(word)
        group.drain([])
    assert whole_log(group, E1).split()[:2] == ["g", "y"]
    assert group.delivered[E3][:1] == ["y"]
    assert "g" not in whole_log(group, E3)


# --- proposition 3 ---


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from("123"), min_size=2, max_size=7), st.integers(0, 2), st.sets(st.integers(0, 6)), ORDERS)
def test_proposition_3_holds_for_losses_of_one_node_when_all_is_for_all(
    sources: list[str], node: int, picks: set[int], order: list[int]
) -> None:
    """The sort point of each node is right behind what precedes the first loss."""
    losses = [(node, LETTERS[place]) for place in sorted(picks) if place < len(sources)]
    if not losses:
        return
    group = told([(source, "123") for source in sources], losses, order)
    first = losses[0][1]
    channel = channel_of(group)
    for each in group.nodes:
        before = channel[: channel.index(first)]
        assert group.delivered[each] == before, "all before the first loss, and nothing behind it"


def test_proposition_3_does_not_hold_with_selective_destinations() -> None:
    """g precedes y at E1, y precedes z at E2; yet z is before the sort point of E3, and is acknowledged."""
    group = paper_group(keeps=True, time_out=False)
    group.submit_all("g1:13 y2:12 z3:23 d1:3")
    group.drain([(E3, "g")])
    assert "z" in precedence.to_be_sorted(["g y", "y z", "z d"], "g")
    group.hear_rest()
    assert group.delivered[E3] == ["z"]


# --- proposition 4 ---


def unit(source: int, seq: int) -> Data:
    return Data(Packet(source, 0b111, seq, (seq,) * 3, seq, (1,), b"x"), Status(1, (0, 0, 0)))


UNITS = st.builds(unit, st.integers(0, 2), st.integers(0, 5))


@given(st.lists(st.lists(UNITS, unique=True), min_size=2, max_size=3), ORDERS)
def test_proposition_4_holds_for_what_is_sorted(logs: list[list[Data]], order: list[int]) -> None:
    """Whatever the logs, sorted ones agree on common packets, and have each sender's in its order."""
    results = [sorted_log(log, E1, order, (9, 9, 9)) for log in logs]
    for log, result in zip(logs, results, strict=True):
        assert sorted(map(repr, result)) == sorted(map(repr, log))
        for source in range(3):
            numbers = [each.packet.seq for each in result if each.source == source]
            assert numbers == sorted(numbers)
    assert precedence.agree_on_order(
        [" ".join(f"{each.source}/{each.packet.seq}" for each in result) for result in results]
    )


@pytest.mark.parametrize("sent_below", [(5, 5, 5), (8, 7, 5)])
def test_proposition_4_leaves_what_was_sent_later_behind(sent_below: tuple[int, ...]) -> None:
    """With its next number, which is not below it, a source begins to send later."""
    log = [unit(E2, 7), unit(E3, 1), unit(E1, 2), unit(E2, 3), unit(E1, 8)]
    found = sorted_log(log, E1, (E2, E3, E1), sent_below)
    assert [(each.source, each.packet.seq) for each in found] == [(E2, 3), (E3, 1), (E1, 2), (E2, 7), (E1, 8)]


# --- theorem 5 ---


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.booleans())
def test_theorem_5_holds_without_losses(seed: int, keeps: bool) -> None:
    group = paper_group(keeps=keeps)
    group.wander(Random(seed), 120, losses=0)
    assert group.settle()
    assert group.broken_promises() & PROMISED == set()
    assert not any(label.startswith("RST") for label in group.labels()), "nothing shows a loss"
    logs = group.together()
    places = {letter: place for place, letter in enumerate(dict.fromkeys(group.labels()))}
    assert all(log.split() == sorted(log.split(), key=places.__getitem__) for log in logs), "that of the channel"


@settings(max_examples=80, deadline=None)
@given(st.lists(st.sampled_from("123"), min_size=2, max_size=7), st.integers(0, 2), st.sets(st.integers(0, 6)), ORDERS)
def test_theorem_5_holds_for_losses_of_one_node_one_of_each_sender(
    sources: list[str], node: int, picks: set[int], order: list[int]
) -> None:
    """If all is for all, and what shows a gap is kept. Two of one sender are S8."""
    lost = {sources[place]: (node, LETTERS[place]) for place in sorted(picks) if place < len(sources)}
    group = told([(source, "123") for source in sources], sorted(lost.values(), key=lambda loss: loss[1]), order)
    group.hear_rest()
    logs = [whole_log(group, each) for each in group.nodes]
    assert logs[0] == logs[1] == logs[2]
    assert sorted(logs[0].split()) == sorted(group.submitted)


@pytest.mark.parametrize("keeps", [False, True])
def test_theorem_5_does_not_hold_with_losses(keeps: bool) -> None:
    """Random walks find it soon, and the sound rules have none of it (see the tests of `st`)."""
    broken: set[str] = set()
    for seed in range(60):
        group = paper_group(keeps=keeps)
        group.wander(Random(seed), 100, losses=2)
        group.settle(budget=600)
        broken |= group.broken_promises()
    assert {"same_order", "no_cycle", "complete", "acknowledged_truthfully"} <= broken
