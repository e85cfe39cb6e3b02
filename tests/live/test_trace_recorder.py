"""What members record: together it is the trace of a run, whenever any of them is killed."""

import asyncio
import json
import shutil
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from ordercast.audit.reference import audit
from ordercast.audit.verdict import Verdict
from ordercast.live.group import Group
from ordercast.live.host import trace_recorder
from ordercast.model.errors import ConfigError, GroupAborted
from ordercast.model.units import Packet
from ordercast.protocols.membership.units import Supply
from ordercast.trace import packet_recorder
from ordercast.trace.incremental_writer import IncrementalTraceWriter
from ordercast.trace.packet_recorder import PacketBatch
from ordercast.trace.reader import read_runs
from tests.live.groups import ORDERS, group_of, hear, join, member_of, run
from tests.small_disk import fill, small_disk
from tests.trace_events import read_events

NAMES = ("A", "B", "C")


async def talk(groups: dict[str, Group], count: int, order: str) -> None:
    """Everybody sends, and hears all that it is sent."""
    for number in range(count):
        for name, group in groups.items():
            to = ("A", "B") if number % 2 and order in {"partial", "total"} else None
            priority = number % 3 if order == "priority" else 0
            await group.send(f"{name}{number}".encode(), to=to, priority=priority)


def held(folders: list[Path]) -> Verdict:
    verdict = audit(folders)
    for name, finding in verdict.findings.items():
        assert finding.holds, (name, finding.witnesses)
    return verdict


def deliveries_in(folder: Path) -> int:
    batches = read_events([folder], ["event"]) if any((folder / "events").glob("*.parquet")) else ()
    return sum(batch.column("event").to_pylist().count("deliver") for batch in batches)


def test_what_is_sent_again_is_written_at_once(tmp_path: Path) -> None:
    """An audit must know who it was for, even if its sender was killed in the next moment."""

    async def test() -> None:
        async with group_of("A", "B", record=tmp_path) as groups:
            host = member_of(groups["A"]).host
            assert host is not None
            packet = Packet(source=0, seq=0, seq_to=(0, 0), first=0, destinations=0b11, lengths=(1,), payload=b"\0x")
            for _ in range(3):
                host.recorder.renumber(packet, 1)
            async with asyncio.timeout(0.9):
                while events_in(tmp_path).count("renumber") < 3:
                    await asyncio.sleep(0.02)

    def events_in(folder: Path) -> list[str]:
        batches = read_events([folder], ["event"]) if any((folder / "events").glob("*.parquet")) else ()
        return [event for batch in batches for event in batch.column("event").to_pylist()]

    run(test)


def test_what_is_supplied_too_late_has_places_of_a_larger_view(tmp_path: Path) -> None:
    async def test() -> None:
        async with group_of(*NAMES, order="sequenced", record=tmp_path, close=False) as groups:
            packet = Packet(
                source=2, seq=0, seq_to=(0, 0, 0), first=0, destinations=0b111, lengths=(1,), payload=b"\0x"
            )
            await groups.pop("C").leave()
            a = member_of(groups["A"])
            while a.membership.present != 0b011:
                await asyncio.sleep(0.005)
            a.arrivals.membership_received(Supply(packet=packet, view=0, source=1, number=0))
            await groups["B"].send(b"on")
            await hear(groups["A"], 1)
            assert a.counts.discarded["old"] >= 1
            await asyncio.gather(*(group.close() for group in groups.values()))

    run(test)
    held([tmp_path])


@pytest.mark.parametrize("order", ORDERS)
def test_records_of_a_group_are_one_trace_that_an_audit_finds_right(order: str, tmp_path: Path) -> None:
    async def test() -> None:
        async with group_of(*NAMES, order=order, record=tmp_path) as groups:
            await talk(groups, 20, order)
            await groups["A"].send(b"x" * 150_000)
            await asyncio.gather(*(hear(group, 31) for group in groups.values()))

    run(test)
    verdict = held([tmp_path])
    assert verdict.runs == 1
    assert not verdict.not_recorded
    assert not verdict.incomplete_records
    pieces = 3  # of 60,000 bytes at most, of a message of 150,000
    expected = 3 * 60 if order in {"priority", "sequenced"} else 2 * 60 + 30
    assert verdict.deliveries == expected + 3 * pieces
    rows = read_runs([tmp_path])
    assert {row["node"] for row in rows} == {0, 1, 2}
    assert all(row["complete"] and not row["aborted"] for row in rows)
    assert sum(row["sent"] for row in rows) == 60 + pieces
    live = json.loads(rows[0]["config"])["live"]
    assert live["members"] == list(NAMES)


