"""Two positions that a log must know before it reads a segment: where it begins, and its newest snapshot.

Segments are dropped only after a manifest that says so is on the disk. So those of them that come back after a crash,
in any selection, are known to be left over, and no gap between them is taken for damage. A snapshot counts only if a
manifest names it: the manifest is written after the snapshot was synced without an error.
"""

from struct import Struct

import msgspec

from ordercast.log.disk import Disk
from ordercast.log.whole_files import read_whole, with_checksum, without_checksum, write_durably
from ordercast.model.errors import LogDamaged

NAME = "manifest"
KEPT_NOTE = "note"
"""A file with the newest note, while the end of the log is being dropped."""
_MANIFEST = Struct("<4sQQ")
_MAGIC = b"OCMA"
_NONE = 2**64 - 1


class Manifest(msgspec.Struct, frozen=True):
    """Where a log begins."""

    start: int = 0
    """Segments that end at or below this position do not count."""
    snapshot: int | None = None
    """The position of the snapshot that counts."""


def encode(manifest: Manifest) -> bytes:
    """Its bytes."""
    snapshot = _NONE if manifest.snapshot is None else manifest.snapshot
    return with_checksum(_MANIFEST.pack(_MAGIC, manifest.start, snapshot))


def read_manifest(disk: Disk) -> Manifest:
    """That of a log; raises `LogDamaged` if it cannot be read: it was synced before it got its name."""
    if NAME not in disk.names():
        return Manifest()
    data = without_checksum(read_whole(disk, NAME), _MANIFEST.size)
    if data is None:
        raise LogDamaged("the manifest is changed: its checksum is wrong")
    magic, start, snapshot = _MANIFEST.unpack(data)
    if magic != _MAGIC:
        raise LogDamaged("the manifest does not begin as one does")
    return Manifest(start, None if snapshot == _NONE else snapshot)


def write_manifest(disk: Disk, manifest: Manifest) -> None:
    """Returns when it is on the disk; raises `OSError`."""
    write_durably(disk, NAME, [encode(manifest)])
