"""SPO: Table 1, the units that are sent again after a loss.

Paper: A. Nakamura and M. Takizawa, "Data Transmission Procedure of Selective Broadcast Protocol on Multi-Channel", 4.2.
"""

from msgspec.structs import replace

from ordercast.evaluation import formulas
from ordercast.evaluation.claims import Claim, follows, needs_less
from ordercast.evaluation.experiment import Curve, CurvePoint, Experiment, Size, reference
from ordercast.evaluation.results import Axis, Role, Series
from ordercast.evaluation.values import over_runs, per_loss
from ordercast.model.config import MICROSECOND, MILLISECOND, GroupConfig, LossInference, PaperRules, Rules
from ordercast.model.faults import Miss
from ordercast.model.runs import Channel, Network, RunConfig, TraceDetail, Workload

NODES = 16
DESTINATIONS = (16, 8, 4, 2)
_GAP = 40 * MICROSECOND
_DELAY = 100 * MICROSECOND
_APART = 60  # messages of a source between two losses: 2.4 ms, in which everything is repaired
_AFTER = 30  # messages behind the only loss of a run with the printed rules


def _losing(protocol: str, m: int, seed: int, losses: int, paper: PaperRules | None = None) -> RunConfig:
    """Single losses of data, well apart; nothing else is lost."""
    misses = tuple(
        Miss(node=(5 * loss + seed + 1) % NODES, source=(5 * loss + seed + 8) % NODES, nth=20 + _APART * loss)
        for loss in range(losses)
    )
    config = RunConfig(
        protocol=protocol,
        group=GroupConfig(
            nodes=NODES,
            rules=Rules.SOUND if paper is None else Rules.PAPER,
            window=512,
            quota=2048,
            paper=paper or PaperRules(),
        ),
        network=Network(channel=Channel.ONE, propagation=_DELAY, jitter=0),
        workload=Workload(messages=20 + (_AFTER if paper else _APART * losses), spread=m / NODES, gap=_GAP),
        faults=misses,
        seed=seed,
        record=TraceDetail.NONE,
    ).with_default_timeouts()
    return config if paper is None else replace(config, stall_timeout=5 * MILLISECOND)  # some never stop requesting


def _curve(
    size: Size, name: str, label: str, *, ms: tuple[int, ...], selective: bool = True, paper: PaperRules | None = None
) -> Curve:
    """What a node misses is addressed to it with probability m/n: few destinations need more runs."""
    losses = 1 if paper else size.pick(3, 2, 1)
    wanted, most = (size.pick(5, 2, 1), size.pick(20, 4, 2)) if paper else (size.pick(15, 4, 1), size.pick(30, 8, 2))
    protocol = name.split("_", maxsplit=1)[0]
    spots = []
    for m in ms:
        runs = min(most, -(-wanted * (NODES // m if selective else 1) // losses))
        to = m if selective else NODES
        spots.append(CurvePoint(m, tuple(_losing(protocol, to, seed, losses, paper) for seed in range(runs))))
    return Curve(name, label, tuple(spots), over_runs(per_loss), may_be_incomplete=paper is not None)


def _references() -> tuple[Series, ...]:
    printed = {m: formulas.table_1(NODES, m) for m in DESTINATIONS}
    right = {m: formulas.resent_after_loss(NODES, m, 2 * _DELAY, _GAP) for m in DESTINATIONS}
    return (
        reference("po_table", "Table 1, N_PO", Role.PUBLISHED, {m: printed[m]["po"] for m in printed}, of="po"),
        reference("spo_table", "Table 1, N_SPO", Role.PUBLISHED, {m: printed[m]["spo"] for m in printed}, of="spo"),
        reference(
            "po_right",
            "PO, corrected",
            Role.CORRECTED,
            {m: right[m]["po"] / right[m]["to"] for m in right},
            of="po",
            text="(2 + 2r/d) / (2 + n·2r/d)",
        ),
        reference(
            "spo_right",
            "SPO going back, corrected",
            Role.CORRECTED,
            {m: right[m]["spo"] / right[m]["to"] for m in right},
            of="spo_without2",
            text="(2 + 2r/d·m/n) / (2 + n·2r/d)",
        ),
    )


def _claims() -> tuple[Claim, ...]:
    return (
        follows(
            "po",
            "po_table",
            within=0.15,
            otherwise="The table leaves out that the lost unit and the one that shows the loss are sent again as well; "
            "its 1/n is the limit for d far below r.",
        ),
        follows("po", "po_right", within=0.25, otherwise="TO also discards what arrives while it agrees."),
        follows(
            "spo",
            "spo_table",
            within=0.15,
            otherwise="Ours holds what comes behind a gap and sends one unit again for each loss, whatever m is; "
            "the table is about receivers that discard it.",
        ),
        needs_less("spo", "po", what="copies"),
        follows("spo_literal", "spo_table", within=0.15, otherwise=_STORM),
        follows("spo_without2", "spo_right", within=0.25, otherwise=_AGAIN),
        needs_less("spo_without2", "spo_literal", what="copies", otherwise="Condition (2) costs nothing here."),
    )


_AGAIN = "The formula has each loss asked about once; as printed, each unit that comes behind the gap asks again."
_STORM = f"{_AGAIN} Condition (2) also discards what all others sent."


def table_1(size: Size) -> Experiment:
    """Units sent again for each loss, relative to TO."""
    ms = DESTINATIONS if size is not Size.TINY else DESTINATIONS[:2]
    without_2 = PaperRules(condition_2=LossInference.NONE)
    return Experiment(
        name="spo-table1",
        protocol="spo",
        source="Nakamura, Takizawa: SPO (JP), Table 1",
        title="Units sent again for each loss, relative to TO (n = 16)",
        x=Axis("destinations of a message, m", log=True),
        y=Axis("units sent again, TO = 1", log=True),
        curves=(
            _curve(size, "to", "TO", ms=ms, selective=False),
            _curve(size, "po", "PO", ms=ms, selective=False),
            _curve(size, "spo", "SPO, our rules", ms=ms),
            _curve(size, "spo_literal", "SPO as printed", ms=(NODES,), paper=PaperRules()),
            _curve(size, "spo_without2", "SPO as printed, no (2)", ms=ms, paper=without_2),
        ),
        references=_references(),
        claims=_claims(),
        setting="Single losses of data units, well apart, on one channel with r = 100 µs; each of 16 nodes sends every "
        "d = 40 µs (Poisson). Only losses of units addressed to the node that lost them count, as in the table; for "
        "all losses multiply SPO by m/n. SPO as printed is run with m = n only: with fewer destinations a single loss "
        "of a unit for others can make condition (2) ask for everything again, without end (C1, C2).",
        relative_to="to",
    )
