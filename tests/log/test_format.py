"""The bytes of frames and headers: what is built is read again, and what is changed is noticed."""

import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ordercast.log.checksum import crc32
from ordercast.log.format import (
    NO_HASH,
    Context,
    Frame,
    FrameBuilder,
    Kind,
    Packet,
    SegmentHeader,
    View,
    decode_segment_header,
    encode_segment_header,
    read_frame,
)
from ordercast.model.errors import LogDamaged, LogError
from tests.log.histories import next_hash
from tests.log.logs import packet

PACKETS = st.lists(
    st.builds(
        lambda source, first, messages, priority: Packet(
            source, first, [len(each) for each in messages], b"".join(messages), priority
        ),
        st.integers(0, 2**16 - 1),
        st.integers(0, 2**64 - 1),
        st.lists(st.binary(max_size=30), min_size=1, max_size=5),
        st.integers(0, 255),
    ),
    min_size=1,
    max_size=6,
)
HEADER = SegmentHeader(17, b"h" * 16, 99, Context("orders", View(3, ("A", "Ö")), b"note"), 5, 777, 123456789)


def frame_of(packets: list[Packet], salt: int = 9) -> tuple[bytes, FrameBuilder]:
    builder = FrameBuilder(salt, 40, b"x" * 16)
    parts, size = builder.packets(packets, view=3, durable=11, time=-5)
    data = b"".join(parts)
    assert len(data) == size
    assert size % 8 == 0
    return data, builder


def good(data: bytes, salt: int = 9) -> Frame:
    found = read_frame(memoryview(data), 0, salt)
    assert isinstance(found, Frame), found
    return found


@settings(max_examples=30, deadline=None)
@given(PACKETS)
def test_a_frame_is_read_as_it_was_built(packets: list[Packet]) -> None:
    data, builder = frame_of(packets)
    frame = good(data)
    header = frame.header
    assert (header.kind, header.first, header.view, header.durable, header.time) == (Kind.PACKETS, 40, 3, 11, -5)
    assert header.hash == b"x" * 16
    read = list(frame.packets())
    assert [(p.source, p.first, list(p.lengths), bytes(p.payload), p.priority) for p in read] == [
        (p.source, p.first, list(p.lengths), p.payload, p.priority) for p in packets
    ]
    whole = [(p.source, p.priority, size) for p in packets for size in p.lengths]
    assert [(source, priority, len(text)) for source, priority, text in frame.messages()] == whole
    assert b"".join(text for _, _, text in frame.messages()) == b"".join(bytes(p.payload) for p in packets)
    assert header.next == builder.next == 40 + len(whole)


@settings(max_examples=15, deadline=None)
@given(PACKETS)
def test_the_running_hash_does_not_depend_on_how_frames_are_cut(packets: list[Packet]) -> None:
    together, apart = FrameBuilder(1, 0, NO_HASH), FrameBuilder(2, 0, NO_HASH)
    parts, _ = together.packets(packets, view=0, durable=0, time=0)
    expected = NO_HASH
    places = []
    position = 0
    for each in packets:
        apart.packets([each], view=7, durable=1, time=2)
        expected = next_hash(expected, each)
        position += len(each.lengths)
        places.append((position, expected))
    assert together.hash == apart.hash == expected
    assert list(good(b"".join(parts), 1).places()) == places


def test_the_running_hash_tells_messages_apart_that_are_cut_otherwise() -> None:
    one, other = FrameBuilder(1, 0, NO_HASH), FrameBuilder(1, 0, NO_HASH)
    one.packets([Packet(0, 0, [1, 2], b"abc")], view=0, durable=0, time=0)
    other.packets([Packet(0, 0, [2, 1], b"abc")], view=0, durable=0, time=0)
    assert one.hash != other.hash


def test_every_changed_bit_of_a_frame_is_noticed() -> None:
    data, _ = frame_of([packet(1), packet(2)])
    for bit in range(8 * len(data)):
        changed = bytearray(data)
        changed[bit // 8] ^= 1 << bit % 8
        assert isinstance(read_frame(memoryview(bytes(changed)), 0, 9), str), bit


@pytest.mark.parametrize("kind", [Kind.VIEW, Kind.NOTE])
def test_views_and_notes_are_read_and_every_changed_bit_is_noticed(kind: Kind) -> None:
    builder = FrameBuilder(9, 40, NO_HASH)
    if kind == Kind.VIEW:
        parts, _ = builder.view(View(8, ("A", "B")), durable=1, time=2)
    else:
        parts, _ = builder.note(b"promise", view=8, durable=1, time=2)
    data = b"".join(parts)
    frame = good(data)
    assert frame.header.view == 8
    assert (frame.header.first, frame.header.next, builder.next) == (40, 40, 40)
    assert frame.view() == View(8, ("A", "B")) if kind == Kind.VIEW else frame.note() == b"promise"
    for bit in range(8 * len(data)):
        changed = bytearray(data)
        changed[bit // 8] ^= 1 << bit % 8
        assert isinstance(read_frame(memoryview(bytes(changed)), 0, 9), str), bit


def test_a_frame_of_another_segment_is_none() -> None:
    data, _ = frame_of([packet(1)], salt=9)
    assert read_frame(memoryview(data), 0, 10) == "the header of a frame is wrong"


def test_what_is_wrong_is_told() -> None:
    data, _ = frame_of([packet(1)])
    assert read_frame(memoryview(bytes(200)), 0, 9) == "zeros instead of a frame"
    assert read_frame(memoryview(data[:30]), 0, 9) == "30 bytes, too few for a frame"
    assert (
        read_frame(memoryview(data[:-1]), 0, 9) == f"a frame of {len(data)} bytes, of which {len(data) - 1} are there"
    )


def test_a_segment_header_is_read_as_it_was_built_and_every_changed_bit_is_noticed() -> None:
    data = encode_segment_header(HEADER)
    assert len(data) % 8 == 0
    found = decode_segment_header(data + b"frames")
    assert found.size == len(data)
    assert found.context == HEADER.context
    assert (found.first, found.hash, found.salt, found.previous, found.previous_size, found.time) == (
        *(17, b"h" * 16, 99, 5, 777, 123456789),
    )
    assert not found.after_gap
    for bit in range(8 * len(data)):
        changed = bytearray(data)
        changed[bit // 8] ^= 1 << bit % 8
        with pytest.raises(LogDamaged):
            decode_segment_header(bytes(changed))
    for size in range(len(data)):
        with pytest.raises(LogDamaged):
            decode_segment_header(data[:size])


def test_another_version_is_told() -> None:
    import ordercast.log.format as module  # noqa: PLC0415

    before = module.VERSION
    try:
        module.VERSION = 2
        newer = encode_segment_header(HEADER)
    finally:
        module.VERSION = before
    with pytest.raises(LogError, match="it has version 2, and this program reads version 1") as raised:
        decode_segment_header(newer)
    assert not isinstance(raised.value, LogDamaged), "it is whole, and nothing of it must be set aside"


@given(st.binary(max_size=6000), st.integers(0, 2**32 - 1))
def test_the_checksum_is_that_of_zlib_whatever_computes_it(data: bytes, start: int) -> None:
    view = memoryview(b"." + data)[1:]
    assert crc32(view, start) == zlib.crc32(view, start)
    assert crc32(data) == zlib.crc32(data)
