"""How the printed protocols break: the papers' counterexamples, each as a scenario in which a search finds it.

A story is not a script. It says who sends what, how much may be lost, and which reading of the printed rules is taken
where flaws hide each other; the search finds the schedule, and `examples/stories` keeps it. Under the sound rules the
same bounds are searched to the end, and nothing is found. Names are those of the protocols' pages.
"""

from dataclasses import dataclass, replace
from typing import Any

from ordercast.explorer.explore import Report, explore
from ordercast.explorer.scenario import Scenario
from ordercast.explorer.scenarios import promise_of, scenario
from ordercast.model.config import HearsayRule, PaperRules, Rules, SequencerReadings
from ordercast.model.machine import Level
from ordercast.model.runs import Channel
from ordercast.protocols import machine_class

_MOST = 3_000_000  # states
_ROUNDS = 40  # in which the sound rules must come to their end, whatever the printed ones are given


@dataclass(frozen=True)
class Story:
    """One way to break a printed protocol."""

    protocol: str
    scenario: Scenario
    """Under the printed rules."""
    breaks: str
    """What the broken promise says: the words that tell this story from others."""
    eager: bool = False
    """Whether every state is continued: it takes a long recovery to bring this to light."""
    slow: bool = False
    """Whether one of the two searches takes more than a few seconds."""

    def search(self) -> Report:
        """By the printed rules."""
        return explore(self.scenario, eager=self.eager)

    def search_sound(self) -> Report:
        """By the sound rules, within the same bounds."""
        asked = self.sound()
        return explore(asked, most=_MOST, reduced=not asked.promise.most_under_way)

    def sound(self) -> Scenario:
        """The same scenario under the sound rules, which owe all that they ever owe."""
        asked = self.scenario
        group = type(asked.group)(
            **{
                name: getattr(asked.group, name)
                for name in asked.group.__struct_fields__
                if name not in {"rules", "paper"}
            }
        )
        promise = replace(promise_of(self.protocol, group), most_under_way=asked.promise.most_under_way)
        machine = machine_class(self.protocol, Rules.SOUND)
        return replace(asked, machine=machine, group=group, promise=promise, rounds=max(asked.rounds, _ROUNDS))


def _story(protocol: str, *lines: str, breaks: str, eager: bool = False, slow: bool = False, **how: Any) -> Story:
    """`owes` are fields of the promise that this story changes."""
    owes = how.pop("owes", {})
    asked = scenario(protocol, lines, Rules.PAPER, **how)
    return Story(protocol, replace(asked, promise=replace(asked.promise, **owes)), breaks, eager, slow)


def _readings(**how: Any) -> PaperRules:
    return PaperRules(sequencer=SequencerReadings(**how))


_OTHERS = PaperRules(condition_2=HearsayRule.OTHERS)
_NO_CONDITION_2 = PaperRules(condition_2=HearsayRule.NONE)
_KEEPS = PaperRules(keeps_behind_gap=True)
_ORDER: dict[str, Any] = {"ladder": False}  # that acknowledgments are true is another story (S13)
_NO_ORDER: dict[str, Any] = {"ladder": False, "one_order": False, "sender_order": False}  # and so is order (S1)
_ACCEPTED, _ACKNOWLEDGED = Level.ACCEPTED, Level.ACKNOWLEDGED
_MENDED: dict[str, Any] = {
    "first_id": 1,
    "acknowledges_last": True,
    "advances_own_row": True,
    "whole_answers": True,
    "older_are_duplicates": True,
    "asks_once": True,
    "dummy_after": 99,
}
"""All flaws of the printed sequencer that have a reading are taken out."""

