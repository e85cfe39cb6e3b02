"""Corosync daemons, each with a client of its process groups (CPG), measured like `ordercast_group.py`.

Needs root, corosync and its headers (Debian: corosync, libcpg-dev), gcc and zlib. Every daemon has a network namespace
and folders of its own; they are joined by a bridge with an MTU of 1500. Transport udpu, no encryption, and else what
comes with it.
"""

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from frame import SENDERS, arguments, names_of, summary, tell

HERE = Path(__file__).parent
_TICKS = os.sysconf("SC_CLK_TCK")


def sh(command: str) -> None:
    """Runs a command that must succeed."""
    subprocess.run(command.split(), check=True, capture_output=True)


def configuration(names: Sequence[str]) -> str:
    """What all daemons are told."""
    nodes = "".join(
        f"node {{\n ring0_addr: 10.78.0.{place}\n nodeid: {place}\n name: {name}\n}}\n"
        for place, name in enumerate(names, start=1)
    )
    return (
        "totem {\n version: 2\n cluster_name: bench\n transport: udpu\n crypto_cipher: none\n crypto_hash: none\n}\n"
        "logging {\n to_stderr: no\n to_syslog: no\n to_logfile: no\n}\n"
        f"nodelist {{\n{nodes}}}\n"
    )


class Cluster:
    """Namespaces and daemons, for as long as it is entered."""

    def __init__(self, folder: Path, names: Sequence[str] = ("A", "B", "C")) -> None:
        self.folder, self.prefix, self.names = folder, f"occs{os.getpid()}", names
        self.daemons: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> "Cluster":
        bridge = f"{self.prefix}b"
        sh(f"ip netns add {bridge}")
        sh(f"ip -n {bridge} link add br0 type bridge")
        sh(f"ip -n {bridge} link set br0 up")
        config = self.folder / "corosync.conf"
        config.write_text(configuration(self.names))
        for place, name in enumerate(self.names, start=1):
            space = f"{self.prefix}{name}"
            sh(f"ip netns add {space}")
            sh(f"ip -n {bridge} link add v{place} type veth peer name eth0 netns {space}")
            sh(f"ip -n {bridge} link set v{place} master br0 up")
            sh(f"ip -n {space} link set lo up")
            sh(f"ip -n {space} addr add 10.78.0.{place}/24 dev eth0")
            sh(f"ip -n {space} link set eth0 up")
        for name in self.names:
            self.daemons.append(self.start(name, config))
        time.sleep(6)  # until they are one cluster
        return self

    def __exit__(self, *_: object) -> None:
        for daemon in self.daemons:
            daemon.terminate()
        for daemon in self.daemons:
            try:
                daemon.wait(5)
            except subprocess.TimeoutExpired:
                daemon.kill()
        for name in (*self.names, "b"):
            subprocess.run(["ip", "netns", "del", f"{self.prefix}{name}"], check=False)

    def start(self, name: str, config: Path) -> "subprocess.Popen[bytes]":
        """A daemon in a network and with folders of its own; the process is the daemon in the end."""
        mounts = [f"mount -t tmpfs tmpfs {place}" for place in ("/dev/shm", "/run", "/var/lib/corosync")]  # noqa: S108
        script = " && ".join([*mounts, f"exec corosync -f -c {config}"])
        return subprocess.Popen([*f"ip netns exec {self.prefix}{name} unshare -m bash -c".split(), script])

    def beside(self, place: int, command: str) -> list[str]:
        """A command where a daemon is."""
        return f"nsenter -t {self.daemons[place].pid} -m -n {command}".split()

    def cpu(self) -> float:
        """Seconds of the processor that the daemons have used."""
        total = 0
        for daemon in self.daemons:
            fields = Path(f"/proc/{daemon.pid}/stat").read_text().rpartition(")")[2].split()
            total += int(fields[11]) + int(fields[12])
        return total / _TICKS


def main() -> None:
    """Builds the client, starts the cluster, runs the clients."""
    asked = arguments(__doc__).parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        program = folder / "cpg_member"
        sh(f"gcc -O2 -o {program} {HERE / 'cpg_member.c'} -lcpg -lz")
        names = names_of(asked)
        with Cluster(folder, names) as cluster:
            before = cluster.cpu()
            clients = []
            for place, name in enumerate(names):
                sends, latency = int(name in SENDERS[asked.mode]), int(asked.mode == "latency")
                command = f"{program} {name} {sends} {asked.size} {latency} {asked.seconds} {len(names)}"
                clients.append(subprocess.Popen(cluster.beside(place, command), stdout=subprocess.PIPE, text=True))
            told: list[dict[str, Any]] = [json.loads(client.communicate(timeout=60)[0]) for client in clients]
            used = cluster.cpu() - before
    tell(summary(told, cpu=used))


if __name__ == "__main__":
    main()
