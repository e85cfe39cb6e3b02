"""ST: Figures 8, 9 and 10.

Paper: T. Tachikawa and M. Takizawa, "Selective Total-Ordering Group Communication on Single High-Speed Channel",
section 5. It gives neither n nor L; here they are 10 and 100, near which its sentence on Figure 10 is true.

The runs are what the formulas are about: L messages are on the channel before any node detects a loss, each node
loses each of them with probability f, and nothing that is sent later is lost.
"""

from ordercast.evaluation import formulas
from ordercast.evaluation.claims import follows, grows_like, needs_less, stays_below
from ordercast.evaluation.experiment import Curve, CurvePoint, Experiment, Size, Value, reference
from ordercast.evaluation.results import Axis, Role, Series
from ordercast.evaluation.values import over_runs, per_sent, share_of_sent
from ordercast.model.config import MICROSECOND, GroupConfig, RecoveryPolicy, Rules
from ordercast.model.faults import Loss
from ordercast.model.runs import Channel, Network, Pattern, RunConfig, TraceDetail, Workload

_PAPER = "Tachikawa, Takizawa: ST"
NODES = 10
MESSAGES = 100
LOSSES = (0.0005, 0.001, 0.002, 0.005, 0.01)
SPREADS = (0.2, 0.4, 0.6, 0.8, 1.0)
FIXED_LOSS = 0.005
"""f of Figure 9."""

_SETTING = (
    f"n = {NODES} nodes put L = {MESSAGES} messages on one channel at once; each node loses each of "
    f"them with probability f, and nothing "
    "after that. The paper gives neither n nor L. "
)


