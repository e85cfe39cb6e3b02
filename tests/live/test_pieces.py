"""Pieces of datagrams and ranges of numbers: every short sequence, and where headings end."""

from itertools import product

import pytest

from ordercast.live.transport.pieces import HEADING, HEADING_SIZE, MAGIC, add_range, one_piece, pieces_of, read_train

SEGMENT = HEADING_SIZE + 10


def piece(number: int, index: int, size: int = 10, *, magic: int = MAGIC, count: int = 3) -> bytes:
    return HEADING.pack(magic, 7, number, 5, index, count) + bytes(range(size))


class Runs:
    """What `add_range` keeps: runs of numbers without gaps, of which the highest are remembered."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.known: set[int] = set()

    def ranges(self) -> list[list[int]]:
        starts = sorted(number for number in self.known if number - 1 not in self.known)
        ends = sorted(number for number in self.known if number + 1 not in self.known)
        return [[first, last] for first, last in zip(starts, ends, strict=True)]

    def add(self, number: int) -> bool:
        """False: it is known, or too old to tell."""
        if number in self.known:
            return False
        self.known.add(number)
        if len(runs := self.ranges()) > self.most:
            first, last = runs[0]
            self.known -= set(range(first, last + 1))
        return number in self.known


@pytest.mark.parametrize("most", [1, 2, 3])
def test_ranges_are_right_after_every_short_sequence_of_numbers(most: int) -> None:
    for numbers in product(range(7), repeat=5):
        ranges: list[list[int]] = []
        runs = Runs(most)
        for number in numbers:
            assert add_range(ranges, number, most) is runs.add(number), numbers
            assert ranges == runs.ranges(), numbers


def test_what_has_no_bytes_behind_its_heading_is_no_piece() -> None:
    whole = piece(0, 0, 1)
    assert [bytes(data) for _, data in one_piece(memoryview(whole))] == [b"\0"]
    assert one_piece(memoryview(whole[:-1])) == ()
    assert one_piece(memoryview(piece(0, 0, magic=MAGIC - 1))) == ()
    assert one_piece(memoryview(piece(0, 3))) == (), "it has no place among so many"


def test_segments_of_one_size_are_read_at_once() -> None:
    train = read_train(memoryview(piece(8, 0) + piece(9, 1)), SEGMENT)
    assert train is not None
    heading, data = train
    assert (heading, [bytes(each) for each in data]) == ((MAGIC, 7, 8, 5, 0, 3), [bytes(range(10))] * 2)
    assert read_train(memoryview(piece(8, 0) + piece(9, 1, 4)), SEGMENT) is not None, "the last one may be shorter"


def test_segments_without_bytes_are_not_read_at_once() -> None:
    assert read_train(memoryview(piece(8, 0) + piece(9, 1, 0)), SEGMENT) is None
    assert read_train(memoryview(piece(8, 0, 0)), HEADING_SIZE) is None
    assert read_train(memoryview(piece(8, 0, 0) + piece(9, 1, 0)), HEADING_SIZE) is None


def test_more_pieces_than_there_are_places_are_not_read_at_once() -> None:
    assert read_train(memoryview(piece(8, 1) + piece(9, 2)), SEGMENT) is not None
    assert read_train(memoryview(piece(8, 1, count=2) + piece(9, 2, count=2)), SEGMENT) is None


def test_a_datagram_needs_as_many_pieces_as_hold_it() -> None:
    assert [pieces_of(size, SEGMENT) for size in (1, 10, 11, 20, 21)] == [1, 1, 2, 2, 3]
