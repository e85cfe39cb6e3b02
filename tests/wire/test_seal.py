"""What plain and sealed datagrams share, what each refuses, and the sealing computed anew from its definition."""

import hashlib
import hmac
import subprocess
import sys

import pytest
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES256
from cryptography.hazmat.primitives.ciphers.modes import GCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from hypothesis import given
from hypothesis import strategies as st

from ordercast.model.errors import LocalProtocolError
from ordercast.wire import authentication, lru_map
from ordercast.wire.authentication import AuthenticatedSeal
from ordercast.wire.datagram import FROM_RELAY, HANDSHAKE, RELAY, TO_RELAY, UNKNOWN, Datagram, Rejection
from ordercast.wire.keys import GroupKeys
from ordercast.wire.seal import Seal, UnauthenticatedSeal, seal_for
from ordercast.wire.stream_seal import StreamSeal, stream_seals
from tests.wire.tables import remembered

ONE, TWO = bytes(range(32)), bytes(range(100, 132))
KEYS = GroupKeys({1: ONE})
TAG = 0x0102030405060708
BOTH = pytest.mark.parametrize("keys", [None, KEYS], ids=["plain", "sealed"])


def changed(datagram: bytes, offset: int, byte: int) -> bytes:
    return datagram[:offset] + bytes([byte]) + datagram[offset + 1 :]


@BOTH
@pytest.mark.parametrize("flags", [0, HANDSHAKE, TO_RELAY, FROM_RELAY, HANDSHAKE | TO_RELAY | FROM_RELAY])
@pytest.mark.parametrize("sender", [0, 1, 0x1234, UNKNOWN, RELAY])
@pytest.mark.parametrize(("tag", "counter"), [(1, 0), (TAG, 77), (2**64 - 1, 2**64 - 1)])
def test_what_is_sealed_is_opened(keys: GroupKeys | None, flags: int, sender: int, tag: int, counter: int) -> None:
    for body in (b"", b"\x00\x01a", bytes(60_000)):
        here, there = seal_for("orders", keys), seal_for("orders", keys)
        datagram = here.seal(flags, sender, tag, counter, body, to=7)
        assert len(datagram) == len(body) + here.overhead
        assert there.open(datagram) == Datagram(flags, sender, tag, counter, body, to=7)


@BOTH
def test_a_view_of_a_buffer_is_opened_and_let_go(keys: GroupKeys | None) -> None:
    """A host may read the next datagram into the same buffer."""
    buffer = bytearray(seal_for("orders", keys).seal(0, 1, TAG, 0, b"body"))
    opened = seal_for("orders", keys).open(memoryview(buffer))
    buffer[:] = bytes(len(buffer))
    assert opened == Datagram(0, 1, TAG, 0, b"body")


def test_a_plain_datagram_byte_for_byte() -> None:
    group = hashlib.sha256(b"orders").digest()[:8]
    header = bytes.fromhex("c501 0400 0003 0000 0102030405060708 0000000000000009")
    assert UnauthenticatedSeal("orders").seal(TO_RELAY, 3, TAG, 9, b"body") == header + group + b"body"
    assert UnauthenticatedSeal.overhead == 32


def test_a_sealed_datagram_computed_from_its_definition() -> None:
    """HKDF as RFC 5869 writes it, for one block; and AES-GCM from the cipher and its mode."""
    header = bytes.fromhex("c501 0502 0003 0000 0102030405060708 0000000000000009")
    extracted = hmac.digest(bytes.fromhex("0102030405060708"), TWO, "sha256")
    key = hmac.digest(extracted, b"ordercast 1" + b"\x00\x03" + b"orders" + b"\x01", "sha256")
    encryptor = Cipher(AES256(key), GCM(bytes(4) + bytes.fromhex("0000000000000009"))).encryptor()
    encryptor.authenticate_additional_data(header)
    body = encryptor.update(b"body") + encryptor.finalize()
    expected = header + body + encryptor.tag
    assert AuthenticatedSeal("orders", GroupKeys({2: TWO, 1: ONE})).seal(TO_RELAY, 3, TAG, 9, b"body") == expected
    assert AuthenticatedSeal.overhead == 40


