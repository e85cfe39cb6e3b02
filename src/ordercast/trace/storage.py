"""Where traces are kept: folders of this machine, or of any storage that has a URL.

`location("s3://bucket/runs")` is a `RemotePath`, which has the few methods of `Path` that traces need; everything
without a scheme, and `file:`, is a `Path`. Arrow's file systems are used (`s3:`, `s3a:`, `gs:`, `hdfs:`, `abfss:`), and
fsspec for what Arrow does not have, if it is installed. Credentials are found as by other programs, in the environment
or in their files; `?endpoint_override=HOST:PORT&scheme=http&region=R` names another server for S3, as
`AWS_ENDPOINT_URL` does.

A file appears when it is complete: an object is put whole; where there are files, as on `hdfs:`, it is written under a
name that readers ignore, and renamed. Nothing is locked there.
"""

import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit
from uuid import uuid4

from ordercast.model.errors import ConfigError, TraceError
from ordercast.trace.small_files import write_atomically

_URL = re.compile(r"([a-z][a-z0-9+.-]+):/")
_UNFINISHED = ".unfinished"
_SETTINGS = (
    *("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_REGION"),
    *("AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"),
)
"""Names in the environment: where one of them changes, a file system that was opened is not used any more."""
_OBJECTS = frozenset({"s3", "gcs", "abfs"})  # Arrow's names of storages without real folders


