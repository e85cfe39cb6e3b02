"""Large messages in fragments: joined in their order, bounded, and forgotten with their source."""

from ordercast.live.events import View
from ordercast.live.host.batching import Outbox
from ordercast.live.host.inbox import Inbox
from ordercast.live.host.message_fragments import FRAGMENT, LAST_FRAGMENT, MessageReassembler, messages_in
from ordercast.model.units import Packet


def packet(source: int, payload: bytes, priority: int = 0, to: int = 0b11) -> Packet:
    return Packet(source, to, 0, (), 0, (len(payload) - 1,), payload, priority=priority)


def test_fragments_of_several_sources_and_priorities_do_not_mix() -> None:
    reassembler = MessageReassembler(100)
    for source, piece, priority in ((0, b"a", 0), (1, b"c", 0), (0, b"e", 7)):
        assert reassembler.messages(packet(source, FRAGMENT + piece, priority)) == []
    assert reassembler.messages(packet(0, LAST_FRAGMENT + b"b")) == [b"ab"]
    assert reassembler.messages(packet(0, LAST_FRAGMENT + b"f", 7)) == [b"ef"]
    assert reassembler.messages(packet(1, LAST_FRAGMENT + b"d")) == [b"cd"]


def test_what_is_too_large_is_dropped_and_the_next_is_not() -> None:
    reassembler = MessageReassembler(4)
    for _ in range(3):
        assert reassembler.messages(packet(0, FRAGMENT + b"xx")) == []
    assert reassembler.messages(packet(0, LAST_FRAGMENT + b"x")) == []
    assert reassembler.too_large == 1
    assert reassembler.messages(packet(0, FRAGMENT + b"xx")) == []
    assert reassembler.messages(packet(0, LAST_FRAGMENT + b"xx")) == [b"xxxx"]


def test_every_size_comes_back_whole_from_the_fragments_that_are_sent() -> None:
    room = 20
    for size in range(100):
        outbox, inbox = Outbox(room), Inbox(("A", "B"), 1000)
        payload = bytes(range(size))
        outbox.add(payload, 0b11, 0)
        found: list[bytes] = []
        counted = 0
        while (batch := outbox.take()) is not None:
            submit = batch.submission(batch.destinations)
            sent = Packet(0, 0b11, 0, (), 0, submit.lengths, submit.payload)
            assert sum(submit.lengths) + 3 <= room
            counted += messages_in(sent)
            inbox.put(sent)
            taken = inbox.take()
            if taken is not None:
                assert isinstance(taken, list)
                found += [message.payload for message in taken]
        assert (found, counted) == ([payload], 1)


def test_what_a_member_that_left_had_begun_is_forgotten() -> None:
    """Its fragments would be kept for as long as the group runs."""
    inbox = Inbox(("A", "B"), 1000)
    inbox.put(packet(0, FRAGMENT + b"a"))
    inbox.put(packet(1, FRAGMENT + b"c"))
    inbox.put_view(View(number=1, position=0, members=("B",), left={"A": "left"}), {1: 0})
    assert isinstance(inbox.take(), View)
    assert list(inbox.reassembler._fragments) == list(inbox.reassembler._sizes) == [(0, 0)], "by its new place"
    inbox.put(packet(0, LAST_FRAGMENT + b"d", to=0b1))
    found = inbox.take()
    assert isinstance(found, list)
    assert [message.payload for message in found] == [b"cd"]
