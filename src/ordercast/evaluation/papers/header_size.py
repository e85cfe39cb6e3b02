"""What a data unit carries besides its message, by the size of the group.

The papers count fields, not bytes: SPO and ST send two numbers for each node (PSEQ and ACK), PriTO one (ACK), the
sequencer none. Ours send three in SPO, ST and PO (PACK as well), for the level that the printed rules get wrong.
"""

from ordercast.evaluation import formulas
from ordercast.evaluation.claims import follows, grows_like
from ordercast.evaluation.experiment import Curve, CurvePoint, Experiment, Size, reference
from ordercast.evaluation.results import Axis, Role
from ordercast.evaluation.values import header_of_data, over_runs
from ordercast.model.config import GroupConfig
from ordercast.model.runs import Channel, Network, RunConfig, TraceDetail, Workload

_PAYLOAD = 64
_LABELS = {"spo": "SPO and PO", "st": "ST", "to": "TO", "prito": "PriTO", "sequencer": "sequencer"}


def _run(protocol: str, nodes: int, messages: int) -> RunConfig:
    return RunConfig(
        protocol=protocol,
        group=GroupConfig(nodes=nodes),
        network=Network(channel=Channel.ONE),
        workload=Workload(messages=messages, size=_PAYLOAD),
        record=TraceDetail.NONE,
    ).with_default_timeouts()


def header_bytes(size: Size) -> Experiment:
    """Bytes of a header."""
    ns = {Size.FULL: (2, 4, 8, 16, 32, 64), Size.QUICK: (2, 8, 32), Size.TINY: (2, 4, 8)}[size]
    messages = size.pick(3, 2, 2)
    curves = tuple(
        Curve(
            protocol,
            label,
            tuple(CurvePoint(n, (_run(protocol, n, messages),)) for n in ns),
            over_runs(header_of_data(_PAYLOAD)),
        )
        for protocol, label in _LABELS.items()
    )
    return Experiment(
        name="headers",
        protocol="all",
        source="Fields of the units, in all papers",
        title="Header of a data unit, by the size of the group",
        x=Axis("nodes, n", log=True),
        y=Axis("header", "bytes", log=True),
        curves=curves,
        references=(
            reference(
                "two",
                "two vectors, as SPO and ST are printed",
                Role.PRINTED,
                {n: formulas.header_bytes(n, 2, 2) for n in ns},
                of="spo",
            ),
            reference(
                "three",
                "three vectors",
                Role.CORRECTED,
                {n: formulas.header_bytes(n, 3, 2) for n in ns},
                of="spo",
            ),
            reference(
                "one",
                "one vector, as PriTO is printed",
                Role.PRINTED,
                {n: formulas.header_bytes(n, 1, 5) for n in ns},
                of="to",
            ),
        ),
        claims=(
            follows(
                "spo",
                "two",
                within=0.05,
                otherwise="A third vector says what is pre-acknowledged; without it acknowledgment "
                "means less than it says (A1, A2).",
            ),
            follows("spo", "three", within=0.01),
            follows("to", "one", within=0.1),
            grows_like("sequencer", 0, within=0.05, of="n", otherwise="A set of nodes takes a bit for each."),
        ),
        setting="Numbers have 32 bits, a set of nodes one bit for each, 16 bytes are fixed; measured "
        "on short runs as bytes on the "
        "channel for each data unit, without the message.",
    )
