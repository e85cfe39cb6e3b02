"""Where the printed SPO fails, each told once: as stated under those rules, and to a good end under the sound ones.

The stories are those of the golden file, by their names there. That of R1 came out of a random search, and was cut
down to what it needs; if condition (2) of acceptance is asked for the source too, it happens to stop it.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from ordercast.audit.levels import acknowledged_truthfully
from ordercast.model.config import LossInference
from ordercast.model.machine import Abort, Discard, Level
from ordercast.protocols.spo.machine import Spo
from ordercast.protocols.spo.paper import SpoPaper
from ordercast.protocols.spo.units import RetransmitRequest
from tests.audit.figures import golden
from tests.protocols.spo_paper.figure_4 import FIGURE, told
from tests.protocols.spo_paper.group import E1, E2, E3, Group, paper_group

GOLDEN = {
    entry["id"].removeprefix("SPO-"): entry
    for entry in golden("golden-spo-st.json")["counterexamples"]
    if entry["id"].startswith("SPO-")
}
AnyGroup = Group[Any]


# --- the stories ---


def a1(group: AnyGroup) -> None:
    group.submit(E1, "x", "23")
    group.hear(E2, "x")
    group.submit(E2, "q2", "2")
    group.hear(E2, "q2")
    group.hear(E3, "x")
    group.submit(E3, "q3", "2")
    group.hear(E2, "q3")
    group.submit(E2, "r2", "2")
    group.hear(E2, "r2")


def a2(group: AnyGroup) -> None:
    """Any number of units, none of which E2 sends to itself."""
    for source, letter, to in ((E1, "a", "2"), (E2, "b", "13"), (E3, "c", "2"), (E1, "d", "123"), (E2, "e", "1")):
        group.submit(source, letter, to)
        group.all_hear(letter)


def c0(group: AnyGroup) -> None:
    """No loss: at E3, b overtakes a."""
    group.submit(E1, "a", "23")
    group.hear(E2, "a")
    group.submit(E2, "b", "3")
    group.hear(E3, "b", "a")


def c1(group: AnyGroup) -> None:
    """E3 loses what was not for it."""
    group.submit(E1, "a", "2")
    group.hear(E1, "a")
    group.submit(E1, "b", "3")
    group.lose(E3, "a")
    group.hear(E3, "b")


def c2(group: AnyGroup) -> None:
    """E3 loses what was not for it, and asks for it."""
    group.submit(E1, "a", "12")
    group.lose(E3, "a")
    group.hear(E2, "a")
    group.submit(E2, "b", "3")
    group.hear(E3, "b")
    group.expire(E3)
    group.all_hear("RETRANS E3")
    group.hear(E3, "b")


def c3(group: AnyGroup) -> None:
    group.submit(E1, "a", "2")
    group.lose(E2, "a")


def c4(group: AnyGroup) -> None:
    group.submit(E1, "a", "2")
    group.submit(E1, "b", "2")
    group.lose(E2, "a")
    group.hear(E2, "b")
    group.lose(E1, "RETRANS E2")


def c5(group: AnyGroup) -> None:
    """E3 has nothing to send; E2 has."""
    for letter in "ab":
        group.submit(E1, letter, "2")
        group.all_hear(letter)
    group.submit(E1, "c", "2")
    group.submit(E2, "x", "1")
    group.all_hear("x")
    group.submit(E2, "y", "13")
    group.all_hear("y")


def c6(group: AnyGroup) -> None:
    """JP Figure 4; then the copy of j overtakes that of i."""
    told(group, 9)
    group.all_hear("RETRANS E3")
    group.hear(E3, "h", "j", "i")


def c7(group: AnyGroup) -> None:
    """Everybody sends what its window allows before it hears anything, and has more to send."""
    for turn in "123":
        for source, name in ((E1, "a"), (E2, "b"), (E3, "c")):
            group.submit(source, name + turn, "123")
    group.all_hear(*(name + turn for turn in "12" for name in "abc"))


def d1(group: AnyGroup) -> None:
    """E3 hears again what was never for it, since E2 had lost it."""
    group.submit(E1, "a", "12")
    group.submit(E1, "b", "2")
    group.hear(E3, "a", "b")
    group.lose(E2, "a")
    group.hear(E2, "b")
    group.hear(E1, "RETRANS E2")
    group.hear(E3, "RETRANS E2", "a")


def r1(group: AnyGroup) -> None:
    """E1 loses a, and gets a copy that says more than the a that the others have."""
    group.submit(E2, "a", "123")
    group.lose(E1, "a")
    group.submit(E2, "b", "123")
    group.hear(E2, "a")
    group.hear(E1, "b")
    group.all_hear("RETRANS E1")
    group.hear(E1, "a", "b")
    group.hear(E2, "b")
    group.hear(E3, "a", "b")
    group.submit(E1, "c", "123")
    group.all_hear("c")
    group.submit(E3, "d", "123")
    group.all_hear("d")
    group.submit(E3, "e", "123")
    group.hear(E1, "e")
    group.submit(E1, "f", "123")
    group.submit(E2, "g", "123")
    group.hear(E1, "g", "f")


@dataclass(frozen=True)
class Story:
    tell: Callable[[AnyGroup], None]
    reading: LossInference = LossInference.ALL
    paper: dict[str, Any] = field(default_factory=dict)
    """Other readings of the printed rules."""
    settings: dict[str, Any] = field(default_factory=dict)

    def printed(self, **other: Any) -> Group[SpoPaper]:
        group = paper_group(self.reading, paper={**self.paper, **other}, **self.settings)
        self.tell(group)
        return group

    def sound(self) -> Group[Spo]:
        group = Group(Spo, lenient=True, **self.settings)
        self.tell(group)
        return group


STORIES = {
    "A1": Story(a1),
    "A2": Story(a2),
    "C0": Story(c0),
    "C1": Story(c1),
    "C2": Story(c2, LossInference.OTHERS),
    "C3": Story(c3),
    "C4": Story(c4),
    "C5": Story(c5, settings={"window": 2}),
    "C6": Story(c6, settings={"first_seq": tuple(FIGURE["ISS"])}),
    "C7": Story(c7, settings={"window": 2}),
    "D1": Story(d1, paper={"duplicates_first": False}),
    "R1": Story(r1, LossInference.OTHERS, paper={"verbatim_copies": False}),
}


def lacks(group: AnyGroup, node: int, letter: str) -> bool:
    return letter not in group.levels[node]


# --- the sound rules ---


@pytest.mark.parametrize("name", STORIES)
def test_sound_rules_bring_every_story_to_a_good_end(name: str) -> None:
    story = STORIES[name]
    group = story.sound()
    assert group.lost == story.printed().lost, "the same misfortune"
    assert group.settle()
    assert group.complete()
    assert group.broken_promises() == set()
    assert not any(isinstance(output, Abort) for _, output in group.outputs)


@pytest.mark.parametrize("name", GOLDEN)
def test_every_counterexample_is_told_with_its_losses(name: str) -> None:
    """R1 was found with two losses; one is enough."""
    assert len(STORIES[name].printed().lost) == (1 if name == "R1" else GOLDEN[name]["losses"])


# --- the printed rules ---


def test_a1_printed_x_is_acknowledged_though_a_destination_has_only_accepted_it() -> None:
    group = STORIES["A1"].printed()
    assert [group.sent[letter].status.expects for letter in ("q2", "q3", "r2")] == [(1, 0, 0), (1, 0, 0), (1, 1, 1)]
    assert group.machines[E2].preacknowledged_below[E1][1:] == [1, 1]
    assert (group.levels[E2]["x"], group.levels[E3]["x"]) == (Level.ACKNOWLEDGED, Level.ACCEPTED)
    group.lose(E3, "q2", "r2")
    assert group.settle()
    assert group.levels[E3]["x"] is Level.ACCEPTED, "for good"


def test_a2_printed_a_is_never_acknowledged() -> None:
    group = STORIES["A2"].printed()
    assert group.settle()
    assert group.levels[E2]["a"] is Level.PREACKNOWLEDGED
    assert group.machines[E2].preacknowledged_below[E1][E2] == 0
    for letter, to in (("f", "2"), ("g", "1")):
        group.submit(E2, letter, to)
        group.all_hear(letter)
    assert group.levels[E2]["a"] is Level.ACKNOWLEDGED, "only what E2 sends to itself moves it"


@pytest.mark.parametrize("reading", [LossInference.ALL, LossInference.OTHERS])
def test_c0_printed_b_is_gone_by_mere_reordering(reading: LossInference) -> None:
    group = Story(c0, reading).printed()
    assert (E3, Discard(group.sent["b"], "hearsay")) in group.outputs
    assert group.timers[E3] == {}, "a came and stopped it"
    assert group.settle()
    assert (group.requests, lacks(group, E3, "b")) == ([], True)
    group.submit(E2, "c", "3")
    assert group.settle()
    assert not lacks(group, E3, "b"), "stuck until E2 sends to E3 again"


def test_c0_printed_without_condition_2_b_is_accepted_before_a() -> None:
    group = Story(c0, LossInference.NONE).printed()
    assert list(group.levels[E3]) == ["b", "a"]


def test_c1_printed_everything_of_the_source_is_discarded_from_then_on() -> None:
    group = STORIES["C1"].printed()
    assert group.sent["b"].packet.seq_to == (0, 1, 0)
    assert group.sent["b"].status.expects == (1, 0, 0)
    assert [output for node, output in group.outputs if node == E3] == [Discard(group.sent["b"], "hearsay")]
    for letter in "cde":
        group.submit(E1, letter, "123")
    assert not group.settle(rounds=8), "E3 asks and asks; what it gets is discarded again"
    assert len(group.requests) >= 6
    assert group.levels[E3] == {}
    assert group.machines[E3].expected[E1] == 0


def test_c1_printed_ends_when_what_was_lost_is_sent_again_for_somebody_else() -> None:
    group = STORIES["C1"].printed()
    group.lose(E2, "a")
    group.hear(E2, "b")  # it is not for E2, but shows it that a was
    group.hear(E1, "b", "RETRANS E2")
    group.hear(E3, "a")
    assert group.machines[E3].expected[E1] == 1
    group.submit(E1, "c", "3")  # with that E3 can ask for b, which nobody else needs
    assert group.settle()
    assert list(group.levels[E3]) == ["b", "c"]


def test_c1_printed_b_is_accepted_if_condition_2_is_not_asked_for_the_source() -> None:
    group = Story(c1, LossInference.OTHERS).printed()
    assert list(group.levels[E3]) == ["b"]


def test_c1_sound_goes_on_with_the_same_source() -> None:
    group = STORIES["C1"].sound()
    assert not lacks(group, E3, "b")
    for letter in "cde":
        group.submit(E1, letter, "123")
    assert group.settle()
    assert group.complete()


def test_c2_printed_the_request_is_answered_by_what_is_discarded_again() -> None:
    group = STORIES["C2"].printed()
    assert group.requests == [(E3, RetransmitRequest(E3, (0, 0, 0)))]
    assert group.copies == ["b"]
    assert group.outputs.count((E3, Discard(group.sent["b"], "hearsay"))) == 2
    assert group.machines[E3].waits_for() == ("misses from E1 its number 0 on", "misses from E2 its number 0 on")
    assert not group.settle(), "and so on"
    assert lacks(group, E3, "b")
    group.submit(E1, "c", "1")
    assert not group.settle(), "what E1 sends now acknowledges b, and so is discarded too"
    assert group.levels[E3] == {}


def test_c2_printed_ends_only_if_the_source_speaks_between_a_request_and_its_answer() -> None:
    """And has not heard b itself."""
    for asks_again in (False, True):
        group = STORIES["C2"].printed()
        if asks_again:
            group.expire(E3)
        group.submit(E1, "c", "1")
        group.hear(E3, "c")
        assert group.machines[E3].expected[E1] == 2
        assert group.settle()
        assert lacks(group, E3, "b") is not asks_again


def test_c3_printed_the_loss_of_the_last_unit_is_not_seen() -> None:
    group = STORIES["C3"].printed()
    assert group.settle()
    assert (group.requests, lacks(group, E2, "a")) == ([], True)
    assert group.machines[E1].waits_for() == ("keeps its number 0, not known to be accepted by {E2}",)
    assert group.machines[E2].waits_for() == ()


def test_c4_printed_a_lost_request_is_not_repeated() -> None:
    group = STORIES["C4"].printed()
    assert group.settle()
    assert group.requests == [(E2, RetransmitRequest(E2, (0, 0, 0)))]
    assert group.copies == []
    assert group.levels[E2].keys() & {"a", "b"} == set()
    assert group.machines[E2].waits_for() == ("misses from E1 its number 0 on",)


def test_c5_printed_who_is_silent_closes_the_window() -> None:
    group = STORIES["C5"].printed()
    assert group.settle()
    assert "c" not in group.sent
    assert group.machines[E1].accepted_below[E1] == [1, 2, 0]
    assert group.machines[E1].log_sizes().waiting == 1
    assert group.machines[E1].waits_for()[0] == (
        "its window is closed: {E3} is known to have accepted only what is below its number 0"
    )
    group.submit(E3, "z", "3")
    assert group.settle()
    assert "c" in group.sent, "a word of E3 opens it"


def test_c6_printed_the_papers_own_example_stalls() -> None:
    group = STORIES["C6"].printed()
    assert group.machines[E3].expected == [9, 3, 5]
    assert (E3, Discard(group.sent["j"], "hearsay")) in group.outputs
    assert group.timers[E3] == {}
    assert group.settle()
    assert len(group.requests) == 1
    assert lacks(group, E3, "j")


def test_c7_printed_a_burst_closes_every_window() -> None:
    group = STORIES["C7"].printed()
    assert group.settle()
    assert sorted(group.sent) == ["a1", "a2", "b1", "b2", "c1", "c2"]
    assert [min(machine.accepted_below[me]) for me, machine in enumerate(group.machines)] == [0, 0, 0]
    assert [machine.next_seq for machine in group.machines] == [2, 2, 2]


@pytest.mark.parametrize("settings", [{"window": 1}, {"paper": {"initial_buffers": 9}}], ids=["W", "F"])
def test_c7_printed_with_room_for_one_no_burst_is_needed(settings: dict[str, Any]) -> None:
    """The own column lags by one unit of one's own: what E1 sent says that E1 has not heard it."""
    group = paper_group(**settings)
    for source, letter in ((E1, "a"), (E2, "b"), (E3, "c")):
        group.submit(source, letter, "123")
        group.all_hear(letter)
    for source, letter in ((E1, "d"), (E2, "e"), (E3, "f")):
        group.submit(source, letter, "123")
    assert group.settle()
    assert list(group.sent) == ["a", "b", "c"], "nobody can send any more"
    assert group.machines[E1].accepted_below[E1] == [0, 1, 1]


def test_d1_printed_last_the_test_for_duplicates_lets_what_is_expected_go_backwards() -> None:
    group = STORIES["D1"].printed()
    assert (group.machines[E3].expected[E1], group.machines[E3].expected_to_me[E1]) == (1, 0)
    first = STORIES["D1"].printed(duplicates_first=True)
    assert (first.machines[E3].expected[E1], first.machines[E3].expected_to_me[E1]) == (2, 0)
    assert (E3, Discard(first.sent["a"], "duplicate")) in first.outputs


def test_r1_fresh_copies_break_lemma_4_2_even_if_everything_is_for_everybody() -> None:
    group = STORIES["R1"].printed()
    assert [group.levels[node]["a"] for node in group.nodes] == [Level.ACKNOWLEDGED, Level.ACCEPTED, Level.ACCEPTED]
    assert any(acknowledged_truthfully(group.logs()))


def test_r1_verbatim_copies_pass() -> None:
    group = STORIES["R1"].printed(verbatim_copies=True)
    assert group.levels[E1]["a"] is Level.PREACKNOWLEDGED
    assert not any(acknowledged_truthfully(group.logs()))
