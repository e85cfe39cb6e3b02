"""The messages of a log as Arrow record batches. pyarrow is imported when the first one is made."""

from array import array
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING

from ordercast.log.disk import FolderDisk
from ordercast.log.reader import LoggedFrame, frames_of
from ordercast.model.config import require

if TYPE_CHECKING:
    import pyarrow as pa

_MAX_BYTES = 1 << 30  # offsets of a column of binary values have 32 bits


def read_batches(
    folder: Path | str, start: int | None = None, *, stop: int | None = None, rows: int = 65536
) -> Iterator["pa.RecordBatch"]:
    """The messages of a log as batches of about so many rows; `start` and `stop` as those of `read`.

    The columns are position (int64), sender (string), payload (binary), priority (uint8) and view (int64). The same
    positions are the same rows at every member of a group.
    """
    require(rows >= 1, f"rows must be 1 or more, not {rows}")
    disk = FolderDisk(Path(folder), write=False)
    return _batches(frames_of(disk, start), start or 0, stop, rows)


def _batches(frames: Iterator[LoggedFrame], start: int, stop: int | None, rows: int) -> Iterator["pa.RecordBatch"]:
    gathered = _Rows()
    for logged in frames:
        if stop is not None and logged.frame.header.first >= stop:
            break
        gathered.add(logged, start, stop)
        if len(gathered.lengths) >= rows or gathered.size >= _MAX_BYTES:
            yield gathered.batch()
            gathered = _Rows()
    if gathered.lengths:
        yield gathered.batch()


class _Rows:
    """Rows of several frames: small frames, each made to arrays by itself, would cost twenty times as much."""

    def __init__(self) -> None:
        self._positions: list[range] = []
        self._senders: list[str] = []
        self._priorities = bytearray()
        self._views: list[int] = []
        self._payloads: list[memoryview] = []
        self.lengths = array("i")
        self.size = 0

    def add(self, logged: LoggedFrame, start: int, stop: int | None) -> None:
        frame = logged.frame
        header = frame.header
        skipped = max(0, start - header.first)
        end = header.messages if stop is None else min(header.messages, stop - header.first)
        lengths = frame.lengths()
        before, kept = sum(lengths[:skipped]), lengths[skipped:end]
        size = sum(kept)
        message = 0
        for _, count, _, _, source, priority in frame.records():
            rows = min(message + count, end) - max(message, skipped)
            self._senders += [logged.sender(source)] * rows  # none, if it is below 1
            self._priorities += bytes([priority]) * rows
            message += count
        self._positions.append(range(header.first + skipped, header.first + end))
        self._views += [header.view] * len(kept)
        self._payloads.append(frame.payloads[before : before + size])
        self.lengths.extend(kept.tolist())
        self.size += size

    def batch(self) -> "pa.RecordBatch":
        import pyarrow as pa  # noqa: PLC0415 (it takes 40 MiB, and whoever reads messages needs none of it)

        offsets = array("i", accumulate(self.lengths, initial=0))
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(b"".join(self._payloads))]
        columns = {
            "position": pa.array([each for some in self._positions for each in some], pa.int64()),
            "sender": pa.array(self._senders, pa.string()),
            "payload": pa.Array.from_buffers(pa.binary(), len(self.lengths), buffers),
            "priority": pa.Array.from_buffers(
                pa.uint8(), len(self.lengths), [None, pa.py_buffer(bytes(self._priorities))]
            ),
            "view": pa.array(self._views, pa.int64()),
        }
        return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))
