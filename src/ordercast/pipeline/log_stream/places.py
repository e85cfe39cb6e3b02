"""Where the logs of members are: folders, folders of folders, servers and object stores."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from ordercast.log.disk import Disk, FolderDisk
from ordercast.log.segments import segment_names
from ordercast.model.errors import ConfigError, reason_of
from ordercast.pipeline.log_stream.http_disk import HttpDisk
from ordercast.pipeline.log_stream.options import LogOptions


class Access(msgspec.Struct, frozen=True):
    """What a server asks for."""

    token_file: str | None = None
    ca_file: str | None = None


class LogPlace(msgspec.Struct, frozen=True):
    """The log of one member."""

    name: str
    """That of the member, as far as it is known: what was given, or the last part of the place."""
    place: str
    """A folder, or an address."""


class ReadableDisk(Disk, Protocol):
    """A disk that is closed when nobody reads it any more."""

    def close(self) -> None:
        """Ends connections."""
        ...


def access_of(options: LogOptions) -> Access:
    """What goes to whoever opens logs."""
    return Access(options.token_file, options.ca_file)


def places_of(options: LogOptions) -> tuple[LogPlace, ...]:
    """All logs that there are now: a folder may get those of members that join.

    Raises `ConfigError` for a folder that neither is a log nor has one, and for a log that is listed twice.
    """
    found = [each for text in options.members for each in _expanded(text)]
    _require_different(found)
    names = [each.name for each in found]
    if len(set(names)) < len(names):
        found = [LogPlace(each.place, each.place) if names.count(each.name) > 1 else each for each in found]
    return tuple(found)


def _require_different(places: Sequence[LogPlace]) -> None:
    seen: dict[str, LogPlace] = {}
    for each in places:
        where = each.place.rstrip("/") if "://" in each.place else os.path.realpath(each.place)
        if where in seen:
            raise ConfigError(
                f"members names the same log twice, {seen[where].name}={seen[where].place} and "
                f"{each.name}={each.place}: it would count as two of a majority"
            )
        seen[where] = each


def _expanded(text: str) -> list[LogPlace]:
    name, named, place = text.partition("=")
    if not named or "/" in name:
        name, place = "", text
    if "://" in place:
        scheme = place.partition("://")[0]
        if scheme == "file":
            return _expanded(f"{name}={place.removeprefix('file://')}" if name else place.removeprefix("file://"))
        return [LogPlace(name or place.rstrip("/").rpartition("/")[2].partition("?")[0], place)]
    folder = Path(place).absolute()
    if is_log(folder) or not folder.is_dir():
        return [LogPlace(name or folder.name, str(folder))]
    inside = sorted(each for each in folder.iterdir() if is_log(each))
    if not inside:
        raise ConfigError(
            f"{folder} is no log, and none of its folders is one; give the folder that a member writes with log=, or a "
            "folder of such folders"
        )
    return [LogPlace(each.name, str(each)) for each in inside]


def is_log(folder: Path) -> bool:
    """Whether a folder has a segment, or what is left of a log whose segments are gone."""
    try:
        names = [each.name for each in folder.iterdir()]
    except (NotADirectoryError, FileNotFoundError):
        return False
    except OSError as error:
        raise ConfigError(f"cannot read {folder}: {reason_of(error)}") from error
    return bool(segment_names(names)) or "manifest" in names


def open_disk(place: LogPlace, access: Access) -> ReadableDisk:
    """Raises `LogError` or `ConfigError` if there is nothing at the place."""
    if place.place.startswith(("http://", "https://")):
        return HttpDisk(place.place, _token(access), access.ca_file)
    if "://" in place.place:
        from ordercast.pipeline.log_stream.store_disk import StoreDisk  # noqa: PLC0415 (loads clients of stores)

        return StoreDisk(place.place)
    return FolderDisk(Path(place.place), write=False)


def _token(access: Access) -> str | None:
    if access.token_file is None:
        return os.environ.get("ORDERCAST_LOG_TOKEN")
    try:
        return Path(access.token_file).read_text().strip()
    except OSError as error:
        raise ConfigError(f"cannot read tokenFile {access.token_file}: {reason_of(error)}") from error