@dataclass(frozen=True, order=True)
class RemotePath:
    """A path of a storage that has a URL."""

    scheme: str
    path: str
    """Without the scheme: the bucket and the key, or the host and the path."""
    options: str = ""
    """What stood behind a question mark."""

    def __str__(self) -> str:
        return f"{self.scheme}://{self.path}" + (f"?{self.options}" if self.options else "")

    def __truediv__(self, name: str | PurePosixPath) -> "RemotePath":
        return RemotePath(self.scheme, f"{self.path.rstrip('/')}/{name}", self.options)

    @property
    def name(self) -> str:
        """The last part."""
        return PurePosixPath(self.path).name

    @property
    def parent(self) -> "RemotePath":
        """The folder that it is in."""
        return RemotePath(self.scheme, str(PurePosixPath(self.path).parent), self.options)

    def absolute(self) -> "RemotePath":
        """Itself: a URL means the same everywhere."""
        return self

    def exists(self) -> bool:
        """Whether there is something."""
        return self.is_file() or self.is_dir()

    def is_file(self) -> bool:
        """Whether it is a file."""
        return bool(self._info().is_file)

    def is_dir(self) -> bool:
        """Whether it is a folder, or some objects begin with it."""
        return str(self._info().type.name) == "Directory"

    def files(self, *, recursive: bool) -> Iterator[tuple[PurePosixPath, "RemotePath"]]:
        """The files below it, each with its path from here."""
        for inside, _ in self.listed(recursive=recursive):
            yield inside, self / inside

    def listed(self, *, recursive: bool) -> Iterator[tuple[PurePosixPath, int]]:
        """The paths of the files below it, from here, each with when it was written, in nanoseconds."""
        from pyarrow.fs import FileSelector  # noqa: PLC0415 - only where there is a URL

        _, below = self._opened()
        for info in self._asked(lambda path: FileSelector(path, recursive=recursive, allow_not_found=True)):
            if info.is_file:
                yield PurePosixPath(info.path).relative_to(below), int(info.mtime_ns or 0)

    def open(self) -> Any:
        """A file of Arrow, to be read at any place."""
        filesystem, path = self._opened()
        return filesystem.open_input_file(path)

    def read_bytes(self) -> bytes:
        """All of a file."""
        with self.open() as file:
            return bytes(file.read())

    def read_text(self) -> str:
        """All of a file, in UTF-8."""
        return self.read_bytes().decode()

    def write_bytes(self, content: bytes) -> None:
        """Replaces a file."""
        with self._replaced() as file:
            file.write(content)

    def write_text(self, text: str) -> None:
        """Replaces a file, in UTF-8."""
        self.write_bytes(text.encode())

    def put(self, source: Path) -> None:
        """Replaces a file by a complete one of this machine."""
        with source.open("rb") as file, self._replaced() as there:
            shutil.copyfileobj(file, there, 1 << 22)

    @contextmanager
    def _replaced(self) -> Iterator[Any]:
        """A stream to this file, which appears when the stream ends: objects do; a file gets its name then."""
        self.mkdir_of_parent()
        filesystem, path = self._opened()
        is_object = filesystem.type_name in _OBJECTS
        written = path if is_object else str(PurePosixPath(path).with_name(f"_{self.name}.{uuid4().hex}{_UNFINISHED}"))
        try:
            with filesystem.open_output_stream(written) as file:
                yield file
            if not is_object:
                filesystem.move(written, path)
        except BaseException:  # closing the stream has put what there was, and there is no way to end it otherwise
            with suppress(Exception):
                filesystem.delete_file(written)
            raise

    def remove_folder(self) -> None:
        """Removes a folder and all that is in it, if it is there."""
        filesystem, path = self._opened()
        with suppress(FileNotFoundError):
            filesystem.delete_dir(path)

    def unlink(self, *, missing_ok: bool = False) -> None:
        """Removes a file."""
        filesystem, path = self._opened()
        try:
            filesystem.delete_file(path)
        except FileNotFoundError:
            if not missing_ok:
                raise

    def mkdir_of_parent(self) -> None:
        """Makes the folder that it is in, where there are folders."""
        filesystem, path = self.parent._opened()  # noqa: SLF001, its own kind
        if filesystem.type_name not in _OBJECTS:
            filesystem.create_dir(path, recursive=True)

    def size(self) -> int:
        """The bytes of a file; raises `FileNotFoundError`."""
        info = self._info()
        if not info.is_file:
            raise FileNotFoundError(2, f"there is no file {self}")
        return int(info.size)

    def modified(self) -> int:
        """When it was written, in nanoseconds."""
        return int(self._info().mtime_ns or 0)

    def _info(self) -> Any:
        return self._asked(lambda path: path)

    def _asked(self, what: Callable[[str], Any]) -> Any:
        """What the storage says about a path, or all that is selected by it."""
        filesystem, path = self._opened()
        try:
            return filesystem.get_file_info(what(path))
        except OSError as error:
            why = " ".join(str(error).split())
            raise TraceError(f"cannot reach {self}: {why}; check the URL, the network and the credentials") from error

    def _opened(self) -> tuple[Any, str]:
        bucket, _, _ = self.path.partition("/")
        settings = tuple(os.environ.get(name) for name in _SETTINGS)
        filesystem, inside_host = _filesystem(self.scheme, bucket, self.options, settings)
        return filesystem, self.path.partition("/")[2] if inside_host else self.path


Location = Path | RemotePath
"""Where something is."""


def location(text: str | Path | RemotePath) -> Location:
    """The location that a path or a URL names; `ConfigError` for a URL that cannot be."""
    if not isinstance(text, str):
        return text
    found = _URL.match(text)
    if found is None or (found[1] != "file" and Path(text).exists()):
        return Path(text)
    parts = urlsplit(text)
    if parts.scheme == "file":
        return Path(unquote(parts.path))
    if not parts.netloc:
        raise ConfigError(f"{text} names no bucket or host; a URL is like {parts.scheme}://BUCKET/FOLDER")
    scheme = "s3" if parts.scheme in {"s3a", "s3n"} else parts.scheme
    return RemotePath(scheme, f"{parts.netloc}{parts.path}".rstrip("/"), parts.query)


def readable(path: Location) -> Path | Any:
    """What Arrow reads a file from."""
    return path if isinstance(path, Path) else path.open()


