"""Records into datagrams: as few as possible, none too long, and nothing lost or moved."""

from random import Random

import pytest

from ordercast.live.transport.packing import ALL, BY_RELAY, Packer
from ordercast.wire.datagram import LENGTH_SIZE, MAX_DATAGRAM_SIZE, unpack_records


def records_in(body: bytes) -> list[bytes]:
    records = unpack_records(body)
    assert isinstance(records, list)
    return [bytes(record) for record in records]


def test_records_to_one_destination_share_a_datagram_until_it_is_full() -> None:
    packer = Packer(100, overhead=40)
    assert packer.add(bytes(28), 1) is None
    assert packer.add(bytes(28), 1) is None, "60 bytes in all"
    full = packer.add(b"x", 1)
    assert full is not None
    assert records_in(full) == [bytes(28), bytes(28)]
    assert [(to, records_in(body)) for to, body in packer.take()] == [(1, [b"x"])]
    assert packer.take() == []


def test_destinations_are_kept_apart_in_the_order_in_which_they_began() -> None:
    packer = Packer(100, overhead=40)
    for record, to in ((b"a", BY_RELAY), (b"b", 2), (b"c", ALL), (b"d", 2), (b"e", BY_RELAY)):
        assert packer.add(record, to) is None
    assert [(to, records_in(body)) for to, body in packer.take()] == [
        (BY_RELAY, [b"a", b"e"]),
        (2, [b"b", b"d"]),
        (ALL, [b"c"]),
    ]


def test_a_record_that_is_longer_than_a_datagram_should_be_goes_alone() -> None:
    packer = Packer(100, overhead=40)
    assert packer.add(bytes(500), 0) is None
    assert packer.add(b"x", 0) is not None
    assert packer.too_large == 0


def test_a_record_that_no_datagram_can_carry_is_counted() -> None:
    packer = Packer(100, overhead=40)
    longest = MAX_DATAGRAM_SIZE - 40 - LENGTH_SIZE
    packer.add(bytes(longest + 1), 0)
    assert (packer.too_large, packer.take()) == (1, [])
    packer.add(bytes(longest), 0)
    assert (packer.too_large, len(packer.take())) == (1, 1)


@pytest.mark.parametrize("seed", range(20))
def test_every_record_goes_once_in_its_order(seed: int) -> None:
    chance, packer = Random(seed), Packer(200, overhead=40)
    sent: dict[int, list[bytes]] = {}
    found: dict[int, list[bytes]] = {}
    for _ in range(500):
        to, record = chance.randrange(3), chance.randbytes(chance.randrange(1, 180))
        sent.setdefault(to, []).append(record)
        full = packer.add(record, to)
        bodies = [(to, full)] if full is not None else []
        if chance.random() < 0.05:
            bodies += packer.take()
        for target, body in bodies:
            assert len(body) + 40 <= 200 or len(records_in(body)) == 1
            found.setdefault(target, []).extend(records_in(body))
    for target, body in packer.take():
        found.setdefault(target, []).extend(records_in(body))
    assert found == sent
