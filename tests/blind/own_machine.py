"""A machine of one's own before all judges: whether anything notices that it breaks a promise.

The class is a machine of a protocol, mostly derived from the protocol's own, or a `Spoiler`, which stands in front of
any of them. A spoiler is tried in groups with views and with logs, too: there it stands in front of a member.
"""

from collections.abc import Callable, Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from ordercast.explorer.log_scenarios import LOG_SCENARIOS
from ordercast.explorer.membership_scenarios import SCENARIOS
from ordercast.model.machine import Machine
from ordercast.model.services import Service
from tests.blind.judges import JUDGES, OF_MEMBERS
from tests.blind.machines import LOSS, SEARCH, THREE, TWO_HOLDERS_CRASH, BlindMachine, Spoiler
from tests.blind.members import BY_LOGS, LOGS, VIEWS, BlindMember

Bounds = tuple[tuple[str, Any], ...]
SEARCHES: dict[str, Bounds] = {
    "two nodes": (),
    "a loss": LOSS,
    "three nodes": THREE,
    "a duplicate": (("duplicates", 1),),
    "early timers": (("firings", 2),),
}
"""Searches of the default scripts, by what they have besides."""

SEARCHES_OF_SEQUENCERS: dict[str, Bounds] = {
    "a crash": (("lines", ("", "a", "")), ("crashes", 1), ("resilience", 1), ("firings", 2)),
    "five with resilience 2": TWO_HOLDERS_CRASH,
}


def machine_in(place: str) -> type:
    """The class at FILE.py:CLASS; `ValueError` says what is wrong with the place."""
    file, _, name = place.rpartition(":")
    path = Path(file)
    if not file or not path.is_file():
        raise ValueError(f"no such file: {file or place!r}; write FILE.py:CLASS")
    spec = spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    found = getattr(module, name, None)
    if not isinstance(found, type) or not (issubclass(found, Spoiler) or callable(getattr(found, "handle", None))):
        raise ValueError(f"{file} has no machine or spoiler {name!r}")  # noqa: TRY004 - a place that is wrong
    return found


class _Given(BlindMachine):
    """It is what it is, whatever the protocol."""

    def of(self, protocol: str) -> type[Machine]:
        del protocol
        found: Any = self.spoiler
        return found  # type: ignore[no-any-return]


def judged(machine: type, protocol: str) -> Iterator[tuple[str, str]]:
    """What each judge says, one after the other; empty if it notices nothing."""
    is_spoiler = issubclass(machine, Spoiler)
    make: Callable[..., BlindMachine] = BlindMachine if is_spoiler else _Given
    searches = {**SEARCHES, **(SEARCHES_OF_SEQUENCERS if protocol == Service.SEQUENCED.value else {})}
    for name, bounds in searches.items():
        yield f"search, {name}", JUDGES[SEARCH](make(machine.__name__, machine, how=bounds), protocol)
    for name, judge in JUDGES.items():
        if name != SEARCH:
            yield name, judge(make(machine.__name__, machine), protocol)
    for about in (VIEWS, LOGS) if is_spoiler else ():
        if about == VIEWS or protocol in BY_LOGS:
            yield from _as_member(machine, about, protocol)


def _as_member(spoiler: type, about: str, protocol: str) -> Iterator[tuple[str, str]]:
    for scenario in SCENARIOS if about == VIEWS else LOG_SCENARIOS:
        blind = BlindMember(spoiler.__name__, spoiler, about, scenario=scenario)
        yield f"search, {scenario}", OF_MEMBERS[SEARCH](blind, protocol)
    for name, judge in OF_MEMBERS.items():
        if name != SEARCH:
            yield f"{name}, {about}", judge(BlindMember(spoiler.__name__, spoiler, about), protocol)
