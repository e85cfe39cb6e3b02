"""What a lone message costs in units, by the size of the group, if nothing is lost.

The papers compare protocols by packets for a message, of many messages at once, whose acknowledgments ride on each
other. A lone message has nothing to ride on: each node has to be told of it, and to say so; and where it is delivered
when all are known to know, once more. A unit to all counts once, as on the papers' broadcast channel.
"""

from ordercast.evaluation.claims import follows, needs_less
from ordercast.evaluation.experiment import Curve, CurvePoint, Experiment, Size, reference
from ordercast.evaluation.results import Axis, Role
from ordercast.evaluation.values import over_runs, packets_per_message
from ordercast.model.config import MILLISECOND, GroupConfig
from ordercast.model.runs import Channel, Network, RunConfig, ScriptedSend, TraceDetail, Workload

_APART = MILLISECOND
_CURVES = {
    "spo": ("spo", False, "SPO"),
    "st": ("st", False, "ST"),
    "to": ("to", False, "TO"),
    "spo_stable": ("spo", True, "SPO, delivered when stable"),
    "st_stable": ("st", True, "ST, delivered when stable"),
}


def _run(protocol: str, nodes: int, messages: int, *, stable: bool) -> RunConfig:
    """The last node sends a message to all every millisecond."""
    sends = tuple(ScriptedSend(node=nodes - 1, at=_APART * number) for number in range(messages))
    return RunConfig(
        protocol=protocol,
        group=GroupConfig(nodes=nodes, polls_late=True, delivers_stable=stable),
        network=Network(channel=Channel.MANY if protocol == "spo" else Channel.ONE, drained=True),
        workload=Workload(script=sends),
        record=TraceDetail.NONE,
    ).with_default_timeouts()


def lone_messages(size: Size) -> Experiment:
    """Units for a message."""
    ns = {Size.FULL: (2, 4, 8, 16, 32, 64), Size.QUICK: (3, 8, 24), Size.TINY: (3, 4, 8)}[size]
    messages = size.pick(40, 30, 30)
    curves = tuple(
        Curve(
            name,
            label,
            tuple(CurvePoint(n, (_run(protocol, n, messages, stable=stable),)) for n in ns),
            over_runs(packets_per_message),
        )
        for name, (protocol, stable, label) in _CURVES.items()
    )
    rounds = {
        "two_rounds": ("the message and two rounds of statuses: 2n + 1", 2, "st"),
        "one_round": ("the message and one round: n + 1", 1, "st_stable"),
    }
    return Experiment(
        name="lone",
        protocol="all",
        source="Not in the papers",
        title="Units for a lone message, by the size of the group",
        x=Axis("nodes, n", log=True),
        y=Axis("units for a message", log=True),
        curves=curves,
        references=tuple(
            reference(name, label, Role.CORRECTED, {n: count * n + 1.0 for n in ns}, of=of)
            for name, (label, count, of) in rounds.items()
        ),
        claims=(
            follows("st", "two_rounds", within=0.05),
            follows("to", "two_rounds", within=0.1),
            follows("st_stable", "one_round", within=0.15),
            needs_less("spo", "two_rounds", what="units", otherwise="A source need not tell itself."),
            needs_less("st_stable", "st", what="units"),
            needs_less("spo_stable", "spo", what="units"),
        ),
        setting="One node sends a message to all every millisecond, which is longer than both rounds take; nothing is "
        "lost. Counted are units on the channel; one to all counts once.",
    )
