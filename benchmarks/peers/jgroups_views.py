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
from pathlib import Path

from jgroups import JAR, compile_class, network, stack


def main() -> None:
    """Compiles, makes a network, and runs it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--members", type=int, default=5)
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--state", type=int, default=100_000_000)
    asked = parser.parse_args()
    namespace = f"ocjv{os.getpid()}"
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        compile_class(folder, "JGroupsViews")
        xml = stack(folder, "flush-udp")
        with network(namespace):
            told = subprocess.run(
                [
                    *f"ip netns exec {namespace} java -Xmx2g -Djava.net.preferIPv4Stack=true".split(),
                    *("-Djgroups.bind_addr=127.0.0.1", "-cp", f"{folder}:{JAR}", "JGroupsViews", str(xml)),
                    *(str(asked.members), str(asked.times), str(asked.state)),
                ],
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                timeout=60 + 40 * asked.times,
                check=True,
            ).stdout
    sys.stdout.write("".join(f"{line}\n" for line in told.splitlines() if line.startswith("{")))


if __name__ == "__main__":
    main()