def test_no_bit_of_a_sealed_datagram_can_be_changed() -> None:
    """All key ids are known, with one secret: a changed id alone must not open either."""
    keys = GroupKeys(dict.fromkeys(range(1, 256), ONE))
    datagram = AuthenticatedSeal("orders", keys).seal(HANDSHAKE, 3, TAG, 9, b"the body")
    receiver = AuthenticatedSeal("orders", keys)
    for offset, byte in enumerate(datagram):
        for bit in range(8):
            assert isinstance(receiver.open(changed(datagram, offset, byte ^ 1 << bit)), Rejection), (offset, bit)
    for size in range(len(datagram)):
        assert isinstance(receiver.open(datagram[:size]), Rejection), size
    assert receiver.open(datagram + b"\x00") is Rejection.FORGED
    assert isinstance(receiver.open(datagram), Datagram)


def test_the_kinds_do_not_mix() -> None:
    plain, sealed = UnauthenticatedSeal("orders"), AuthenticatedSeal("orders", KEYS)
    assert sealed.open(UnauthenticatedSeal("orders").seal(0, 1, TAG, 0, b"")) is Rejection.PLAINTEXT
    assert plain.open(AuthenticatedSeal("orders", KEYS).seal(0, 1, TAG, 0, b"")) is Rejection.CIPHERTEXT


@BOTH
def test_what_is_shorter_than_every_datagram_is_truncated(keys: GroupKeys | None) -> None:
    shortest = seal_for("orders", keys).seal(0, 1, TAG, 0, b"")
    receiver = seal_for("orders", keys)
    assert {receiver.open(shortest[:size]) for size in range(1, len(shortest))} == {Rejection.TRUNCATED}
    assert isinstance(receiver.open(shortest), Datagram)


@BOTH
def test_another_version_is_dropped(keys: GroupKeys | None) -> None:
    datagram = seal_for("orders", keys).seal(0, 1, TAG, 0, b"body")
    assert seal_for("orders", keys).open(changed(datagram, 1, 2)) is Rejection.VERSION


def test_another_group_is_told_apart() -> None:
    assert (
        UnauthenticatedSeal("orders").open(UnauthenticatedSeal("prices").seal(0, 1, TAG, 0, b"body")) is Rejection.GROUP
    )
    assert (
        AuthenticatedSeal("orders", KEYS).open(AuthenticatedSeal("prices", KEYS).seal(0, 1, TAG, 0, b"body"))
        is Rejection.FORGED
    )


def test_another_key_is_told_apart() -> None:
    datagram = AuthenticatedSeal("orders", GroupKeys({2: TWO})).seal(0, 1, TAG, 0, b"body")
    assert AuthenticatedSeal("orders", KEYS).open(datagram) is Rejection.KEY
    assert AuthenticatedSeal("orders", GroupKeys({2: ONE})).open(datagram) is Rejection.FORGED
    assert AuthenticatedSeal("orders", KEYS).open(changed(datagram, 3, 0)) is Rejection.KEY
    plain = UnauthenticatedSeal("orders").seal(0, 1, TAG, 0, b"body")
    assert UnauthenticatedSeal("orders").open(changed(plain, 3, 1)) is Rejection.KEY


def test_each_sender_and_each_tag_has_its_own_key() -> None:
    """The same body under the same counter: where two keys were the same, so would the bytes be."""
    sealed = AuthenticatedSeal("orders", KEYS)
    bodies = {sealed.seal(0, sender, tag, 0, bytes(16))[24:40] for sender in range(5) for tag in range(5)}
    assert len(bodies) == 25


