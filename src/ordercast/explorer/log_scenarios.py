"""The searches of `ordercast check --logs`: members with durable logs that are killed and started again, by name.

A disk that is full or fails needs no step of its own: from then on no sync returns, and the member ends. That is a
crash before the next sync, which leaves any beginning of what was not synced, and is searched at every moment.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from ordercast.explorer.membership_scenarios import MembershipScenario, scenario_of
from ordercast.explorer.scenario import Scenario

_BOTH, _TICK = ("E1", "E2"), "log.tick"
_FIRST: Mapping[str, Any] = MappingProxyType({"firings": 4, "fires": ("status",)})
"""Two rounds of statuses of both: so the message may be delivered, and logged, before anything else happens. Without
them only a sequencer delivers it before the fair continuation, or a view that ends."""


def _of(about: str, *returns: str, founders: int = 2, **how: Any) -> MembershipScenario:
    return MembershipScenario(about, MappingProxyType({"returns": returns, **how}), founders)


LOG_SCENARIOS: Mapping[str, MembershipScenario] = MappingProxyType(
    {
        "restart": _of(
            "the one that sends is killed and started again; the other suspects it",
            "E2",
            suspicions=1,
            suspects=("E1 suspects E2",),
        ),
        "restart-all": _of("both are killed and started again", *_BOTH),
        "restart-all-loss": _of("the same, and one unit is lost", *_BOTH, losses=1),
        "restart-all-tick": _of(
            "the same without a loss; two timers by which they look for each other fire at any moment",
            *_BOTH,
            firings=2,
            fires=(_TICK,),
        ),
        "restart-all-suspicion": _of("both are killed and started again; one suspects the other", *_BOTH, suspicions=1),
        "restart-all-damage": _of("both are killed and started again; one disk is damaged or lost", *_BOTH, damages=1),
        "restart-logged": _of(
            "the one that sends is killed and started again; the message may be in the logs", "E2", **_FIRST
        ),
        "restart-all-logged": _of(
            "both are killed and started again; the message may be in the logs", *_BOTH, **_FIRST
        ),
        "restart-all-logged-damage": _of("the same, and one disk is damaged or lost", *_BOTH, damages=1, **_FIRST),
        "restart-all-again": _of("both are killed and started again, and then again", *_BOTH, "E3", "E4"),
        "restart-of-three": _of("one of three is killed and started again", "E3", founders=3),
        "restart-most": _of("two of three are killed and started again", *_BOTH, founders=3),
        "restart-most-damage": _of(
            "two of three are killed and started again; one disk is damaged or lost", *_BOTH, founders=3, damages=1
        ),
        "restart-all-of-three": _of("all three are killed and started again", *_BOTH, "E3", founders=3),
    }
)
"""By name. In all of them E2 sends one message to all."""


def log_scenario(protocol: str, name: str, **group: Any) -> Scenario:
    """A scenario of a protocol whose members have logs; `group`: fields of the group's configuration."""
    return scenario_of(protocol, LOG_SCENARIOS[name], logs=True, **group)
