"""SPO: Table 1, the time until pre-acknowledgment, and the lengths of logs.

Papers: A. Nakamura and M. Takizawa, "Selective Broadcast Service for Distributed Systems", 5.2 (EN), and "Data
Transmission Procedure of Selective Broadcast Protocol on Multi-Channel", 4.2 and Table 1 (JP).
"""

from msgspec.structs import replace

from ordercast.evaluation import formulas
from ordercast.evaluation.claims import follows, grows_like, needs_less
from ordercast.evaluation.experiment import Curve, Experiment, Size, Spot, Value, reference
from ordercast.evaluation.results import Axis, Role
from ordercast.evaluation.values import mean_log, over_runs, per_loss, waiting_for_others
from ordercast.model.config import MICROSECOND, MILLISECOND, GroupConfig, HearsayRule, PaperRules, Rules
from ordercast.model.faults import Miss
from ordercast.model.runs import Channel, Network, Pattern, Record, RunConfig, Workload

_EN, _JP = "Nakamura, Takizawa: SPO (EN)", "Nakamura, Takizawa: SPO (JP)"

# --- Table 1 ---

NODES = 16
DESTINATIONS = (16, 8, 4, 2)
_GAP = 40 * MICROSECOND
_DELAY = 100 * MICROSECOND
_APART = 60  # messages of a source between two losses: 2.4 ms, in which everything is repaired


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
        workload=Workload(messages=20 + _APART * losses, spread=m / NODES, gap=_GAP),
        faults=misses,
        seed=seed,
        record=Record.NONE,
    ).suited()
    return config if paper is None else replace(config, patience=5 * MILLISECOND)  # some ask for ever


