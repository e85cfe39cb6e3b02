"""The files of a log that `ordercast log serve` hands out, as a disk that can be read."""

import json
import ssl
from collections.abc import Sequence
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import NoReturn
from urllib.parse import urlsplit

from ordercast.model.errors import ConfigError, LogError

_PATIENCE = 20.0  # seconds for an answer
_READ_ONLY = 30  # the number of the error of a file system that cannot be written


def _refuse(*_: object) -> NoReturn:
    raise OSError(_READ_ONLY, "a log that is served can only be read")


class HttpDisk:
    """One connection, which is opened again if it was lost."""

    def __init__(self, address: str, token: str | None = None, ca_file: str | None = None) -> None:
        """`address`: as the server tells it, with or without `/log`. Raises `ConfigError` if it is none."""
        parts = urlsplit(address)
        try:
            port = parts.port
        except ValueError:
            port = -1
        if not parts.hostname or port == -1 or parts.path.strip("/") not in {"", "log"} or parts.username:
            raise ConfigError(f"{address!r} is no address of a log; give http://HOST:PORT, or https://HOST:PORT")
        self.address = address
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._connection: HTTPConnection
        if parts.scheme == "https":
            context = ssl.create_default_context(cafile=ca_file)
            self._connection = HTTPSConnection(parts.hostname, port, timeout=_PATIENCE, context=context)
        else:
            self._connection = HTTPConnection(parts.hostname, port, timeout=_PATIENCE)
        self._sizes: dict[str, int] = {}

    def __repr__(self) -> str:
        return f"<HttpDisk {self.address}>"

    def names(self) -> list[str]:
        """The names of all files that are served; their sizes are those of now."""
        answer = self._ask("/log/files")
        try:
            self._sizes = {str(each["name"]): int(each["bytes"]) for each in json.loads(answer)}
        except (ValueError, TypeError, KeyError):
            raise LogError(f"{self.address} does not answer as `ordercast log serve` does") from None
        return list(self._sizes)

    def size(self, name: str) -> int:
        """The size of a file when the names were read last."""
        if name not in self._sizes:
            self.names()
        if name not in self._sizes:
            raise FileNotFoundError(2, f"there is no {name}")
        return self._sizes[name]

    def open(self, name: str) -> "_ServedFile":
        """A file; whether it is there tells when it is read."""
        return _ServedFile(self, name)

    def part(self, name: str, start: int, size: int) -> bytes:
        """Bytes of a file from an offset on."""
        return self._ask(f"/log/{name}", f"bytes={start}-{start + size - 1}") if size > 0 else b""

    def _ask(self, path: str, wanted: str | None = None) -> bytes:
        headers = self._headers | ({"Range": wanted} if wanted else {})
        for left in (1, 0):
            try:
                self._connection.request("GET", path, headers=headers)
                answer = self._connection.getresponse()
                body = answer.read()
            except (HTTPException, OSError) as error:
                self._connection.close()
                if left and not isinstance(error, TimeoutError):
                    continue  # the server ends connections that nobody used for a while
                raise OSError(getattr(error, "errno", None) or 5, str(error) or type(error).__name__) from error
            return self._body_of(answer, body, path)
        raise AssertionError("the last attempt returns or raises")

    def _body_of(self, answer: HTTPResponse, body: bytes, path: str) -> bytes:
        match answer.status:
            case 200 | 206:
                return body
            case 416:
                return b""
            case 404:
                raise FileNotFoundError(2, f"{self.address} has no {path}")
            case 401:
                raise LogError(
                    f"{self.address} asks for a token: give the option tokenFile, or the variable ORDERCAST_LOG_TOKEN, "
                    "on every machine that reads"
                )
            case other:
                raise OSError(5, f"{self.address} answers {other} {answer.reason}")

    def close(self) -> None:
        """Ends the connection."""
        self._connection.close()

    def __del__(self) -> None:
        if hasattr(self, "_connection"):  # Spark never says that a stream has ended
            self._connection.close()

    create = rename = remove = sync = _refuse


class _ServedFile:
    def __init__(self, disk: HttpDisk, name: str) -> None:
        self._disk, self._name = disk, name

    def read(self, start: int, size: int) -> bytes:
        return self._disk.part(self._name, start, size)

    def write(self, start: int, parts: Sequence[bytes | memoryview]) -> int:
        _refuse(start, parts)

    def close(self) -> None:
        """The connection stays."""

    cut = sync = _refuse
