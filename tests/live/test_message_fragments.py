"""Large messages in fragments: joined in their order, bounded, and forgotten with their source."""

from ordercast.live.events import View
from ordercast.live.host.batching import Outbox
from ordercast.live.host.inbox import Inbox
from ordercast.live.host.message_fragments import (
    FIRST_FRAGMENT,
    FRAGMENT,
    LAST_FRAGMENT,
    MessageReassembler,
    messages_in,
)
from ordercast.model.units import Packet


def packet(source: int, payload: bytes, priority: int = 0, to: int = 0b11) -> Packet:
    return Packet(source, to, 0, (), 0, (len(payload) - 1,), payload, priority=priority)


def test_fragments_of_several_sources_and_priorities_do_not_mix() -> None:
    reassembler = MessageReassembler(100)
    for source, piece, priority in ((0, b"a", 0), (1, b"c", 0), (0, b"e", 7)):
        assert reassembler.messages(packet(source, FIRST_FRAGMENT + piece, priority), 0b11) == []
    assert reassembler.messages(packet(0, LAST_FRAGMENT + b"b"), 0b11) == [b"ab"]
    assert reassembler.messages(packet(0, LAST_FRAGMENT + b"f", 7), 0b11) == [b"ef"]
    assert reassembler.messages(packet(1, LAST_FRAGMENT + b"d"), 0b11) == [b"cd"]


def test_what_is_too_large_is_dropped_and_the_next_is_not() -> None:
    reassembler = MessageReassembler(4)
    assert reassembler.messages(packet(0, FIRST_FRAGMENT + b"xx"), 0b11) == []
    for _ in range(2):
        assert reassembler.messages(packet(0, FRAGMENT + b"xx"), 0b11) == []
    assert reassembler.partials[0, 0].fragments == [], "nothing of it is kept"
    assert reassembler.messages(packet(0, LAST_FRAGMENT + b"x"), 0b11) == []
    assert reassembler.too_large == 1
    assert reassembler.messages(packet(0, FIRST_FRAGMENT + b"xx"), 0b11) == []
    assert reassembler.messages(packet(0, LAST_FRAGMENT + b"xx"), 0b11) == [b"xxxx"]


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
    inbox.put(packet(0, FIRST_FRAGMENT + b"a"))
    inbox.put(packet(1, FIRST_FRAGMENT + b"c"))
    inbox.put_view(View(number=1, position=0, members=("B",), left={"A": "left"}), {1: 0})
    assert isinstance(inbox.take(), View)
    assert list(inbox.reassembler.partials) == [(0, 0)], "by its new place"
    inbox.put(packet(0, LAST_FRAGMENT + b"d", to=0b1))
    found = inbox.take()
    assert isinstance(found, list)
    assert [message.payload for message in found] == [b"cd"]


def test_a_fragment_without_those_before_it_is_dropped() -> None:
    reassembler = MessageReassembler(100)
    assert reassembler.messages(packet(0, FRAGMENT + b"b"), 0b11) == []
    assert reassembler.messages(packet(0, LAST_FRAGMENT + b"c"), 0b11) == []
    assert reassembler.messages(packet(0, FIRST_FRAGMENT + b"d"), 0b11) == []
    assert reassembler.messages(packet(0, LAST_FRAGMENT + b"e"), 0b11) == [b"de"]
    assert reassembler.messages(packet(0, FIRST_FRAGMENT + b"f"), 0b11) == []
    assert reassembler.messages(packet(0, FIRST_FRAGMENT + b"g"), 0b11) == [], "its sender begins anew"
    assert reassembler.messages(packet(0, LAST_FRAGMENT + b"h"), 0b11) == [b"gh"]


def test_who_joins_is_given_what_began_before_and_is_for_all() -> None:
    old, new = Inbox(("A", "B", "C"), 1000), Inbox((), 1000)
    old.put(packet(0, FIRST_FRAGMENT + b"a", to=0b111))
    old.put(packet(1, FIRST_FRAGMENT + b"x", to=0b011))
    old.put(packet(2, FIRST_FRAGMENT + b"y", to=0b111))
    old.take()
    old.put_view(View(number=1, position=0, members=("A", "B")), {0: 0, 1: 1})
    old.put(packet(0, FRAGMENT + b"b", to=0b11))
    partials = old.partial_messages()
    assert [(each.source, each.fragments) for each in partials] == [(0, [b"a", b"b"])]
    assert [each.fragments for each in old.partial_messages()] == [[b"a", b"b"]], "asking changes nothing"
    view = View(number=2, position=0, members=("A", "B", "D"))
    new.await_partials(2)
    new.put_view(view, {})
    old.put_view(view, {0: 0, 1: 1})
    for inbox in (old, new):
        inbox.put(packet(0, LAST_FRAGMENT + b"c", to=0b111))
    assert new.take() is None, "it waits for the beginning"
    new.load_partials(partials)
    assert new.take() == view
    found = new.take()
    assert isinstance(found, list)
    assert [message.payload for message in found] == [b"abc"]
