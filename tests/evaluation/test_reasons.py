"""Where a comparison of the evaluation differs, it gives a reason: each is tried here, by taking it away or alone.

A reason without a test here is called open in docs/evaluation.md; `test_every_reason_is_tried_or_open` has the list.
"""

from inspect import getclosurevars
from itertools import product
from math import isclose
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ordercast.evaluation import Size, experiments, formulas
from ordercast.evaluation.papers import sequencer_figures_6_and_7 as sequencer
from ordercast.evaluation.papers import spo_delay_and_log_length
from ordercast.evaluation.statistics import exponent
from ordercast.evaluation.values import mean_log, packets_per_message, rate_together
from ordercast.model.config import GroupConfig, Rules
from ordercast.model.faults import Miss
from ordercast.model.runs import Channel, Network, Pattern, RunConfig, TraceDetail, Workload
from ordercast.protocols.registry import machine_class
from ordercast.simulator.result import RunResult
from ordercast.simulator.simulate import runs_row, simulate

replace = msgspec.structs.replace


def lossless(protocol: str, nodes: int, **how: object) -> RunConfig:
    fields = {"group": GroupConfig(nodes=nodes), "record": TraceDetail.NONE, **how}
    network = Network(channel=machine_class(protocol, Rules.SOUND).needs)
    return RunConfig(protocol=protocol, **{"network": network, **fields}).with_default_timeouts()  # type: ignore[arg-type]


def test_the_exponent_is_n_since_each_of_n_nodes_is_a_destination_with_probability_d_of_n() -> None:
    """_EXPONENT, by counting every way in which four nodes are destinations and lose or not."""
    n, share, f = 4, 0.5, 0.1
    received = 0.0
    for cases in product((True, False), repeat=2 * n):
        to, loses = cases[:n], cases[n:]
        chance = 1.0
        for each in to:
            chance *= share if each else 1 - share
        for each in loses:
            chance *= f if each else 1 - f
        received += chance * (not any(a and b for a, b in zip(to, loses, strict=True)))
    assert isclose(received, (1 - f * share) ** n)
    assert not isclose(received, (1 - f * share) ** (n * share), rel_tol=0.05)


def lost(protocol: str, node: int, source: int) -> RunResult:
    return simulate(
        lossless(
            protocol, 4, workload=Workload(messages=5, senders=(0,)), faults=(Miss(node=node, source=source, nth=3),)
        )
    )


def test_who_loses_only_its_own_echo_needs_no_copy() -> None:
    """_ECHO."""
    own, of_another = lost("st", 0, 0), lost("st", 1, 0)
    assert own.complete
    assert own.counters.retransmitted == 0
    assert of_another.counters.retransmitted == 1


def test_all_destinations_must_have_sent_something_and_not_one() -> None:
    """d/2: of m that send at independent places of a period of length d the last comes after d·m/(m+1) on average."""
    d, steps = 1.0, 60
    for m in (1, 2, 3):
        waits = [max(places) for places in product([(at + 0.5) / steps for at in range(steps)], repeat=m)]
        assert sum(waits) / len(waits) == pytest.approx(d * m / (m + 1), rel=0.01)
        assert formulas.preacknowledgment_time(0, d, m) == pytest.approx(d * m / (m + 1))


