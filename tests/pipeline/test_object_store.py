"""Sweeps, audits and copies of logs on a real S3 interface on loopback, by two servers: the bytes of a local folder.

Run by `pytest -m cluster` with those that are on the path, moto's and rclone's: see requirements-clients.txt.
"""

import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from signal import SIGINT

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyarrow.fs import S3FileSystem

from ordercast.trace.schema import EventField
from ordercast.trace.storage import RemotePath, location
from tests.audit.figures import Row
from tests.pipeline.log_stream.member_logs import in_log, packet, planner, read_parts, write_logs
from tests.pipeline.random_runs import batch_of, long_enough
from tests.pipeline.runs import bytes_in
from tests.pipeline.sparks import free_port, ordercast, outcome, wait_for
from tests.pipeline.test_cluster import SMALL, grid_of
from tests.pipeline.traces import write

pytestmark = pytest.mark.cluster
SERVERS = {
    "moto_server": ["moto_server", "-H", "127.0.0.1", "-p", "{port}"],
    "rclone": ["rclone", "serve", "s3", "--addr", "127.0.0.1:{port}", "--auth-key", "any,any", "{folder}"],
}


@pytest.fixture(params=SERVERS)
def store(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The URL of a bucket."""
    if shutil.which(request.param) is None:
        pytest.skip(f"{request.param} is not on the path: see requirements-clients.txt")
    port, folder = free_port(), tmp_path / "buckets"
    folder.mkdir()
    with (tmp_path / "server.log").open("wb") as log:
        command = [part.format(port=port, folder=folder) for part in SERVERS[request.param]]
        server = subprocess.Popen(command, stdout=log, stderr=log)  # noqa: S603
    for name, value in {
        "AWS_ACCESS_KEY_ID": "any",
        "AWS_SECRET_ACCESS_KEY": "any",
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_REQUEST_CHECKSUM_CALCULATION": "when_required",  # rclone knows no other uploads
    }.items():
        monkeypatch.setenv(name, value)
    try:
        client = S3FileSystem(
            endpoint_override=f"127.0.0.1:{port}", scheme="http", region="us-east-1", allow_bucket_creation=True
        )
        for _ in range(120):
            try:
                client.create_dir("traces")
                break
            except OSError:
                assert server.poll() is None, (tmp_path / "server.log").read_text()
                time.sleep(0.5)
        yield "s3://traces"
    finally:
        server.terminate()
        server.wait(20)


def bytes_there(url: str) -> dict[str, bytes]:
    there = location(url)
    assert isinstance(there, RemotePath)
    return {str(inside): path.read_bytes() for inside, path in there.files(recursive=True)}


def done(*arguments: object) -> str:
    status, out, err = outcome(ordercast(*arguments))
    assert status == 0, out + err
    return out


@pytest.mark.parametrize("store", ["moto_server"], indirect=True)  # rclone answers a sweep with an internal error
def test_a_sweep_its_audit_and_its_resumption(store: str, tmp_path: Path) -> None:
    grid, expected = grid_of(tmp_path, SMALL)
    done("sweep", grid, "--out", tmp_path / "here")
    assert done("sweep", grid, "--out", f"{store}/sweep").startswith("32 runs: 32 complete")
    there = bytes_there(f"{store}/sweep")
    assert there == bytes_in(tmp_path / "here")
    assert {name for name in there if name.endswith(".parquet")} == expected.keys()
    lost = next(name for name in sorted(there) if name.startswith("runs/"))
    path = location(f"{store}/sweep/{lost}")
    path.unlink()
    assert "of them from before" in done("sweep", grid, "--out", f"{store}/sweep", "--resume")
    assert bytes_there(f"{store}/sweep") == there
    verdicts = [tmp_path / f"{name}.json" for name in ("here", "there", "spark")]
    done("audit", tmp_path / "here", "--json", verdicts[0])
    done("audit", f"{store}/sweep", "--json", verdicts[1])
    done("audit", f"s3a{store[2:]}/sweep", "--spark", "--json", verdicts[2])
    assert len({json.dumps(json.loads(path.read_text())) for path in verdicts}) == 1


def test_a_growing_trace_is_followed_there(store: str, tmp_path: Path) -> None:
    """Its checkpoint is there, too: whoever goes on elsewhere needs nothing of this machine."""
    rows = long_enough("followed there").rows()
    deliveries = [row for row in rows if row[EventField.EVENT] == "deliver"]
    again = [(deliveries[0][0], 10_000, *deliveries[0][2:])]

    def put(number: int, part: list[Row]) -> None:
        pq.write_table(pa.Table.from_batches([batch_of(part)]), tmp_path / "part.parquet")
        location(f"{store}/growing/events/part-{number}.parquet").put(tmp_path / "part.parquet")  # type: ignore[union-attr]

    follow = ("audit", "--follow", f"s3a{store[2:]}/growing", "--service", "to")
    put(0, rows[:60])
    following = ordercast(*follow)
    checkpoint = f"{store}/growing/_audit"
    wait_for(lambda: location(f"{checkpoint}/state.msgpack").exists(), "the first batch")
    put(1, rows[60:])
    wait_for(lambda: location(f"{checkpoint}/batches/000000001.msgpack").exists(), "the second batch")
    following.send_signal(SIGINT)
    assert outcome(following)[:2] == (0, "")
    put(2, again)
    status, out, _ = outcome(ordercast(*follow))
    assert (status, out.partition(":")[0]) == (1, "complete, run r")


def test_copies_of_logs_are_a_stream(store: str, tmp_path: Path) -> None:
    """Two members are copies, of which one goes on with a segment that is put later."""
    packets = [packet(number) for number in range(60)]
    logs = write_logs(tmp_path / "logs", packets, "A", "B", max_segment=700)

    def copy(name: str, *files: Path) -> None:
        for each in files:
            location(f"{store}/orders/{name}/{each.name}").put(each)  # type: ignore[union-attr] # it is a URL

    segments = sorted((logs / "B").glob("0*"))
    copy("A", *(logs / "A").iterdir())
    copy("B", *segments[:3])
    plan = planner(f"{store}/orders/A,{store}/orders/B,{tmp_path / 'gone'}")
    start, end = plan.boundary("earliest"), plan.boundary("latest")
    assert 0 < end.position < 180
    found = read_parts(plan.parts(start, end))
    copy("B", *segments[3:], logs / "B" / "end")
    more = plan.latest(end, None)
    assert more.position == 180
    assert found + read_parts(plan.parts(end, more)) == in_log(logs / "A")


def test_a_trace_that_was_shuffled_and_partitioned_by_columns_is_sorted_there(store: str, tmp_path: Path) -> None:
    """In so many files that it is judged in parts: Spark sorts a copy of it in the bucket, which is gone at the end."""
    run = long_enough("elsewhere")
    good = write(tmp_path / "good", {"r": run})
    [file] = (good / "events").iterdir()
    table = pq.read_table(file).drop_columns(["run"])
    order = list(range(table.num_rows))
    Random("elsewhere").shuffle(order)
    shuffled = table.take(order)
    for number in range(260):
        rows = shuffled.slice(number * shuffled.num_rows // 260, shuffled.num_rows // 260 + 1)
        rows = rows.slice(0, max(0, (number + 1) * shuffled.num_rows // 260 - number * shuffled.num_rows // 260))
        for kind in ("send", "deliver"):
            part = rows.filter(pc.equal(rows.column("event"), kind)).drop_columns(["event"])
            path = tmp_path / "part.parquet"
            pq.write_table(part, path)
            there = location(f"{store}/shuffled/events/run=r/event={kind}/{number}.parquet")
            there.put(path)  # type: ignore[union-attr] # it is a URL
    [runs] = (good / "runs").iterdir()
    location(f"{store}/shuffled/runs/r.parquet").put(runs)  # type: ignore[union-attr]
    verdicts = [tmp_path / f"{name}.json" for name in ("here", "there")]
    done("audit", good, "--json", verdicts[0])
    status, _, err = outcome(ordercast("audit", f"{store}/shuffled", "--spark", "--json", verdicts[1]))
    assert status == 0, err
    assert "are not in the order of time, and are sorted first" in err
    assert json.loads(verdicts[0].read_text()) == json.loads(verdicts[1].read_text())
    assert not [name for name in bytes_there(f"{store}/shuffled") if "_sorted" in name]
