"""Statistics of a member in the terminal, refreshed while it runs."""

import asyncio
from collections.abc import Callable

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from ordercast.live.stats import Stats

_EVERY = 0.5


def status(now: Stats, before: Stats | None = None) -> Group:
    """A table of members and their messages, and a line of counters; rates since an earlier look."""
    seconds = now.uptime - before.uptime if before else 0.0
    title = f"{now.group}: {now.me} ({now.protocol}), {_time(now.uptime)}"
    table = Table(
        title=Text(title, "table.title"), title_justify="left", box=None, pad_edge=False, padding=(0, 2, 0, 0)
    )
    for name, justify in (("member", "left"), ("delivered", "right"), ("per second", "right"), ("", "left")):
        table.add_column(name, justify="right" if justify == "right" else "left")
    for name, count in now.messages_delivered.items():
        rate = (count - before.messages_delivered[name]) / seconds if before and seconds > 0 else 0.0
        table.add_row(Text(name), f"{count:,}", f"{rate:,.0f}", "" if name in now.members else "[red]gone[/]")
    held = sum(now.logs.values())
    dropped = sum(now.datagrams_rejected.values()) + now.units_overrun
    losses = (
        f"{now.retransmissions:,} retransmissions, {now.retransmission_requests:,} requests, "
        f"{now.recoveries:,} recoveries"
    )
    counters = (
        f"sent {now.messages_sent:,}, pending {readable_bytes(now.pending_bytes)}, "
        f"unread {readable_bytes(now.unread_bytes)}, "
        f"{held:,} packets held; {losses}; "
        f"received {readable_bytes(now.bytes_received)}, sent {readable_bytes(now.bytes_sent)}; {dropped:,} dropped"
    )
    return Group(table, Text(counters, style="dim"))


class StatusView:
    """Shows them on standard error until it is closed."""

    def __init__(self, stats: Callable[[], Stats]) -> None:
        self._stats, self._before = stats, stats()
        self._live = Live(console=Console(stderr=True), auto_refresh=False, transient=True)
        self._live.start()
        self._task = asyncio.ensure_future(self._show())

    def say(self, line: str) -> None:
        """Prints a line above the table."""
        self._live.console.print(Text(line), soft_wrap=True)

    def close(self) -> None:
        """Leaves the final statistics."""
        self._task.cancel()
        self._live.stop()
        Console(stderr=True).print(status(self._stats()))

    async def _show(self) -> None:
        while True:
            now = self._stats()
            self._live.update(status(now, self._before), refresh=True)
            self._before = now
            await asyncio.sleep(_EVERY)


def readable_bytes(count: int) -> str:
    """With a unit."""
    size = float(count)
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:,.0f} {unit}"
        size /= 1024
    return f"{size:,.1f} GiB"


def _time(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}"
