"""CRC-32 as in zlib; up to nine times as fast where zlib-ng is installed, which has the same numbers."""

import zlib
from collections.abc import Callable
from importlib import import_module


def _fastest() -> Callable[..., int]:
    """The function with the arguments of `zlib.crc32`."""
    try:
        found: Callable[..., int] = import_module("zlib_ng.zlib_ng").crc32
    except ImportError:
        return zlib.crc32
    return found


crc32 = _fastest()
