"""A row that is known later is recorded at the step that it belongs to."""

from ordercast.trace.packet_recorder import PacketBatch, PacketRecorder
from ordercast.trace.recorder import MembershipChange
from ordercast.trace.schema import EventKind


def test_a_state_is_recorded_where_it_belongs() -> None:
    batches: list[PacketBatch] = []
    recorder = PacketRecorder(3, batches.append, deliveries_only=False)
    recorder.note(10, 3, EventKind.TIMEOUT, "before")
    step = recorder.reserve()
    recorder.note(20, 3, EventKind.TIMEOUT, "after")
    recorder.flush()
    recorder.state_at(step, 11, MembershipChange(EventKind.STATE, source=1, seq=7, size=99))
    recorder.note(30, 3, EventKind.TIMEOUT, "last")
    recorder.flush()
    rows = sorted(
        (row["step"], row["time"], row["event"], row["source"], row["seq"], row["size"])
        for batch in batches
        for row in batch.batch("run").to_pylist()
    )
    assert [row[:3] for row in rows] == [
        (0, 10, "timeout"),
        (1, 11, "state"),
        (2, 20, "timeout"),
        (3, 30, "timeout"),
    ]
    assert rows[1][3:] == (1, 7, 99)