@BOTH
def test_nothing_is_opened_twice(keys: GroupKeys | None) -> None:
    sender, receiver = seal_for("orders", keys), seal_for("orders", keys)
    sent = [sender.seal(0, 1, TAG, counter, b"body") for counter in range(3)]
    assert isinstance(receiver.open(sent[2]), Datagram)
    assert isinstance(receiver.open(sent[0]), Datagram)
    assert receiver.open(sent[2]) is Rejection.REPLAYED
    assert receiver.open(sent[0]) is Rejection.REPLAYED
    assert isinstance(receiver.open(sent[1]), Datagram)
    for other in (sender.seal(0, 2, TAG, 0, b"body"), sender.seal(0, 1, TAG + 1, 0, b"body")):
        assert isinstance(receiver.open(other), Datagram), "each sender and tag has a window of its own"


def test_a_forger_neither_moves_the_window_nor_stays_in_memory() -> None:
    sender, forger, receiver = (
        AuthenticatedSeal("orders", KEYS),
        AuthenticatedSeal("orders", GroupKeys({1: TWO})),
        AuthenticatedSeal("orders", KEYS),
    )
    assert isinstance(receiver.open(sender.seal(0, 1, TAG, 0, b"body")), Datagram)
    for tag, counter in ((TAG, 2**64 - 1), (TAG + 1, 0)):
        assert receiver.open(forger.seal(0, 1, tag, counter, b"body")) is Rejection.FORGED
    assert isinstance(receiver.open(sender.seal(0, 1, TAG, 1, b"body")), Datagram)
    assert remembered(receiver) == 1


def test_a_group_goes_from_one_key_to_the_next() -> None:
    both = GroupKeys({1: ONE, 2: TWO})
    sender, receiver = AuthenticatedSeal("orders", KEYS), AuthenticatedSeal("orders", both)
    old = sender.seal(0, 1, TAG, 0, b"body")
    late = sender.seal(0, 1, TAG, 1, b"body")
    sender.rotate(GroupKeys({2: TWO, 1: ONE}))
    new = sender.seal(0, 1, TAG, 2, b"body")
    assert (old[3], new[3]) == (1, 2)
    assert isinstance(receiver.open(old), Datagram)
    assert isinstance(receiver.open(new), Datagram)
    receiver.rotate(GroupKeys({2: TWO}))
    assert receiver.open(new) is Rejection.REPLAYED, "the window outlives the keys"
    assert receiver.open(late) is Rejection.KEY
    assert isinstance(receiver.open(sender.seal(0, 1, TAG, 3, b"body")), Datagram)


def test_a_key_with_an_old_id_and_a_new_secret_counts_at_once() -> None:
    sender, receiver = AuthenticatedSeal("orders", KEYS), AuthenticatedSeal("orders", KEYS)
    assert isinstance(receiver.open(sender.seal(0, 1, TAG, 0, b"body")), Datagram)
    receiver.rotate(GroupKeys({1: TWO}))
    assert receiver.open(sender.seal(0, 1, TAG, 1, b"body")) is Rejection.FORGED


def test_a_nonce_is_never_used_twice() -> None:
    sealed = AuthenticatedSeal("orders", KEYS)
    sealed.seal(0, 1, TAG, 5, b"body")
    for counter in (5, 4, 0):
        with pytest.raises(LocalProtocolError, match=f"counter {counter} of sender 1"):
            sealed.seal(0, 1, TAG, counter, b"another")
    sealed.rotate(GroupKeys({1: ONE, 2: TWO}))
    with pytest.raises(LocalProtocolError):
        sealed.seal(0, 1, TAG, 5, b"another")
    sealed.seal(0, 1, TAG, 6, b"another")


@BOTH
def test_memory_is_bounded_and_keeps_who_is_heard(keys: GroupKeys | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lru_map, "REMEMBERED", 8)
    sender, receiver = seal_for("orders", keys), seal_for("orders", keys)
    first = sender.seal(0, 1, TAG, 0, b"body")
    assert isinstance(receiver.open(first), Datagram)
    for other in range(30):
        assert isinstance(receiver.open(sender.seal(0, 1, other, 0, b"body")), Datagram)
        assert isinstance(receiver.open(sender.seal(0, 1, TAG, other + 1, b"body")), Datagram)
    assert receiver.open(first) is Rejection.REPLAYED
    assert 1 <= remembered(receiver) <= 8
    assert remembered(sender) <= 8


