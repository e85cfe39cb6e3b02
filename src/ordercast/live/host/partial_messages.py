"""Large messages of which some fragments were delivered before a view, and the others after it: for those that join.

Members that go on have the first fragments, and all have the same ones. A member that joins asks one of them for these,
part by part, and is handed nothing of the view before it has them. Usually there are none: the welcome says so.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Protocol

import msgspec
from msgspec.structs import replace

from ordercast.live.host.inbox import Inbox
from ordercast.live.host.membership import places_of
from ordercast.live.host.message_fragments import Partial
from ordercast.live.transport.transport import Transport
from ordercast.protocols.membership.events import InstallView
from ordercast.protocols.membership.units import Welcome
from ordercast.wire.control import MAX_PARTS, PartialsPart, PartialsRequest

KEPT = 8
"""Views whose partial messages are kept for those that joined with them: the last ones."""
_AGAIN = 0.1  # seconds
_ATTEMPTS = 100  # in vain, one after the other
_MAX_PART, _PART_OVERHEAD = 32_000, 150  # bytes of an answer, and of what is around it

_encode = msgspec.msgpack.Encoder().encode
_decoder = msgspec.msgpack.Decoder(list[Partial])


class PartialsDonor:
    """What this member can give to those that join."""

    def __init__(self) -> None:
        self._kept: dict[int, bytes] = {}  # by view

    def keep(self, view: int, partials: list[Partial]) -> int:
        """Of a view that others join; the number of bytes."""
        self._kept[view] = _encode(partials) if partials else b""
        while len(self._kept) > KEPT:
            del self._kept[min(self._kept)]
        return len(self._kept[view])

    def size(self, view: int) -> int:
        """Bytes of a view's partial messages."""
        return len(self._kept.get(view, b""))

    def parts(self, request: PartialsRequest, part: int) -> list[PartialsPart]:
        """Answers, each with so many bytes; none if this member does not have them."""
        data = self._kept.get(request.view, b"")
        starts = range(request.offset, len(data), part)[:MAX_PARTS]
        return [PartialsPart(request.view, len(data), start, data[start : start + part]) for start in starts]


class PartialsOwner(Protocol):
    """Who is told what becomes of it."""

    def partials_loaded(self, partials: list[Partial]) -> None:
        """All are here."""

    def partials_lost(self) -> None:
        """Nobody gives them."""


class PartialsJoiner:
    """Fetches those that a welcome tells of, from `begin` on. Used inside one event loop."""

    def __init__(self, welcome: Welcome, ask: Callable[[PartialsRequest, int], bool], owner: PartialsOwner) -> None:
        """`ask`: asks a node, if that is still a member."""
        self._view, self._size, self._ask, self._owner = welcome.view.number, welcome.partials, ask, owner
        self._donors = welcome.view.nodes[: welcome.value.stay.bit_count()]  # members of the view before
        self._data = bytearray()
        self._parts: dict[int, bytes] = {}  # that came before those in front of them
        self._until = 0  # what was asked for lies below
        self._attempts = 0
        self._timer: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        """Asks the first one."""
        self._request()

    def stop(self) -> None:
        """Asks no more."""
        if self._timer is not None:
            self._timer.cancel()

    def receive(self, part: PartialsPart) -> None:
        """A part arrived."""
        if part.view != self._view or part.total != self._size or len(self._data) == self._size or not part.data:
            return
        self._parts.setdefault(part.offset, part.data)
        while (data := self._parts.pop(len(self._data), None)) is not None:
            self._data += data
            self._attempts = 0
            self._until -= 1
        if len(self._data) >= self._size:
            self.stop()
            self._load()
        elif self._until <= 0:
            self._request()

    def _request(self) -> None:
        self.stop()
        loop = asyncio.get_running_loop()
        self._parts.clear()
        self._until = MAX_PARTS
        request = PartialsRequest(self._view, len(self._data))
        for turn in range(len(self._donors)):
            if self._ask(request, self._donors[(self._attempts // 2 + turn) % len(self._donors)]):
                break
        else:
            self._attempts = _ATTEMPTS
        if self._attempts >= _ATTEMPTS:
            loop.call_soon(self._owner.partials_lost)
            return
        self._timer = loop.call_later(_AGAIN, self._again)

    def _again(self) -> None:
        self._attempts += 1
        self._request()

    def _load(self) -> None:
        try:
            partials = _decoder.decode(bytes(self._data))
        except msgspec.MsgspecError:
            self._owner.partials_lost()
        else:
            self._owner.partials_loaded(partials)


class PartialsExchange:
    """Gives partial messages to those that join, and fetches them if this member joined. Used inside one event loop."""

    def __init__(self, transport: Transport, inbox: Inbox, lost: Callable[[], None]) -> None:
        """`lost`: is called if nobody gives this member what it needs."""
        self._transport, self._inbox, self._lost = transport, inbox, lost
        self._donor = PartialsDonor()
        self._joiner: PartialsJoiner | None = None
        self.places: Mapping[int, int] = {}
        """Of the members of the current view, by their nodes."""
        self.size = self._donor.size

    @property
    def fetches(self) -> bool:
        """Nothing is handed out before all is here."""
        return self._joiner is not None

    def enter(self, change: InstallView) -> None:
        """Before a view is told, of which this member is not a new one."""
        if change.joined:
            places = places_of(change)
            partials = [each for each in self._inbox.partial_messages() if each.source in places]
            moved = [replace(each, source=places[each.source]) for each in partials]
            self._donor.keep(change.view.number, moved)

    def join(self, welcome: Welcome) -> None:
        """Before the first view of this member is told: nothing of it is handed out before all is here."""
        if welcome.partials:
            self._inbox.await_partials(welcome.view.number)
            self._joiner = PartialsJoiner(welcome, self._ask, self)
            asyncio.get_running_loop().call_soon(self._joiner.begin)

    def receive(self, place: int, message: PartialsRequest | PartialsPart) -> None:
        """From a member of the current view."""
        if isinstance(message, PartialsRequest):
            part = min(self._transport.max_datagram_size, _MAX_PART) - _PART_OVERHEAD
            for answer in self._donor.parts(message, part):
                self._transport.send_control(answer, place)
        elif self._joiner is not None:
            self._joiner.receive(message)

    def stop(self) -> None:
        """Nothing is fetched any more."""
        if self._joiner is not None:
            self._joiner.stop()
            self._joiner = None

    def _ask(self, request: PartialsRequest, node: int) -> bool:
        place = self.places.get(node)
        if place is not None:
            self._transport.send_control(request, place)
        return place is not None

    # --- what becomes of it (PartialsOwner) ---

    def partials_loaded(self, partials: list[Partial]) -> None:
        """Goes on with the first view."""
        self._joiner = None
        self._inbox.load_partials(partials)

    def partials_lost(self) -> None:
        """Those that have them are gone."""
        self.stop()
        self._lost()
