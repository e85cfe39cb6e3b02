"""Logs of several members of one group: the same order, cut into other frames and segments at each."""

from collections.abc import Sequence
from pathlib import Path

from ordercast.log.disk import FolderDisk
from ordercast.log.files import LogFiles, Options
from ordercast.log.format import Packet, View
from ordercast.log.reader import read
from ordercast.log.retention import Retention
from ordercast.pipeline.log_stream.options import LogOptions, options_of
from ordercast.pipeline.log_stream.planning import LogPlanner, Part
from ordercast.pipeline.log_stream.reading import rows_of

GROUP = "orders"
MEMBERS = ("A", "B", "C")
FRAMES = {"A": 1, "B": 3, "C": 7, "D": 2, "E": 5}
"""Packets of a frame, at each member."""


def packet(number: int, size: int = 3) -> Packet:
    """The packet of this number: `size` messages, of members in turn."""
    texts = [b"%d.%d" % (number, place) + b"." * (number % 5) for place in range(size)]
    return Packet(number % 3, number * size, [len(each) for each in texts], b"".join(texts), number % 4)


def write_log(
    folder: Path,
    packets: Sequence[Packet],
    frame: int = 1,
    *,
    group: str = GROUP,
    view: View = View(1, MEMBERS),  # noqa: B008 (frozen)
    max_segment: int = 2000,
) -> Path:
    """Appends packets to the log of a member, so many in a frame; all of it is on the disk."""
    disk = FolderDisk(folder, write=True)
    log = LogFiles(disk, group, Options(max_segment=max_segment))
    if log.context.view != view:
        log.view(view)
    for start in range(0, len(packets), frame):
        log.packets(packets[start : start + frame])
    log.sync()
    log.close()
    disk.close()
    return folder


def write_logs(root: Path, packets: Sequence[Packet], *names: str, **more: object) -> Path:
    """Appends them at each of these members."""
    for name in names or MEMBERS:
        write_log(root / name, packets, FRAMES[name], **more)  # type: ignore[arg-type] # what `write_log` takes
    return root


def drop_below(folder: Path, position: int) -> None:
    disk = FolderDisk(folder, write=True)
    log = LogFiles(disk, "orders", Options(max_segment=2000, retention=Retention(needs_snapshot=False)))
    log.drop_below(position)
    log.close()
    disk.close()


def options(root: Path | str, **more: object) -> LogOptions:
    return options_of({"path": str(root), **{name: str(value) for name, value in more.items()}})


def planner(root: Path | str, **more: object) -> LogPlanner:
    return LogPlanner(options(root, **more))


Row = tuple[int, str, int, bytes]


def read_parts(parts: Sequence[Part]) -> list[Row]:
    """Position, sender, view and payload of each message."""
    found: list[Row] = []
    for part in parts:
        for rows in rows_of(part):
            columns = [rows.column(name).to_pylist() for name in ("position", "sender", "view", "payload")]
            found += zip(*columns, strict=True)
    return found


def in_log(folder: Path) -> list[Row]:
    """What `read` says that there is."""
    return [(each.position, each.sender, each.view, each.payload) for each in read(folder)]
