"""Scenarios of the sequencer's broadcast: datagrams that are lost, doubled and overtaken, and nodes that crash."""

from typing import Any

from ordercast.explorer.scenario import Promise, Scenario, scripts
from ordercast.model.config import GroupConfig, SequencerConfig
from ordercast.model.runs import Channel
from ordercast.protocols import MachineClass
from ordercast.protocols.sequencer import Sequencer

OPTIONS = {"history", "resilience", "direct_from", "suspect_after"}
GROUP = {"window", "polls_to_abort", "first_seq"}


def broadcasts(*lines: str, machine: MachineClass = Sequencer, **how: Any) -> Scenario:
    """A group whose first node is the sequencer; `lines` say what each node sends, "a b" is a and then b."""
    nodes = len(lines)
    everybody = ",".join(str(node + 1) for node in range(nodes))
    sends = scripts(*[" ".join(f"{name}{{{everybody}}}" for name in line.split()) for line in lines])
    options = SequencerConfig(**{name: how.pop(name) for name in OPTIONS & how.keys()})
    group = GroupConfig(nodes=nodes, sequencer=options, **{name: how.pop(name) for name in GROUP & how.keys()})
    promise = Promise(
        one_order=True, ladder=False, views=True, uniform=options.resilience > 0, never_less=("ordered_below",)
    )
    return Scenario(machine=machine, group=group, scripts=sends, promise=promise, **{"channel": Channel.ANY, **how})
