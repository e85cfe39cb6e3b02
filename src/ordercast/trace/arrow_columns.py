"""Arrow columns from Python values, assembled from buffers.

`pyarrow.array` checks whether its values are numpy's or pandas', and imports pandas for that where it is installed;
`Array.take` imports `pyarrow.compute`. These take some 50 and 10 MiB, more than all else in a member that records;
nothing here imports anything.
"""

from array import array
from collections.abc import Sequence
from functools import cache
from itertools import accumulate, chain, pairwise
from operator import mul
from struct import Struct
from typing import Any

import pyarrow as pa

Values = Sequence[Any]
"""Values of one type; None is null."""

Counts = Sequence[int] | None
"""How many rows each value has; None: one."""

_INTEGERS = {pa.int32(): Struct("i"), pa.int64(): Struct("q")}
_EMPTY = {pa.int32(): 0, pa.int64(): 0, pa.bool_(): False, pa.string(): "", pa.list_(pa.int32()): ()}
"""What is in the place of a null."""
_RAMP = 17_000  # a row group, and the rest of the packet that fills it
_POOL = pa.system_memory_pool()  # Arrow's default pool keeps what was freed


def column(kind: pa.DataType, values: Values) -> pa.Array:
    """A column of these values."""
    digits = "".join(["0" if value is None else "1" for value in values])
    if "1" not in digits:
        return pa.nulls(len(values), kind, _POOL)
    valid = None
    if "0" in digits:
        valid, empty = _bits(digits), _EMPTY[kind]
        values = [value or empty for value in values]
    buffers, children = _buffers(kind, values)
    return pa.Array.from_buffers(kind, len(values), [valid, *buffers], children=children)


def constant(kind: pa.DataType, value: object, count: int) -> pa.Array:
    """A column of one value."""
    return pa.nulls(count, kind, _POOL) if value is None else pa.repeat(column(kind, (value,))[0], count, _POOL)


def repeated(kind: pa.DataType, values: Values, counts: Counts) -> pa.Array:
    """Repeats each value. Fast for integers, and where few values and counts occur."""
    if counts is None:
        return column(kind, values)
    if kind in _INTEGERS and any(values):
        return _integers(kind, _repeated(kind, values, counts), values, counts)
    if len(set(values)) == 1:
        return constant(kind, values[0], sum(counts))
    pairs = _stretches(values, counts) if None in values else list(zip(values, counts, strict=True))
    pieces = {pair: constant(kind, *pair) for pair in set(pairs)}
    return pa.concat_arrays(list(map(pieces.__getitem__, pairs)), _POOL)


def counted(values: Values, counts: Counts) -> pa.Array:
    """Counts up from each 64-bit integer, which is not negative, instead of repeating it."""
    if counts is None:
        return column(pa.int64(), values)
    ramp = _ramp(max(counts))
    places = b"".join([ramp[: 8 * count] for count in counts])
    return _integers(pa.int64(), _sums(_repeated(pa.int64(), values, counts), places), values, counts)


def counting(first: int, count: int) -> pa.Array:
    """A column of 64-bit integers, from `first` on."""
    content = _sums(_INTEGERS[pa.int64()].pack(first) * count, _ramp(count))
    return pa.Array.from_buffers(pa.int64(), count, [None, pa.py_buffer(content)])


def parts(values: Sequence[tuple[int, ...] | None], counts: Counts) -> pa.Array:
    """A column of the 32-bit integers in these tuples, which have the lengths that `counts` says; None: all null."""
    if counts is None:
        return column(pa.int32(), [value[0] if value else None for value in values])
    pairs = zip(values, counts, strict=True)
    content = b"".join([array("i", value).tobytes() if value else bytes(4 * count) for value, count in pairs])
    return pa.Array.from_buffers(pa.int32(), len(content) // 4, [_not_null(values, counts), pa.py_buffer(content)])


def _stretches(values: Values, counts: Sequence[int]) -> list[tuple[Any, int]]:
    """Each value with its rows, equal values that follow each other as one: most columns are null for most rows."""
    places = [0, *(place for place, pair in enumerate(pairwise(values), 1) if pair[0] != pair[1])]
    offsets = list(accumulate(counts, initial=0))
    bounds = [*(offsets[place] for place in places), offsets[-1]]
    return [(values[place], end - begin) for place, (begin, end) in zip(places, pairwise(bounds), strict=True)]


def _integers(kind: pa.DataType, content: bytes, values: Values, counts: Sequence[int]) -> pa.Array:
    """A column from the bytes of its rows; null where `values` are."""
    valid = _not_null(values, counts) if None in values else None
    return pa.Array.from_buffers(kind, len(content) * 8 // kind.bit_width, [valid, pa.py_buffer(content)])


def _not_null(values: Values, counts: Sequence[int]) -> pa.Buffer:
    return _bits("".join(map(mul, ["0" if value is None else "1" for value in values], counts)))


def _bits(digits: str) -> pa.Buffer:
    """A bit for each digit, in Arrow's order."""
    return pa.py_buffer(int(digits[::-1] or "0", 2).to_bytes((len(digits) + 7) // 8, "little"))


def _buffers(kind: pa.DataType, values: Values) -> tuple[list[pa.Buffer], list[pa.Array] | None]:
    """The buffers besides the one of nulls, and the children."""
    if kind in _INTEGERS:
        return [pa.py_buffer(array(_INTEGERS[kind].format, values))], None
    if kind == pa.bool_():
        return [_bits("".join(["1" if value else "0" for value in values]))], None
    if kind == pa.string():
        encoded = {value: value.encode() for value in set(values)}
        found = list(map(encoded.__getitem__, values))
        return [_offsets(found), pa.py_buffer(b"".join(found))], None
    assert kind == pa.list_(pa.int32()), kind
    return [_offsets(values)], [column(kind.value_type, list(chain.from_iterable(values)))]


def _offsets(values: Sequence[Sequence[object]]) -> pa.Buffer:
    return pa.py_buffer(array("i", accumulate(map(len, values), initial=0)))


def _repeated(kind: pa.DataType, values: Values, counts: Sequence[int]) -> bytes:
    """Integers; 0 for None."""
    return b"".join(map(mul, map(_INTEGERS[kind].pack, [value or 0 for value in values]), counts))


def _sums(left: bytes, right: bytes) -> bytes:
    """Adds 64-bit integers one by one, as two large integers: no sum is so large that it carries into its neighbour."""
    return (int.from_bytes(left, "little") + int.from_bytes(right, "little")).to_bytes(len(left), "little")


def _ramp(count: int) -> bytes:
    """The 64-bit integers from 0."""
    return _first_integers()[: 8 * count] if count <= _RAMP else array("q", range(count)).tobytes()


@cache
def _first_integers() -> bytes:
    return array("q", range(_RAMP)).tobytes()
