"""What is shown of machines' states is explained: every variable that any machine declares has words of its own."""

import importlib
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ordercast.protocols
from ordercast.explorer.membership_scenarios import membership_scenario
from ordercast.explorer.schedule_files import read_schedule
from ordercast.explorer.state_space import StateSpace
from ordercast.explorer.state_values import declared
from ordercast.explorer.step_by_step import first_states, notes_of
from ordercast.explorer.variable_notes import notes_of_class
from ordercast.model.declared_state import DeclaredState, declared_names

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
SCHEDULES = sorted(file for kept in ("stories", "counterexamples") for file in (EXAMPLES / kept).glob("*.toml"))
LEAST = 2
"""Words of a note: a symbol of a paper alone explains nothing."""


def kinds(base: type[DeclaredState] = DeclaredState) -> Iterator[type[DeclaredState]]:
    for kind in base.__subclasses__():
        yield kind
        yield from kinds(kind)


def is_part(hint: Any) -> bool:
    return isinstance(hint, type) and DeclaredState in hint.__mro__


def test_every_variable_of_every_protocol_has_a_note() -> None:
    for module in pkgutil.walk_packages(ordercast.protocols.__path__, "ordercast.protocols."):
        importlib.import_module(module.name)
    found: set[Any] = {kind for kind in kinds() if kind.__module__.startswith("ordercast.protocols.")}
    assert {kind.__name__ for kind in found} >= {"Po", "Spo", "St", "StPaper", "SequencerPaper", "MembershipMachine"}
    bare = [
        f"{kind.__module__}.{kind.__name__}.{name}"
        for kind in found
        for name, hint in declared(kind)
        if not is_part(hint) and len(notes_of_class(kind).get(name, "").split()) < LEAST
    ]
    assert bare == [], "say beside the declaration what it means"


def explained(space: StateSpace) -> None:
    names = set[str]().union(*first_states(space))
    assert names
    assert names - set(notes_of(space)) == set()


@pytest.mark.parametrize("path", SCHEDULES, ids=lambda path: path.stem)
def test_all_that_a_story_shows_of_states_is_explained(path: Path) -> None:
    explained(StateSpace(read_schedule(path).scenario))


@pytest.mark.parametrize("protocol", ["po", "spo", "to", "st", "prito", "prio", "sequencer"])
def test_states_of_groups_whose_members_change_are_explained(protocol: str) -> None:
    explained(StateSpace(membership_scenario(protocol, "join")))


def test_a_note_is_a_comment_or_a_docstring_and_those_of_bases_count() -> None:
    assert notes_of_class(Part)["long"] == "Two lines, of which the second one is longer."
    assert notes_of_class(Part)["short"] == "Beside it."
    assert notes_of_class(Whole)["short"] == "Another one."
    assert "bare" not in notes_of_class(Whole)
    assert declared_names(Whole) == {"short", "long", "bare"}


class Part(DeclaredState):
    """Something with notes."""

    short: int  # beside it
    long: int
    """Two lines, of which
    the second one is longer."""
    bare: int


class Whole(Part):
    """Says one of them anew."""

    short: int  # another one
