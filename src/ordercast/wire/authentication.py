"""Authentication and encryption of datagrams: AES-256-GCM, with a key derived for each sender and each tag.

The header is not encrypted, but authenticated with the body. The nonce is the counter: it must never repeat under one
key, which is why the tag, a random number of an incarnation or of a session, is part of the key's derivation, and why
`seal` refuses a counter that does not increase. So is the group's name: two groups may share a key file.
"""

from typing import ClassVar

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from ordercast.model.errors import LocalProtocolError
from ordercast.wire.datagram import ENCRYPTED, HEADER, TO_ALL, VERSION, Datagram, Rejection, read_header, write_header
from ordercast.wire.keys import KEY_SIZE, GroupKeys
from ordercast.wire.lru_map import LruMap
from ordercast.wire.replay_window import ReplayWindows

_TAG_SIZE = 16
_NONCE_SIZE = 12


class AuthenticatedSeal:
    """Encrypted and authenticated datagrams: only those with a group key can read and write them."""

    overhead: ClassVar[int] = HEADER.size + _TAG_SIZE

    def __init__(self, group: str, keys: GroupKeys) -> None:
        self._name, self._group = group, group.encode()
        self._current, self._secrets = keys.current, keys.by_id()
        self._ciphers: LruMap[tuple[int, int, int], AESGCM] = LruMap()  # by key id, tag, sender
        self._windows = ReplayWindows()
        self.hold = self._windows.hold
        self._sealed_below: dict[tuple[int, int], int] = {}  # by tag and sender: the few that we send as

    def rotate(self, keys: GroupKeys) -> None:
        """Encrypts with the first of these keys from now on, and decrypts with any of them. Counters continue."""
        self._current, self._secrets = keys.current, keys.by_id()
        self._ciphers.clear()

    def apart(self) -> "AuthenticatedSeal":
        """One for another thread, with the same keys, of which the first is that to encrypt with.

        It does not know which counters the other has used: whoever has both takes the counters of both from one place.
        """
        current = self._current
        return AuthenticatedSeal(self._name, GroupKeys({current: self._secrets[current], **self._secrets}))

    def seal(self, flags: int, sender: int, tag: int, counter: int, body: bytes, to: int = TO_ALL) -> bytes:
        """The datagram."""
        if counter < self._sealed_below.get((tag, sender), 0):
            raise LocalProtocolError(
                f"counter {counter} of sender {sender} was used before: encrypting with it again would reveal the key"
            )
        self._sealed_below[tag, sender] = counter + 1
        key_id = self._current
        cipher = self._ciphers.recall((key_id, tag, sender))
        if cipher is None:
            cipher = self._cipher(self._secrets[key_id], tag, sender)
            self._ciphers.keep((key_id, tag, sender), cipher)
        header = write_header(flags | ENCRYPTED, key_id, sender, to, tag, counter)
        return header + cipher.encrypt(counter.to_bytes(_NONCE_SIZE, "big"), body, header)

    def open(self, datagram: bytes | memoryview) -> Datagram | Rejection:
        """The opened datagram, or why it is rejected. Only authenticated datagrams leave a trace in memory."""
        header = read_header(datagram, ENCRYPTED, self.overhead)
        if isinstance(header, Rejection):
            return header
        flags, key_id, sender, to, tag, counter = header
        secret = self._secrets.get(key_id)
        if secret is None:
            return Rejection.KEY
        window = self._windows.find(tag, sender)
        if window is not None and not window.is_new(counter):
            return Rejection.REPLAYED
        known = self._ciphers.get((key_id, tag, sender))
        cipher = known or self._cipher(secret, tag, sender)
        try:
            nonce = counter.to_bytes(_NONCE_SIZE, "big")
            body = cipher.decrypt(nonce, datagram[HEADER.size :], datagram[: HEADER.size])
        except InvalidTag:
            return Rejection.FORGED
        if known is None:
            self._ciphers.keep((key_id, tag, sender), cipher)
        else:
            self._ciphers.move_to_end((key_id, tag, sender))
        self._windows.take(tag, sender, window, counter)
        return Datagram(flags & ~ENCRYPTED, sender, tag, counter, body, to)

    def _cipher(self, secret: bytes, tag: int, sender: int) -> AESGCM:
        """The cipher of what this sender sends with this tag, in this group."""
        info = b"ordercast %d" % VERSION + sender.to_bytes(2, "big") + self._group
        return AESGCM(HKDF(SHA256(), KEY_SIZE, tag.to_bytes(8, "big"), info).derive(secret))


class AuthenticatedStreamSeal:
    """One direction of a connection: each frame is encrypted, and authenticated with its number.

    The key is derived for this connection and direction, so that the numbers may be the nonces.
    """

    overhead = _TAG_SIZE
    authenticates = True

    def __init__(self, group: str, secret: bytes, context: bytes, direction: bytes) -> None:
        info = b"ordercast stream %d " % VERSION + direction + b"\0" + group.encode()
        self._cipher = AESGCM(HKDF(SHA256(), KEY_SIZE, context, info).derive(secret))
        self._frames = 0

    def seal(self, header: bytes, body: bytes | bytearray | memoryview) -> bytes:
        """The body of the next frame, as it is sent."""
        nonce = self._frames.to_bytes(_NONCE_SIZE, "big")
        self._frames += 1
        return self._cipher.encrypt(nonce, body, header)

    def open(self, header: bytes, body: bytes | bytearray | memoryview) -> bytes | None:
        """The body of the next frame; None if it is forged."""
        nonce = self._frames.to_bytes(_NONCE_SIZE, "big")
        self._frames += 1
        try:
            return self._cipher.decrypt(nonce, body, header)
        except InvalidTag:
            return None