def test_deliveries_alone_are_less(tmp_path: Path) -> None:
    async def test() -> None:
        async with group_of(*NAMES, order="total", record=tmp_path, record_detail="deliveries") as groups:
            await talk(groups, 5, "sequenced")

    run(test)
    events = {event for batch in read_events([tmp_path], ["event"]) for event in batch.column("event").to_pylist()}
    assert events == {"send", "deliver", "view"}
    assert "acknowledged_truthfully" in held([tmp_path]).not_recorded


def test_who_is_killed_leaves_all_but_its_last_second(tmp_path: Path) -> None:
    """What is on the disk in the midst of it is what a killed member leaves."""
    folders = {name: tmp_path / name for name in NAMES}

    async def test() -> None:
        options: Any = {"members": NAMES, "order": "sequenced", "timeout": 10}
        joined = await asyncio.gather(*(join("killed", name=name, record=folders[name], **options) for name in NAMES))
        groups = dict(zip(NAMES, joined, strict=True))
        await talk(groups, 10, "sequenced")
        await asyncio.gather(*(hear(group, 30) for group in joined))
        await asyncio.sleep(1.3)
        await talk(groups, 10, "sequenced")  # of which nothing is written yet
        shutil.copytree(folders["B"], tmp_path / "killed")
        await asyncio.gather(*(group.close() for group in joined))

    run(test)
    (row,) = read_runs([tmp_path / "killed"])
    assert (row["complete"], row["aborted"]) == (False, None)
    seen = [folders["A"], tmp_path / "killed", folders["C"]]
    verdict = held(seen)
    assert verdict.deliveries == 60 + 30 + 60
    assert "the record of B is incomplete" in verdict.incomplete_records[0]
    assert held([folders["A"], folders["C"]]).deliveries == 120
    assert held(list(folders.values())).deliveries == 180


@pytest.mark.parametrize("order", ORDERS)
def test_a_group_that_is_given_up_is_a_trace_too(order: str, tmp_path: Path) -> None:
    async def test() -> None:
        async with group_of(*NAMES, close=False, order=order, record=tmp_path) as groups:
            await talk(groups, 20, order)
            await groups["B"].abort("B has had enough")
            for name in ("A", "C"):
                with pytest.raises(GroupAborted, match="B has had enough"):
                    await groups[name].close()

    run(test)
    held([tmp_path])
    assert all(row["aborted"] and not row["complete"] for row in read_runs([tmp_path]))


def test_a_record_that_cannot_be_written_ends_and_the_group_does_not(tmp_path: Path) -> None:
    (tmp_path / "events").write_text("in the way")

    async def test() -> None:
        async with group_of("A", "B", record=tmp_path) as groups:
            await groups["A"].send(b"hello")
            assert (await groups["B"].receive()).payload == b"hello"
        failed = groups["A"].stats().recording_error
        assert failed is not None
        assert str(tmp_path) in failed

    run(test)


