"""Each machine that breaks one promise is noticed by those whose matter that is; the sound ones by nobody."""

from itertools import cycle
from pathlib import Path

import pytest

from tests.blind import judges
from tests.blind.__main__ import main
from tests.blind.judges import JUDGES, OF_MEMBERS
from tests.blind.machines import AUDIT, BLIND, EVERY, SEARCH, SOAK, SWARM, BlindMachine, Spoiler
from tests.blind.members import LOGS, MEMBERS, VIEWS, BlindMember
from tests.blind.own_machine import SEARCHES, judged, machine_in

ALL = [(blind, protocol) for blind in BLIND for protocol in blind.protocols]
FAST = [
    # each machine once, and no protocol much more often than the others
    (blind, next(protocol for protocol in protocols if protocol in blind.protocols))
    for protocols in [cycle(EVERY)]
    for blind in BLIND
]


def name(case: object) -> str:
    return case.name.replace(" ", "-") if isinstance(case, BlindMachine | BlindMember) else str(case)


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


# --- members, with views and logs ---

QUICK = {"tells of other members than were agreed on"}
"""One that all judges notice within tenths of a second."""


@pytest.mark.parametrize("number", range(len(MEMBERS)), ids=lambda number: name(MEMBERS[number]))
def test_a_broken_member_is_noticed(number: int) -> None:
    blind = MEMBERS[number]
    protocol = blind.protocols[number % len(blind.protocols)]
    one = SEARCH if SEARCH in blind.noticed_by else SWARM
    judges = blind.noticed_by if blind.name in QUICK else (one,)
    found = {judge: OF_MEMBERS[judge](blind, protocol) for judge in judges}
    assert all(found.values()), f"{protocol}: {found}"


@pytest.mark.soak
@pytest.mark.parametrize(
    ("blind", "protocol"), [(blind, protocol) for blind in MEMBERS for protocol in blind.protocols], ids=name
)
def test_broken_members_of_all_protocols_are_noticed(blind: BlindMember, protocol: str) -> None:
    found = {judge: OF_MEMBERS[judge](blind, protocol) for judge in blind.noticed_by}
    assert all(found.values()), found


@pytest.mark.parametrize("about", [VIEWS, LOGS])
def test_a_member_itself_is_accused_by_no_search(about: str) -> None:
    scenario = "leave" if about == VIEWS else "restart-all"
    assert not OF_MEMBERS[SEARCH](BlindMember("nothing", Spoiler, about, scenario=scenario), "to")


# --- machines of one's own ---

OWN = """
from tests.blind.machines import Spoiler
from ordercast.model.machine import Deliver
from ordercast.protocols.spo.machine import Spo

class Silent(Spoiler):
    def spoil(self, event, outputs):
        return [output for output in outputs if not isinstance(output, Deliver)]

class Sound(Spo):
    pass
"""


def test_a_machine_of_ones_own_is_judged_by_all(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "own.py"
    path.write_text(OWN, encoding="utf-8")
    monkeypatch.setattr(judges, "DRAWS", 2)
    sound = dict(judged(machine_in(f"{path}:Sound"), "spo"))
    assert set(sound) == {*(f"search, {each}" for each in SEARCHES), AUDIT, SWARM, SOAK}
    assert not any(sound.values()), sound
    found = judged(machine_in(f"{path}:Silent"), "to")
    assert "is never delivered" in next(found)[1]


@pytest.mark.parametrize(
    ("place", "wrong"), [("nowhere.py:Own", "no such file: 'nowhere.py'"), ("{file}:None", "has no machine or spoiler")]
)
def test_a_place_without_a_machine_is_refused(
    place: str, wrong: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "own.py"
    path.write_text(OWN, encoding="utf-8")
    assert main(["--machine", place.format(file=path), "st"]) == 2
    assert wrong in capsys.readouterr().err
