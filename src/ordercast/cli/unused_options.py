"""Options that only some protocols heed: who gives one to another protocol is told that it changes nothing."""

from collections.abc import Collection, Iterator, Mapping

import typer

from ordercast.model.config import GroupConfig, PaperRules, Rules
from ordercast.model.services import PRIORITISED, SELECTIVE, Service

_SEQUENCER = {Service.SEQUENCED.value}
_HEEDED_BY: dict[str, Collection[str]] = {
    "--spread": {service.value for service in SELECTIVE},
    "--log-limit": {Service.SELECTIVE_TOTAL.value},
    "--recovery": {Service.SELECTIVE_TOTAL.value},
    "--hearsay": {Service.PARTIAL.value, Service.SELECTIVE_PARTIAL.value, Service.SELECTIVE_TOTAL.value},
    "--history": _SEQUENCER,
    "--resilience": _SEQUENCER,
    "--direct-from": _SEQUENCER,
    "--priorities": PRIORITISED,
    "--urgent": PRIORITISED,
    "--no-synchronise": PRIORITISED,
    "a priority in --script": PRIORITISED,
}


def report_unused_options(protocol: str, given: Mapping[str, bool]) -> None:
    """Says of each option that was given whether this protocol does not heed it."""
    for sentence in unheeded(protocol, [option for option, is_given in given.items() if is_given]):
        typer.echo(f"ordercast: {sentence}", err=True)


def report_unused_readings(group: GroupConfig) -> None:
    """Says of readings of the printed rules that nobody reads them under the sound ones."""
    if group.rules is Rules.SOUND and group.paper != PaperRules():
        typer.echo("ordercast: --reading changes nothing here: it is for --rules paper", err=True)


def unheeded(protocol: str, given: Collection[str]) -> Iterator[str]:
    """A sentence for each."""
    for option in given:
        heeding = sorted(_HEEDED_BY[option])
        if protocol not in heeding:
            *others, last = heeding
            names = f"{', '.join(others)} and {last} do" if others else f"{last} does"
            yield f"{option} changes nothing here: {protocol} does not heed it, {names}"
