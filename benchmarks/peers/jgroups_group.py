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
import zipfile
from pathlib import Path

from frame import NAMES, SENDERS, arguments, summary, tell

JAR = Path("/usr/share/java/jgroups.jar")
HERE = Path(__file__).parent
_BEGIN = 9.0  # seconds until all have joined


def stack(folder: Path) -> Path:
    """The stack out of the jar."""
    with zipfile.ZipFile(JAR) as jar:
        text = jar.read("sequencer.xml").decode()
    found = folder / "sequencer.xml"
    found.write_text(text.replace('max_bundle_timeout="30"', 'max_bundle_timeout="1"'))
    return found


def main() -> None:
    """Compiles, makes a network, starts the members one after the other."""
    asked = arguments(__doc__).parse_args()
    network = f"ocjg{os.getpid()}"
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        subprocess.run(["javac", "-cp", str(JAR), "-d", str(folder), str(HERE / "JGroupsMember.java")], check=True)
        xml = stack(folder)
        subprocess.run(["ip", "netns", "add", network], check=True)
        try:
            for command in ("link set lo up multicast on", "route add 224.0.0.0/4 dev lo"):
                subprocess.run(["ip", "-n", network, *command.split()], check=True)
            begin = int((time.time() + _BEGIN) * 1000)
            members = []
            for name in NAMES:
                sends = str(int(name in SENDERS[asked.mode]))
                latency = str(int(asked.mode == "latency"))
                members.append(
                    subprocess.Popen(
                        [*f"ip netns exec {network} java -Xms256m -Xmx1g -XX:+UseParallelGC".split(),
                         "-Djava.net.preferIPv4Stack=true", "-Djgroups.bind_addr=127.0.0.1", "-cp", f"{folder}:{JAR}",
                         "JGroupsMember", str(xml), name, sends, str(asked.size), latency, str(begin),
                         str(asked.seconds)],
                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                    )
                )  # fmt: skip
                time.sleep(2.5)
            found = [member.communicate(timeout=90)[0].strip().splitlines()[-1] for member in members]
        finally:
            subprocess.run(["ip", "netns", "del", network], check=False)
    tell(summary([json.loads(line) for line in found]))


if __name__ == "__main__":
    main()
