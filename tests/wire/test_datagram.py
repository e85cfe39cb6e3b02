"""The header byte for byte, and bodies against a reader that is written another way."""

import io

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ordercast.wire import datagram
from ordercast.wire.datagram import HEADER, Rejection, pack_records, read_header, unpack_records, write_header

RECORDS = st.lists(st.binary(min_size=1, max_size=40), max_size=8)


def naive_split(body: bytes) -> list[bytes] | None:
    file, found = io.BytesIO(body), []
    while length := file.read(2):
        record = file.read(int(length.hex(), 16))
        if len(length) != 2 or not record or len(record) != int(length.hex(), 16):
            return None
        found.append(record)
    return found


def test_a_header_is_these_24_bytes() -> None:
    written = write_header(
        flags=datagram.HANDSHAKE | datagram.FROM_RELAY,
        key_id=0x21,
        sender=0x3141,
        to=0x2718,
        tag=0x5161718191A1B1C1,
        counter=0xD1E1F10212223242,
    )
    assert written.hex(" ") == "c5 01 0a 21 31 41 27 18 51 61 71 81 91 a1 b1 c1 d1 e1 f1 02 12 22 32 42"
    assert read_header(written, 0, 24) == (0x0A, 0x21, 0x3141, 0x2718, 0x5161718191A1B1C1, 0xD1E1F10212223242)


def test_flags_and_senders_have_the_documented_numbers() -> None:
    assert (datagram.ENCRYPTED, datagram.HANDSHAKE, datagram.TO_RELAY, datagram.FROM_RELAY) == (1, 2, 4, 8)
    assert (datagram.CAN_WAIT, datagram.BESIDE_RELAY) == (16, 32)
    assert (datagram.RELAY, datagram.UNKNOWN) == (0xFFFF, 0xFFFE)


@pytest.mark.parametrize(
    ("offset", "byte", "reason"),
    [
        (0, 0xC4, Rejection.NOT_ORDERCAST),
        (1, 0, Rejection.VERSION),
        (1, 2, Rejection.VERSION),
        (2, 64, Rejection.VERSION),
        (2, 128, Rejection.VERSION),
        (2, 1, Rejection.CIPHERTEXT),
    ],
)
def test_what_a_header_may_not_say(offset: int, byte: int, reason: Rejection) -> None:
    changed = bytearray(write_header(0, 0, 1, 0, 2, 3))
    changed[offset] = byte
    assert read_header(bytes(changed), 0, HEADER.size) is reason


def test_a_header_that_is_cut_short() -> None:
    whole = write_header(0, 0, 1, 0, 2, 3)
    assert read_header(b"", 0, 24) is Rejection.NOT_ORDERCAST
    for size in range(1, 24):
        assert read_header(whole[:size], 0, 24) is Rejection.TRUNCATED
    assert read_header(whole, 0, 25) is Rejection.TRUNCATED
    assert read_header(whole, datagram.ENCRYPTED, 25) is Rejection.PLAINTEXT, "its kind says more than its size"


def records_of(body: bytes) -> list[bytes]:
    records = unpack_records(body)
    assert isinstance(records, list)
    return [bytes(record) for record in records]


def test_records_stand_behind_their_lengths() -> None:
    body = pack_records([b"abc", b"z" * 258])
    assert body == b"\x00\x03abc\x01\x02" + b"z" * 258
    assert records_of(body) == [b"abc", b"z" * 258]
    assert unpack_records(b"") == []


def test_the_longest_record() -> None:
    longest = bytes(0xFFFF)
    assert records_of(pack_records([longest, b"x"])) == [longest, b"x"]


@given(RECORDS)
def test_what_is_joined_is_split_again(records: list[bytes]) -> None:
    assert records_of(pack_records(records)) == records


@given(RECORDS)
def test_a_body_is_cut_only_between_records(records: list[bytes]) -> None:
    body = pack_records(records)
    ends = {len(pack_records(records[:count])) for count in range(len(records) + 1)}
    for size in range(len(body)):
        assert isinstance(unpack_records(body[:size]), list) == (size in ends)


@given(st.binary(max_size=80) | st.lists(st.integers(0, 3), max_size=40).map(bytes))
@example(b"\x00\x00")
@example(b"\x00\x01a\x00\x00")
@example(b"\x00")
@example(b"\xff\xff")
def test_any_bytes_are_split_as_a_naive_reader_does(body: bytes) -> None:
    expected = naive_split(body)
    assert unpack_records(body) == (Rejection.MALFORMED if expected is None else expected)
