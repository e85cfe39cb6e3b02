"""The protocols, by name. Each is a machine (see `ordercast.model.machine`) in a module of its own."""

from collections.abc import Callable

from ordercast.model.config import GroupConfig, Rules
from ordercast.model.errors import ConfigError
from ordercast.model.machine import Machine
from ordercast.protocols.spo import Spo
from ordercast.protocols.spo_paper import SpoPaper

MachineClass = Callable[[int, GroupConfig], Machine]

PROTOCOLS: dict[str, dict[Rules, MachineClass]] = {
    "spo": {Rules.SOUND: Spo, Rules.PAPER: SpoPaper},
}


def machine_for(protocol: str, me: int, config: GroupConfig) -> Machine:
    """The machine of one node for a protocol and the rules of the group."""
    if protocol not in PROTOCOLS:
        raise ConfigError(f"there is no protocol {protocol!r}; there are: {', '.join(PROTOCOLS)}")
    return PROTOCOLS[protocol][config.rules](me, config)
