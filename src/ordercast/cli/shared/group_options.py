"""Options that `ordercast simulate` and `ordercast check` share."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from ordercast.model.config import RecoveryPolicy, Rules, require
from ordercast.model.errors import ConfigError
from ordercast.protocols.registry import PROTOCOLS

GROUP, PROTOCOL_PANEL, OUTPUT = "Group", "Protocol parameters", "Output"

_Value = TypeVar("_Value")
_Text = TypeVar("_Text", str, list[str])


def option(panel: str, text: str, *names: str, least: int | None = None) -> Any:
    """An option in a panel of the help."""
    return typer.Option(*names, help=text, rich_help_panel=panel, min=least)


def parsed(name: str, reader: Callable[[_Text], _Value], text: _Text) -> _Value:
    """The value of an option that is given as text; its errors name the option."""
    try:
        return reader(text)
    except ConfigError as error:
        raise ConfigError(f"{name}: {error}") from error


ORDERS = {"partial": "spo", "total": "st", "priority": "prito", "sequenced": "sequencer"}
"""The orders of live groups, by which people know the protocols; `live.settings` has the same."""


def require_protocol(name: str) -> str:
    """The name of a protocol, as it was given."""
    if name in ORDERS:
        raise ConfigError(f"{name!r} is an order of live groups; the name of its protocol is {ORDERS[name]}")
    require(name in PROTOCOLS, f"unknown protocol {name!r}; choose one of: {', '.join(PROTOCOLS)}")
    return name


Protocol = Annotated[
    str,
    typer.Argument(
        help="The protocol of an order: spo (partial), st (total), prito (priority), sequencer (sequenced); or one "
        "that the papers compare it with: po, to, prio.",
        callback=require_protocol,
    ),
]
RulesOption = Annotated[
    Rules, option(GROUP, "sound: the corrected rules; paper: the rules as printed, with their mistakes.")
]
Window = Annotated[int, option(GROUP, "Packets that a source may have in flight.")]
Quota = Annotated[int, option(GROUP, "Receive-buffer places that a node keeps for each source.")]
RecoveryOption = Annotated[RecoveryPolicy, option(PROTOCOL_PANEL, "ST: what is retransmitted after a loss.")]
InferLosses = Annotated[
    bool, option(PROTOCOL_PANEL, "PO, SPO, ST: request early what peers' acknowledgments show to be lost.")
]
History = Annotated[int, option(PROTOCOL_PANEL, "Sequencer: broadcasts kept for retransmission.")]
Resilience = Annotated[
    int, option(PROTOCOL_PANEL, "Sequencer: nodes besides it that hold a broadcast before it is delivered.")
]
Reading = Annotated[
    list[str] | None,
    option(
        PROTOCOL_PANEL,
        "With --rules paper: a reading of an ambiguous printed rule, repeatable: 'first_id=1', 'asks_once=true', "
        "'condition_2=others'. The protocols' pages list them.",
    ),
]
Json = Annotated[bool, option(OUTPUT, "Print one JSON object.", "--json")]
Svg = Annotated[Path | None, option(OUTPUT, "Write the space-time diagram to this SVG file.")]
