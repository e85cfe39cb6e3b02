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


def changes(recorder: EventRecorder) -> None:
    """All that a member of a changing group may do."""
    recorder.view(1, NODE, ViewInstalled(0, 0b111, "founded", heard=0))
    recorder.block(2, NODE, 0b011)
    recorder.unblock(3, NODE)
    recorder.level(4, NODE, Level.ACKNOWLEDGED, packet(0, 7, 2, 0b111, 0), by_view=True)
    recorder.view(5, NODE, ViewInstalled(1, 0b1101, "E2 is silent", heard=0b101, places=(2, 0, 3)))
    recorder.renumber(6, NODE, packet(NODE, 4, 2, 0b111, 0), 1)
    recorder.state(7, NODE, 1, 3, 1 << 40)
    recorder.leave(8, NODE, drained=True)
    recorder.leave(9, NODE, drained=False)
    recorder.view(10, NODE, ViewInstalled(2, 0b1, "E3 is silent", heard=0b1))


CHANGES = [
    ("view", None, 0, (0, 1, 2), None, "heard=; founded"),
    ("block", None, None, None, None, "{E1,E2}"),
    ("unblock", None, None, None, None, None),
    ("ack", 0, 7, None, None, "view"),
    ("ack", 0, 8, None, None, "view"),
    ("view", None, 1, (2, 0, 3), None, "heard=0,2; E2 is silent"),
    ("renumber", NODE, 4, (0, 1, 2), None, "1"),
    ("renumber", NODE, 5, (0, 1, 2), None, "1"),
    ("state", 3, 1, None, 2**31 - 1, None),
    ("leave", None, None, None, None, "drained"),
    ("leave", None, None, None, None, "unconfirmed"),
    ("exclude", None, 2, None, None, "E3 is silent"),
]
"""event, source, seq, destinations, size, detail."""


@pytest.mark.parametrize("deliveries_only", [False, True])
def test_changes_of_members_are_rows(deliveries_only: bool) -> None:
    """Live members also record for whom a packet is that is sent again, whatever else they record."""
    rows: list[EventRow] = []
    recorder = Recorder(4, rows.extend, deliveries_only=deliveries_only)
    changes(recorder)
    recorder.flush()
    always = {"view", "leave", "exclude", "state", "renumber"}
    expected = [change for change in CHANGES if not deliveries_only or change[0] in always]
    assert [(row[3], row[4], row[5], row[6], row[8], row[9]) for row in rows] == expected
    assert [row[1] for row in rows] == list(range(len(rows)))
    packed: list[PacketBatch] = []
    other = PacketRecorder(NODE, packed.append, deliveries_only=deliveries_only)
    changes(other)
    other.flush()
    assert pa.Table.from_batches([packed[0].batch("r")]) == pa.Table.from_batches([events_batch("r", rows)])


def test_what_is_sent_again_names_nodes_not_places() -> None:
    batches: list[PacketBatch] = []
    recorder = PacketRecorder(NODE, batches.append, deliveries_only=True)
    recorder.nodes = (NODE, 5, 7)
    recorder.renumber(6, NODE, packet(0, 4, 2, 0b101, 0), 1)
    recorder.flush()
    found = batches[0].batch("r").select(["event", "source", "seq", "destinations", "detail"]).to_pylist()
    assert [tuple(row.values()) for row in found] == [("renumber", NODE, seq, [NODE, 7], "1") for seq in (4, 5)]