def table_1(size: Size) -> Experiment:
    """Units sent again for each loss, relative to TO."""
    losses, enough = size.pick(3, 2, 1), size.pick(24, 6, 1)

    all_ms = DESTINATIONS if size is not Size.TINY else DESTINATIONS[:2]

    def curve(
        name: str,
        label: str,
        *,
        selective: bool = True,
        paper: PaperRules | None = None,
        ms: tuple[int, ...] = all_ms,
    ) -> Curve:
        spots = []
        for m in ms:
            # What a node misses is addressed to it with chance m/n: few destinations ask for more runs.
            runs = -(-enough * NODES // (m * (1 if paper else losses))) if selective else -(-enough // losses)
            runs = min(runs, size.pick(64, 12, 2))
            configs = [
                _losing(name.split("_", maxsplit=1)[0], m if selective else NODES, seed, 1 if paper else losses, paper)
                for seed in range(runs)
            ]
            spots.append(Spot(m, tuple(configs)))
        return Curve(name, label, tuple(spots), over_runs(per_loss), may_be_incomplete=paper is not None)

    printed = {m: formulas.table_1(NODES, m) for m in DESTINATIONS}
    right = {m: formulas.resent_after_loss(NODES, m, 2 * _DELAY, _GAP) for m in DESTINATIONS}
    return Experiment(
        name="spo-table1",
        protocol="spo",
        source=f"{_JP}, Table 1",
        title="Units sent again for each loss, relative to TO (n = 16)",
        x=Axis("destinations of a message, m", log=True),
        y=Axis("units sent again, TO = 1", log=True),
        curves=(
            curve("to", "TO", selective=False),
            curve("po", "PO", selective=False),
            curve("spo", "SPO, our rules"),
            curve("spo_literal", "SPO as printed", paper=PaperRules(), ms=(NODES,)),
            curve(
                "spo_without2", "SPO as printed, without condition (2)", paper=PaperRules(condition_2=HearsayRule.NONE)
            ),
        ),
        references=(
            reference("po_table", "Table 1, N_PO", Role.PUBLISHED, {m: printed[m]["po"] for m in printed}, of="po"),
            reference("spo_table", "Table 1, N_SPO", Role.PUBLISHED, {m: printed[m]["spo"] for m in printed}, of="spo"),
            reference(
                "po_right",
                "the corrected formula for PO",
                Role.CORRECTED,
                {m: right[m]["po"] / right[m]["to"] for m in right},
                of="po",
                text="(2 + 2r/d) / (2 + n·2r/d)",
            ),
            reference(
                "spo_right",
                "the corrected formula for an SPO that goes back",
                Role.CORRECTED,
                {m: right[m]["spo"] / right[m]["to"] for m in right},
                of="spo_without2",
                text="(2 + 2r/d·m/n) / (2 + n·2r/d)",
            ),
        ),
        claims=(
            follows(
                "po",
                "po_table",
                within=0.15,
                otherwise="The table leaves out that the lost unit and the one that shows the loss are sent again as "
                "well; its 1/n is the limit for d far below r.",
            ),
            follows("po", "po_right", within=0.25, otherwise="TO also throws away what comes while it agrees."),
            follows(
                "spo",
                "spo_table",
                within=0.15,
                otherwise="Ours holds what comes behind a gap and sends one unit again for each loss, whatever m is; "
                "the table is about receivers that throw it away.",
            ),
            needs_less("spo", "po", what="copies"),
            follows(
                "spo_literal",
                "spo_table",
                within=0.15,
                otherwise="Each unit that comes behind the gap asks for everything again, and condition (2) throws away "
                "what others sent besides.",
            ),
            needs_less(
                "spo_without2",
                "spo_literal",
                what="copies",
                otherwise="Condition (2) costs nothing here.",
            ),
        ),
        setting="Single losses of data units, well apart, on one channel with r = 100 µs; each of 16 nodes sends every "
        "d = 40 µs (Poisson). Only losses of units addressed to the loser count, as in the table; for all losses "
        "multiply SPO by m/n. SPO as printed is run with m = n only: with fewer destinations a single loss of a unit "
        "for others can make condition (2) ask for everything again, for ever (C1, C2).",
        relative_to="to",
    )


# --- the time until pre-acknowledgment ---

_QUIET = MILLISECOND


def _sending(  # noqa: PLR0913, PLR0917
    rules: Rules, nodes: int, m: int, delay: int, pattern: Pattern, messages: int, seed: int
) -> RunConfig:
    """No losses; each node sends every millisecond."""
    return RunConfig(
        protocol="spo",
        group=GroupConfig(nodes=nodes, rules=rules, window=512, quota=2048),
        network=Network(channel=Channel.ONE, propagation=delay, jitter=0),
        workload=Workload(messages=messages, spread=m / nodes, pattern=pattern, gap=_QUIET),
        seed=seed,
        record=Record.NONE,
    ).suited()


def preacknowledgment(size: Size) -> Experiment:
    """From acceptance to pre-acknowledgment, by the number of destinations."""
    ms = (1, 2, 4, 8, 16) if size is not Size.TINY else (2, 16)
    seeds, messages = size.pick(10, 3, 2), size.pick(100, 60, 15)

    def curve(name: str, label: str, rules: Rules, pattern: Pattern) -> Curve:
        spots = tuple(
            Spot(m, tuple(_sending(rules, NODES, m, _DELAY, pattern, messages, seed) for seed in range(seeds)))
            for m in ms
        )
        incomplete = rules is Rules.PAPER
        return Curve(name, label, spots, over_runs(waiting_for_others), may_be_incomplete=incomplete)

    r, d = _DELAY / MILLISECOND, _QUIET / MILLISECOND
    poisson = {m: formulas.preacknowledgment_time_poisson(r, d, m) for m in ms}
    return Experiment(
        name="spo-preacknowledgment",
        protocol="spo",
        source=f"{_EN}, section 5.2; {_JP}, section 4.2",
        title="Time from acceptance to pre-acknowledgment",
        x=Axis("destinations of a message, m", log=True),
        y=Axis("time", "ms"),
        curves=(
            curve("steady", "printed rules, steady senders", Rules.PAPER, Pattern.STEADY),
            curve("poisson", "printed rules, Poisson senders", Rules.PAPER, Pattern.POISSON),
            curve("sound", "our rules, with statuses", Rules.SOUND, Pattern.POISSON),
        ),
        references=(
            reference(
                "printed",
                "r + d/2",
                Role.PRINTED,
                {m: formulas.preacknowledgment_time_printed(r, d) for m in ms},
                of="steady",
            ),
            reference(
                "right",
                "r + d·m/(m+1)",
                Role.CORRECTED,
                {m: formulas.preacknowledgment_time(r, d, m) for m in ms},
                of="steady",
            ),
            reference("right_poisson", "r + d·(1 + 1/2 + … + 1/m)", Role.CORRECTED, poisson, of="poisson"),
        ),
        claims=(
            follows(
                "steady",
                "printed",
                within=0.1,
                otherwise="d/2 is the wait for one destination; all m must have sent something.",
            ),
            follows("steady", "right", within=0.1),
            follows("poisson", "right_poisson", within=0.1),
            needs_less("sound", "steady", what="time"),
        ),
        setting="16 nodes send every d = 1 ms on one channel with r = 0.1 ms, nothing is lost. The printed rules "
        "acknowledge on data only; ours send a status by itself when it has been owed for long.",
    )


# --- the lengths of logs ---


def log_length(size: Size) -> Experiment:
    """Packets accepted and not yet pre-acknowledged, by the size of the group."""
    ns = {Size.FULL: (4, 8, 16, 32), Size.QUICK: (4, 8, 16), Size.TINY: (3, 4, 6)}[size]
    seeds, messages = size.pick(5, 2, 1), size.pick(120, 80, 12)
    fixed, growing = 100 * MICROSECOND, 300 * MICROSECOND

    def curve(name: str, label: str, rules: Rules, delay: int, per_node: int) -> Curve:
        def config(n: int, seed: int) -> RunConfig:
            return _sending(rules, n, n, delay + per_node * n, Pattern.STEADY, messages, seed)

        spots = tuple(Spot(n, tuple(config(n, seed) for seed in range(seeds))) for n in ns)
        return Curve(name, label, spots, _LENGTH, may_be_incomplete=rules is Rules.PAPER)

    def full(name: str, label: str) -> Curve:
        spots = tuple(Spot(n, tuple(_saturated(n, messages, seed) for seed in range(seeds))) for n in ns)
        return Curve(name, label, spots, _LENGTH)

    def lengths(delay: float, per_node: float) -> dict[float, float]:
        d = float(_QUIET)
        return {n: formulas.log_length(formulas.preacknowledgment_time(delay + per_node * n, d, n), n, d) for n in ns}

    return Experiment(
        name="spo-log-length",
        protocol="spo",
        source=f"{_EN}, section 5.2; {_JP}, section 4.2",
        title="Length of the logs by the size of the group",
        x=Axis("nodes, n", log=True),
        y=Axis("packets accepted, not pre-acknowledged", log=True),
        curves=(
            curve("fixed", "delay fixed", Rules.PAPER, fixed, 0),
            curve("growing", "delay ∝ n", Rules.PAPER, 0, growing),
            full("saturated", "full medium, window 8, our rules"),
        ),
        references=(
            reference(
                "fixed_right",
                "(r + d·m/(m+1))·n/d, r fixed",
                Role.CORRECTED,
                lengths(fixed, 0),
                of="fixed",
            ),
            reference(
                "growing_right",
                "(r + d·m/(m+1))·n/d, r ∝ n",
                Role.CORRECTED,
                lengths(0, growing),
                of="growing",
            ),
            reference("window", "n·W, what windows let in", Role.BOUND, {n: n * _WINDOW for n in ns}, of="saturated"),
        ),
        claims=(
            follows("fixed", "fixed_right", within=0.15),
            grows_like("fixed", 1, within=0.15, of="n"),
            follows("growing", "growing_right", within=0.15),
            grows_like("growing", 2, within=0.25, of="n", otherwise="The term that does not grow with n still weighs."),
            grows_like(
                "saturated",
                2,
                within=0.25,
                of="n",
                otherwise="Where the medium is full, windows bound what is on the way: n·W packets, O(n).",
            ),
        ),
        setting="Everything to everybody, nothing lost. Fixed: r = 0.1 ms. Growing: r = n · 0.3 ms. Both "
        "with the printed rules, "
        "d = 1 ms. Full medium: 10 Mbit/s, all send as fast as a window of 8 lets them. Lengths are averaged over "
        "nodes and time.",
    )


_WINDOW = 8
_LENGTH: Value = over_runs(mean_log)


def _saturated(nodes: int, messages: int, seed: int) -> RunConfig:
    return RunConfig(
        protocol="spo",
        group=GroupConfig(nodes=nodes, window=_WINDOW),
        network=Network(channel=Channel.ONE, bits_per_second=10_000_000),
        workload=Workload(messages=messages, pattern=Pattern.EVERYBODY, size=200),
        seed=seed,
        record=Record.NONE,
    ).suited()
