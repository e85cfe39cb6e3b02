"""What both measurements of JGroups share: its stacks, a compiler, and a network in which its multicasts stay.

Needs java, javac, jgroups.jar (Debian: libjgroups-java) and the right to make a network namespace.
"""

import subprocess
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

JAR = Path("/usr/share/java/jgroups.jar")
HERE = Path(__file__).parent


def stack(folder: Path, name: str) -> Path:
    """The stack of that name out of the jar, with a bundling time of 1 ms: that is the latency of a lone message."""
    with zipfile.ZipFile(JAR) as jar:
        text = jar.read(f"{name}.xml").decode()
    found = folder / f"{name}.xml"
    found.write_text(text.replace('max_bundle_timeout="30"', 'max_bundle_timeout="1"'))
    return found


def compile_class(folder: Path, name: str) -> None:
    """The class of that name beside this file, into a folder."""
    subprocess.run(["javac", "-cp", str(JAR), "-d", str(folder), str(HERE / f"{name}.java")], check=True)


@contextmanager
def network(name: str) -> Iterator[None]:
    """A network namespace with a loopback that takes multicasts, for as long as it is used."""
    subprocess.run(["ip", "netns", "add", name], check=True)
    try:
        for command in ("link set lo up multicast on", "route add 224.0.0.0/4 dev lo"):
            subprocess.run(["ip", "-n", name, *command.split()], check=True)
        yield
    finally:
        subprocess.run(["ip", "netns", "del", name], check=False)
