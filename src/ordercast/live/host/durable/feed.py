"""From what a member is delivered to what its log holds: whole messages, each at its position.

A large message is delivered in fragments, and is logged at its last one, which is its place in the order. A member that
joins is given the first fragments of some messages by others, and is about to catch up with the log of the group: what
it is delivered before both have happened waits here.
"""

from collections import deque
from collections.abc import Callable, Mapping

from ordercast.live.events import View
from ordercast.live.host.message_fragments import LAST_FRAGMENT, WHOLE, MessageReassembler, Partial
from ordercast.log.writer import Log
from ordercast.model.units import Packet

MAX_WAITING = 64 << 20
"""Bytes that may wait for the disk: with more, no data is taken from the network, and senders are slowed down."""


class LogFeed:
    """What the inbox of a member is given, it is given, too. Used inside one event loop."""

    def __init__(self, log: Log, max_message_size: int) -> None:
        self.log, self._reassembler = log, MessageReassembler(max_message_size)
        self._held: deque[Packet | Callable[[], None]] | None = None  # None: everything goes to the log at once
        self._catches_up, self._awaited = False, False  # the log of the group, the first fragments of messages
        self._size = 0  # of the view

    @property
    def is_held(self) -> bool:
        """What arrives waits for something older."""
        return self._held is not None

    @property
    def behind(self) -> bool:
        """More waits for the disk than should."""
        return self.log.waiting > MAX_WAITING

    @property
    def next(self) -> int:
        """The position after the last message that was appended."""
        return self.log.next

    def put(self, packet: Packet) -> None:
        """Appends the messages of a packet that was delivered."""
        if self._held is not None:
            self._held.append(packet)
            return
        payload = packet.payload
        if payload[:1] == WHOLE:
            self.log.append(packet.source, packet.first, packet.lengths, memoryview(payload)[1:], packet.priority)
            return
        found = self._reassembler.messages(packet, (1 << self._size) - 1)
        if payload[:1] == LAST_FRAGMENT:
            whole = found[0] if found else b""  # one that is too large has its position, too
            self.log.append(packet.source, packet.first, (len(whole),), whole, packet.priority)

    def put_view(self, view: View, places: Mapping[int, int]) -> None:
        """A view begins. `places`: of those that go on, by their places in the view before."""
        self._then(lambda: self._enter(view, places))

    def note(self, note: bytes) -> None:
        """A note at this place: for one that says what is in the log before it."""
        self._then(lambda: self.log.note(note))

    def _then(self, act: Callable[[], None]) -> None:
        if self._held is not None:
            self._held.append(act)
        else:
            act()

    def _enter(self, view: View, places: Mapping[int, int]) -> None:
        self._size = len(view.members)
        self._reassembler.move(places)
        self.log.view(view.number, view.members)

    def await_partials(self) -> None:
        """What follows waits for the first fragments of messages that began before."""
        self._awaited = True
        self._hold()

    def load_partials(self, partials: list[Partial]) -> None:
        """Here they are: they belong behind the view that comes next."""
        if self._awaited:
            self._awaited = False
            loaded = [Partial(*_fields(each)) for each in partials]  # the inbox goes on with its own
            assert self._held is not None, "it waits for them"
            self._held.insert(1, lambda: self._reassembler.load(loaded))
            self._release()

    def catch_up(self) -> None:
        """What follows waits until the log has what the group had before."""
        self.drop_held()
        self._catches_up = True
        self._hold()

    def caught_up(self) -> None:
        """It has."""
        self._catches_up = False
        self._release()

    def drop_held(self) -> None:
        """What waits is never appended: the member was excluded before it had caught up."""
        self._held, self._catches_up, self._awaited = None, False, False

    def _hold(self) -> None:
        if self._held is None:
            self._held = deque()

    def _release(self) -> None:
        if self._held is None or self._catches_up or self._awaited:
            return
        held, self._held = self._held, None
        for each in held:
            if isinstance(each, Packet):
                self.put(each)
            else:
                each()


def _fields(partial: Partial) -> tuple[int, int, bool, int, list[bytes]]:
    return partial.source, partial.priority, partial.to_all, partial.size, list(partial.fragments)
