"""A run that is recorded packet by packet has the rows that one by one would be written."""

import msgspec
import pyarrow as pa
import pytest

from ordercast.model.runs import RunConfig, TraceDetail
from ordercast.model.services import PRIORITISED
from ordercast.simulator.simulation import Simulation
from ordercast.swarm.draw import draw_config
from ordercast.swarm.soak import EVERY_PROTOCOL, soak_config
from ordercast.trace.files import events_batch
from ordercast.trace.packet_recorder import RunBatch, RunRecorder
from ordercast.trace.recorder import BATCH
from ordercast.trace.schema import EventField, EventRow

replace = msgspec.structs.replace


def recorded(config: RunConfig) -> tuple[list[EventRow], list[RunBatch]]:
    """The same run twice: its rows, and its packets."""
    rows: list[EventRow] = []
    batches: list[RunBatch] = []
    Simulation(config, rows.extend).run()
    recorder = RunRecorder(
        *(config.group.nodes, batches.append),
        deliveries_only=config.record is TraceDetail.DELIVERIES,
        by_priority=config.protocol in PRIORITISED,
    )
    Simulation(config, recorder=recorder).run()
    return rows, batches


def require_equal(config: RunConfig) -> None:
    rows, batches = recorded(config)
    found = pa.Table.from_batches([batch.batch("r") for batch in batches])
    found.validate(full=True)
    assert found == pa.Table.from_batches([events_batch("r", rows)])


@pytest.mark.parametrize("record", [TraceDetail.ALL, TraceDetail.DELIVERIES])
@pytest.mark.parametrize("protocol", EVERY_PROTOCOL)
def test_rows_are_the_same(protocol: str, record: TraceDetail) -> None:
    for number in range(2):
        config = draw_config(number, protocol=protocol, most_nodes=5, receipts=300)
        require_equal(replace(config, record=record, workload=replace(config.workload, batch=3)))


@pytest.mark.parametrize("number", range(0, 14, 2))
def test_rows_of_changing_groups_and_of_logs_are_the_same(number: int) -> None:
    require_equal(soak_config(number, views=True))
    require_equal(soak_config(number, logs=True))


def test_batches_are_handed_on_when_they_are_full_and_know_their_details() -> None:
    config = draw_config(3, most_nodes=4, receipts=40_000)
    rows, batches = recorded(replace(config, workload=replace(config.workload, batch=16)))
    assert len(batches) > 1
    assert all(BATCH <= batch.rows < BATCH + 16 for batch in batches[:-1])
    details = {str(row[EventField.DETAIL]) for row in rows if row[EventField.DETAIL]}
    assert details
    assert all(any(batch.has_detail("none", detail) for batch in batches) for detail in details)
    assert not any(batch.has_detail("none", "data?") for batch in batches)
