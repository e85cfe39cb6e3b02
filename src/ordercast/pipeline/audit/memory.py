"""Whether a run that has to be judged whole fits into memory. It is asked before: afterwards nobody could say it."""

from pathlib import Path

from ordercast.model.errors import TraceError

BY_KERNEL = 250
"""Bytes that an event takes, at most, when a run is judged by array operations."""
BY_REFERENCE = 600
"""And by the reference audit, which has an object for everything."""
_WORTH_ASKING = 1_000_000  # events
_GIGABYTE = 10**9


def require_room(run: str, events: int, bytes_each: int) -> None:
    """Raises `TraceError` if so many events of a run, judged together, will not fit."""
    needed, free = events * bytes_each, free_memory() if events >= _WORTH_ASKING else None
    if free is not None and needed > free:
        raise TraceError(
            f"run {run} has to be judged whole, which takes about {needed / _GIGABYTE:.1f} GB for {events:,} events, "
            f"and {free / _GIGABYTE:.1f} GB are free here; judge it on a machine with more, or record deliveries only"
        )


def free_memory() -> int | None:
    """Bytes that this process may still take, on this machine and in its control group; None if nobody says."""
    found = [free for free in (_free_in_machine(), _free_in_group()) if free is not None]
    return min(found, default=None)


def _free_in_machine() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:  # no Linux
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")), None)


def _free_in_group(folder: Path = Path("/sys/fs/cgroup")) -> int | None:
    try:
        most, used = ((folder / name).read_text().strip() for name in ("memory.max", "memory.current"))
    except OSError:
        return None
    return max(0, int(most) - int(used)) if most.isdigit() else None
