"""Flow control: a member whose application does not read asks all to wait, instead of dropping what they send.

When more than the inbox's limit is unread the member is *closed*: it says so at once, and again every `REPEAT` seconds.
No member gives new messages to its protocol while one is closed, itself included; what is under way still arrives, and
all the protocol's own units, so that nothing is sent again and nobody seems to have failed. When half of the limit was
read it says that it is open. Notices may be lost and may overtake each other: they are numbered, and a closed member of
which nothing is heard for `FORGET` seconds counts as open.

Bytes unread are bounded by the inbox's limit and what all senders may have in flight when they hear of it.

If the group has a limit of patience, a member that reads and has waited so long for another one asks it to leave, again
and again while it is closed. Only a member that is open asks, and a request counts only for one that has been closed
all the time since: so of several members that ask each other, the last that asked was asked by none of those that
left, and one stays.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence

from ordercast.live.host.inbox import Inbox
from ordercast.wire.control import FlowNotice, LeaveRequest

REPEAT = 0.2
"""Seconds between two notices of a member that is closed."""
FORGET = 5 * REPEAT
_OPENED_TIMES = 2  # that a member says so when it opens: one may be lost


class FlowControl:
    """Of one member. Used inside one event loop."""

    def __init__(
        self,
        inbox: Inbox,
        send: Callable[[FlowNotice | LeaveRequest, int | None], None],
        *,
        on_open: Callable[[], None],
        on_leave_request: Callable[[], None] = lambda: None,
        slow_reader_timeout: float = 0.0,
    ) -> None:
        """`send`: tells a place, or all other members; `on_open`: new messages may be given to the protocol again.

        `on_leave_request`: the others have waited for `slow_reader_timeout` seconds; 0: they wait for ever.
        """
        self._inbox, self._send, self._on_open = inbox, send, on_open
        self._on_leave_request, self._patience = on_leave_request, slow_reader_timeout
        self._loop = asyncio.get_running_loop()
        self.timer: asyncio.TimerHandle | None = None
        self._number = self._open_notices = 0
        self._in_view = True  # there is somebody to be told
        self.closed_here = False
        """This member's application does not read."""
        self._closed_from = 0  # the number of the first notice that this member has been closed since
        self.closed_until: dict[int, float] = {}  # members that are closed, by place, and until when that counts
        self._closed_since: dict[int, float] = {}
        self._waited: dict[int, float] = {}  # the same of the view before, of those not heard of in this one yet
        self._waited_until = 0.0  # then that is forgotten
        self._numbers: dict[int, int] = {}  # of the last notice of each
        self.must_wait = False
        """No new message must be given to the protocol."""
        self.disabled = False
        """The application has closed the group: it need not read any more."""
        inbox.on_full, inbox.on_room = self.close, self._open

    def enter_view(self, places: Mapping[int, int]) -> None:
        """Places are those of another view: `places` has them by those of the view before.

        Who is closed says so again, and has been waited for all the time: views that come often win nobody time.
        """
        now = self._loop.time()
        known = {**(self._waited if now < self._waited_until else {}), **self._closed_since}
        self._in_view = True
        self._forget_all()
        self._waited = {places[place]: since for place, since in known.items() if place in places}
        self._waited_until = now + FORGET

    def leave_view(self) -> None:
        """The others go on without this member: it has nobody to tell anything, or to wait for."""
        self._in_view = False
        self._forget_all()

    def received(self, place: int, notice: FlowNotice) -> None:
        """A member says whether it is closed."""
        if notice.number <= self._numbers.get(place, -1):
            return
        self._numbers[place] = notice.number
        if notice.closed:
            now = self._loop.time()
            self.closed_until[place] = now + FORGET
            waited = self._waited.pop(place, now)
            self._closed_since.setdefault(place, waited if now < self._waited_until else now)
            self._set_timer()
        else:
            self._waited.pop(place, None)
            if place in self.closed_until:
                del self.closed_until[place], self._closed_since[place]
        self._update()

    def asked_to_leave(self, request: LeaveRequest) -> None:
        """A member that reads has waited long enough for this one."""
        if self.closed_here and self._patience and request.number >= self._closed_from:
            self._on_leave_request()

    def disable(self) -> None:
        """From now on this member does not ask others to wait."""
        self.disabled = True
        self._open()

    def stop(self) -> None:
        """Nothing happens any more."""
        self._inbox.on_full = self._inbox.on_room = lambda: None
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None

    @property
    def closed(self) -> frozenset[int]:
        """The places of other members that are closed."""
        return frozenset(self.closed_until)

    def names(self, own: str, members: Sequence[str]) -> list[str]:
        """The names of members that do not read, this one's own among them."""
        others = [members[place] for place in self.closed_until if place < len(members)]
        return [*others, own] if self.closed_here else others

    def close(self) -> None:
        """Too much is unread here: all wait."""
        if not (self.closed_here or self.disabled):
            self.closed_here, self._closed_from = True, self._number + 1
            self._tell()
            self._set_timer()
            self._update()

    def _open(self) -> None:
        if self.closed_here:
            self.closed_here, self._open_notices = False, _OPENED_TIMES - 1  # the timer runs: it was closed
            self._tell()
            self._update()

    def _forget_all(self) -> None:
        self.closed_until, self._closed_since, self._numbers, self._waited = {}, {}, {}, {}
        self._update()

    def _tell(self) -> None:
        self._number += 1
        if self._in_view:
            self._send(FlowNotice(self._number, self.closed_here), None)

    def _set_timer(self) -> None:
        if self.timer is None:
            self.timer = self._loop.call_later(REPEAT, self._tick)

    def _tick(self) -> None:
        self.timer, now = None, self._loop.time()
        if self.closed_here:
            self._tell()
        elif self._open_notices:
            self._open_notices -= 1
            self._tell()
        for place in [place for place, until in self.closed_until.items() if until <= now]:
            del self.closed_until[place], self._closed_since[place]
        self._ask_to_leave(now)
        if self.closed_here or self.closed_until or self._open_notices:
            self._set_timer()
        self._update()

    def _ask_to_leave(self, now: float) -> None:
        if self._patience and not (self.closed_here or self.disabled):
            for place, since in self._closed_since.items():
                if now >= since + self._patience:
                    self._send(LeaveRequest(self._numbers[place]), place)

    def _update(self) -> None:
        before, self.must_wait = self.must_wait, self.closed_here or bool(self.closed_until)
        if before and not self.must_wait:
            self._loop.call_soon(self._on_open)
