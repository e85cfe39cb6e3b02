"""Which segments a log may drop: whole ones, the oldest first, never the last one."""

from collections.abc import Sequence
from itertools import pairwise

import msgspec

from ordercast.log.segments import Segment
from ordercast.model.config import require


class Retention(msgspec.Struct, frozen=True):
    """How much of a log is kept."""

    bytes: int | None = None
    """Drop the oldest segments while all together are larger."""
    seconds: float | None = None
    """Drop segments that were complete so long ago."""
    needs_snapshot: bool = True
    """Drop only what is below a snapshot of the application's state; without, the log alone is bounded."""

    def __post_init__(self) -> None:
        require(self.bytes is None or self.bytes >= 0, f"retention: bytes must be 0 or more, not {self.bytes}")
        require(self.seconds is None or self.seconds >= 0, f"retention: seconds must be 0 or more, not {self.seconds}")


class Usage(msgspec.Struct, frozen=True):
    """What a log has on the disk."""

    segments: int
    segment_bytes: int
    snapshot_bytes: int
    first: int
    """The position of the oldest message."""
    next: int
    """The position of the next message."""
    snapshot: int | None
    """The position of the snapshot; None: there is none."""


def segments_to_drop(
    segments: Sequence[Segment], snapshot: int | None, retention: Retention, now: int, below: int
) -> int:
    """How many, from the oldest on. `below`: those before this position are dropped in any case, if they may be."""
    size = sum(each.size for each in segments)
    for count, (segment, after) in enumerate(pairwise(segments)):
        covered = snapshot is not None and after.first <= snapshot
        too_large = retention.bytes is not None and size > retention.bytes
        too_old = retention.seconds is not None and now - after.header.time > retention.seconds * 1e9
        if not (too_large or too_old or after.first <= below) or (retention.needs_snapshot and not covered):
            return count
        size -= segment.size
    return max(0, len(segments) - 1)
