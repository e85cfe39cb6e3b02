"""Members of a JGroups cluster with its SEQUENCER stack, measured like `ordercast_group.py`.

Needs java, javac, jgroups.jar (Debian: libjgroups-java) and the right to make a network namespace, in which its
multicasts stay. The stack is the one that comes with it, with a bundling time of 1 ms instead of 30: that is the
latency of a single message.
"""

import json
import os
import subprocess
import tempfile
import time
from pathlib import Path

from frame import SENDERS, arguments, names_of, summary, tell
from jgroups import JAR, compile_class, network, stack

_APART, _SETTLES = 2.5, 1.5  # seconds between two that join, and after the last


def main() -> None:
    """Compiles, makes a network, starts the members one after the other."""
    asked = arguments(__doc__).parse_args()
    namespace = f"ocjg{os.getpid()}"
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        compile_class(folder, "JGroupsMember")
        xml = stack(folder, "sequencer")
        with network(namespace):
            names = names_of(asked)
            begin = int((time.time() + _APART * len(names) + _SETTLES) * 1000)
            members = []
            for name in names:
                sends = str(int(name in SENDERS[asked.mode]))
                memory = 256 if len(names) < 5 else 128
                latency = str(int(asked.mode == "latency"))
                members.append(
                    subprocess.Popen(
                        [*f"ip netns exec {namespace} java -Xms{memory}m -Xmx{4 * memory}m -XX:+UseParallelGC".split(),
                         "-Djava.net.preferIPv4Stack=true", "-Djgroups.bind_addr=127.0.0.1", "-cp", f"{folder}:{JAR}",
                         "JGroupsMember", str(xml), name, sends, str(asked.size), latency, str(begin),
                         str(asked.seconds)],
                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                    )
                )  # fmt: skip
                time.sleep(_APART)
            found = [member.communicate(timeout=90)[0].strip().splitlines()[-1] for member in members]
    tell(summary([json.loads(line) for line in found]))


if __name__ == "__main__":
    main()
