"""The figures and examples of the ST paper, by their numbers, against the printed rules.

Numbers start at 1, as in example 2. The expected values are the golden file's, which were worked out by hand.
"""

from typing import Any

import pytest

from ordercast.model.config import GroupConfig
from ordercast.model.machine import Discard, Level, Reached, Receive, Send
from ordercast.model.units import Packet
from ordercast.protocols.spo.units import Data, Status
from ordercast.protocols.st.paper.machine import StPaper
from ordercast.protocols.st.units import Reset, ResetAgreement, ResetOrder
from tests.audit.figures import golden
from tests.protocols.one_channel import E1, E2, E3
from tests.protocols.st_paper.entity import FIGURE_3, PaperGroup, agree, logs_of, paper_group, sound_group, speak

GOLDEN = golden("golden-spo-st.json")
EXAMPLE_2, SORTING = GOLDEN["st_example2"], GOLDEN["st_example3_sorting"]
FIGURE = GOLDEN["services"][2]
ENTITIES = ("E1", "E2", "E3")


def by_entity(value: dict[str, list[str]]) -> list[str]:
    return [" ".join(value[entity]) for entity in ENTITIES]


# --- section 3.2 ---


@pytest.mark.parametrize("case", GOLDEN["st_fig4_acceptance"]["cases"], ids=lambda case: case["case"][0])
def test_figure_4(case: dict[str, Any]) -> None:
    """E_j = E1 has sent a, b and c; E_i = E2 accepts a and loses b."""
    machine = StPaper(E2, GroupConfig(nodes=2, first_seq=(3, 0)))
    machine.expected_to_me[E1] = 2

    def unit(seq: int, number: int, *, for_me: bool) -> Data:
        return Data(Packet(E1, 0b10 if for_me else 0b01, seq, (0, number), 0, (1,), b"x"), Status(1, (3, 0)))

    (a,) = GOLDEN["st_fig4_acceptance"]["sent"]
    machine.handle(Receive(unit(a["TSEQ"], a["PSEQ_i"], for_me=a["dst_i"])))
    state = GOLDEN["st_fig4_acceptance"]["state"]
    assert (machine.expected[E1], machine.expected_to_me[E1]) == (state["TREQ_j"], state["PREQ_j"])

    c = unit(case["c"]["TSEQ"], case["c"]["PSEQ_i"], for_me=case["c"]["dst_i"])
    out = machine.handle(Receive(c))
    found = (machine.expected[E1], machine.expected_to_me[E1])
    resets = [output.unit for output in out if isinstance(output, Send) and isinstance(output.unit, Reset)]
    match case["case"][0]:
        case "a":  # c is accepted; b was not for E_i
            assert Reached(Level.ACCEPTED, c.packet) in out
            assert (found, resets) == ((6, 4), [])
        case "b":  # b is known to be lost
            assert (found, resets) == ((4, 3), [Reset(E2, (4, 0))])
        case "c":  # the header of c tells as much as in (a), and is rejected
            assert (found, resets) == ((4, 3), [])
            assert Discard(c, "rejected") in out


# --- section 2.2 ---


@pytest.mark.parametrize("make", [paper_group, sound_group])
def test_figure_3b_is_the_service_without_losses(make: Any) -> None:
    group = make()
    group.submit_all(FIGURE_3)
    assert group.labels() == FIGURE["channel_order_consistent_with_3b"]
    assert group.settle()
    assert group.together() == by_entity(FIGURE["RL_ST_3b"])
    assert group.broken_promises() == set()


# --- section 4.4 ---


def example_2() -> PaperGroup:
    """Figure 5: E3 loses c; nothing of E1 follows to show it but its RR."""
    group = paper_group(time_out=False)
    group.submit_all(FIGURE_3)
    group.drain([(E3, "c")])
    return group


def found_by_ready() -> PaperGroup:
    """E1's RR is heard by E3, which finds the loss; the others are slower."""
    group = example_2()
    speak(group, E1)
    group.hear(E3, "RR E1")
    return group


def test_figure_5_and_example_2_before_the_agreement() -> None:
    group = example_2()
    assert logs_of(group) == by_entity(EXAMPLE_2["logs_RRL"])
    assert [machine.expected for machine in group.machines] == EXAMPLE_2["TREQ_before"]
    assert [machine.expected_to_me for machine in group.machines] == EXAMPLE_2["derived_PREQ_before"]
    assert [machine.next_seq_to for machine in group.machines] == EXAMPLE_2["derived_PSEQ_before"]
    assert {word[0]: group.said(word[0]).packet.seq for word in FIGURE_3.split()} == EXAMPLE_2["TSEQ"]


def test_example_2_reset() -> None:
    group = found_by_ready()
    assert group.said("RST E3") == Reset(E3, tuple(EXAMPLE_2["RST"]["TREQ"]))


def test_example_2_step_2() -> None:
    group = found_by_ready()
    agree(group, E1, E2, E3)
    for node, entity in enumerate(ENTITIES):
        expected = tuple(EXAMPLE_2["step2"][entity]["RST_PAK"])
        assert group.said(f"RST_PAK {entity}") == ResetAgreement(node, expected)


