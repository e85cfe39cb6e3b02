"""A durable log of an ordered group: what was delivered, in its order, on the disk of one member.

`read` and `read_batches` read a log without a group, `check` verifies it, `latest_snapshot` finds the application's
state, and `Log` writes. pyarrow is imported when the first batch is made.
"""

from ordercast.log.arrow import read_batches
from ordercast.log.check import LogReport, SegmentReport, check
from ordercast.log.disk import Disk, File
from ordercast.log.files import Options
from ordercast.log.format import Context, View
from ordercast.log.reader import Message, read
from ordercast.log.recovery import Tail
from ordercast.log.retention import Retention, Usage
from ordercast.log.snapshots import Place, Snapshot, latest_snapshot
from ordercast.log.writer import Log
from ordercast.model.errors import LogDamaged, LogError

__all__ = [
    "Context",
    "Disk",
    "File",
    "Log",
    "LogDamaged",
    "LogError",
    "LogReport",
    "Message",
    "Options",
    "Place",
    "Retention",
    "SegmentReport",
    "Snapshot",
    "Tail",
    "Usage",
    "View",
    "check",
    "latest_snapshot",
    "read",
    "read_batches",
]
