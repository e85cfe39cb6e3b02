"""Counterexamples to the printed protocols, each found by a search.

Each is a file in `examples/counterexamples`. Its scenario says what is sent, how much may be lost, and which reading of
the printed rules is taken where flaws hide each other. Its schedule is the first counterexample that a search within
these bounds finds, after the first steps that are given to it, if any. An exhaustive search within the same bounds
finds no counterexample to the sound rules.
"""

from collections.abc import Sequence
from dataclasses import replace

import msgspec

from ordercast.explorer.explore import SearchProgress, SearchReport, explore
from ordercast.explorer.notation import parse_schedule
from ordercast.explorer.scenario import Scenario
from ordercast.explorer.scenarios import promise_of
from ordercast.explorer.schedule_files import ScheduleFile, protocol_of
from ordercast.explorer.state_space import StateSpace
from ordercast.model.config import PaperRules, Rules
from ordercast.model.errors import ConfigError
from ordercast.protocols.registry import machine_class

MAX_STATES = 1_000_000
"""The default number of states after which a search is cut off."""
_ROUNDS = 40  # in which the sound rules must reach the goal, whatever the printed ones are given


def search_again(
    file: ScheduleFile, max_states: int = MAX_STATES, progress: SearchProgress | None = None
) -> SearchReport:
    """Repeats the search that found it."""
    return explore(file.scenario, max_states, eager=file.eager, begins=file.given(), progress=progress)


def found_again(file: ScheduleFile, report: SearchReport) -> ScheduleFile:
    """The file as a new search would write it."""
    found = report.counterexample
    assert found is not None, f"{file.about}: {report}"
    return replace(file, schedule=found.schedule, sentence=found.sentence, live=found.live)


def search_sound(
    file: ScheduleFile, max_states: int = MAX_STATES, progress: SearchProgress | None = None
) -> SearchReport:
    """Searches the same bounds, after the same first steps, with the sound rules."""
    asked = under_sound_rules(file.scenario)
    begins = file.given() if _can_happen(asked, file.given()) else ()
    reduced = not asked.promise.most_under_way
    return explore(asked, max_states, reduced=reduced, begins=begins, progress=progress)


def _can_happen(asked: Scenario, steps: Sequence[str]) -> bool:
    """True if the steps are possible; with the sound rules of SPO, for one, no node receives its own units."""
    try:
        parse_schedule(StateSpace(asked), steps)
    except ConfigError:
        return False
    return True


def under_sound_rules(printed: Scenario) -> Scenario:
    """The same scenario with the sound rules and all of their promises."""
    protocol, _ = protocol_of(printed.machine)
    group = msgspec.structs.replace(printed.group, rules=Rules.SOUND, paper=PaperRules())
    asked = printed.promise
    promise = replace(
        promise_of(protocol, group), most_under_way=asked.most_under_way, never_discards=asked.never_discards
    )
    machine = machine_class(protocol, Rules.SOUND)
    return replace(printed, machine=machine, group=group, promise=promise, rounds=max(printed.rounds, _ROUNDS))
