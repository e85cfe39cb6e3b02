"""PriTO: how long packets wait, by priority, with and without run synchronisation.

Paper: A. Nakamura and M. Takizawa, "Run Synchronization in the Priority-Based Broadcast Protocol". It measures
nothing; it claims that low priorities starve without run synchronisation (section 5) and do not with it.
"""

from collections.abc import Callable

from ordercast.evaluation import formulas
from ordercast.evaluation.claims import grows_like, needs_less, stays_below
from ordercast.evaluation.experiment import Curve, CurvePoint, Experiment, MeasuredRun, Size, reference
from ordercast.evaluation.results import Axis, Role
from ordercast.evaluation.values import longest_wait, mean_wait, over_runs
from ordercast.model.config import MICROSECOND, MILLISECOND, GroupConfig, PriorityConfig
from ordercast.model.runs import Channel, Network, Pattern, RunConfig, TraceDetail, Workload
from ordercast.model.units import LENGTH_SIZE, header_size

_PAPER = "Nakamura, Takizawa: PriTO"
_CLAIM = f"{_PAPER}, section 5 (a claim without numbers)"
NODES = 4
PRIORITIES = 3
_PAYLOAD = 200
_SETTING = (
    f"{NODES} nodes on one channel of 1 Gbit/s send every 50 µs without a pause; nine of ten messages "
    f"are urgent (priority "
    f"{PRIORITIES}), the rest have priority 1 or 2. Nothing is lost. "
)


def overloaded(messages: int, seed: int, *, synchronises: bool) -> RunConfig:
    """Nine of ten packets are urgent, and they never pause."""
    return RunConfig(
        protocol="prito",
        group=GroupConfig(nodes=NODES, priority=PriorityConfig(synchronises=synchronises)),
        network=Network(channel=Channel.ONE, bits_per_second=1_000_000_000),
        workload=Workload(
            messages=messages,
            pattern=Pattern.STEADY,
            gap=50 * MICROSECOND,
            size=_PAYLOAD,
            priorities=PRIORITIES,
            urgent=0.9,
        ),
        seed=seed,
        record=TraceDetail.NONE,
    ).with_default_timeouts()


def bound_of(config: RunConfig) -> float:
    """2T + 5d + 6δ in milliseconds: T + 5d + 3δ, where timers take up to twice what they are set to."""
    unit = header_size(config.group.nodes) + LENGTH_SIZE + _PAYLOAD
    access = config.network.round_trip(config.group.nodes, unit) / 2
    timing = config.group.timing
    return formulas.waiting_bound(2 * timing.run, access, 2 * timing.status) / MILLISECOND


def waiting(size: Size) -> Experiment:
    """How long packets of each priority wait."""
    seeds, messages = size.pick(20, 4, 2), size.pick(500, 300, 80)
    priorities = range(1, PRIORITIES + 1)

    def curve(
        name: str, label: str, wait: Callable[[int], Callable[[MeasuredRun], float | None]], *, with_runs: bool
    ) -> Curve:
        configs = tuple(overloaded(messages, seed, synchronises=with_runs) for seed in range(seeds))
        spots = tuple(CurvePoint(priority, configs, over_runs(wait(priority))) for priority in priorities)
        return Curve(name, label, spots)

    limit = bound_of(overloaded(messages, 0, synchronises=True))
    return Experiment(
        name="prito-waiting",
        protocol="prito",
        source=_CLAIM,
        title="How long packets wait, by priority, under an endless stream of urgent ones",
        x=Axis("priority"),
        y=Axis("time from send to delivery", "ms", log=True),
        curves=(
            curve("without_most", "longest, without runs ended", longest_wait, with_runs=False),
            curve("without_mean", "mean, without", mean_wait, with_runs=False),
            curve("with_most", "longest, with runs ended", longest_wait, with_runs=True),
            curve("with_mean", "mean, with", mean_wait, with_runs=True),
        ),
        references=(
            reference(
                "bound",
                "the bound 2T + 5d + 6δ",
                Role.BOUND,
                dict.fromkeys(priorities, limit),
                of="with_most",
                text="timers run up to twice as long as they are set to",
            ),
        ),
        claims=(
            stays_below("with_most", "bound"),
            stays_below(
                "without_most",
                "bound",
                otherwise="Without run synchronisation a packet waits until the urgent ones pause.",
            ),
            needs_less(
                "with_most", "without_most", what="wait", otherwise="Urgent packets are not held back either way."
            ),
        ),
        setting=_SETTING + f"{messages} messages by each node.",
    )


def starvation(size: Size) -> Experiment:
    """The longest wait of the lowest priority, by how long the stream lasts."""
    seeds = size.pick(20, 4, 2)
    lengths = {Size.FULL: (100, 200, 400, 800), Size.QUICK: (100, 200, 400), Size.TINY: (40, 80, 160)}[size]

    def curve(name: str, label: str, *, synchronises: bool) -> Curve:
        spots = tuple(
            CurvePoint(messages, tuple(overloaded(messages, seed, synchronises=synchronises) for seed in range(seeds)))
            for messages in lengths
        )
        return Curve(name, label, spots, over_runs(longest_wait(1)))

    limit = bound_of(overloaded(lengths[0], 0, synchronises=True))
    return Experiment(
        name="prito-starvation",
        protocol="prito",
        source=_CLAIM,
        title="The longest wait of the lowest priority, by the length of the stream",
        x=Axis("messages by each node", log=True),
        y=Axis("longest time from send to delivery", "ms", log=True),
        curves=(
            curve("without", "without run synchronisation", synchronises=False),
            curve("with", "with run synchronisation", synchronises=True),
        ),
        references=(
            reference("bound", "the bound 2T + 5d + 6δ", Role.BOUND, dict.fromkeys(lengths, limit), of="with"),
        ),
        claims=(
            grows_like("without", 1, within=0.15, of="messages"),
            grows_like(
                "with", 0, within=0.1, of="messages", otherwise="It grows until the first run is ended, and not after."
            ),
            stays_below("with", "bound"),
        ),
        setting=_SETTING,
    )
