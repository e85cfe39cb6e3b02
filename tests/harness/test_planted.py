"""The harness finds what is planted, and shrinks it to a schedule that people can follow."""

import re

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from ordercast.protocols.registry import MachineClass
from tests.explorer import broken, broken_prito, broken_st
from tests.harness.scenarios import scenarios_of
from tests.harness.schedule import schedules_of
from tests.harness.test_schedules import FEW

SHRUNK = [
    ("spo", broken.DeliversEarly, 2),
    ("spo", broken.DeliversForOthers, 2),
    ("to", broken_prito.HearsItselfAtOnce, 22),
]
"""With the most steps that the schedule may have that is shown: no more than the shortest that the explorer finds."""
QUICK = [
    ("spo", broken.TakesDuplicates),
    ("spo", broken.SaysPackForAck),
    ("spo", broken.NeverOpens),
    ("spo", broken.NeverSatisfied),
    ("st", broken_st.DeliversOldAtOnce),
    ("to", broken_prito.KeepsWhatSomebodyHas),
    ("to", broken_prito.SendsAtOnce),
    ("prito", broken_prito.TakesAnyStatusForAnAcknowledgment),
]
RARE = [
    ("spo", broken.GoesBack),
    ("spo", broken.SaysSeenForExpected),
    ("spo", broken.HoldsNothingBack),
    ("spo", broken.NeverPolls),
    ("spo", broken.AsksOnce),
    ("spo", broken.SilentWhenPolled),
    ("st", broken_st.AsksDestinationsOnly),
    ("st", broken_st.ForgetsThePrefix),
    ("st", broken_st.LearnsFromAnything),
    ("st", broken_st.HearsItselfAtOnce),
    ("st", broken_st.ChangesItsReply),
    ("to", broken_prito.ChangesItsVector),
    ("prito", broken_prito.SortsInWhenAccepted),
    ("prito", broken_prito.DeliversAfterTheLoop),
    ("prito", broken_prito.EndsRunsAtOnce),
]


def found(group: str, machine: MachineClass, how: settings) -> str:
    """What the harness says of a machine; empty if nothing."""
    try:
        run_state_machine_as_test(schedules_of(scenarios_of(group, machine=machine)), settings=how)
    except AssertionError as wrong:
        return str(wrong)
    return ""


@pytest.mark.parametrize(("group", "machine"), QUICK, ids=lambda value: getattr(value, "__name__", value))
def test_what_is_planted_is_found(group: str, machine: MachineClass) -> None:
    assert found(group, machine, settings(FEW, max_examples=200, phases=[Phase.generate]))


@pytest.mark.soak
@pytest.mark.parametrize(("group", "machine", "most"), SHRUNK, ids=lambda value: getattr(value, "__name__", value))
def test_what_is_found_is_shrunk(group: str, machine: MachineClass, most: int) -> None:
    sentence = found(group, machine, settings(FEW, max_examples=50))
    match = re.match(r"after (\d+) steps: ", sentence)
    assert match, sentence
    assert int(match[1]) <= most, sentence


@pytest.mark.soak
@pytest.mark.parametrize(("group", "machine"), RARE, ids=lambda value: getattr(value, "__name__", value))
def test_what_is_hard_to_find_is_found(group: str, machine: MachineClass) -> None:
    assert found(group, machine, settings(FEW, max_examples=10_000, phases=[Phase.generate]))
