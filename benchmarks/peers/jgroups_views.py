"""View changes of a JGroups cluster with its FLUSH stack, and a transfer of state, beside `benchmarks/membership.py`.

    python benchmarks/peers/jgroups_views.py [--members 5] [--times 5] [--state 100000000]

All members are in one Java process. Needs java, javac, jgroups.jar (Debian: libjgroups-java) and the right to make a
network namespace, in which its multicasts stay. The stack is the one that comes with it, with a bundling time of 1 ms
instead of 30. Prints a line of JSON for each event.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

JAR = Path("/usr/share/java/jgroups.jar")
HERE = Path(__file__).parent


def stack(folder: Path) -> Path:
    """The stack out of the jar."""
    with zipfile.ZipFile(JAR) as jar:
        text = jar.read("flush-udp.xml").decode()
    found = folder / "flush-udp.xml"
    found.write_text(text.replace('max_bundle_timeout="30"', 'max_bundle_timeout="1"'))
    return found


def main() -> None:
    """Compiles, makes a network, and runs it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--members", type=int, default=5)
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--state", type=int, default=100_000_000)
    asked = parser.parse_args()
    network = f"ocjv{os.getpid()}"
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        subprocess.run(["javac", "-cp", str(JAR), "-d", str(folder), str(HERE / "JGroupsViews.java")], check=True)
        subprocess.run(["ip", "netns", "add", network], check=True)
        try:
            for command in ("link set lo up multicast on", "route add 224.0.0.0/4 dev lo"):
                subprocess.run(["ip", "-n", network, *command.split()], check=True)
            told = subprocess.run(
                [
                    *f"ip netns exec {network} java -Xmx2g -Djava.net.preferIPv4Stack=true".split(),
                    *("-Djgroups.bind_addr=127.0.0.1", "-cp", f"{folder}:{JAR}", "JGroupsViews", str(stack(folder))),
                    *(str(asked.members), str(asked.times), str(asked.state)),
                ],
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                timeout=60 + 40 * asked.times,
                check=True,
            ).stdout
        finally:
            subprocess.run(["ip", "netns", "del", network], check=False)
    sys.stdout.write("".join(f"{line}\n" for line in told.splitlines() if line.startswith("{")))


if __name__ == "__main__":
    main()
