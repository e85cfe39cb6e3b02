"""SPO: the time until pre-acknowledgment, and the lengths of logs.

Papers: A. Nakamura and M. Takizawa, "Selective Broadcast Service for Distributed Systems", 5.2 (EN), and "Data
Transmission Procedure of Selective Broadcast Protocol on Multi-Channel", 4.2 (JP).
"""

from ordercast.evaluation import formulas
from ordercast.evaluation.claims import follows, grows_like, needs_less
from ordercast.evaluation.experiment import Curve, CurvePoint, Experiment, Size, Value, reference
from ordercast.evaluation.results import Axis, Role
from ordercast.evaluation.values import mean_log, over_runs, waiting_for_others
from ordercast.model.config import MICROSECOND, MILLISECOND, GroupConfig, Rules
from ordercast.model.runs import Channel, Network, Pattern, RunConfig, TraceDetail, Workload

_EN, _JP = "Nakamura, Takizawa: SPO (EN)", "Nakamura, Takizawa: SPO (JP)"

NODES = 16
_DELAY = 100 * MICROSECOND

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
        record=TraceDetail.NONE,
    ).with_default_timeouts()


_OWN_WORD = "A destination's own acknowledgment needs no r; where it is the only destination nothing travels at all."
_OWN_PACKETS = "A node's own packets wait for a way there and back, which weighs most in small groups."


def preacknowledgment(size: Size) -> Experiment:
    """From acceptance to pre-acknowledgment, by the number of destinations."""
    ms = (1, 2, 4, 8, 16) if size is not Size.TINY else (1, 16)
    seeds, messages = size.pick(6, 2, 2), size.pick(100, 50, 15)

    def curve(name: str, label: str, rules: Rules, pattern: Pattern) -> Curve:
        spots = tuple(
            CurvePoint(m, tuple(_sending(rules, NODES, m, _DELAY, pattern, messages, seed) for seed in range(seeds)))
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
            follows("steady", "right", within=0.1, otherwise=_OWN_WORD),
            follows("poisson", "right_poisson", within=0.1, otherwise=_OWN_WORD),
            needs_less("sound", "steady", what="time"),
        ),
        setting="16 nodes send every d = 1 ms on one channel with r = 0.1 ms, nothing is lost. The printed rules "
        "acknowledge on data only; ours send a status by itself when an acknowledgment has been due for long. A "
        "destination's own acknowledgment "
        "needs no r, which is why few destinations are a little faster than the formula.",
    )


# --- the lengths of logs ---


def log_length(size: Size) -> Experiment:
    """Packets accepted and not yet pre-acknowledged, by the size of the group."""
    ns = {Size.FULL: (2, 4, 8, 16, 32), Size.QUICK: (2, 4, 8, 16), Size.TINY: (2, 4, 6)}[size]
    seeds, messages = size.pick(3, 2, 1), size.pick(120, 60, 12)
    fixed, growing = 100 * MICROSECOND, 300 * MICROSECOND

    def curve(name: str, label: str, rules: Rules, delay: int, per_node: int) -> Curve:
        def config(n: int, seed: int) -> RunConfig:
            return _sending(rules, n, n, delay + per_node * n, Pattern.STEADY, messages, seed)

        spots = tuple(CurvePoint(n, tuple(config(n, seed) for seed in range(seeds))) for n in ns)
        return Curve(name, label, spots, _LENGTH, may_be_incomplete=rules is Rules.PAPER)

    def full(name: str, label: str) -> Curve:
        spots = tuple(CurvePoint(n, tuple(_saturated(n, messages, seed) for seed in range(seeds))) for n in ns)
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
            follows("fixed", "fixed_right", within=0.15, otherwise=_OWN_PACKETS),
            grows_like("fixed", 1, within=0.15, of="n"),
            follows("growing", "growing_right", within=0.15, otherwise=_OWN_PACKETS),
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
        record=TraceDetail.NONE,
    ).with_default_timeouts()
