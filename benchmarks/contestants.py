"""Which peers can be run on this machine, and how."""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent / "peers"


@dataclass(frozen=True)
class Peer:
    """A program that prints its figures as `ordercast_group.py` does."""

    name: str
    command: tuple[str, ...]
    missing: str = ""
    """What has to be there first."""


def peers(python: str) -> list[Peer]:
    """All that we know; `python` is one that has the packages of those that are Python's."""
    here = sys.executable
    return [
        Peer("Corosync CPG, MTU 1500", (here, str(HERE / "corosync_group.py")), _corosync()),
        Peer("JGroups SEQUENCER", (here, str(HERE / "jgroups_group.py")), _jgroups()),
        Peer("pysyncobj (Raft)", (python, str(HERE / "pysyncobj_group.py")), _package(python, "pysyncobj")),
        Peer("NATS JetStream", (python, str(HERE / "nats_group.py")), _nats(python)),
    ]


def _programs(*names: str) -> str:
    lacking = [name for name in names if shutil.which(name) is None]
    return f"there is no {', '.join(lacking)}" if lacking else ""


def _root() -> str:
    return "" if os.geteuid() == 0 else "only root may make network namespaces"


def _corosync() -> str:
    headers = Path("/usr/include/corosync/cpg.h")
    return _root() or _programs("corosync", "gcc", "ip", "nsenter") or ("" if headers.exists() else f"no {headers}")


def _jgroups() -> str:
    jar = Path("/usr/share/java/jgroups.jar")
    return _root() or _programs("java", "javac", "ip") or ("" if jar.exists() else f"there is no {jar}")


def _package(python: str, name: str) -> str:
    found = subprocess.run([python, "-c", f"import {name}"], capture_output=True, check=False)  # noqa: S603
    return "" if found.returncode == 0 else f"{python} has no {name} (--peer-python names another Python)"


def _nats(python: str) -> str:
    return _programs("nats-server") or _package(python, "nats")
