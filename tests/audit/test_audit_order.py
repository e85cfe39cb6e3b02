"""Each sender's order, the same order, an order without cycles: by hand, by figure, and against slow ones."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordercast.audit.completeness import complete
from ordercast.audit.logs import RunLogs
from ordercast.audit.order import no_cycle, same_order, sender_order_kept
from ordercast.audit.violations import Message
from tests.audit.figures import Figure, figure_of, golden

SERVICES = golden("golden-spo-st.json")["services"]
SENT = ["a123 b123 c123", "p123 q123", "x123"]


def kept(figure: Figure) -> dict[str, bool]:
    logs = figure.logs()
    return {
        promise.__name__: not list(promise(logs)) for promise in (sender_order_kept, complete, same_order, no_cycle)
    }


def test_000_fig_1_is_spo_and_not_order_equivalent() -> None:
    [spo, _, _] = SERVICES
    found = kept(figure_of(spo["SL"], spo["RL"]))
    assert found == {"sender_order_kept": True, "complete": True, "same_order": False, "no_cycle": False}


def test_001_fig_2_is_what_a_lossy_channel_gives() -> None:
    [_, spo, _] = SERVICES
    figure = figure_of(spo["SL"], spo["RL_MC_Fig2"])
    found = kept(figure)
    assert found == {"sender_order_kept": True, "complete": False, "same_order": False, "no_cycle": False}


def test_001_fig_2_lacks_what_was_lost_and_has_what_was_for_others() -> None:
    [_, spo, _] = SERVICES
    everybody = {name: [[letter, "123"] for letter, _ in log] for name, log in spo["SL"].items()}
    figure = figure_of(everybody, spo["RL_MC_Fig2"])
    lacking = {(violation.nodes[0], figure.letters(violation)) for violation in complete(figure.logs())}
    assert lacking == {(1, "c"), (2, "q")}


def test_001_fig_3_is_spo_and_not_order_equivalent() -> None:
    [_, spo, _] = SERVICES
    found = kept(figure_of(spo["SL"], spo["RL_SPO_Fig3"]))
    assert found == {"sender_order_kept": True, "complete": True, "same_order": False, "no_cycle": False}


def test_002_figure_3a_is_sp_and_not_st() -> None:
    [_, _, st_figure] = SERVICES
    found = kept(figure_of(st_figure["SL"], st_figure["RL_SP_3a"]))
    assert found == {"sender_order_kept": True, "complete": True, "same_order": False, "no_cycle": False}


def test_002_figure_3b_is_st() -> None:
    [_, _, st_figure] = SERVICES
    found = kept(figure_of(st_figure["SL"], st_figure["RL_ST_3b"]))
    assert found == dict.fromkeys(found, True)


def test_order_equivalent_is_not_consistent() -> None:
    """The papers' definition of ST does not give the consistency that they ask of it."""
    figure = Figure(["g13", "y12", "w23"], ["g y", "y w", "w g"])
    assert kept(figure) == {"sender_order_kept": True, "complete": True, "same_order": True, "no_cycle": False}
    [cycle] = no_cycle(figure.logs())
    assert sorted(figure.letters(cycle).split()) == ["g", "w", "y"]
    logs = figure.logs()
    following = [*cycle.messages[1:], cycle.messages[0]]
    for node, before, after in zip(cycle.nodes, cycle.messages, following, strict=True):
        assert logs.delivered[node].index(before) < logs.delivered[node].index(after)


@pytest.mark.parametrize(
    ("received", "node", "pair"),
    [
        ("b a p c q x", 0, "b a"),  # the very first
        ("a p b x q c", 0, None),  # other senders may come between
        ("a c p q x b", 0, "c b"),  # the last comes late
        ("a b c q p x", 0, "q p"),  # another sender
        ("c a b a p q x", 0, "c a"),  # twice: the first place counts
        ("x q c", 0, None),  # nothing is asked of what is lacking
        ("b ? a", 0, "b a"),  # what nobody sent has no order
        ("? b ! a", 0, "b a"),  # nor have two of that kind
    ],
)
def test_sender_order_is_that_of_sending(received: str, node: int, pair: str | None) -> None:
    figure = Figure(SENT, [received, "", ""])
    found = list(sender_order_kept(figure.logs()))
    assert [figure.letters(violation) for violation in found] == ([pair] if pair else [])
    for violation in found:
        assert violation.nodes == (node,)
        assert [received.split()[place] for place in violation.places] == figure.letters(violation).split()


def test_sender_order_is_the_order_of_steps_not_of_numbers() -> None:
    figure = Figure(["a12 b12", ""], ["", "b a"])
    swapped = [(*row[:5], 1 - row[5], *row[6:]) if row[5] is not None else row for row in figure.rows]
    figure.rows = swapped
    found = list(sender_order_kept(figure.logs()))
    assert [violation.messages for violation in found] == [((0, 0), (0, 1))]


