"""The kernel passes exactly those runs in which the reference audit finds nothing."""

from collections import Counter
from random import Random
from typing import Any

import pytest

from ordercast.audit.reference import check_run
from ordercast.audit.verdict import Verdict
from ordercast.model.errors import TraceError
from ordercast.model.services import Service
from ordercast.pipeline.audit.kernel.columns import NotVectorisableError, columns_of
from ordercast.pipeline.audit.run import audit_run, run_passes
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
        check_run(row_of(run), [columns(run.rows())], None, verdict)
    except TraceError:
        return None
    return verdict


def by_kernel(run: RandomRun, parts: int) -> bool:
    batch = batch_of(run.rows())
    size = max(1, -(-batch.num_rows // parts))
    batches = [batch.slice(start, size) for start in range(0, batch.num_rows, size)]
    try:
        return run_passes(row_of(run), columns_of(run.nodes, batches), run.service)
    except NotVectorisableError:
        return False


@pytest.mark.parametrize("service", Service)
def test_the_kernel_passes_what_the_reference_finds_nothing_in(service: Service) -> None:
    chance = Random(f"kernel {service.value}")
    found: Counter[str] = Counter()
    for number in range(RUNS):
        run = random_run(chance, service)
        for _ in range(chance.randint(0, 3)):
            break_somehow(chance, run)
        verdict = by_reference(run)
        holds = verdict is not None and verdict.holds
        passed = by_kernel(run, chance.randint(1, 3))
        if holds and not passed and service in PRIORITISED:
            found["left to the reference"] += 1  # nodes that stopped in the middle of a priority run
        else:
            assert passed == holds, (number, verdict and verdict.as_document())
        if verdict is not None:
            found.update(name for name, finding in verdict.findings.items() if not finding.holds)
            found["good"] += verdict.holds
    assert found["good"] > RUNS / 4
    assert found["complete"] > RUNS / 10
    assert found["left to the reference"] < RUNS / 5


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
                audit_run(row_of(run), [batch_of(run.rows())])
        else:
            assert audit_run(row_of(run), [batch_of(run.rows())]).as_document() == verdict.as_document()
