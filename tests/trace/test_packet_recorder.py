"""A packed record has the rows that one by one would be written."""

from random import Random

import pyarrow as pa
import pytest

from ordercast.model.machine import Level, Resumed, ViewInstalled
from ordercast.model.units import Packet
from ordercast.protocols.spo.units import Data, Ready, Status
from ordercast.trace.files import events_batch
from ordercast.trace.packet_recorder import ROW_GROUP, PacketBatch, PacketRecorder
from ordercast.trace.recorder import EventRecorder, Recorder
from ordercast.trace.schema import EventKind, EventRow

NODE = 2
STATUS = Status(stamp=0, expects=(0, 0, 0, 0))


def packet(source: int, first: int, count: int, destinations: int, priority: int) -> Packet:
    lengths = tuple(range(count))
    return Packet(source, destinations, first, (0, 0, 0, 0), first, lengths, bytes(sum(lengths)), priority)


def data(carried: Packet) -> Data:
    return Data(carried, STATUS)


def ready(*, asks: bool) -> Ready:
    missing = ((0, ((3, 5),)),) if asks else ()
    return Ready(source=NODE, next_seq=0, next_seq_to=(0, 0, 0, 0), status=STATUS, missing=missing)


def events(recorder: EventRecorder, seed: int, count: int) -> None:
    """The same happenings for the same seed."""
    chance = Random(seed)
    for number in range(count):
        some = packet(chance.randrange(4), number, chance.choice((1, 1, 2, 700)), chance.randrange(1, 16), number % 3)
        match chance.randrange(9):
            case 0:
                own = packet(NODE, number, chance.choice((1, 5)), chance.randrange(1, 16), number % 3)
                recorder.send(number, own)
            case 1:
                recorder.deliver(number, NODE, some)
            case 2:
                recorder.level(number, NODE, Level(chance.randrange(1, 4)), some)
            case 3:
                recorder.transmit(number, NODE, data(some), number, again=chance.random() < 0.5)
            case 4:
                recorder.transmit(number, NODE, ready(asks=chance.random() < 0.5), number, again=False)
            case 5:
                recorder.arrive(number, NODE, data(some), number)
            case 6:
                recorder.discard(number, NODE, data(some), "duplicate")
            case 7:
                recorder.view(number, NODE, ViewInstalled(number, 0b1011, "somebody is gone"))
            case _:
                recorder.note(number, NODE, chance.choice((EventKind.TIMEOUT, EventKind.ABORT)), "poll")


@pytest.mark.parametrize("deliveries_only", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_rows_are_the_same(seed: int, deliveries_only: bool) -> None:
    rows: list[EventRow] = []
    plain = Recorder(4, rows.extend, deliveries_only=deliveries_only)
    batches: list[PacketBatch] = []
    packed = PacketRecorder(NODE, batches.append, deliveries_only=deliveries_only)
    for count in (40, 1, 300):
        for recorder in (plain, packed):
            events(recorder, seed + count, count)
            recorder.flush()
    found = pa.Table.from_batches([batch.batch("r") for batch in batches])
    found.validate(full=True)
    assert found.to_pylist() == pa.Table.from_batches([events_batch("r", rows)]).to_pylist()


def test_a_batch_is_handed_on_when_it_is_full() -> None:
    batches: list[PacketBatch] = []
    recorder = PacketRecorder(NODE, batches.append, deliveries_only=True)
    for number in range(ROW_GROUP // 700 + 1):
        recorder.deliver(number, NODE, packet(0, 700 * number, 700, 1, 0))
    assert [batch.first_step for batch in batches] == [0]
    recorder.flush()
    recorder.flush()
    assert len(batches) == 1, "nothing is left"


def test_recoveries_and_views_have_one_detail_however_they_are_recorded() -> None:
    rows: list[EventRow] = []
    batches: list[PacketBatch] = []
    recorders: tuple[EventRecorder, EventRecorder] = (
        Recorder(4, rows.extend, deliveries_only=False),
        PacketRecorder(NODE, batches.append, deliveries_only=False),
    )
    for recorder in recorders:
        recorder.resume(1, NODE, Resumed(1, 2, 3))
        recorder.view(2, NODE, ViewInstalled(1, 0b101, "E2 has failed"))
        recorder.flush()
    details = ["1 asked, 2 inserted", "1: {E1,E3}; E2 has failed"]
    assert [row[9] for row in rows] == details
    assert [entry[8] for entry in batches[0].entries] == details
