"""How the printed protocols break: the papers' counterexamples, which a search finds by itself.

A story is a file in `examples/stories`. Its scenario is not a script: it says who sends what, how much may be lost, and
which reading of the printed rules is taken where flaws hide each other. The schedule is what a search of these bounds
comes upon first, behind the steps that are given to it, if there are any. Under the sound rules the same bounds are
searched to the end, and nothing is found.
"""

from collections.abc import Sequence
from dataclasses import replace

import msgspec

from ordercast.explorer.explore import Progress, Report, explore
from ordercast.explorer.notation import parse_schedule
from ordercast.explorer.scenario import Scenario
from ordercast.explorer.scenarios import promise_of
from ordercast.explorer.schedule_files import ScheduleFile, protocol_of
from ordercast.explorer.state_space import StateSpace
from ordercast.model.config import PaperRules, Rules
from ordercast.model.errors import ConfigError
from ordercast.protocols.registry import machine_class

MOST = 1_000_000
"""States after which a search is cut, unless it is told."""
_ROUNDS = 40  # in which the sound rules must come to their end, whatever the printed ones are given


def search_again(story: ScheduleFile, max_states: int = MOST, progress: Progress | None = None) -> Report:
    """The search that found it."""
    return explore(story.scenario, max_states, eager=story.eager, begins=story.given(), progress=progress)


def found_again(story: ScheduleFile, report: Report) -> ScheduleFile:
    """The story as a search tells it now."""
    found = report.counterexample
    assert found is not None, f"{story.about}: {report}"
    return replace(story, schedule=found.schedule, sentence=found.sentence, live=found.live)


def search_sound(story: ScheduleFile, max_states: int = MOST, progress: Progress | None = None) -> Report:
    """The same bounds, and the same beginning, under the sound rules."""
    asked = under_sound_rules(story.scenario)
    begins = story.given() if _can_happen(asked, story.given()) else ()
    reduced = not asked.promise.most_under_way
    return explore(asked, max_states, reduced=reduced, begins=begins, progress=progress)


def _can_happen(asked: Scenario, steps: Sequence[str]) -> bool:
    """Under the sound rules of SPO, for one, nobody receives its own units."""
    try:
        parse_schedule(StateSpace(asked), steps)
    except ConfigError:
        return False
    return True


def under_sound_rules(printed: Scenario) -> Scenario:
    """The same scenario under the sound rules, which owe all that they ever owe."""
    protocol, _ = protocol_of(printed.machine)
    group = msgspec.structs.replace(printed.group, rules=Rules.SOUND, paper=PaperRules())
    asked = printed.promise
    promise = replace(
        promise_of(protocol, group), most_under_way=asked.most_under_way, never_discards=asked.never_discards
    )
    machine = machine_class(protocol, Rules.SOUND)
    return replace(printed, machine=machine, group=group, promise=promise, rounds=max(printed.rounds, _ROUNDS))
