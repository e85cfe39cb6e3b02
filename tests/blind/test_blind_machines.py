"""Each machine that breaks one promise is noticed by those whose matter that is; the sound ones by nobody."""

from itertools import cycle

import pytest

from tests.blind.judges import JUDGES
from tests.blind.machines import BLIND, EVERY, BlindMachine

ALL = [(blind, protocol) for blind in BLIND for protocol in blind.protocols]
FAST = [
    # each machine once, and no protocol much more often than the others
    (blind, next(protocol for protocol in protocols if protocol in blind.protocols))
    for protocols in [cycle(EVERY)]
    for blind in BLIND
]


def name(case: object) -> str:
    return case.name.replace(" ", "-") if isinstance(case, BlindMachine) else str(case)


def require_noticed(blind: BlindMachine, protocol: str) -> None:
    found = {judge: JUDGES[judge](blind, protocol) for judge in blind.noticed_by}
    assert all(found.values()), f"{protocol}, {blind.name}: {found}"


@pytest.mark.parametrize(("blind", "protocol"), FAST, ids=name)
def test_a_broken_machine_is_noticed(blind: BlindMachine, protocol: str) -> None:
    require_noticed(blind, protocol)


@pytest.mark.soak
@pytest.mark.parametrize(("blind", "protocol"), [case for case in ALL if case not in FAST], ids=name)
def test_broken_machines_of_all_protocols_are_noticed(blind: BlindMachine, protocol: str) -> None:
    require_noticed(blind, protocol)


@pytest.mark.parametrize("protocol", EVERY)
def test_the_machine_itself_is_accused_by_nobody(protocol: str) -> None:
    sound = BlindMachine("nothing", spoiler=None)
    assert not any(judge(sound, protocol) for judge in JUDGES.values())


def test_each_protocol_has_eight_and_more() -> None:
    assert all(sum(protocol in blind.protocols for blind in BLIND) >= 8 for protocol in EVERY)
