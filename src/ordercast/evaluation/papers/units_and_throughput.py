"""Units for a message by the size of the group, and throughput by loss and by delay, of all orders.

The papers give formulas for parts of these. Acknowledgments ride on data, so a message takes one unit where everybody
sends (SPO, ST); the sequencer takes an offer, a broadcast, and a dummy now and then. A lossy medium carries each
message 1 + R times, where R is the share that is sent again: of single messages (R_S, with the right exponent n), or of
everything behind a loss (R_G). A window of W packets for each of n nodes is acknowledged after two delays at least.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from ordercast.evaluation import formulas
from ordercast.evaluation.claims import needs_less, stays_below
from ordercast.evaluation.experiment import Curve, CurvePoint, Experiment, MeasuredRun, Size, reference
from ordercast.evaluation.results import Axis, Role, Series
from ordercast.evaluation.values import over_runs, packets_per_message, throughput
from ordercast.model.config import MICROSECOND, MILLISECOND, SECOND, GroupConfig, RecoveryPolicy
from ordercast.model.faults import Loss
from ordercast.model.runs import Channel, Network, Pattern, RunConfig, TraceDetail, Workload

NODES = 8
BITS_PER_SECOND = 100_000_000
PAYLOAD = 1_000
WINDOW = 16
HISTORY = 64
LOSSES = (0.001, 0.003, 0.01, 0.03, 0.1, 0.2)
DELAYS = (0.05, 0.2, 1.0, 5.0, 20.0, 50.0)
"""Milliseconds, one way."""
_SENDING = (
    f"messages of {PAYLOAD:,} bytes to all as fast as a window of {WINDOW} admits, on a medium of "
    f"{BITS_PER_SECOND // 10**6} Mbit/s"
)


class _Order(NamedTuple):
    protocol: str
    label: str
    recovery: RecoveryPolicy = RecoveryPolicy.SELECTIVE


_ORDERS = {
    "spo": _Order("spo", "SPO (partial)"),
    "st": _Order("st", "ST (total), which stops"),
    "st_place": _Order("st", "ST (total), which places", RecoveryPolicy.PLACE),
    "st_back": _Order("st", "ST, go-back-n", RecoveryPolicy.GO_BACK_N),
    "prito": _Order("prito", "PriTO (priority)"),
    "sequencer": _Order("sequencer", "sequencer (sequenced)"),
}
_NOT_GOING_BACK = tuple(name for name in _ORDERS if name != "st_back")


def _run(order: _Order, nodes: int, messages: int, propagation: int, loss: float = 0.0, seed: int = 0) -> RunConfig:
    """Everybody sends to all, on one medium."""
    run = RunConfig(
        protocol=order.protocol,
        group=GroupConfig(nodes=nodes, window=WINDOW, recovery=order.recovery, log_limit=4000, polls_late=True),
        network=Network(channel=Channel.ONE, propagation=propagation, jitter=0, bits_per_second=BITS_PER_SECOND),
        workload=Workload(messages=messages, pattern=Pattern.EVERYBODY, size=PAYLOAD),
        faults=(Loss(rate=loss),) if loss else (),
        seed=seed,
        record=TraceDetail.NONE,
    )
    return run.with_default_timeouts()


def _curves(
    orders: Sequence[str],
    xs: Sequence[float],
    runs: Callable[[_Order, float], tuple[RunConfig, ...]],
    value: Callable[[MeasuredRun], float | None],
) -> tuple[Curve, ...]:
    """A curve for each of these orders, with a point for each x."""
    return tuple(
        Curve(name, _ORDERS[name].label, tuple(CurvePoint(x, runs(_ORDERS[name], x)) for x in xs), over_runs(value))
        for name in orders
    )


def _capacity() -> float:
    """Messages per second that the medium carries, without headers or anything else."""
    return BITS_PER_SECOND / (8 * PAYLOAD)


def units_under_load(size: Size) -> Experiment:
    """Units for a message, if all send."""
    ns = {Size.FULL: (2, 4, 8, 16, 32, 64), Size.QUICK: (2, 8, 24), Size.TINY: (2, 3, 5)}[size]
    messages = size.pick(1_200, 120, 40)
    history = GroupConfig(nodes=2).sequencer.history

    def runs(order: _Order, n: float) -> tuple[RunConfig, ...]:
        return (_run(order, int(n), max(5, messages // int(n)), 50 * MICROSECOND),)

    return Experiment(
        name="units",
        protocol="all",
        source="SPO, ST and sequencer: the units for a message; not measured in the papers",
        title="Units for a message, by the size of the group, if all send",
        x=Axis("nodes, n", log=True),
        y=Axis("units for a message", log=True),
        curves=_curves(_NOT_GOING_BACK, ns, runs, packets_per_message),
        references=(
            reference("rides", "acknowledgments ride on data: 1", Role.PRINTED, dict.fromkeys(ns, 1.0), of="spo"),
            reference(
                "offers",
                "an offer, a broadcast, dummies: 2 + (n − 2)/HISTORY",
                Role.CORRECTED,
                {n: 2 + (n - 2) / history for n in ns},
                of="sequencer",
            ),
            reference("alone", "a message alone: 2n + 1", Role.CORRECTED, {n: 2 * n + 1.0 for n in ns}, of="st"),
        ),
        claims=tuple(needs_less(name, "alone", what="units") for name in ("st", "st_place", "spo")),
        setting=f"All nodes send {_SENDING}; nothing is lost. A unit to all counts once. The last messages "
        "of a run have nothing to ride on, which is why short runs of large groups take more.",
    )


def throughput_by_loss(size: Size) -> Experiment:
    """Messages per second, by the probability of loss."""
    losses = {Size.FULL: LOSSES, Size.QUICK: LOSSES[::2], Size.TINY: LOSSES[2:4]}[size]
    seeds, messages = size.pick(10, 1, 1), size.pick(100, 20, 5)

    def runs(order: _Order, loss: float) -> tuple[RunConfig, ...]:
        return tuple(_run(order, NODES, messages, 50 * MICROSECOND, loss, seed) for seed in range(seeds))

    def bound(name: str, label: str, ratio: Mapping[float, float], of: str) -> Series:
        return reference(name, label, Role.CORRECTED, {f: _capacity() / (1 + ratio[f]) for f in losses}, of=of)

    received = {f: formulas.received_by_all_others(f, NODES, NODES) for f in losses}
    go_back = {f: formulas.go_back_ratio(received[f], NODES * WINDOW) for f in losses}
    return Experiment(
        name="throughput-loss",
        protocol="all",
        source="ST, section 5: R_S and R_G; throughput is not in the papers",
        title="Throughput, by the probability of loss",
        x=Axis("probability that a node loses a unit, f", log=True),
        y=Axis("messages per second"),
        curves=_curves(tuple(_ORDERS), losses, runs, throughput),
        references=(
            bound("selective", "the medium / (1 + R_S)", {f: 1 - received[f] for f in losses}, "spo"),
            bound("back", "the medium / (1 + R_G/L)", go_back, "st_back"),
        ),
        claims=(
            *(stays_below(name, "selective") for name in _ORDERS if name != "sequencer"),
            stays_below("st_back", "back"),
        ),
        setting=f"{NODES} nodes send {_SENDING} with 50 µs of delay; each node loses each unit, control units "
        "too, with probability f. Statuses, requests and the wait for them take the medium too. L is n·W, what can be "
        "under way.",
    )


def throughput_by_delay(size: Size) -> Experiment:
    """Messages per second, by the delay."""
    delays = {Size.FULL: DELAYS, Size.QUICK: DELAYS[::2], Size.TINY: DELAYS[1:3]}[size]
    messages = size.pick(200, 30, 10)

    def runs(order: _Order, delay: float) -> tuple[RunConfig, ...]:
        return (_run(order, NODES, messages, int(delay * MILLISECOND)),)

    def bound(delay: float) -> float:
        return min(_capacity(), NODES * WINDOW / (2 * delay) * (SECOND / MILLISECOND))

    return Experiment(
        name="throughput-delay",
        protocol="all",
        source="Flow condition of SPO, TO and ST; throughput is not in the papers",
        title="Throughput, by the delay",
        x=Axis("delay one way [ms]", log=True),
        y=Axis("messages per second", log=True),
        curves=_curves(_NOT_GOING_BACK, delays, runs, throughput),
        references=(
            reference(
                "window", "the medium, or n·W in two delays", Role.CORRECTED, {d: bound(d) for d in delays}, of="spo"
            ),
        ),
        claims=tuple(stays_below(name, "window") for name in _NOT_GOING_BACK),
        setting=f"{NODES} nodes send {_SENDING}; nothing is lost. A packet leaves its window when all have said "
        "that they have it: two delays after it was sent.",
    )
