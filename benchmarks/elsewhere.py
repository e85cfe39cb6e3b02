"""Audits of one long run where and as others keep it: in an object store, partitioned by a column, its rows shuffled.

    python benchmarks/elsewhere.py [--events 10000000] [--server moto_server] [--folder DIR] [--shuffled]

The trace is made without a simulation (`benchmarks/traces.py`) and kept in DIR, where there is one. It is audited in
process from a folder and from an S3 server on loopback, and on Spark from the server after it was put in folders by run
and kind of event, with its rows in any order; --shuffled: only that. Printed are wall time, CPU and memory of the audit
without the server's. The server is moto's, which reads the whole of a file for each part that it is asked for, so that
large traces take it far longer than a store; or rclone (`--server rclone`), which reads what it sends. Both are in
requirements-clients.txt.
"""

import argparse
import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from pyarrow.fs import LocalFileSystem, S3FileSystem, copy_files
from traces import Shape, write_run, write_shuffled

from audit import measure

_AUDIT = """
import sys
from ordercast.pipeline import Engine, audit
verdict = audit([sys.argv[1]], engine=Engine.VECTORISED, note=print)
assert verdict.holds
print(f"{verdict.deliveries:,} deliveries")
"""
_ON_SPARK = """
import sys
from ordercast.pipeline import audit
from ordercast.pipeline.session import session
with session("local[2]") as spark:
    verdict = audit([sys.argv[1]], spark=spark, note=print)
    assert verdict.holds
    print(f"{verdict.deliveries:,} deliveries")
"""


def main() -> None:
    """Makes the traces that are not there, starts the server, and measures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=10_000_000)
    parser.add_argument("--server", default="moto_server")
    parser.add_argument("--folder", type=Path, default=None)
    parser.add_argument("--shuffled", action="store_true")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = asked.folder or Path(temporary)
        trace, shuffled = folder / f"elsewhere-{asked.events}", folder / f"shuffled-{asked.events}"
        if not trace.exists():
            write_run(trace, Shape(asked.events * 8 // 9, protocol="to"))
        if not shuffled.exists():
            write_shuffled(trace, shuffled)
        files = list(shuffled.rglob("*.parquet"))
        size = sum(path.stat().st_size for path in files) / 2**20
        print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; shuffled: {len(files)} files, {size:.0f} MiB")
        if not asked.shuffled:
            measure("in process, a folder", [sys.executable, "-c", _AUDIT, str(trace)])
        server, port = _start(asked.server, folder)
        try:
            _put(shuffled, port, "shuffled")
            if not asked.shuffled:
                _put(trace, port, "plain")
                measure("in process, S3", [sys.executable, "-c", _AUDIT, "s3://traces/plain"])
            measure("on Spark, shuffled, S3", [sys.executable, "-c", _ON_SPARK, "s3://traces/shuffled"])
        finally:
            server.terminate()
            server.wait(30)


def _start(program: str, folder: Path) -> tuple[subprocess.Popen[bytes], int]:
    """A server with a bucket; programs that are started from now on find it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    with (folder / "server.log").open("wb") as log:
        command = [program, "-H", "127.0.0.1", "-p", str(port)]
        if Path(program).name == "rclone":
            (folder / "store").mkdir(exist_ok=True)
            address = ["--addr", f"127.0.0.1:{port}", "--auth-key", "any,any", "--vfs-cache-mode", "off"]
            command = [program, "serve", "s3", *address, str(folder / "store")]
        server = subprocess.Popen(command, stdout=log, stderr=log)  # noqa: S603
    os.environ |= {
        "AWS_ACCESS_KEY_ID": "any",
        "AWS_SECRET_ACCESS_KEY": "any",
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_REQUEST_CHECKSUM_CALCULATION": "when_required",  # rclone knows no other uploads
    }
    for _ in range(120):
        try:
            _client(port).create_dir("traces")
            break
        except OSError:
            time.sleep(0.5)
    return server, port


def _client(port: int) -> S3FileSystem:
    return S3FileSystem(
        endpoint_override=f"127.0.0.1:{port}", scheme="http", region="us-east-1", allow_bucket_creation=True
    )


def _put(folder: Path, port: int, name: str) -> None:
    for path in folder.rglob("*.parquet"):
        inside = path.relative_to(folder)
        copy_files(
            str(path),
            f"traces/{name}/{inside}",
            source_filesystem=LocalFileSystem(),
            destination_filesystem=_client(port),
            use_threads=False,
        )


if __name__ == "__main__":
    main()
