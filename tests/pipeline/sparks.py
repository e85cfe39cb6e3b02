"""Sparks of one's own, from the installed package: a standalone cluster, a Connect server, and commands that use them.

Every process is a child of the test and is ended by its id.
"""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pyspark

SPARK_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"
PATIENCE = 240.0  # seconds, on a machine that does much else
QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""For a Java that ends soon: its first query takes a third less of the processor."""


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port: int = listening.getsockname()[1]
        return port


def wait_for(condition: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.1)


def environment(**more: str) -> dict[str, str]:
    """As a shell has it: a session through Connect leaves words in ours that turn every later Spark into a client."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_REMOTE", "SPARK_CONNECT"))}
    java = {"JAVA_TOOL_OPTIONS": os.environ.get("JAVA_TOOL_OPTIONS", QUICK_JAVA)}
    return {**ours, **java, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1", **more}


@dataclass
class Process:
    """A process and what it says."""

    popen: subprocess.Popen[bytes]
    log: Path

    def said(self, words: str) -> int:
        """How often it said so."""
        return self.log.read_text(errors="replace").count(words)

    def kill(self) -> None:
        """Without a chance to say good-bye."""
        self.popen.send_signal(signal.SIGKILL)
        self.popen.wait()

    def executors(self) -> list[int]:
        """Of a worker: the processes of its executors. It may have others, for a moment."""
        found = []
        for each in Path("/proc").iterdir():
            if each.name.isdecimal():
                with suppress(OSError):
                    parent = (each / "stat").read_text().rpartition(")")[2].split()[1]
                    if int(parent) == self.popen.pid and b"ExecutorBackend" in (each / "cmdline").read_bytes():
                        found.append(int(each.name))
        return found

    def end(self) -> None:
        if self.popen.poll() is None:
            self.popen.terminate()
            try:
                self.popen.wait(20)
            except subprocess.TimeoutExpired:
                self.kill()


def start(folder: Path, name: str, *arguments: str, **more: str) -> Process:
    log = folder / f"{name}.log"
    with log.open("wb") as file:
        popen = subprocess.Popen(  # noqa: S603
            [SPARK_CLASS, *arguments], stdout=file, stderr=subprocess.STDOUT, cwd=folder, env=environment(**more)
        )
    return Process(popen, log)


@dataclass
class Cluster:
    """A master and its workers on this machine."""

    master: str
    workers: list[Process] = field(default_factory=list)


@contextmanager
def standalone_cluster(folder: Path, workers: int = 2) -> Iterator[Cluster]:
    port = free_port()
    cluster = Cluster(f"spark://127.0.0.1:{port}")
    place = ["--webui-port", "0", "--host"]
    master = start(
        *(folder, "master", "org.apache.spark.deploy.master.Master"),
        *(*place, "127.0.0.1", "--port", str(port)),
    )
    try:
        wait_for(lambda: master.said("I have been elected leader"), "the master")
        for number in range(workers):
            room = ["--cores", "1", "--memory", "1g", "--work-dir", str(folder / f"work{number}")]
            host = f"127.0.0.{number + 1}"  # Spark runs no task a second time on the host of the first
            arguments = ["org.apache.spark.deploy.worker.Worker", *place, host, *room, cluster.master]
            cluster.workers.append(start(folder, f"worker{number}", *arguments, SPARK_LOCAL_IP=host))
        wait_for(lambda: master.said("Registering worker") == workers, "the workers")
        yield cluster
    finally:
        for process in (*cluster.workers, master):
            process.end()


@contextmanager
def connect_server(folder: Path) -> Iterator[str]:
    """The address of a Spark Connect server."""
    port = free_port()
    server = start(
        folder,
        "connect",
        "org.apache.spark.deploy.SparkSubmit",
        *("--master", "local[2]", "--conf", f"spark.connect.grpc.binding.port={port}"),
        *("--conf", "spark.connect.grpc.binding.address=127.0.0.1", "--conf", "spark.ui.enabled=false"),
        *("--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"),
    )
    try:
        wait_for(lambda: server.said("Spark Connect server started"), "the server")
        yield f"sc://127.0.0.1:{port}"
    finally:
        server.end()


def ordercast(*arguments: object, **more: str) -> subprocess.Popen[str]:
    """Begins a command."""
    return subprocess.Popen(  # noqa: S603
        [sys.executable, "-m", "ordercast.cli", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(**more),
    )


def outcome(command: subprocess.Popen[str]) -> tuple[int, str, str]:
    """How it ended, and what it said."""
    try:
        out, err = command.communicate(timeout=PATIENCE)
    finally:
        if command.poll() is None:
            command.kill()
            command.communicate()  # what is left open would be told as a fault of another test
    return command.returncode, out, err
