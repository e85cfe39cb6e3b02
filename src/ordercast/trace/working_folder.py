"""Folders of this machine for what needs some: their files come from URLs, and what is written goes back there."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from ordercast.model.errors import TraceError
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


@contextmanager
def read_here(places: Sequence[Location], suffix: str) -> Iterator[list[Path]]:
    """Files and folders of this machine; of those that have URLs copies, as far as names end so.

    Raises `TraceError` if there is nothing at a URL.
    """
    with ExitStack() as copies:
        yield [copies.enter_context(_copied(place, suffix)) for place in places]


@contextmanager
def _copied(place: Location, suffix: str) -> Iterator[Path]:
    if isinstance(place, RemotePath) and place.is_file():
        with TemporaryDirectory(prefix="ordercast-") as name:
            (Path(name) / place.name).write_bytes(place.read_bytes())
            yield Path(name) / place.name
        return
    with working_folder(place, suffix) as folder:
        if isinstance(place, RemotePath) and not any(folder.iterdir()):
            raise TraceError(f"there is no file *{suffix} at {place}; check the URL")
        yield folder


def _state(folder: Path) -> dict[Path, tuple[int, int]]:
    """When each file was written, and its size."""
    found = ((path, path.stat()) for path in folder.rglob("*") if path.is_file())
    return {path: (stat.st_mtime_ns, stat.st_size) for path, stat in found}
