"""Options that only some protocols use: given to another protocol, they are refused."""

from collections.abc import Collection, Iterator, Mapping

import typer

from ordercast.model.config import GroupConfig, PaperRules, Rules, require
from ordercast.model.services import PRIORITISED, SELECTIVE, Service

_SEQUENCER = {Service.SEQUENCED.value}
_USED_BY: dict[str, Collection[str]] = {
    "--spread": {service.value for service in SELECTIVE},
    "--log-limit": {Service.SELECTIVE_TOTAL.value},
    "--recovery": {Service.SELECTIVE_TOTAL.value},
    "--infer-losses": {Service.PARTIAL.value, Service.SELECTIVE_PARTIAL.value, Service.SELECTIVE_TOTAL.value},
    "--history": _SEQUENCER,
    "--resilience": _SEQUENCER,
    "--direct-from": _SEQUENCER,
    "--priorities": PRIORITISED,
    "--urgent": PRIORITISED,
    "--no-synchronise": PRIORITISED,
    "a priority in --script": PRIORITISED,
}
_TOLERATED = {"--spread"}  # scripts run every protocol with the same line, in which this is the share of a group


def require_used_options(protocol: str, given: Mapping[str, bool]) -> None:
    """Raises `ConfigError` if an option was given that has no effect for this protocol; of some it only tells."""
    options = [option for option, is_given in given.items() if is_given]
    for sentence in unused_options(protocol, [option for option in options if option in _TOLERATED]):
        typer.echo(f"ordercast: {sentence}", err=True)
    found = list(unused_options(protocol, [option for option in options if option not in _TOLERATED]))
    require(not found, f"{'; '.join(found)}: omit {'it' if len(found) == 1 else 'them'}")


def require_used_readings(group: GroupConfig) -> None:
    """Raises `ConfigError` if readings of the printed rules are given with the sound rules."""
    require(
        group.rules is not Rules.SOUND or group.paper == PaperRules(),
        "--reading has no effect for --rules sound, only for --rules paper: omit it",
    )


def unused_options(protocol: str, given: Collection[str]) -> Iterator[str]:
    """A sentence for each option that has no effect."""
    for option in given:
        users = sorted(_USED_BY[option])
        if protocol not in users:
            *others, last = users
            names = f"{', '.join(others)} and {last}" if others else last
            yield f"{option} has no effect for {protocol}, only for {names}"