def test_a_disk_that_is_full_ends_the_record_and_not_the_group(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with small_disk(tmp_path / "disk") as disk:

        async def test() -> None:
            async with group_of(*NAMES, order="total", record=disk) as groups:
                await talk(groups, 10, "sequenced")
                await asyncio.gather(*(hear(group, 30) for group in groups.values()))
                while deliveries_in(disk) < 3 * 30:  # all that was said so far is written, however slow the machine is
                    await asyncio.sleep(0.05)
                fill(disk)
                await talk(groups, 10, "sequenced")
                await asyncio.gather(*(hear(group, 30) for group in groups.values()))
                while any(group.stats().recording_error is None for group in groups.values()):
                    await asyncio.sleep(0.05)
                await groups["B"].send(b"we go on")
                assert (await groups["A"].receive()).payload == b"we go on"
            for group in groups.values():
                assert "No space left on device" in str(group.stats().recording_error)

        run(test)
        assert held([disk]).deliveries == 3 * 30, "what was written before is kept, and right"
    assert caplog.text.count("No space left on device") == len(NAMES), "told when it happens, once by each"


@pytest.mark.parametrize("error", [OSError(5, "Input/output error"), MemoryError("no more"), ValueError("a mistake")])
def test_whatever_keeps_a_record_from_being_written_does_not_reach_the_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail(*_: object) -> None:
        raise error

    async def test() -> None:
        async with group_of("A", "B", record=tmp_path) as groups:
            monkeypatch.setattr(IncrementalTraceWriter, "append_packets", fail)
            await groups["A"].send(b"hello")
            assert (await groups["B"].receive()).payload == b"hello"
        assert type(error).__name__ in str(groups["B"].stats().recording_error)
        assert str(error) in str(groups["B"].stats().recording_error)

    run(test)
    assert not any(row["complete"] for row in read_runs([tmp_path])), "it is not called whole"


def test_a_place_where_no_record_can_be_is_told_before_the_others_count_on_us(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way")

    async def test() -> None:
        with pytest.raises(ConfigError, match=f"cannot record to {blocked}"):
            await join("nobody else is there", members=["A", "B"], record=blocked)

    run(test)
    assert blocked.read_text() == "in the way"


def test_what_is_recorded_is_said_in_words_that_there_are() -> None:
    with pytest.raises(ConfigError, match="record_detail must be 'all' or 'deliveries', not 'some'"):
        join("g", members=NAMES, record_detail="some")


class SlowDisk:
    """Writes nothing until it is told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.ready, self.asked = Event(), 0
        append = IncrementalTraceWriter.append_packets

        def wait(trace: IncrementalTraceWriter, packets: PacketBatch) -> None:
            self.asked += 1
            assert self.ready.wait(20)
            append(trace, packets)

        monkeypatch.setattr(IncrementalTraceWriter, "append_packets", wait)
        monkeypatch.setattr(packet_recorder, "ROW_GROUP", 16)


def test_a_slow_disk_slows_the_members_and_holds_up_no_event_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = SlowDisk(monkeypatch)
    monkeypatch.setattr(trace_recorder, "MANY_PENDING", 4)
    monkeypatch.setattr(trace_recorder, "MAX_PENDING", 10**6)
    count = 0

    async def test() -> None:
        nonlocal count
        async with group_of(*NAMES, order="partial", record=tmp_path) as groups:
            while not all(member_of(group).host.recorder.behind for group in groups.values()):  # type: ignore[union-attr]
                for group in groups.values():
                    group.send_nowait(b"x")
                count += 1
                await asyncio.sleep(0.001)
            before = [group.stats().messages_sent for group in groups.values()]
            for group in groups.values():
                group.send_nowait(b"this waits")
            began = asyncio.get_running_loop().time()
            await asyncio.sleep(0.3)
            assert asyncio.get_running_loop().time() - began < 5
            assert [group.stats().messages_sent for group in groups.values()] == before
            disk.ready.set()
            await asyncio.gather(*(hear(group, 3 * count + 3) for group in groups.values()))
        assert not any(group.stats().recording_error for group in groups.values())

    run(test)
    verdict = held([tmp_path])
    assert verdict.deliveries == 3 * (3 * count + 3)
    assert not verdict.incomplete_records


def test_a_disk_that_is_much_too_slow_ends_the_record_and_not_the_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    disk = SlowDisk(monkeypatch)
    monkeypatch.setattr(trace_recorder, "MANY_PENDING", 10**6)
    monkeypatch.setattr(trace_recorder, "MAX_PENDING", 1000)

    async def test() -> None:
        async with group_of("A", "B", order="partial", record=tmp_path) as groups:
            await talk(groups, 10, "sequenced")
            while disk.asked < 2:
                await asyncio.sleep(0.001)
            monkeypatch.setattr(trace_recorder, "MAX_PENDING", 50)
            await asyncio.gather(*(hear(group, 20) for group in groups.values()))
            while any(group.stats().recording_error is None for group in groups.values()):
                await talk(groups, 10, "sequenced")
                await asyncio.gather(*(hear(group, 20) for group in groups.values()))
            for group in groups.values():
                assert "the disk is too slow, and 50 batches of events wait" in str(group.stats().recording_error)
            disk.ready.set()

    run(test)
    assert caplog.text.count("the disk is too slow") == 2, "told when it happens, once by each"
    assert caplog.text.count("events were not recorded") == 2
    rows = read_runs([tmp_path])
    assert not any(row["complete"] for row in rows)
    assert not list(tmp_path.rglob("*unfinished*"))
    assert held([tmp_path]).incomplete_records


def test_who_is_behind_with_its_record_takes_no_data_until_it_has_caught_up() -> None:
    async def test() -> None:
        async with group_of("A", "B", order="partial") as groups:
            host = member_of(groups["B"]).host
            assert host is not None
            host.may_be_behind = True  # as with a recording
            host.recorder.behind = True
            groups["B"].send_nowait(b"later")
            await groups["A"].send(b"x")
            while not groups["B"].stats().units_overrun:
                await asyncio.sleep(0.001)
            assert groups["B"].stats().messages_sent == groups["B"].stats().unread_bytes == 0
            host.recorder.behind = False
            host.recorder.on_caught_up()
            heard = await hear(groups["A"], 2)
            assert sorted(message.payload for message in heard) == [b"later", b"x"]
            assert len(await hear(groups["B"], 2)) == 2

    run(test)
