"""View changes of Corosync's process groups (CPG), beside `benchmarks/membership.py`.

    python benchmarks/peers/corosync_views.py [--members 5] [--times 5]

A daemon and a client for each member, as in `corosync_group.py`, which says what it needs. Clients that join, leave or
are killed; at the end a daemon is killed with its client, which the others find out by the token's timeout (3 s by
default). Prints a line of JSON for each event, in milliseconds.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from corosync_group import HERE, Cluster, sh

GAP_MS = 5
_AT_MOST = 30.0  # seconds; then something is wrong


class Client:
    """A process in the group, and what it has told."""

    def __init__(self, cluster: Cluster, place: int, program: Path) -> None:
        self.process = subprocess.Popen(
            cluster.beside(place, f"{program} {GAP_MS}"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def next(self, kind: str) -> list[float]:
        """The numbers of its next line of this kind."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            word, *numbers = line.split()
            if word == kind:
                return [float(number) for number in numbers]
        raise SystemExit("a client ended before it told what was expected")

    def view(self, members: int) -> float:
        """When it was told the next view of so many members."""
        while True:
            at, count = self.next("view")
            if count == members:
                return at

    def leave(self) -> None:
        """Its input ends."""
        assert self.process.stdin is not None
        self.process.stdin.close()


def changed(event: str, stay: list[Client], asked: float, members: int) -> None:
    """Waits until all that stay have the next view and a message in it."""
    views, firsts, pauses = [], [], []
    for client in stay:
        views.append(client.view(members))
        first, pause = client.next("first")
        firsts.append(first)
        pauses.append(pause)
    found = {"view": max(views) - asked, "first": min(firsts) - asked, "all": max(firsts) - asked, "pause": max(pauses)}
    sys.stdout.write(json.dumps({"event": event, **{name: 1000 * value for name, value in found.items()}}) + "\n")
    sys.stdout.flush()


def main() -> None:
    """Builds the client, starts the cluster, lets members come and go."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--members", type=int, default=5)
    parser.add_argument("--times", type=int, default=5)
    asked = parser.parse_args()
    last = asked.members - 1
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        program = folder / "cpg_views"
        sh(f"gcc -O2 -o {program} {HERE / 'cpg_views.c'} -lcpg")
        names = [chr(ord("A") + place) for place in range(asked.members)]
        with Cluster(folder, names) as cluster:
            clients: list[Client] = []
            for place in range(last):
                clients.append(Client(cluster, place, program))
                for client in clients:
                    client.view(place + 1)
            for _ in range(asked.times):
                for event in ("last member leaves", "last member crashes"):
                    time.sleep(0.3)
                    comes = Client(cluster, last, program)
                    changed("a member joins", clients, comes.next("asked")[0], asked.members)
                    time.sleep(0.3)
                    if event.endswith("leaves"):
                        comes.leave()
                        comes.next("first")
                        at = comes.next("asked")[0]
                    else:
                        at = time.monotonic()
                        comes.process.kill()
                    changed(event, clients, at, last)
                    comes.process.wait(_AT_MOST)
            at = time.monotonic()
            cluster.daemons[last - 1].kill()
            clients.pop().process.kill()
            changed("a daemon and its client crash, from then on", clients, at, last - 1)
            for client in clients:
                client.process.kill()


if __name__ == "__main__":
    main()
