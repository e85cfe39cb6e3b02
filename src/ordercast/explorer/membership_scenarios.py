"""The searches of `ordercast check --views`: what can happen to the membership of a group of three, by name."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from ordercast.explorer.scenario import Scenario
from ordercast.explorer.scenarios import scenario
from ordercast.model.runs import Channel

FOUNDERS = 3
_ROUND, _APPLY = "view.round", "join.apply"


@dataclass(frozen=True)
class MembershipScenario:
    """What happens in a search."""

    about: str
    how: Mapping[str, Any]
    """Bounds of `Scenario`."""
    founders: int = FOUNDERS


def _of(about: str, **how: Any) -> MembershipScenario:
    return MembershipScenario(about, MappingProxyType(how))


def _return(name: str, notices: str, who: str) -> MembershipScenario:
    return _of(
        f"{who} crashes, and returns under its old name; {notices} suspects it",
        returns=(name,),
        suspicions=1,
        suspects=(f"{notices} suspects {name}",),
        firings=1,
        fires=(_APPLY,),
    )


SCENARIOS: Mapping[str, MembershipScenario] = MappingProxyType(
    {
        "suspicion": _of("a member suspects another one, at any moment", suspicions=1),
        "loss": _of("a suspicion, and one unit is lost", suspicions=1, losses=1),
        "crash": _of("a member crashes, and one suspects it, or another", suspicions=1, crashes=1),
        "several": _of("a member suspects one of the others, or both at once", suspicions=1, at_once=2),
        "give-up": _of("a member's host gives the group up, and one suspects it, or another", suspicions=1, give_ups=1),
        "takeover": _of(
            "a suspicion, and a member takes over from a coordinator", suspicions=1, firings=1, fires=(_ROUND,)
        ),
        "two-coordinators": _of(
            "E1 suspects E3, and E2 suspects E1: two members coordinate, one after the other or at once",
            suspicions=2,
            suspects=("E1 suspects E3", "E2 suspects E1"),
        ),
        "leave": _of("a member leaves", leaves=1),
        "leave-loss": _of("a member leaves, and one unit is lost", leaves=1, losses=1),
        "leave-crash": _of("a member leaves, and one crashes", leaves=1, crashes=1),
        "join": _of("a node joins", joins=1),
        "join-loss": _of("a node joins, and one unit is lost", joins=1, losses=1),
        "join-crash": _of("a node joins, and one crashes", joins=1, crashes=1),
        "return": _return("E3", "E1", "a member"),
        "return-sender": _return("E2", "E1", "the one that sends"),
        "return-coordinator": _return("E1", "E2", "the one that would coordinate"),
    }
)
"""By name. In all of them E2 sends one message to all. Detection of crashes without a suspicion, repetitions and
back-off are part of the fair continuations."""


def membership_scenario(protocol: str, name: str, **group: Any) -> Scenario:
    """A scenario of a protocol; `group`: fields of the group's configuration."""
    return scenario_of(protocol, SCENARIOS[name], **group)


def scenario_of(protocol: str, asked: MembershipScenario, **group: Any) -> Scenario:
    """The same, of any."""
    how = dict(asked.how)
    if protocol == "sequencer":
        group = {"resilience": 1, "channel": Channel.MANY, **group}
    lines = ["", "a", *[""] * (asked.founders - 2 + how.get("joins", 0) + len(how.get("returns", ())))]
    return scenario(protocol, lines, views=True, **how, **group)
