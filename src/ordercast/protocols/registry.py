"""The machine class of each protocol, by name and rules; each is imported when first requested."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

from ordercast.model.config import GroupConfig, RecoveryPolicy, Rules
from ordercast.model.errors import ConfigError
from ordercast.model.machine import Machine
from ordercast.protocols.membership.epoch import Flush

MachineClass = Callable[[int, GroupConfig], Machine]
"""What makes the machine of a node."""

_HERE = "ordercast.protocols"
PROTOCOLS: dict[str, dict[Rules, tuple[str, str]]] = {
    "po": {Rules.SOUND: (f"{_HERE}.po.machine", "Po")},
    "prio": {Rules.SOUND: (f"{_HERE}.prito.prio", "Prio")},
    "prito": {
        Rules.SOUND: (f"{_HERE}.prito.machine", "Prito"),
        Rules.PAPER: (f"{_HERE}.prito.paper.machine", "PritoPaper"),
    },
    "sequencer": {
        Rules.SOUND: (f"{_HERE}.sequencer.machine", "Sequencer"),
        Rules.PAPER: (f"{_HERE}.sequencer.paper.machine", "SequencerPaper"),
    },
    "spo": {Rules.SOUND: (f"{_HERE}.spo.machine", "Spo"), Rules.PAPER: (f"{_HERE}.spo.paper", "SpoPaper")},
    "st": {Rules.SOUND: (f"{_HERE}.st.machine", "St"), Rules.PAPER: (f"{_HERE}.st.paper.machine", "StPaper")},
    "to": {Rules.SOUND: (f"{_HERE}.to.machine", "To")},
}
"""By protocol and rules: the module, and the class in it."""

RECOVERIES: dict[tuple[str, Rules, RecoveryPolicy], tuple[str, str]] = {
    ("st", Rules.SOUND, RecoveryPolicy.PLACE): (f"{_HERE}.st.place.machine", "StPlace"),
}
"""The same of recoveries that have a machine of their own."""

FLUSHES: dict[str, tuple[str, str]] = {
    "po": (f"{_HERE}.po.flush", "PoFlush"),
    "prio": (f"{_HERE}.to.flush", "ToFlush"),
    "prito": (f"{_HERE}.to.flush", "ToFlush"),
    "sequencer": (f"{_HERE}.sequencer.flush", "SequencerFlush"),
    "spo": (f"{_HERE}.spo.flush", "SpoFlush"),
    "st": (f"{_HERE}.st.flush", "flush_of"),
    "to": (f"{_HERE}.to.flush", "ToFlush"),
}
"""By protocol: the module, and what in it makes the end of a view of its sound rules."""


def flush_class(protocol: str) -> Callable[[Any], Flush]:
    """What ends a view of a protocol; it is made with a machine of the protocol's sound rules."""
    if protocol not in FLUSHES:
        raise ConfigError(f"unknown protocol {protocol!r}; choose one of: {', '.join(FLUSHES)}")
    module, name = FLUSHES[protocol]
    found: Callable[[Any], Flush] = getattr(import_module(module), name)
    return found


def machine_class(protocol: str, rules: Rules, recovery: RecoveryPolicy | None = None) -> type[Machine]:
    """The machine of a protocol under some rules; all recoveries need the same channel and echo."""
    if protocol not in PROTOCOLS:
        raise ConfigError(f"unknown protocol {protocol!r}; choose one of: {', '.join(PROTOCOLS)}")
    if rules not in PROTOCOLS[protocol]:
        having = ", ".join(name for name, machines in PROTOCOLS.items() if rules in machines)
        raise ConfigError(f"{protocol} has no {rules.value} rules; choose one of: {having}")
    module, name = PROTOCOLS[protocol][rules]
    if recovery is not None:
        module, name = RECOVERIES.get((protocol, rules, recovery), (module, name))
    found: type[Machine] = getattr(import_module(module), name)
    return found


def make_machine(protocol: str, me: int, config: GroupConfig) -> Machine:
    """The machine of a node, as its configuration has it."""
    return machine_class(protocol, config.rules, config.recovery)(me, config)
