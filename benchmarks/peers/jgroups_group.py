"""Three members of a JGroups cluster with its SEQUENCER stack, measured like `ordercast_group.py`.

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

from frame import NAMES, SENDERS, arguments, summary, tell
from jgroups import JAR, compile_class, network, stack

_BEGIN = 9.0  # seconds until all have joined


def main() -> None:
    """Compiles, makes a network, starts the members one after the other."""
    asked = arguments(__doc__).parse_args()
    namespace = f"ocjg{os.getpid()}"
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        compile_class(folder, "JGroupsMember")
        xml = stack(folder, "sequencer")
        with network(namespace):
            begin = int((time.time() + _BEGIN) * 1000)
            members = []
            for name in NAMES:
                sends = str(int(name in SENDERS[asked.mode]))
                latency = str(int(asked.mode == "latency"))
                members.append(
                    subprocess.Popen(
                        [*f"ip netns exec {namespace} java -Xms256m -Xmx1g -XX:+UseParallelGC".split(),
                         "-Djava.net.preferIPv4Stack=true", "-Djgroups.bind_addr=127.0.0.1", "-cp", f"{folder}:{JAR}",
                         "JGroupsMember", str(xml), name, sends, str(asked.size), latency, str(begin),
                         str(asked.seconds)],
                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                    )
                )  # fmt: skip
                time.sleep(2.5)
            found = [member.communicate(timeout=90)[0].strip().splitlines()[-1] for member in members]
    tell(summary([json.loads(line) for line in found]))


if __name__ == "__main__":
    main()