def files_below(folder: Location, suffix: str) -> list[PurePosixPath]:
    """The paths of the files below a folder whose names end so, from there and in their order."""
    if isinstance(folder, RemotePath):
        return sorted(inside for inside, _ in folder.files(recursive=True) if inside.name.endswith(suffix))
    found = (path.relative_to(folder) for path in folder.rglob(f"*{suffix}") if path.is_file())
    return sorted(PurePosixPath(path.as_posix()) for path in found)


def files_by_time(folder: Location, suffix: str) -> list[PurePosixPath]:
    """The same in the order in which they were written; those of one instant in the order of their names."""
    if isinstance(folder, RemotePath):
        written = {inside: at for inside, at in folder.listed(recursive=True) if inside.name.endswith(suffix)}
    else:
        written = {}
        for inside in files_below(folder, suffix):
            with suppress(FileNotFoundError):  # it is gone again
                written[inside] = modified(folder / inside)
    return sorted(written, key=lambda inside: (written[inside], inside))


def is_empty(folder: Location) -> bool:
    """Whether there is nothing in a folder, or no such folder."""
    if isinstance(folder, RemotePath):
        return next(iter(folder.files(recursive=True)), None) is None
    return not folder.is_dir() or next(folder.iterdir(), None) is None


def write_whole(path: Location, content: bytes) -> None:
    """Writes a small file completely or not at all."""
    if isinstance(path, RemotePath):
        path.write_bytes(content)
    else:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, content)


def names_in(folder: Location) -> set[str]:
    """The names of the files in a folder; none if there is no such folder."""
    if isinstance(folder, RemotePath):
        return {inside.name for inside, _ in folder.files(recursive=False)}
    try:
        return {entry.name for entry in os.scandir(folder)}
    except FileNotFoundError:
        return set()


def remove_folder(folder: Location) -> None:
    """Removes a folder and all that is in it, as far as it is there and may be removed."""
    if isinstance(folder, RemotePath):
        with suppress(OSError):
            folder.remove_folder()
    else:
        shutil.rmtree(folder, ignore_errors=True)


def modified(path: Location) -> int:
    """When a file was written, in nanoseconds."""
    return path.stat().st_mtime_ns if isinstance(path, Path) else path.modified()


@lru_cache(maxsize=16)
def _filesystem(scheme: str, host: str, options: str, settings: tuple[str | None, ...]) -> tuple[Any, bool]:
    """The file system of a URL, and whether its paths are without the host; `settings`: of the environment."""
    del settings  # what is kept for other ones is not taken
    from pyarrow import fs  # noqa: PLC0415 - only where there is a URL

    if scheme == "s3":
        return _s3(dict(parse_qsl(options))), False
    url = f"{scheme}://{host}/" + (f"?{options}" if options else "")
    try:
        filesystem, inside = fs.FileSystem.from_uri(url)
    except (OSError, ValueError, NotImplementedError) as error:
        return _by_fsspec(scheme, error), False
    return filesystem, not inside.strip("/").startswith(host)


def _s3(options: dict[str, str]) -> Any:
    from pyarrow import fs  # noqa: PLC0415

    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or "us-east-1"
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    if endpoint and "endpoint_override" not in options:
        parts = urlsplit(endpoint)
        options = {"endpoint_override": parts.netloc, "scheme": parts.scheme, **options}
    try:
        return fs.S3FileSystem(allow_delayed_open=True, **{"region": region, **options})  # small files in one request
    except TypeError as error:
        raise ConfigError(
            f"invalid options of an S3 URL: {error}; known are endpoint_override, scheme, region"
        ) from error


def _by_fsspec(scheme: str, reason: Exception) -> Any:
    from pyarrow import fs  # noqa: PLC0415

    try:
        fsspec = import_module("fsspec")

        return fs.PyFileSystem(fs.FSSpecHandler(fsspec.filesystem(scheme)))
    except (ImportError, ValueError) as error:
        why = " ".join(str(reason).split())
        raise ConfigError(
            f"{scheme}:// cannot be opened: {why}; and fsspec has nothing for it ({error}). Install fsspec with the "
            f"package for {scheme}, or mount it as a folder"
        ) from error
