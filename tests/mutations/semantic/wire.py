"""Semantic mutants of `wire`: header, sealing, replay window, codec, checks, keys."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from ordercast.model.errors import ConfigError
from ordercast.wire import datagram, keys, unit_validation
from ordercast.wire.authentication import AuthenticatedSeal
from ordercast.wire.codec import Codec
from ordercast.wire.datagram import HEADER, Rejection
from ordercast.wire.lru_map import LruMap
from ordercast.wire.replay_window import ReplayWindow, ReplayWindows
from tests.mutations.mutation import Mutants, replace, wrap

MUTANTS = Mutants("wire.authentication")
Method = Callable[..., Any]


@MUTANTS.add("a datagram may be opened as often as it is received", "wire.replay_window")
def _accepts_replays() -> None:
    replace(ReplayWindow, "is_new", lambda *_: True)


@MUTANTS.add("a counter that is late, but was never received, is rejected", "wire.replay_window")
def _rejects_what_was_reordered() -> None:
    replace(ReplayWindow, "is_new", lambda self, counter: counter >= self._below)


@MUTANTS.add("the windows of the open session are forgotten like any other", "wire.replay_window")
def _forgets_the_session() -> None:
    replace(ReplayWindows, "hold", lambda *_: None)


@MUTANTS.add("a forged counter moves the window", "wire.authentication")
def _moves_the_window_for_forgers() -> None:
    def around(open_: Method) -> Method:
        def changed(self: AuthenticatedSeal, data: Any) -> Any:
            found = open_(self, data)
            if found is Rejection.FORGED:
                _, _, _, _, sender, _, tag, counter = HEADER.unpack_from(data)
                self._windows.take(tag, sender, self._windows.find(tag, sender), counter)
            return found

        return changed

    wrap(AuthenticatedSeal, "open", around)


@MUTANTS.add("the header is not authenticated", "wire.authentication")
def _does_not_authenticate_the_header() -> None:
    def around(cipher_of: Method) -> Method:
        class Cipher:
            def __init__(self, cipher: Any) -> None:
                self._cipher = cipher

            def encrypt(self, nonce: bytes, body: bytes, _: bytes) -> Any:
                return self._cipher.encrypt(nonce, body, None)

            def decrypt(self, nonce: bytes, body: bytes, _: bytes) -> Any:
                return self._cipher.decrypt(nonce, body, None)

        return lambda self, secret, tag, sender: Cipher(cipher_of(self, secret, tag, sender))

    wrap(AuthenticatedSeal, "_cipher", around)


@MUTANTS.add("all senders and tags share one key, and so their nonces", "wire.authentication")
def _one_key_for_all() -> None:
    wrap(AuthenticatedSeal, "_cipher", lambda cipher_of: lambda self, secret, *_: cipher_of(self, secret, 0, 0))


@MUTANTS.add("the group's name is not part of the key", "wire.authentication")
def _one_key_for_all_groups() -> None:
    def around(init: Method) -> Method:
        return lambda self, _, group_keys: init(self, "", group_keys)

    wrap(AuthenticatedSeal, "__init__", around)


@MUTANTS.add("a counter may be used twice to encrypt", "wire.authentication")
def _repeats_nonces() -> None:
    def around(seal: Method) -> Method:
        def changed(self: AuthenticatedSeal, *arguments: Any) -> Any:
            self._sealed_below.clear()
            return seal(self, *arguments)

        return changed

    wrap(AuthenticatedSeal, "seal", around)


@MUTANTS.add("unknown flags are ignored", "wire.datagram")
def _ignores_unknown_flags() -> None:
    replace_constant(datagram, "_KNOWN_FLAGS", 0xFF)


@MUTANTS.add("the last record of a body may be cut off", "wire.datagram")
def _takes_truncated_records() -> None:
    def around(unpack: Method) -> Method:
        def changed(body: bytes) -> Any:
            for size in range(len(body), -1, -1):
                found = unpack(body[:size])
                if not isinstance(found, Rejection):
                    return found
            return found

        return changed

    wrap(datagram, "unpack_records", around)


@MUTANTS.add("an error of the decoder is raised as it is", "wire.codec")
def _raises_what_the_decoder_raises() -> None:
    replace(Codec, "decode", lambda self, record: self._decode(record))


@MUTANTS.add("a set may hold nodes that are not members", "wire.unit_validation")
def _takes_strangers_in_sets() -> None:
    replace(unit_validation, "_is_set", lambda mask, _: mask >= 0)


@MUTANTS.add("vectors may have any length", "wire.unit_validation")
def _takes_vectors_of_any_length() -> None:
    replace(unit_validation, "_vector", lambda values, _: all(value >= 0 for value in values))


@MUTANTS.add("messages may be longer than their packet", "wire.unit_validation")
def _takes_lengths_beyond_the_payload() -> None:
    def around(check: Method) -> Method:
        def changed(packet: Any, nodes: int) -> Any:
            enough = bytes(max(sum(packet.lengths), len(packet.payload)) if min(packet.lengths, default=0) >= 0 else 0)
            return check(msgspec.structs.replace(packet, payload=enough), nodes)

        return changed

    wrap(unit_validation, "_packet", around)


@MUTANTS.add("tables grow without bound", "wire.lru_map")
def _never_forgets() -> None:
    def keep(self: LruMap[Any, Any], key: Any, value: Any) -> None:
        self[key] = value

    replace(LruMap, "keep", keep)


@MUTANTS.add("the last key of a file is the one to encrypt with", "wire.keys")
def _encrypts_with_the_last_key() -> None:
    def around(init: Method) -> Method:
        def changed(self: keys.GroupKeys, secrets: Mapping[int, bytes]) -> None:
            init(self, secrets)
            self.current = list(self.by_id())[-1]

        return changed

    wrap(keys.GroupKeys, "__init__", around)


@MUTANTS.add("an error names the key that is wrong", "wire.keys")
def _reveals_keys() -> None:
    def around(read: Method) -> Method:
        def changed(text: str, where: str) -> Any:
            try:
                return read(text, where)
            except ConfigError as error:
                raise ConfigError(f"{error}: {text}") from None

        return changed

    wrap(keys, "keys_from_text", around)


def replace_constant(owner: Any, name: str, value: object) -> None:
    """Gives a constant of a module another value."""
    assert hasattr(owner, name)
    setattr(owner, name, value)