def _run(f: float, spread: float, recovery: RecoveryPolicy, seed: int, rules: Rules = Rules.SOUND) -> RunConfig:
    return RunConfig(
        protocol="st",
        group=GroupConfig(nodes=NODES, rules=rules, recovery=recovery, window=64, log_limit=4000),
        network=Network(channel=Channel.ONE, propagation=50 * MICROSECOND, jitter=0),
        workload=Workload(messages=MESSAGES // NODES, spread=spread, pattern=Pattern.EVERYBODY),
        faults=(Loss(rate=f, until=MICROSECOND),),
        seed=seed,
        record=TraceDetail.NONE,
    ).with_default_timeouts()


def _expected(f: float, spread: float) -> dict[str, float]:
    """Everything that the formulas say of one point."""
    d = spread * NODES
    printed, right = formulas.received_by_all_printed(f, d, NODES), formulas.received_by_all(f, d, NODES)
    others = formulas.received_by_all_others(f, d, NODES)
    return {
        "selective_printed": formulas.selective_ratio(printed),
        "selective_right": formulas.selective_ratio(right),
        "selective_others": formulas.selective_ratio(others),
        "back_printed": formulas.go_back_ratio(printed, MESSAGES),
        "back_right": formulas.go_back_ratio(right, MESSAGES),
        "recovery_rules": formulas.recovery_ratio_of_printed_rules(right, d, NODES, MESSAGES),
        "recovery_printed": formulas.recovery_ratio(printed, f, d, NODES, MESSAGES, all_places=False),
        "recovery_n": formulas.recovery_ratio(right, f, d, NODES, MESSAGES, all_places=False),
        "recovery_right": formulas.recovery_ratio(right, f, d, NODES, MESSAGES, all_places=True),
    }


_SELECTIVE: Value = share_of_sent("retransmitted")  # a message is sent again once, whoever lost it
_GO_BACK: Value = per_sent("retransmitted")  # a loss drags others along: messages of a run are not independent


def figure_8(size: Size) -> Experiment:
    """Messages sent again, by the probability of loss."""
    fs = LOSSES if size is not Size.TINY else LOSSES[1::3]
    seeds = size.pick(150, 15, 3)

    def curve(name: str, label: str, spread: float, recovery: RecoveryPolicy) -> Curve:
        spots = tuple(CurvePoint(f, tuple(_run(f, spread, recovery, seed) for seed in range(seeds))) for f in fs)
        return Curve(name, label, spots, _SELECTIVE if recovery is RecoveryPolicy.SELECTIVE else _GO_BACK)

    def line(name: str, label: str, key: str, spread: float, of: str) -> Series:
        role = Role.PRINTED if key.endswith("printed") else Role.CORRECTED
        return reference(name, label, role, {f: _expected(f, spread)[key] for f in fs}, of=of)

    return Experiment(
        name="st-figure8",
        protocol="st",
        source=f"{_PAPER}, Figure 8",
        title="Messages sent again, by the probability of loss",
        x=Axis("probability that a node loses a message, f", log=True),
        y=Axis("messages sent again / L", log=True),
        curves=(
            curve("back_1", "go-back-n, d/n = 1", 1.0, RecoveryPolicy.GO_BACK_N),
            curve("back_05", "go-back-n, d/n = 0.5", 0.5, RecoveryPolicy.GO_BACK_N),
            curve("selective_1", "selective, d/n = 1", 1.0, RecoveryPolicy.SELECTIVE),
            curve("selective_05", "selective, d/n = 0.5", 0.5, RecoveryPolicy.SELECTIVE),
        ),
        references=(
            line("back_1_right", "R_G/L", "back_right", 1.0, "back_1"),
            line("back_05_right", "R_G/L with exponent n", "back_right", 0.5, "back_05"),
            line("back_05_printed", "R_G/L as printed", "back_printed", 0.5, "back_05"),
            line("selective_1_right", "R_S/L", "selective_right", 1.0, "selective_1"),
            line("selective_1_others", "R_S/L, exponent n − 1", "selective_others", 1.0, "selective_1"),
            line("selective_05_right", "R_S/L with exponent n", "selective_right", 0.5, "selective_05"),
            line("selective_05_others", "R_S/L, exponent n − 1", "selective_others", 0.5, "selective_05"),
            line("selective_05_printed", "R_S/L as printed", "selective_printed", 0.5, "selective_05"),
        ),
        claims=(
            follows("selective_05", "selective_05_printed", within=0.15, otherwise=_EXPONENT),
            follows("selective_05", "selective_05_right", within=0.1, otherwise=_ECHO),
            follows("selective_05", "selective_05_others", within=0.1),
            follows("selective_1", "selective_1_right", within=0.1, otherwise=_ECHO),
            follows("selective_1", "selective_1_others", within=0.1),
            follows("back_05", "back_05_printed", within=0.15, otherwise=_EXPONENT),
            follows("back_05", "back_05_right", within=0.15),
            follows("back_1", "back_1_right", within=0.15),
            needs_less("selective_05", "back_05", what="copies"),
        ),
        setting=_SETTING + "ST is d/n = 0.5, TO is d/n = 1.",
    )


_ECHO = "A source that loses only its own echo takes it from its sending log: nothing is sent again."
_EXPONENT = "Printed is F = (1 − f·d/n)^d; each of n nodes is a destination with probability d/n, so the exponent is n."


def figure_9(size: Size) -> Experiment:
    """Messages sent again, by the share of the group that they are for."""
    spreads = SPREADS if size is not Size.TINY else SPREADS[::4]
    seeds = size.pick(150, 15, 3)

    def curve(name: str, label: str, recovery: RecoveryPolicy) -> Curve:
        spots = tuple(
            CurvePoint(spread, tuple(_run(FIXED_LOSS, spread, recovery, seed) for seed in range(seeds)))
            for spread in spreads
        )
        return Curve(name, label, spots, _SELECTIVE if recovery is RecoveryPolicy.SELECTIVE else _GO_BACK)

    def line(name: str, label: str, key: str, of: str) -> Series:
        role = Role.PRINTED if key.endswith("printed") else Role.CORRECTED
        return reference(name, label, role, {spread: _expected(FIXED_LOSS, spread)[key] for spread in spreads}, of=of)

    return Experiment(
        name="st-figure9",
        protocol="st",
        source=f"{_PAPER}, Figure 9",
        title="Messages sent again, by the share of the group that they are for (f = 0.005)",
        x=Axis("destinations, d/n"),
        y=Axis("messages sent again / L", log=True),
        curves=(
            curve("back", "go-back-n", RecoveryPolicy.GO_BACK_N),
            curve("selective", "selective", RecoveryPolicy.SELECTIVE),
        ),
        references=(
            line("back_right", "R_G/L with exponent n", "back_right", "back"),
            line("back_printed", "R_G/L as printed", "back_printed", "back"),
            line("selective_right", "R_S/L with exponent n", "selective_right", "selective"),
            line("selective_others", "R_S/L with exponent n − 1", "selective_others", "selective"),
            line("selective_printed", "R_S/L as printed", "selective_printed", "selective"),
        ),
        claims=(
            follows("selective", "selective_printed", within=0.15, otherwise=_EXPONENT),
            follows("selective", "selective_right", within=0.1, otherwise=_ECHO),
            follows("selective", "selective_others", within=0.1),
            follows("back", "back_printed", within=0.15, otherwise=_EXPONENT),
            follows("back", "back_right", within=0.15),
            grows_like("selective", 1, within=0.15, of="d/n"),
        ),
        setting=_SETTING,
    )


def figure_10(size: Size) -> Experiment:
    """What recovery costs, relative to what the messages cost anyway."""
    fs = LOSSES if size is not Size.TINY else LOSSES[1::3]
    seeds = size.pick(150, 15, 3)
    value = over_runs(lambda row: row["processing"] / row["nodes"] / row["sent"] if row["sent"] else None)

    def curve(name: str, label: str, spread: float, rules: Rules) -> Curve:
        spots = tuple(
            CurvePoint(f, tuple(_run(f, spread, RecoveryPolicy.SELECTIVE, seed, rules) for seed in range(seeds)))
            for f in fs
        )
        return Curve(name, label, spots, value, may_be_incomplete=rules is Rules.PAPER)

    def line(name: str, label: str, key: str, spread: float, of: str) -> Series:
        role = Role.PRINTED if key.endswith("printed") else Role.CORRECTED
        return reference(name, label, role, {f: _expected(f, spread)[key] for f in fs}, of=of)

    limit = reference(
        "said", "the 20 % of the text (f < 0.001)", Role.PUBLISHED, {f: 0.2 for f in fs if f <= 0.001}, of="paper_05"
    )
    return Experiment(
        name="st-figure10",
        protocol="st",
        source=f"{_PAPER}, Figure 10",
        title="Time to recover, relative to the time without loss",
        x=Axis("probability that a node loses a message, f", log=True),
        y=Axis("C / D", log=True),
        curves=(
            curve("paper_1", "printed rules, d/n = 1", 1.0, Rules.PAPER),
            curve("paper_05", "printed rules, d/n = 0.5", 0.5, Rules.PAPER),
            curve("sound_1", "our rules, d/n = 1", 1.0, Rules.SOUND),
            curve("sound_05", "our rules, d/n = 0.5", 0.5, Rules.SOUND),
        ),
        references=(
            line("one_printed", "C/D as printed, d/n = 1", "recovery_printed", 1.0, "paper_1"),
            line("one_right", "C/D corrected, d/n = 1", "recovery_right", 1.0, "paper_1"),
            line("one_rules", "what the rules do, d/n = 1", "recovery_rules", 1.0, "paper_1"),
            line("half_printed", "C/D as printed, d/n = 0.5", "recovery_printed", 0.5, "paper_05"),
            line("half_right", "C/D corrected, d/n = 0.5", "recovery_right", 0.5, "paper_05"),
            line("half_rules", "what the rules do, d/n = 0.5", "recovery_rules", 0.5, "paper_05"),
            limit,
        ),
        claims=(
            follows("paper_1", "one_printed", within=0.25, otherwise=_SINGLE),
            follows("paper_1", "one_right", within=0.25, otherwise=_SORTING),
            follows("paper_1", "one_rules", within=0.25),
            follows("paper_05", "half_printed", within=0.25, otherwise=f"{_EXPONENT} {_SINGLE}"),
            follows("paper_05", "half_right", within=0.25, otherwise=_SORTING),
            follows("paper_05", "half_rules", within=0.25),
            stays_below("paper_05", "said"),
            stays_below("paper_1", "said", otherwise="The paper's sentence is about true for d/n = 0.5."),
            needs_less("sound_1", "paper_1", what="processing"),
            needs_less("sound_05", "paper_05", what="processing"),
        ),
        setting=_SETTING
        + "The unit is the paper's: to insert a message takes 1, to sort h messages h; to receive L takes D = L. "
        "Under our rules only nodes that lack several messages sort.",
    )


_SINGLE = "Printed F_0, the probability of a single loss, lacks the n·L places where it may be."
_SORTING = (
    "As printed, what shows a gap is discarded too, so that a loss never stays single; and a node sorts only what is "
    "for it: (1 − F^L)·R_G/L·d/n."
)
