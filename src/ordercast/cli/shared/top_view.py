"""A running group in the terminal: members, rates, latencies, losses, and who waits for whom."""

from collections.abc import Mapping
from dataclasses import dataclass

from rich.console import Group
from rich.table import Table
from rich.text import Text

from ordercast.cli.shared.status_view import readable_bytes
from ordercast.live.group_members import FoundGroup, Presence
from ordercast.wire.inspection import Inspected, Latency

PRESENCES = {
    Presence.PRESENT: ("present", "green"),
    Presence.BLOCKED: ("blocked: it does not reach a majority", "bold red"),
    Presence.BEHIND: ("behind: it is in an earlier view", "yellow"),
    Presence.SILENT: ("does not answer", "bold red"),
}
LEVELS = ("accepted", "stable", "stable everywhere", "delivered")
"""What `Inspected.latencies` are of."""


@dataclass(frozen=True)
class Look:
    """A group at one moment: what was found, and how its members are, by place."""

    found: FoundGroup
    members: Mapping[int, Inspected]


@dataclass(frozen=True)
class Rates:
    """A member's messages and losses in each second."""

    sent: float
    delivered: float
    retransmitted: float
    asked: float
    received_bytes: float


def rates_of(now: Inspected, before: Inspected | None) -> Rates | None:
    """Since the earlier look; None: there is none, or the member was started anew meanwhile."""
    seconds = (now.uptime - before.uptime) / 1000 if before is not None else 0.0
    if before is None or seconds <= 0 or now.sent < before.sent:
        return None
    return Rates(
        sent=(now.sent - before.sent) / seconds,
        delivered=max(0, sum(now.delivered) - sum(before.delivered)) / seconds,
        retransmitted=(now.retransmitted - before.retransmitted) / seconds,
        asked=(now.requests - before.requests) / seconds,
        received_bytes=(now.bytes_received - before.bytes_received) / seconds,
    )


def screen(now: Look, before: Look | None) -> Group:
    """What `ordercast top` shows. Rates are since the look before."""
    found = now.found
    members = "1 member" if len(found.members) == 1 else f"{len(found.members)} members"
    blocked = "; it is blocked: no majority of this view reaches each other" if found.blocked else ""
    order = f"order {found.order}, " if found.order else ""
    title = Text(
        f"group {found.group}: {order}view {found.view}, {members}{blocked}", "bold red" if blocked else "bold"
    )
    same_view = before is not None and before.found.view == found.view
    return Group(title, Text(""), _members(now, before if same_view else None), Text(""), _latencies(now), *_waits(now))


def _members(now: Look, before: Look | None) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    columns = (
        "",
        "member",
        "sent/s",
        "delivered/s",
        "in/s",
        "lost/s",
        "asked/s",
        "recoveries",
        "held",
        "unread",
        "up",
        "",
    )
    for place, name in enumerate(columns):
        table.add_column(name, justify="left" if place in {1, len(columns) - 1} else "right")
    for member in now.found.members:
        words, colour = PRESENCES[member.presence]
        known = now.members.get(member.place)
        cells = [""] * 9
        if known is not None:
            rates = rates_of(known, None if before is None else before.members.get(member.place))
            cells = _cells(known, rates)
        elif member.presence is not Presence.SILENT:
            words += ", but runs a version that does not say more"
        table.add_row(str(member.place), Text(member.name or member.address), *map(Text, cells), Text(words, colour))
    return table


def _cells(known: Inspected, rates: Rates | None) -> list[str]:
    speeds = ["…"] * 5
    if rates is not None:
        speeds = [f"{each:,.0f}" for each in (rates.sent, rates.delivered)]
        speeds += [readable_bytes(round(rates.received_bytes)), f"{rates.retransmitted:,.1f}", f"{rates.asked:,.1f}"]
    minutes, seconds = divmod(known.uptime // 1000, 60)
    return [
        *speeds,
        f"{known.recoveries:,}",
        f"{known.held:,}",
        readable_bytes(known.unread),
        f"{minutes}:{seconds:02}",
    ]


def _latencies(now: Look) -> Table:
    """From the number of an own message to each level at its sender: median and 99th percentile."""
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
    table.add_column("own messages, median / 99 %")
    for level in LEVELS:
        table.add_column(level, justify="right")
    for member in now.found.members:
        known = now.members.get(member.place)
        if known is not None:
            table.add_row(Text(member.name or member.address), *map(_latency, known.latencies))
    return table


def _latency(found: Latency) -> Text:
    if not found.count:
        return Text("–", "dim")
    return Text(f"{_milliseconds(found.median)} / {_milliseconds(found.late)} ms")


def _milliseconds(nanoseconds: int) -> str:
    value = nanoseconds / 1e6
    return f"{value:.3f}" if value < 1 else f"{value:.2f}" if value < 10 else f"{value:,.0f}"


def _waits(now: Look) -> list[Text]:
    names = {member.place: member.name or member.address for member in now.found.members}
    lines = [f"{names[place]}: {sentence}" for place, known in sorted(now.members.items()) for sentence in known.waits]
    return [Text(""), Text("who waits for whom", "bold"), *map(Text, lines)] if lines else []
