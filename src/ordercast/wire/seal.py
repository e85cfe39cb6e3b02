"""Seals make datagrams of bodies: plain on a trusted network, encrypted and authenticated everywhere else.

Here are what both kinds have in common and the plain one; the other is in `authentication`.

A group is one or the other; datagrams of the other kind are rejected. The package `cryptography` is imported only when
there is a key, so that a group on one machine runs without it.
"""

from hashlib import sha256
from typing import ClassVar, Protocol

from ordercast.model.errors import ConfigError
from ordercast.wire.datagram import HEADER, TO_ALL, Datagram, Rejection, read_header, write_header
from ordercast.wire.keys import GroupKeys
from ordercast.wire.replay_window import ReplayWindows

_DIGEST_SIZE = 8  # of the group's name


class Seal(Protocol):
    """Makes datagrams of bodies, and opens them."""

    overhead: ClassVar[int]
    """Bytes by which a datagram is longer than its body."""

    def seal(self, flags: int, sender: int, tag: int, counter: int, body: bytes, to: int = TO_ALL) -> bytes:
        """The datagram. Counters must increase from call to call with the same sender and tag."""
        ...

    def open(self, datagram: bytes | memoryview) -> Datagram | Rejection:
        """The opened datagram, each at most once; or why it is rejected."""
        ...

    def hold(self, tag: int) -> None:
        """Counters received with this tag are not forgotten, whatever else is received, until the second call after."""
        ...

    def rotate(self, keys: GroupKeys) -> None:
        """Encrypts with the first of these keys from now on, and decrypts with any of them."""
        ...

    def apart(self) -> "Seal":
        """One for another thread, which must not use a counter that is used here, too."""
        ...


def seal_for(group: str, keys: GroupKeys | None) -> Seal:
    """Encrypts if there are keys, and is plain if there are none."""
    if keys is None:
        return UnauthenticatedSeal(group)
    try:
        from ordercast.wire.authentication import AuthenticatedSeal  # noqa: PLC0415 (only groups with a key need the package)
    except ImportError as error:
        raise ConfigError(
            "a group with a key needs the package cryptography; install it with: pip install 'ordercast[live]'"
        ) from error
    return AuthenticatedSeal(group, keys)


class UnauthenticatedSeal:
    """Plain datagrams. A digest of the group's name tells groups apart that share an address.

    Nothing is authenticated: anybody can send as a member.
    """

    overhead: ClassVar[int] = HEADER.size + _DIGEST_SIZE

    def __init__(self, group: str) -> None:
        self._group = group
        self._digest = sha256(group.encode()).digest()[:_DIGEST_SIZE]
        self._windows = ReplayWindows()
        self.hold = self._windows.hold

    def seal(self, flags: int, sender: int, tag: int, counter: int, body: bytes, to: int = TO_ALL) -> bytes:
        """The datagram."""
        return b"".join((write_header(flags, 0, sender, to, tag, counter), self._digest, body))

    def rotate(self, keys: GroupKeys) -> None:
        """Raises `ConfigError`: a group without a key has nothing to rotate."""
        del keys
        raise ConfigError("this group has no key: keys can be rotated only in a group that was opened with one")

    def apart(self) -> "UnauthenticatedSeal":
        """One for another thread."""
        return UnauthenticatedSeal(self._group)

    def open(self, datagram: bytes | memoryview) -> Datagram | Rejection:
        """The opened datagram, or why it is rejected."""
        header = read_header(datagram, 0, self.overhead)
        if isinstance(header, Rejection):
            return header
        flags, key_id, sender, to, tag, counter = header
        if key_id:
            return Rejection.KEY
        if datagram[HEADER.size : self.overhead] != self._digest:
            return Rejection.GROUP
        window = self._windows.find(tag, sender)
        if window is not None and not window.is_new(counter):
            return Rejection.REPLAYED
        self._windows.take(tag, sender, window, counter)
        return Datagram(flags, sender, tag, counter, bytes(datagram[self.overhead :]), to)