def test_what_windows_let_in_bounds_the_logs_of_a_full_medium() -> None:
    """O(n): half the window, about half the log."""
    config = spo_delay_and_log_length._saturated(8, 60, 0)
    halved = replace(config, group=replace(config.group, window=config.group.window // 2))
    long, short = (mean_log(runs_row(simulate(each))) or 0 for each in (config, halved))
    assert 0.35 < short / long < 0.65


def test_the_term_that_does_not_grow_keeps_the_exponent_below_two() -> None:
    def power(per_node: float) -> float:
        ns = (2, 4, 8, 16, 32)
        lengths = [formulas.log_length(formulas.preacknowledgment_time(per_node * n, 1, n), n, 1) for n in ns]
        return exponent([float(n) for n in ns], lengths).value

    assert power(0.3) < 1.85
    assert power(30.0) == pytest.approx(2, abs=0.02)


def test_a_single_loss_may_be_at_any_of_n_times_l_places() -> None:
    """_SINGLE, by counting every way to lose."""
    places, loses = 6, 0.05
    single = sum(
        loses * (1 - loses) ** (places - 1) for lost_ones in product((0, 1), repeat=places) if sum(lost_ones) == 1
    )
    assert single == pytest.approx(places * loses * (1 - loses) ** (places - 1))


def prototype_row(config: RunConfig) -> dict[str, Any]:
    return runs_row(simulate(config))


def with_costs(config: RunConfig, **network: int) -> float:
    changed = replace(config, network=replace(config.network, **network))
    return rate_together(prototype_row(changed)) or 0.0


def test_the_sequencers_processor_is_the_bottleneck_and_not_the_medium() -> None:
    config = sequencer.prototype(10, (0, 1, 2, 3), 60, sequencer.HISTORY // 2)
    plain = with_costs(config)
    assert with_costs(config, bits_per_second=100_000_000) < 1.2 * plain
    halved = {"send_time": sequencer.SEND_TIME // 2, "receive_time": sequencer.RECEIVE_TIME // 2}
    assert with_costs(config, **halved) > 1.6 * plain


def test_dummies_after_a_whole_history_come_too_late() -> None:
    early, late = (
        rate_together(prototype_row(sequencer.prototype(10, (0, 1, 2), 60, after))) or 0.0
        for after in (sequencer.HISTORY // 2, sequencer.HISTORY)
    )
    assert late < early / 2


def ours(history: int) -> dict[str, Any]:
    config = sequencer.ours(8, 600)
    options = replace(config.group.sequencer, history=history)
    return prototype_row(replace(config, group=replace(config.group, sequencer=options)))


def test_what_ours_send_besides_broadcasts_are_acknowledgments_for_the_history() -> None:
    """The longer the history, the less comes on top of two packets and n interrupts."""
    short, long = ours(sequencer.HISTORY), ours(1024)
    assert (packets_per_message(short) or 0) > 2.2
    assert (packets_per_message(long) or 9) < 2.05
    assert long["interrupts"] / long["sent"] < short["interrupts"] / short["sent"] < 1.2 * 8


def copies_of_printed_spo(behind: int) -> float:
    """Copies after one loss, by how many units are on the way behind it."""
    config = RunConfig(
        protocol="spo",
        group=GroupConfig(nodes=4, rules=Rules.PAPER, window=64),
        network=Network(channel=Channel.MANY, propagation=behind * 100_000, jitter=0),
        workload=Workload(messages=60, senders=(0, 1), pattern=Pattern.STEADY, gap=100_000),
        faults=(Miss(node=2, source=0, nth=10),),
    ).with_default_timeouts()
    return simulate(config).counters.retransmitted


def test_as_printed_each_unit_behind_a_gap_asks_again() -> None:
    """_AGAIN, _STORM."""
    assert copies_of_printed_spo(20) > 2 * copies_of_printed_spo(2) > 2


# --- the list ---

BY_OTHERS = {
    "The table leaves out": "test_formulas.py: tends to Table 1 when much is on the way",
    "Ours holds what comes behind a gap": "test_experiments.py: one copy for each loss",
    "As printed, what shows a gap is discarded too": "test_formulas.py: the printed formula, d = n",
    "A third vector says": "test_formulas.py: the header of three vectors",
    "Without run synchronisation": "tests/protocols/prito/test_prito_bound.py",
    "It grows until the first run is ended": "tests/protocols/prito/test_prito_bound.py",
}
OPEN = {
    "A destination's own acknowledgment needs no r",
    "TO also discards what arrives while it agrees.",
    "Condition (2) costs nothing here.",
    "A node's own packets wait for a way there and back",
    "Urgent packets are not held back either way.",
    "The paper's sentence is about true for d/n = 0.5.",
    "A set of nodes takes a bit for each.",
    "A source need not tell itself.",
}
HERE = {
    "Printed is F",
    "A source that loses only its own echo",
    "d/2 is the wait for one destination",
    "Where the medium is full",
    "The term that does not grow with n",
    "Printed F_0",
    "The sequencer's processor is the bottleneck",
    "With dummies only after a whole history",
    "Ours acknowledge when asked",
    "Dummies and synchronization come on top.",
    "Acknowledgments come on top.",
    "The formula has each loss asked about once",
}


def reasons() -> set[str]:
    """All texts that the experiments give as a reason, with names replaced by what they stand for."""
    found: set[str] = set()
    for experiment in experiments(Size.TINY):
        for claim in experiment.claims:
            cells = getclosurevars(claim).nonlocals
            found.add(cells.get("otherwise", ""))
    return found - {""}


def test_every_reason_is_tried_or_open() -> None:
    known = {*HERE, *BY_OTHERS, *OPEN}
    given = reasons()
    assert {text for text in given if not any(text.startswith(start) for start in known)} == set()
    assert {start for start in known if not any(start in text for text in given)} == set()


def test_what_is_open_is_called_so() -> None:
    page = Path("docs/evaluation.md").read_text(encoding="utf-8")
    for start in OPEN:
        assert start.rstrip(".") in page, f"docs/evaluation.md does not say that this is open: {start}"