@BOTH
def test_nobody_can_make_us_forget_what_came_in_the_session(
    keys: GroupKeys | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody who kept real datagrams of many earlier lives says them all again, and then one of the session."""
    monkeypatch.setattr(lru_map, "REMEMBERED", 8)
    sender, receiver = seal_for("orders", keys), seal_for("orders", keys)
    before = sender.seal(0, 1, TAG, 0, b"said before it was known that this is the session")
    assert isinstance(receiver.open(before), Datagram)
    receiver.hold(TAG)
    after = [sender.seal(0, member, TAG, 1, b"body") for member in range(3)]
    for each in after:
        assert isinstance(receiver.open(each), Datagram)
    for life in range(100):
        assert isinstance(receiver.open(sender.seal(HANDSHAKE, 1, life, 0, b"old")), Datagram)
    assert [receiver.open(each) for each in (before, *after)] == [Rejection.REPLAYED] * 4


def test_the_key_of_a_sender_that_is_heard_is_derived_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A derivation costs more than opening a datagram does; so whoever sent last keeps its place among the keys."""
    derived: list[bytes] = []

    def counted(algorithm: SHA256, length: int, salt: bytes, info: bytes) -> HKDF:
        derived.append(salt)
        return HKDF(algorithm, length, salt, info)

    monkeypatch.setattr(authentication, "HKDF", counted)
    monkeypatch.setattr(lru_map, "REMEMBERED", 2)
    sender, receiver, strangers = (AuthenticatedSeal("orders", KEYS) for _ in range(3))
    sent = [sender.seal(0, 1, TAG, counter, b"body") for counter in range(5)]
    assert len(derived) == 1
    others = [strangers.seal(0, 1, tag, 0, b"body") for tag in range(5)]
    derived.clear()
    for ours, other in zip(sent, others, strict=True):
        assert isinstance(receiver.open(ours), Datagram)
        assert isinstance(receiver.open(other), Datagram)
    assert derived.count(TAG.to_bytes(8, "big")) == 1


def test_forgers_cannot_choose_what_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """What they send under a tag does not make its window one that was used lately."""
    monkeypatch.setattr(lru_map, "REMEMBERED", 8)
    sender, forger, receiver = (
        AuthenticatedSeal("orders", KEYS),
        AuthenticatedSeal("orders", GroupKeys({1: TWO})),
        AuthenticatedSeal("orders", KEYS),
    )
    ours = sender.seal(0, 1, TAG, 0, b"body")
    for old in range(7):
        receiver.open(sender.seal(0, 1, old, 0, b"body"))
    assert isinstance(receiver.open(ours), Datagram)
    for old in range(7):
        assert receiver.open(forger.seal(0, 1, old, 1, b"body")) is Rejection.FORGED
    for new in range(100, 107):
        receiver.open(sender.seal(0, 1, new, 0, b"body"))
    assert receiver.open(ours) is Rejection.REPLAYED


# What may be done to a datagram on its way: cut, lengthened, and bytes changed, most of them in the header.
CHANGES = st.lists(st.tuples(st.integers(0, 30) | st.integers(0, 70), st.integers(0, 255)), max_size=4)
MUTATIONS = st.tuples(st.integers(0, 80), st.binary(max_size=4), CHANGES)


def mutated(datagram: bytes, mutation: tuple[int, bytes, list[tuple[int, int]]]) -> bytes:
    kept, more, changes = mutation
    result = bytearray(datagram[:kept] + more)
    for offset, byte in changes:
        if offset < len(result):
            result[offset] = byte
    return bytes(result)


@BOTH
@given(data=st.data())
def test_whatever_arrives_raises_nothing(keys: GroupKeys | None, data: st.DataObject) -> None:
    """And what is opened is what its own bytes say: sealed again it gives them back, and none comes twice."""
    sender, receiver, again = (seal_for("orders", keys) for _ in range(3))
    real = [sender.seal(HANDSHAKE, 3, TAG, counter, b"\x00\x06record") for counter in range(3)]
    mutations = st.builds(mutated, st.sampled_from(real), MUTATIONS)
    random = st.binary(max_size=90) | st.binary(max_size=90).map(lambda rest: b"\xc5\x01" + rest)
    opened: dict[bytes, Datagram] = {}
    for datagram in data.draw(st.lists(mutations | random | st.sampled_from(real), max_size=12)):
        result = receiver.open(datagram)
        if isinstance(result, Datagram):
            assert datagram not in opened
            opened[datagram] = result
    for datagram, result in sorted(opened.items(), key=lambda item: item[1].counter):
        assert again.seal(result.flags, result.sender, result.tag, result.counter, result.body, result.to) == datagram
        assert keys is None or datagram in real


def test_a_plain_group_runs_without_the_package_that_seals() -> None:
    program = """
import sys
sys.modules["cryptography"] = None  # as if it were not installed
from ordercast.model.errors import ConfigError
from ordercast.wire.keys import GroupKeys
from ordercast.wire.seal import seal_for
datagram = seal_for("orders", None).seal(0, 1, 2, 3, b"body")
print(seal_for("orders", None).open(datagram).body)
try:
    seal_for("orders", GroupKeys({1: bytes(32)}))
except ConfigError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)  # noqa: S603
    body, sentence = done.stdout.splitlines()
    assert body == "b'body'"
    assert "pip install 'ordercast[live]'" in sentence


def test_both_fulfil_the_one_interface() -> None:
    both: list[Seal] = [UnauthenticatedSeal("orders"), AuthenticatedSeal("orders", KEYS)]
    assert [type(seal_for("orders", keys)) for keys in (None, KEYS)] == [type(each) for each in both]


# --- connections ---


def stream(
    keys: GroupKeys | None, *, context: bytes = b"context", group: str = "orders"
) -> tuple[StreamSeal, StreamSeal]:
    found = stream_seals(group, keys, keys.current if keys else 0, context, (b"one", b"other"))
    assert found is not None
    one, other = found
    return one, other


@pytest.mark.parametrize("keys", [GroupKeys({3: b"k" * 32}), None])
def test_frames_of_a_connection_open_in_their_order(keys: GroupKeys | None) -> None:
    sends, receives = stream(keys)[0], stream(keys)[0]
    for body in (b"", b"first", b"second"):
        sealed = sends.seal(b"header", body)
        assert len(sealed) == len(body) + sends.overhead
        assert receives.open(b"header", memoryview(sealed)) == body


def test_a_frame_does_not_open_anywhere_else() -> None:
    keys = GroupKeys({3: b"k" * 32})
    sealed = stream(keys)[0].seal(b"header", b"body")
    others = {
        "direction": stream(keys)[1],
        "connection": stream(keys, context=b"another")[0],
        "group": stream(keys, group="others")[0],
        "key": stream(GroupKeys({3: b"o" * 32}))[0],
    }
    assert {name: seal.open(b"header", sealed) for name, seal in others.items()} == dict.fromkeys(others)
    receives = stream(keys)[0]
    assert receives.open(b"another header", sealed) is None
    assert receives.open(b"header", sealed) is None  # it would have been the first frame


def test_a_connection_needs_a_key_that_is_known() -> None:
    assert stream_seals("orders", GroupKeys({3: b"k" * 32}), 4, b"", (b"one",)) is None
    assert stream_seals("orders", GroupKeys({3: b"k" * 32}), 0, b"", (b"one",)) is None
    assert stream_seals("orders", None, 3, b"", (b"one",)) is None


@BOTH
def test_one_for_another_thread_is_of_the_same_group(keys: GroupKeys | None) -> None:
    beside = seal_for("orders", keys).apart()
    assert seal_for("orders", keys).open(beside.seal(0, 1, TAG, 0, b"body")) == Datagram(0, 1, TAG, 0, b"body")
