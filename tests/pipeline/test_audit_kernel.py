"""The kernel acquits exactly those runs in which the reference audit finds nothing."""

from collections import Counter
from random import Random
from typing import Any

import pytest

from ordercast.audit.judge import Verdict, judge_run
from ordercast.model.errors import TraceError
from ordercast.model.services import Service
from ordercast.pipeline.audit.kernel.columns import StrangeError, columns_of
from ordercast.pipeline.audit.run import acquitted, judge_batches
from tests.audit.figures import columns
from tests.pipeline.random_runs import PRIORITISED, RandomRun, batch_of, break_somehow, random_run

RUNS = 450
"""Of each service, good and broken ones together."""
UNIFORM = '{"group": {"rules": "sound", "sequencer": {"resilience": 1}}}'


def row_of(run: RandomRun) -> dict[str, Any]:
    config = UNIFORM if run.uniform else None
    return {
        "run": "r",
        "protocol": run.service.value,
        "nodes": run.nodes,
        "aborted": run.aborted,
        "config": config,
        "sent": None,
    }


def by_reference(run: RandomRun) -> Verdict | None:
    """What the reference says; None if it calls the trace contradictory."""
    verdict = Verdict()
    try:
        judge_run(row_of(run), [columns(run.rows())], None, verdict)
    except TraceError:
        return None
    return verdict


def by_kernel(run: RandomRun, parts: int) -> bool:
    batch = batch_of(run.rows())
    size = max(1, -(-batch.num_rows // parts))
    batches = [batch.slice(start, size) for start in range(0, batch.num_rows, size)]
    try:
        return acquitted(row_of(run), columns_of(run.nodes, batches), run.service)
    except StrangeError:
        return False


@pytest.mark.parametrize("service", Service)
def test_the_kernel_acquits_what_the_reference_finds_nothing_in(service: Service) -> None:
    chance = Random(f"kernel {service.value}")
    found: Counter[str] = Counter()
    for number in range(RUNS):
        run = random_run(chance, service)
        for _ in range(chance.randint(0, 3)):
            break_somehow(chance, run)
        verdict = by_reference(run)
        holds = verdict is not None and verdict.holds
        acquitted_here = by_kernel(run, chance.randint(1, 3))
        if holds and not acquitted_here and service in PRIORITISED:
            found["left to the reference"] += 1  # nodes that stopped in the middle of a priority run
        else:
            assert acquitted_here == holds, (number, verdict and verdict.as_document())
        if verdict is not None:
            found.update(name for name, finding in verdict.findings.items() if not finding.holds)
            found["good"] += verdict.holds
    assert found["good"] > RUNS / 4
    assert found["complete"] > RUNS / 10
    assert found["left to the reference"] < RUNS / 5


def disagreement(service: Service, runs: int) -> int | None:
    """The number of the first run that the kernel acquits though the reference does not, or the other way round."""
    chance = Random(f"checks {service.value}")
    for number in range(runs):
        run = random_run(chance, service)
        for _ in range(chance.randint(0, 2)):
            break_somehow(chance, run)
        verdict = by_reference(run)
        holds = verdict is not None and verdict.holds
        if by_kernel(run, 1) != holds and not (holds and service in PRIORITISED):
            return number
    return None


def always(*_: Any, **__: Any) -> bool:
    return True


@pytest.mark.parametrize(
    ("check", "service"),
    [
        ("kernel._complete", Service.SELECTIVE_PARTIAL),
        ("kernel._in_sending_order", Service.PARTIAL),
        ("kernel._one_order", Service.SELECTIVE_TOTAL),
        ("kernel.acyclic", Service.SELECTIVE_TOTAL),
        ("kernel._same_runs", Service.PRIORITY),
        ("kernel._without_tails", Service.SEQUENCED),
        ("kernel_levels._accepted", Service.SELECTIVE_PARTIAL),
        ("kernel_levels._after", Service.TOTAL),
        ("kernel_levels._delivered", Service.TOTAL),
        ("kernel_levels._counted_in", Service.PARTIAL),
        ("kernel_levels._all_known", Service.SEQUENCED),
    ],
)
def test_taking_out_any_check_is_noticed(monkeypatch: pytest.MonkeyPatch, check: str, service: Service) -> None:
    instead = (lambda _, logs: logs) if check.endswith("_without_tails") else always
    monkeypatch.setattr(f"ordercast.pipeline.{check}", instead)
    assert disagreement(service, 3_000) is not None


@pytest.mark.parametrize("service", Service)
def test_a_verdict_is_the_references_to_the_last_witness(service: Service) -> None:
    chance = Random(f"verdict {service.value}")
    for _ in range(60):
        run = random_run(chance, service)
        for _ in range(chance.randint(0, 2)):
            break_somehow(chance, run)
        verdict = by_reference(run)
        if verdict is None:
            with pytest.raises(TraceError, match="contradicts itself"):
                judge_batches(row_of(run), [batch_of(run.rows())])
        else:
            assert judge_batches(row_of(run), [batch_of(run.rows())]).as_document() == verdict.as_document()
