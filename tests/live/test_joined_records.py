"""Members that joined are named by the records of others, also if they leave none of their own."""

import asyncio
from pathlib import Path

from ordercast.audit.records import incomplete_records
from ordercast.audit.reference import audit
from ordercast.audit.run_rows import runs_by_name
from ordercast.live.host.recording import MemberRecorder
from ordercast.pipeline import audit as audit_with_kernel
from ordercast.trace.reader import read_runs
from tests.live.groups import crash, group_of, member_of, run
from tests.live.test_joining import joins


def test_one_without_a_record_has_its_name(tmp_path: Path) -> None:
    async def test() -> None:
        async with group_of("A", "B", close=False, order="total", record=tmp_path) as groups:
            new = await joins(groups["A"], "dora")
            await new.send(b"x")
            await groups["A"].receive()
            await new.leave()
            await asyncio.gather(*(group.leave() for group in groups.values()))

    run(test)
    sentences = [audit([tmp_path]).incomplete_records, audit_with_kernel([tmp_path]).incomplete_records]
    for (sentence,) in sentences:
        assert ": dora has no record; " in sentence


def test_also_if_all_the_others_are_killed(tmp_path: Path) -> None:
    async def test() -> None:
        async with group_of("A", "B", close=False, order="partial", record=tmp_path) as groups:
            new = await joins(groups["A"], "dora")
            await asyncio.sleep(0.1)  # the row is written by a thread
            for group in (new, *groups.values()):
                host = member_of(group).host
                assert host is not None
                host.recorder.end = MemberRecorder().end  # type: ignore[method-assign]
                crash(group)

    run(test)
    (sentence,) = incomplete_records(runs_by_name(read_runs([tmp_path])).values())
    assert "the record of A, B is incomplete, and dora has no record;" in sentence