STORIES: dict[str, Story] = {
    "spo-a1": _story("spo", "x{2,3}", "q{2} r{2}", "s{2}", breaks="acknowledged at E2, but not yet preacknowledged"),
    "spo-a2": _story("spo", "a{2}", "", "", in_the_end=_ACKNOWLEDGED, breaks="a{2} of E1 is never acknowledged"),
    "spo-c0": _story("spo", "a{2,3}", "b{3}", "", in_the_end=_ACCEPTED, breaks="b{3} of E2 is never accepted at E3"),
    "spo-c1": _story(
        "spo",
        "a{2} b{3}",
        "",
        "",
        losses=1,
        loses=("a at E3",),
        in_the_end=_ACCEPTED,
        breaks="b{3} of E1 is never accepted at E3",
    ),
    "spo-c2": _story(
        "spo",
        "a{1,2}",
        "b{3}",
        "",
        paper=_OTHERS,
        channel=Channel.ONE,
        losses=1,
        loses=("a at E3",),
        in_the_end=_ACCEPTED,
        breaks="goes round in a circle",
    ),
    "spo-c3": _story("spo", "a{2}", "", losses=1, in_the_end=_ACCEPTED, breaks="a{2} of E1 is never accepted at E2"),
    "spo-c4": _story(
        "spo",
        "a{2} b{2}",
        "",
        losses=2,
        loses=("a", "request"),
        in_the_end=_ACCEPTED,
        breaks="a{2} of E1 is never accepted at E2",
    ),
    "spo-c5": _story(
        "spo", "a{2} b{2} c{2}", "", "", window=2, in_the_end=_ACCEPTED, breaks="E1 never sends all that it was given"
    ),
    "spo-c7": _story(
        "spo", "a b c", "d e f", window=2, in_the_end=_ACCEPTED, breaks="never sends all that it was given"
    ),
    "spo-d1": _story(
        "spo",
        "a{1,2} b{2}",
        "",
        "",
        paper=PaperRules(condition_2=HearsayRule.NONE, duplicates_first=False),
        losses=1,
        breaks="expected of E3 for E1 goes down",
    ),
    "spo-r1": _story(
        "spo",
        "x w u",
        "y z t",
        paper=PaperRules(condition_2=HearsayRule.NONE, verbatim_copies=False),
        losses=1,
        breaks="is acknowledged at E2, but not yet preacknowledged at its destination E1",
    ),
    "st-s1": _story(
        "st",
        "g{1,3} p{1,3}",
        "z{1,3}",
        "",
        losses=1,
        loses=("g at E3",),
        owes=_ORDER,
        eager=True,
        breaks="E1 <g{1,3} z{1,3} p{1,3}>, E2 <>, E3 <g{1,3} p{1,3} z{1,3}>",
    ),
    "st-s2": _story(
        "st",
        "v{1,3} c{1,3} d{1}",
        "u{1,2}",
        "",
        paper=_KEEPS,
        losses=2,
        loses=("u at E3", "c at E3"),
        owes=_ORDER,
        eager=True,
        slow=True,
        breaks="c{1,3} of E1 at E3 is preacknowledged before v{1,3}",
    ),
    "st-s4": _story(
        "st",
        "g{1,3} w{2}",
        "z{1,2}",
        "y{1,2}",
        losses=2,
        firings=1,
        patient=True,
        loses=("g at E3", "w at E2"),
        owes=_ORDER,
        rounds=10,
        eager=True,
        slow=True,
        breaks="z{1,2} y{1,2}>, E2 <y{1,2} w{2} z{1,2}>",
    ),
    "st-s6": _story(
        "st",
        "g{1,3} v{1,2} d{3}",
        "y{1,2} u{1} t{1}",
        "",
        paper=_KEEPS,
        losses=2,
        loses=("g at E3", "u at E1"),
        owes=_ORDER,
        eager=True,
        slow=True,
        breaks="v{1,2} y{1,2}>, E2 <y{1,2} v{1,2}>",
    ),
    "st-s7": _story(
        "st",
        "g{1,3} h{1,3}",
        "",
        "",
        paper=_KEEPS,
        losses=2,
        duplicates=1,
        loses=("g at E3", "reply"),
        owes=_NO_ORDER,
        eager=True,
        breaks="gives the group up: E2 found another sort line or order",
    ),
    "st-s8": _story(
        "st",
        "g{1,3} h{1,3} d{1}",
        "z{1,3}",
        "",
        paper=_KEEPS,
        losses=2,
        loses=("g at E3", "h at E3"),
        owes=_ORDER,
        eager=True,
        slow=True,
        breaks="E1 <g{1,3} z{1,3} h{1,3}>, E2 <>, E3 <g{1,3} h{1,3} z{1,3}>",
    ),
    "st-s9": _story(
        "st",
        "g{1,3} h{1,3}",
        "",
        "",
        losses=2,
        loses=("g at E3", "reset", "reply", "done"),
        in_the_end=_ACCEPTED,
        owes=_NO_ORDER,
        eager=True,
        breaks="g{1,3} of E1 is never accepted at E3",
    ),
    "st-s10": _story(
        "st",
        "x{2,3}",
        "",
        "",
        paper=PaperRules(preacknowledged_time_out=False),
        in_the_end=_ACKNOWLEDGED,
        owes=_ORDER,
        breaks="x{2,3} of E1 is never delivered at E2",
    ),
    "st-s13": _story(
        "st", "x{2,3}", "", "", firings=3, breaks="x{2,3} of E1 is acknowledged at E2, but not yet preacknowledged"
    ),
    "st-cycle": _story(
        "st",
        "g{1,3} d{3}",
        "y{1,2}",
        "z{2,3}",
        paper=_KEEPS,
        losses=1,
        loses=("g at E3",),
        owes=_ORDER,
        eager=True,
        slow=True,
        breaks="E1 <g{1,3} y{1,2}>, E2 <y{1,2} z{2,3}>, E3 <z{2,3} g{1,3}>",
    ),
    "st-end": _story(
        "st",
        "",
        "g{1,3}",
        "y{1,3}",
        paper=_KEEPS,
        losses=1,
        loses=("g at E3",),
        owes=_ORDER,
        eager=True,
        breaks="E1 <g{1,3} y{1,3}>, E2 <>, E3 <y{1,3} g{1,3}>",
    ),
    "sequencer-s1": _story("sequencer", "", "a", "", breaks="a null pointer is followed"),
    "sequencer-s2": _story(
        "sequencer",
        "",
        "a b",
        "",
        paper=_readings(first_id=1, dummy_after=99),
        history=1,
        losses=1,
        loses=("a at E3",),
        in_the_end=_ACKNOWLEDGED,
        rounds=10,
        breaks="a{1,2,3} of E2 is never delivered at E3: E3: misses broadcast 0",
    ),
    "sequencer-s3": _story(
        "sequencer", "", "a", "", paper=_readings(first_id=1), losses=1, breaks="payload=b'', priority=0)"
    ),
    "sequencer-s4": _story(
        "sequencer",
        "",
        "a b",
        "",
        paper=_readings(first_id=1, whole_answers=True, asks_once=True),
        duplicates=1,
        breaks="a{1,2,3} of E2 at E1 is accepted a second time",
    ),
    "sequencer-s5": _story(
        "sequencer",
        "a b c d",
        "",
        paper=_readings(**{**_MENDED, "asks_once": False}),
        channel=Channel.MANY,
        losses=1,
        loses=("a at E2",),
        owes={"most_under_way": 8},
        breaks="units are under way to E2",
    ),
    "sequencer-s6": _story(
        "sequencer",
        "",
        "a",
        "",
        paper=_readings(**_MENDED),
        losses=1,
        in_the_end=_ACKNOWLEDGED,
        breaks="a{1,2,3} of E2 is never delivered at E3: nobody waits for anything",
    ),
    "sequencer-s7": _story(
        "sequencer",
        "",
        "a b",
        "c",
        paper=_readings(**_MENDED),
        history=1,
        duplicates=1,
        in_the_end=_ACKNOWLEDGED,
        slow=True,
        breaks="E3: has stopped sending until E1 says that everybody has everything",
    ),
    "sequencer-s8": _story(
        "sequencer",
        "a",
        "b",
        "",
        paper=_readings(**_MENDED, elects=True),
        polls_to_abort=1,
        firings=3,
        owes={"views": True},
        breaks="those that go on have different logs",
    ),
}
