"""Which batches are new: a function of the order alone, whatever is sent again and whoever sends it."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordercast.gateway import Batch, Batches
from ordercast.gateway.deduplication import MAGIC, REMEMBERED, decode_batch, encode_batch
from ordercast.model.errors import ConfigError


def payload(source: str, number: int, *rows: bytes) -> bytes:
    return encode_batch(Batch(source, number, rows))


def test_a_batch_comes_back_as_it_was() -> None:
    batch = Batch("query", 7, (b"a", b"", bytes(1000)))
    assert decode_batch(encode_batch(batch), 12, "G") == Batch("query", 7, batch.rows, 12, "G")


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"text",
        MAGIC,
        MAGIC + b"\xff",
        MAGIC + msgspec.msgpack.encode(["q", -1, []]),
        MAGIC + msgspec.msgpack.encode(["", 1, []]),
        MAGIC + msgspec.msgpack.encode(["q" * 201, 1, []]),
        MAGIC + msgspec.msgpack.encode(["q", 1 << 64 - 1, ["text"]]),
    ],
)
def test_what_is_no_batch_is_a_message(text: bytes) -> None:
    assert Batches().take(text, 0) == text


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 5)), max_size=40), st.integers(0, 40))
def test_each_number_of_a_source_is_taken_once_and_numbers_grow(sent: list[tuple[str, int]], cut: int) -> None:
    """A member that begins in the middle, with what another has saved, takes the same."""
    one, taken = Batches(), []
    other, saved = Batches(), b""
    for position, (source, number) in enumerate(sent):
        if position == cut:
            saved = one.save()
            other.load(saved)
        found = one.take(payload(source, number), position)
        if position >= cut:
            assert other.take(payload(source, number), position) == found
        if isinstance(found, Batch):
            taken.append((source, number))
    for source in "ab":
        numbers = [number for name, number in taken if name == source]
        assert numbers == sorted(set(numbers))
        most = max((number for name, number in sent if name == source), default=None)
        assert numbers[-1:] == ([] if most is None else [most])
    assert one.repeated == len(sent) - len(taken)


def test_the_source_with_the_oldest_batch_is_forgotten() -> None:
    batches = Batches()
    for number in range(REMEMBERED + 1):
        batches.take(payload(str(number), 0), number)
    assert batches.last("0") is None
    assert batches.last("1") == (0, 1)
    assert batches.last(str(REMEMBERED)) == (0, REMEMBERED)


def test_what_cannot_be_a_batch_is_refused() -> None:
    for source, number in (("", 1), ("q" * 201, 1), ("q", -1)):
        with pytest.raises(ConfigError, match=r"the name of a source has|the number of a batch is"):
            payload(source, number)
    with pytest.raises(ConfigError, match=r"are not what Batches\.save returned"):
        Batches().load(b"else")