def test_example_2_agreed_vector() -> None:
    group = found_by_ready()
    agree(group, E1, E2, E3)
    for node, entity in enumerate(ENTITIES):
        said: ResetOrder = group.said(f"RST_ACK {entity}")
        assert said.expects == tuple(EXAMPLE_2["agreed_TREQ"])
        assert said.expected_to_me == tuple(EXAMPLE_2["derived_PREQ_before"][node])
        assert said.next_seq_to == tuple(EXAMPLE_2["derived_PSEQ_before"][node])
        assert said.order == (E1, E2, E3)


def test_figure_6_and_example_2_sort_line() -> None:
    """Everybody has heard all RST_ACKs, and nobody c again: what precedes the sort points is acknowledged."""
    group = found_by_ready()
    agree(group, E1, E2, E3, until="RST_ACK E3")
    assert group.together() == by_entity(EXAMPLE_2["acknowledged_prefix"])
    assert logs_of(group) == by_entity(EXAMPLE_2["RRL_after"])
    assert [log.split()[0] for log in logs_of(group)] == EXAMPLE_2["sort_line"]
    assert [machine.pairs for machine in group.machines] == [EXAMPLE_2["FAIL"]] * 3
    only = EXAMPLE_2["PR_PS_only_gap"]
    assert (group.machines[E3].expected_to_me[E1], group.machines[E3].sent_below[E1]) == (only["PR"], only["PS"])
    assert group.machines[E3].expected == EXAMPLE_2["TREQ_before"][E3], "TREQ itself is not lowered"
    assert group.copies == ["c"], "only c is sent again"


def test_example_3_insertion() -> None:
    group = found_by_ready()
    agree(group, E1, E2, E3)
    assert logs_of(group) == by_entity(GOLDEN["st_example3_insertion"]["RRL_after"])
    assert group.machines[E3].expected == [4, 3, 4]


def multi_loss(starts: int) -> PaperGroup:
    """E2 loses y and E3 loses c. With z, E3 shows y to E2 at once; c is shown by E1's RR."""
    group = paper_group(time_out=False)
    group.submit_all(FIGURE_3)
    for node in group.nodes:
        for letter in group.labels()[:6]:
            (group.miss if (node, letter) in {(E2, "y"), (E3, "c")} else group.hear)(node, letter)
    if starts == E3:  # E2 has not come to z yet when E1 says what it has sent
        speak(group, E1)
        group.hear(E3, "z", "q", "RR E1")
    else:
        group.hear(E2, "z")
    agree(group, E3, E1, E2)
    return group


@pytest.mark.parametrize(
    ("starts", "key"), [(E3, "agreed_TREQ_if_E3_starts"), (E2, "agreed_TREQ_if_E2_starts")], ids=["E3", "E2"]
)
def test_example_3_sorting_and_figure_7(starts: int, key: str) -> None:
    group = multi_loss(starts)
    resets = [label for label in group.labels() if label.startswith("RST E")]
    assert resets[0] == f"RST E{starts + 1}"
    said: ResetOrder = group.said("RST_ACK E1")
    assert said.expects == tuple(SORTING[key])
    assert [f"E{node + 1}" for node in said.order] == SORTING["ORDR"]
    assert sorted(set(group.copies)) == ["c", "y"]
    assert logs_of(group) == by_entity(SORTING["after_sort_Figure7"])


def test_example_3_sorting_goes_to_a_good_end() -> None:
    """As far as the order goes."""
    group = multi_loss(E3)
    for machine in group.machines:
        assert machine.waits_for(), "without a time-out nothing more is acknowledged"
    heads = by_entity(EXAMPLE_2["acknowledged_prefix"])
    assert group.together()[E1] == heads[E1]
    assert group.broken_promises() & {"same_order", "no_cycle", "sender_order_kept"} == set()


# --- example 1 ---


def test_example_1_part_1_one_sender() -> None:
    """a, b and c are of one process: whoever loses one can tell by its number where it belongs."""
    group = paper_group(keeps=True)
    group.submit_all("a3:12 b3:23 c3:13 d3:123")
    group.drain([(E1, "a"), (E2, "b"), (E3, "c")])
    assert group.settle()
    assert group.together() == ["a c d", "a b d", "b c d"]


def test_example_1_part_2_three_senders_and_one_loss() -> None:
    """E2 has a before b, E3 has b before c, and E1, which loses c, puts it behind a."""
    group = paper_group(keeps=True)
    group.submit_all("a1:12 b2:23 c3:13")
    group.drain([(E1, "c")])
    assert group.settle()
    assert group.together() == ["a c", "a b", "b c"]


def test_example_1_three_losses_are_put_in_one_order() -> None:
    """Whatever that is, it has no cycle, as it would if all of them went to the ends of the logs."""
    group = paper_group(keeps=True)
    group.submit_all("a1:12 b2:23 c3:13")
    group.drain([(E1, "a"), (E2, "b"), (E3, "c")])
    assert group.settle()
    assert sorted(map(sorted, map(str.split, group.together()))) == [["a", "b"], ["a", "c"], ["b", "c"]]
    assert group.broken_promises() & {"same_order", "no_cycle", "complete"} == set()
