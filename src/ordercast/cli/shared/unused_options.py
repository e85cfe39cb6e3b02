"""Options that only some protocols use: a warning for each that is given to another protocol."""

from collections.abc import Collection, Iterator, Mapping

import typer

from ordercast.model.config import GroupConfig, PaperRules, Rules
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


def report_unused_options(protocol: str, given: Mapping[str, bool]) -> None:
    """Warns of each option that was given and has no effect for this protocol."""
    for sentence in unused_options(protocol, [option for option, is_given in given.items() if is_given]):
        typer.echo(f"ordercast: {sentence}", err=True)


def report_unused_readings(group: GroupConfig) -> None:
    """Warns of readings of the printed rules that are given with the sound rules."""
    if group.rules is Rules.SOUND and group.paper != PaperRules():
        typer.echo("ordercast: --reading has no effect for --rules sound, only for --rules paper", err=True)


def unused_options(protocol: str, given: Collection[str]) -> Iterator[str]:
    """A sentence for each option that has no effect."""
    for option in given:
        users = sorted(_USED_BY[option])
        if protocol not in users:
            *others, last = users
            names = f"{', '.join(others)} and {last}" if others else last
            yield f"{option} has no effect for {protocol}, only for {names}"