@pytest.mark.parametrize(
    ("received", "pairs"),
    [
        (["a p b", "a p b", "a p b"], []),
        (["a p b", "p b", "a b"], []),  # whoever lacks something still agrees on the rest
        (["a p b", "", "a b p"], [("p b", (0, 2))]),
        (["a b p", "p b a", "a"], [("a b", (0, 1)), ("b p", (0, 1))]),
        (["p a", "a p", "p a"], [("p a", (0, 1)), ("a p", (1, 2))]),
        (["a x p b", "p q a", ""], [("a p", (0, 1))]),  # what only one has stands between
        (["a p a", "p a", ""], [("a p", (0, 1))]),  # twice: the first place counts
        (["a p x q", "a p a q x", ""], [("x q", (0, 1))]),
    ],
)
def test_same_order_names_neighbours_that_two_nodes_have_the_other_way_round(
    received: list[str], pairs: list[tuple[str, tuple[int, int]]]
) -> None:
    figure = Figure(SENT, received)
    found = list(same_order(figure.logs()))
    assert [(figure.letters(violation), violation.nodes) for violation in found] == pairs
    for violation in found:
        one, other = (received[node].split() for node in violation.nodes)
        first, second = figure.letters(violation).split()
        assert [one[violation.places[0]], one[violation.places[1]]] == [first, second]
        assert [other[violation.places[2]], other[violation.places[3]]] == [first, second]


@pytest.mark.parametrize(
    ("received", "lengths"),
    [
        (["a p x", "p x", "a x"], []),
        (["a p", "p a", ""], [2]),
        (["a p b", "b x", "x a"], [3]),
        (["a c p b", "x b q a", "x"], [2]),  # a short one is shown, though long ways round lead there too
        (["a p", "p a", "q x"], [2]),  # what is no part of it stays out of it
        (["a p b x", "p a x b", ""], [2, 2]),  # two that have nothing to do with each other
        (["a p a", "", ""], []),  # twice is no cycle
    ],
)
def test_no_cycle_shows_short_ones(received: list[str], lengths: list[int]) -> None:
    figure = Figure(SENT, received)
    found = list(no_cycle(figure.logs()))
    assert [len(violation.messages) for violation in found] == lengths
    for violation in found:
        for node, message, place in zip(violation.nodes, violation.messages, violation.places, strict=True):
            assert figure.logs().delivered[node][place] == message


def test_a_short_cut_through_a_long_cycle_is_taken() -> None:
    sent = ["a1234 b1234 c1234 d1234", "", "", ""]
    figure = Figure(sent, ["a b d", "b c a", "c d", "d a"])
    [cycle] = no_cycle(figure.logs())
    assert len(cycle.messages) == 2


def test_orders_of_many_messages_take_no_recursion_and_no_square() -> None:
    count = 100_000
    messages = [(0, seq) for seq in range(count)]
    turned = [*messages[1:], messages[0]]
    logs = RunLogs(run="r", nodes=2, sent={}, delivered=(tuple(messages), tuple(turned)), first={})
    [cycle] = no_cycle(logs)
    assert len(cycle.messages) == 2
    assert len(list(same_order(logs))) == 1


Orders = list[list[Message]]


@st.composite
def orders(draw: st.DrawFn) -> Orders:
    """Logs of up to five nodes, mostly in keeping with one order, each perhaps with something out of place."""
    messages = [(source, seq) for source in range(2) for seq in range(draw(st.integers(1, 4)))]
    logs = []
    for _ in range(draw(st.integers(1, 5))):
        log = [message for message in messages if draw(st.booleans())]
        if len(log) > 1 and draw(st.booleans()):
            place = draw(st.integers(0, len(log) - 1))
            log.insert(draw(st.integers(0, len(log) - 1)), log.pop(place))
        logs.append(log)
    return logs


def as_logs(logs: Orders) -> RunLogs:
    return RunLogs(run="r", nodes=len(logs), sent={}, delivered=tuple(tuple(log) for log in logs), first={})


def naive_same_order(logs: Orders) -> bool:
    """The definition, pair by pair."""
    return all(
        (one.index(p) < one.index(q)) == (other.index(p) < other.index(q))
        for one, other in combinations(logs, 2)
        for p, q in combinations(set(one) & set(other), 2)
    )


def naive_no_cycle(logs: Orders) -> bool:
    """The transitive closure of all pairs, which must not hold a message before itself."""
    before = {(log[i], log[j]) for log in logs for i in range(len(log)) for j in range(i + 1, len(log))}
    grown = True
    while grown:
        further = {(p, r) for p, q in before for q2, r in before if q == q2}
        grown = not further <= before
        before |= further
    return all(p != q for p, q in before)


@given(orders())
def test_same_order_is_the_definition(logs: Orders) -> None:
    found = list(same_order(as_logs(logs)))
    assert (not found) == naive_same_order(logs)
    for violation in found:
        one, other = (logs[node] for node in violation.nodes)
        p, q = violation.messages
        assert one.index(p) < one.index(q)
        assert other.index(q) < other.index(p)


@given(orders())
def test_no_cycle_is_the_definition(logs: Orders) -> None:
    found = list(no_cycle(as_logs(logs)))
    assert (not found) == naive_no_cycle(logs)
    for violation in found:
        following = [*violation.messages[1:], violation.messages[0]]
        for node, p, q in zip(violation.nodes, violation.messages, following, strict=True):
            assert logs[node].index(p) < logs[node].index(q)
