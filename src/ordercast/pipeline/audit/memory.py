"""Checks that a run that has to be audited by a single task fits into memory, before it is read."""

from pathlib import Path

from ordercast.model.errors import TraceError

BY_KERNEL = 250
"""Bytes that the vectorised audit needs for an event, at most."""
BY_REFERENCE = 600
"""Bytes that the reference audit needs for an event, at most."""
CHECKED_FROM = 1_000_000
"""Events: smaller runs always fit."""
_GIGABYTE = 10**9


def require_memory(run: str, events: int, bytes_each: int, *, sharing: int = 1) -> None:
    """Raises `TraceError` if so many events of a run will not fit into this process's share of the memory."""
    needed, free = events * bytes_each, free_memory() if events >= CHECKED_FROM else None
    if free is not None and needed > free // sharing:
        raise TraceError(
            f"run {run} needs a single-task audit, which takes about {needed / _GIGABYTE:.1f} GB for "
            f"{events:,} events, and {free / _GIGABYTE:.1f} GB are free"
            f"{f' for {sharing} tasks at once' if sharing > 1 else ''}; use a machine with more memory, "
            "or record deliveries only"
        )


def free_memory() -> int | None:
    """Bytes that this process can still allocate, on this machine and in its control group; None if unknown."""
    found = [free for free in (free_in_machine(), free_in_control_group()) if free is not None]
    return min(found, default=None)


def free_in_machine(meminfo: Path = Path("/proc/meminfo")) -> int | None:
    """Bytes that are available on this machine; None if it is not Linux."""
    try:
        lines = meminfo.read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")), None)


def free_in_control_group(folder: Path = Path("/sys/fs/cgroup")) -> int | None:
    """Bytes left in this process's control group; None if it has no limit."""
    try:
        limit, used = ((folder / name).read_text().strip() for name in ("memory.max", "memory.current"))
    except OSError:
        return None
    return max(0, int(limit) - int(used)) if limit.isdigit() else None
