"""A folder of this machine for what needs one, whose files come from a URL and go back there."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from ordercast.trace.storage import Location, RemotePath, files_below


@contextmanager
def working_folder(place: Location, suffix: str = "") -> Iterator[Path]:
    """The folder itself, or a temporary copy of its files whose names end so.

    If the block succeeds, what it wrote there is put to the URL, file by file, in the order of their names.
    """
    if not isinstance(place, RemotePath):
        yield place
        return
    with TemporaryDirectory(prefix="ordercast-") as name:
        folder = Path(name)
        for inside in files_below(place, suffix):
            here = folder / inside
            here.parent.mkdir(parents=True, exist_ok=True)
            here.write_bytes((place / inside).read_bytes())
        before = _state(folder)
        yield folder
        for path, state in sorted(_state(folder).items()):
            if before.get(path) != state:
                (place / path.relative_to(folder).as_posix()).put(path)


def _state(folder: Path) -> dict[Path, tuple[int, int]]:
    """When each file was written, and its size."""
    found = ((path, path.stat()) for path in folder.rglob("*") if path.is_file())
    return {path: (stat.st_mtime_ns, stat.st_size) for path, stat in found}
