"""The protocols, by name. Each is a machine (see `ordercast.model.machine`) in a module of its own."""

from collections.abc import Callable

from ordercast.model.config import GroupConfig, Rules
from ordercast.model.errors import ConfigError
from ordercast.model.machine import Machine
from ordercast.protocols.po import Po
from ordercast.protocols.prio import Prio
from ordercast.protocols.prito import Prito
from ordercast.protocols.prito_paper import PritoPaper
from ordercast.protocols.sequencer import Sequencer
from ordercast.protocols.sequencer_paper import SequencerPaper
from ordercast.protocols.spo import Spo
from ordercast.protocols.spo_paper import SpoPaper
from ordercast.protocols.st import St
from ordercast.protocols.st_paper import StPaper
from ordercast.protocols.to import To

MachineClass = Callable[[int, GroupConfig], Machine]
"""What makes the machine of a node."""

PROTOCOLS: dict[str, dict[Rules, type[Machine]]] = {
    "po": {Rules.SOUND: Po},
    "prio": {Rules.SOUND: Prio},
    "prito": {Rules.SOUND: Prito, Rules.PAPER: PritoPaper},
    "sequencer": {Rules.SOUND: Sequencer, Rules.PAPER: SequencerPaper},
    "spo": {Rules.SOUND: Spo, Rules.PAPER: SpoPaper},
    "st": {Rules.SOUND: St, Rules.PAPER: StPaper},
    "to": {Rules.SOUND: To},
}


def machine_class(protocol: str, rules: Rules) -> type[Machine]:
    """The machine of a protocol under some rules."""
    if protocol not in PROTOCOLS:
        raise ConfigError(f"there is no protocol {protocol!r}; there are: {', '.join(PROTOCOLS)}")
    if rules not in PROTOCOLS[protocol]:
        having = ", ".join(name for name, machines in PROTOCOLS.items() if rules in machines)
        raise ConfigError(f"{protocol} has no {rules.value} rules; these have: {having}")
    return PROTOCOLS[protocol][rules]
