"""A run judged while it grows: nothing false is said of good runs, and what breaks is told when it does."""

from collections import Counter
from random import Random

import pyarrow as pa
import pytest

from ordercast.audit.services import LEVEL_SOUNDNESS
from ordercast.audit.violations import Violation
from ordercast.model.errors import TraceError
from ordercast.model.services import Service
from ordercast.pipeline.audit.stream.level_rows import level_promises
from ordercast.pipeline.audit.stream.prefix import Prefix
from ordercast.trace.schema import EventField
from tests.audit.figures import Row
from tests.pipeline.random_runs import RandomRun, batch_of, break_somehow, random_run
from tests.pipeline.test_audit_kernel import by_reference


def grown(chance: Random, run: RandomRun) -> tuple[list[Violation], Prefix]:
    """What is told of a run whose rows come a few at a time, by time, and the state at the end."""
    prefix = Prefix("r")
    rows = run.rows()
    found: list[Violation] = []
    while rows and not found:
        count = chance.randint(1, 30)
        batch = batch_of(rows[:count])
        rows = rows[count:]
        found = prefix.grow(batch, run.service, uniform=run.uniform)
    return found, prefix


@pytest.mark.parametrize("service", Service)
def test_nothing_is_said_of_good_runs(service: Service) -> None:
    chance = Random(f"growing {service.value}")
    for _ in range(25):
        run = random_run(chance, service, messages=25)
        found, _ = grown(chance, run)
        assert found == []


@pytest.mark.parametrize("service", Service)
def test_what_is_told_is_broken(service: Service) -> None:
    chance = Random(f"breaking {service.value}")
    told: Counter[str] = Counter()
    missed = 0
    for _ in range(80):
        run = random_run(chance, service, levels=False, messages=25)
        break_somehow(chance, run)
        verdict = by_reference(run)
        if verdict is None:
            continue
        try:
            found, _ = grown(chance, run)
        except TraceError:
            continue  # the breakage moved events against the clock
        broken = {name for name, finding in verdict.findings.items() if not finding.holds}
        for violation in found:
            told[violation.breaks] += 1
        if found:
            assert broken, found
        missed += bool(broken - {"complete", "same_runs"}) and not found
    assert told["complete"] > 0
    if service not in {Service.SEQUENCED, Service.PRIORITY}:
        assert told.keys() - {"complete"}
    assert missed <= (20 if service is Service.SEQUENCED else 3)


@pytest.mark.parametrize("service", Service)
def test_what_levels_say_is_told_when_all_have_delivered(service: Service) -> None:
    """Whatever is told of levels, the audit of the whole tells of the same property; and it tells much of it."""
    chance = Random(f"levels {service.value}")
    told: Counter[str] = Counter()
    missed = 0
    for _ in range(60):
        run = random_run(chance, service, levels=True, messages=25)
        break_somehow(chance, run)
        verdict = by_reference(run)
        steps = [
            [row[EventField.STEP] for row in run.rows() if row[EventField.NODE] == node] for node in range(run.nodes)
        ]
        if verdict is None or steps != [sorted(mine) for mine in steps]:
            continue  # the breakage moved events against the clock
        found, _ = grown(chance, run)
        broken = {name for name, finding in verdict.findings.items() if not finding.holds}
        about_levels = {promise.__name__ for promise in LEVEL_SOUNDNESS}
        assert {violation.breaks for violation in found} & about_levels <= broken, found
        told.update(violation.breaks for violation in found)
        missed += bool(broken) and broken <= about_levels and not found
    asked = {promise.__name__ for promise in level_promises(service)}
    assert len(asked & told.keys()) >= len(asked) - 1, told
    assert missed <= 5


def test_levels_of_what_all_delivered_are_forgotten() -> None:
    chance = Random("levels")
    for service in (Service.SELECTIVE_TOTAL, Service.PARTIAL, Service.SEQUENCED, Service.PRIORITY):
        run = random_run(chance, service, levels=True, messages=60)
        while run.nodes < 2 or len(run.rows()) < 200:
            run = random_run(chance, service, levels=True, messages=60)
        found, prefix = grown(chance, run)
        assert found == []
        assert prefix.levels == b""


def test_memory_holds_what_is_under_way() -> None:
    chance = Random("memory")
    for service in (Service.SELECTIVE_TOTAL, Service.PARTIAL, Service.TOTAL):
        run = random_run(chance, service, levels=False, messages=200)
        while run.nodes < 2 or len(run.rows()) < 200:
            run = random_run(chance, service, levels=False, messages=200)
        _, prefix = grown(chance, run)
        assert prefix.carried().num_rows < 20
        assert prefix.retired


def test_a_message_is_given_again_long_after_all_had_it() -> None:
    prefix = Prefix("r")
    rows: list[Row] = [(0, 0, 0, "send", 0, 0, (0, 1), None), (0, 1, 1, "deliver", 0, 0, None, None)]
    rows += [(1, 0, 2, "deliver", 0, 0, None, None)]
    assert prefix.grow(batch_of(rows), Service.SELECTIVE_TOTAL, uniform=False) == []
    assert prefix.carried().num_rows == 0
    (found,) = prefix.grow(batch_of([(1, 7, 9, "deliver", 0, 0, None, None)]), Service.SELECTIVE_TOTAL, uniform=False)
    assert found.breaks == "complete"
    assert found.sentence == "E2 delivered E1#0 again, which every node had delivered"


def test_files_out_of_order_are_refused() -> None:
    prefix = Prefix("r")
    prefix.grow(batch_of([(0, 5, 0, "send", 0, 0, (0,), None)]), Service.TOTAL, uniform=False)
    with pytest.raises(TraceError, match="step 3 of E1 came after its step 5"):
        prefix.grow(batch_of([(0, 3, 0, "deliver", 0, 0, None, None)]), Service.TOTAL, uniform=False)


def test_steps_may_begin_anywhere() -> None:
    """A trace from elsewhere counts as it likes; an audit of the whole takes it too."""
    rows: list[Row] = [(0, -7, 0, "send", 0, 0, (0,), None), (0, -6, 1, "deliver", 0, 0, None, None)]
    assert Prefix("r").grow(batch_of(rows), Service.TOTAL, uniform=False) == []


def test_levels_may_come_before_any_message_is_known() -> None:
    """In a file of another node than the source's, which is read first."""
    prefix = Prefix("r", 2)
    rows: list[Row] = [(1, 0, 5, "accept", 0, 0, None, None), (1, 1, 6, "preack", 0, 0, None, None)]
    assert prefix.grow(batch_of(rows), Service.TOTAL, uniform=False) == []
    assert prefix.grow(batch_of([(0, 0, 1, "send", 0, 0, (0, 1), 0)]), Service.TOTAL, uniform=False) == []
    assert pa.ipc.open_stream(prefix.levels).read_all().num_rows == 2, "they are kept until the message is delivered"
