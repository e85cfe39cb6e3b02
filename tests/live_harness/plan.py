"""What happens in a run: a group, a network and steps at given times, as a file that people read and write."""

import json
from pathlib import Path
from typing import Any

import msgspec

from ordercast.trace.small_files import read_toml

KIND = "live"


class Weather(msgspec.Struct, frozen=True, kw_only=True):
    """What the network does to a datagram, and the system to a call; chances are 0 to 1, times seconds."""

    delay: float = 0.0003
    jitter: float = 0.5
    """Of the delay, at random: what is sent later may come first."""
    grain: float = 0.0
    """What is due or arrives within so long is found at once, as by a system that wakes processes now and then."""
    loss: float = 0.0
    late: float = 0.0
    """So many take 3, 20 or 200 times as long."""
    doubled: float = 0.0
    changed: float = 0.0
    """One byte of the datagram; in a group without a key it is lost, since the system's checksum is all there is."""
    truncated: float = 0.0
    rate: float = 0.0
    """Bytes a second from one host to another; 0: as many as there are."""
    buffer: int = 4 << 20
    """Bytes that wait to be read."""
    unreachable: bool = False
    """Who sends to a port at which nobody is, is told so (ICMP)."""
    refused: float = 0.0
    """Calls that send and fail: EAGAIN, ENOBUFS, EPERM, ENETUNREACH."""
    short_sends: float = 0.0
    short_reads: float = 0.0
    interrupted: float = 0.0
    no_segments: bool = False
    """The system neither cuts datagrams into segments nor merges them."""


class Setup(msgspec.Struct, frozen=True, kw_only=True):
    """The group."""

    order: str = "total"
    founders: int = 3
    place: str = "network"
    """`machine`: all on one machine; `network`: addresses of a network, and links between members."""
    failure_timeout: float = 0.5
    resilience: int = 0
    quorum: str = "last_view"
    window: int | None = None
    encrypted: bool = False
    max_message_size: int = 1 << 20
    ending: str = "leave"
    """How the members end: `leave`, `close` or `one by one`."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """All of a run. Steps are sentences such as `0.512 A sends 100`; `application` carries them out."""

    seed: int = 0
    """Of all chance: of the network, the system and the processes."""
    setup: Setup = Setup()
    weather: Weather = Weather()
    steps: tuple[str, ...] = ()
    about: str = ""


def names_of(plan: Plan) -> tuple[str, ...]:
    """All names that occur, founders first."""
    founders = [chr(ord("A") + number) for number in range(plan.setup.founders)]
    others = {step.split()[1] for step in plan.steps} - {*founders, "split", "storm", "deaf"}
    return (*founders, *sorted(others))


def _changed(value: msgspec.Struct) -> dict[str, Any]:
    default = type(value)()
    return {
        name: getattr(value, name) for name in value.__struct_fields__ if getattr(value, name) != getattr(default, name)
    }


def to_toml(plan: Plan, failure: str = "") -> str:
    """A plan as a file: what differs from the defaults. `failure`: what it showed."""
    lines = ["version = 1", f"kind = {json.dumps(KIND)}", f"seed = {plan.seed}"]
    about = plan.about or failure
    if about:
        lines.append(f"about = {json.dumps(about, ensure_ascii=False)}")
    lines += ["steps = [", *(f"    {json.dumps(step)}," for step in plan.steps), "]"]
    for title, part in (("setup", plan.setup), ("weather", plan.weather)):
        found = _changed(part)
        if found:
            lines += ["", f"[{title}]", *(f"{name} = {json.dumps(value)}" for name, value in found.items())]
    return "\n".join(lines) + "\n"


def from_toml(path: Path) -> Plan:
    """Reads what `to_toml` writes."""
    found = read_toml(path)
    assert found.pop("version") == 1
    assert found.pop("kind") == KIND
    return msgspec.convert(found, Plan, strict=True)
