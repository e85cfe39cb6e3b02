"""How a member ends.

| | ends | when |
|---|---|---|
| `close` | the group, for all | all members have closed, and have received everything |
| `abort` | the group, for all | at once; the session tells the others |
| `leave` | this member only | its own messages have arrived, and the others have agreed on a view without it |
| `fail` | this member only | at once; the others are told, and need not wait to find out |
| `end_alone` | this member only | at once; the others know, or cannot be told |

Each comes to `end`, after which nothing is sent and delivered, and to `disconnect`, after which nothing is answered.
"""

import asyncio
from typing import TYPE_CHECKING, Protocol

from ordercast.live.host.leaving import Leaving
from ordercast.live.host.session_host import nanoseconds
from ordercast.live.logs import GroupLogs
from ordercast.live.session import events
from ordercast.model.config import SECOND
from ordercast.model.errors import GroupAborted, GroupClosed, JoinError
from ordercast.protocols.membership.units import Suspicion
from ordercast.protocols.membership.view import MAX_WHY

if TYPE_CHECKING:
    from ordercast.live.host.application_state import MemberState
    from ordercast.live.host.arrivals import Arrivals
    from ordercast.live.host.batching import Outbox
    from ordercast.live.host.durable.member_log import MemberLog
    from ordercast.live.host.flow_control import FlowControl
    from ordercast.live.host.founding import Founding
    from ordercast.live.host.host import Host
    from ordercast.live.host.inbox import Inbox
    from ordercast.live.host.parameters import Parameters
    from ordercast.live.host.reachability import Reachability
    from ordercast.live.host.return_to_group import ReturnToGroup
    from ordercast.live.host.session_host import SessionHost
    from ordercast.live.host.view_entry import ViewEntry
    from ordercast.live.transport.transport import Transport

_TIMES_TOLD = 3  # that this member has failed: some may be lost


class EndingOwner(Protocol):
    """The member."""

    name: str
    me: int
    parameters: "Parameters"
    transport: "Transport"
    session: "SessionHost"
    host: "Host | None"
    inbox: "Inbox"
    outbox: "Outbox"
    flow: "FlowControl"
    arrivals: "Arrivals"
    founding: "Founding"
    views: "ViewEntry"
    returns: "ReturnToGroup"
    reachability: "Reachability"
    state: "MemberState"
    log: "MemberLog | None"
    opened: "asyncio.Future[None]"
    left: "asyncio.Future[None]"

    @property
    def size(self) -> int:
        """How many members the current view has."""


class MemberEnding:
    """Of one member. Used inside one event loop."""

    def __init__(self, owner: EndingOwner, logs: GroupLogs) -> None:
        self._owner, self._logs, self._loop = owner, logs, asyncio.get_running_loop()
        self.why: BaseException | None = None
        """Why nothing can be sent any more."""
        self.leaving = Leaving(owner, self.end_alone)

    @property
    def is_closing(self) -> bool:
        """The application has closed the group, for all members."""
        return self._owner.arrivals.at_rest is not None

    # --- what the application asks for ---

    def close(self, within: float | None) -> None:
        """Sends nothing more, and ends when all members have everything and close, too; called again: by then."""
        owner = self._owner
        if owner.arrivals.at_rest is None and self.why is None:
            owner.arrivals.at_rest = False
            self.why = GroupClosed("the group is closed: nothing can be sent any more")
            owner.flow.disable()
            self._logs.shutdown.debug("%s closes the group", owner.name)
            if owner.arrivals.returning is not None:
                owner.returns.withdraw(f"{owner.name} was about to return to the group, which continued without it")
                return
            owner.session.handle(events.Close(nanoseconds(within)))
            if owner.host is not None:
                owner.host.hurry()
            owner.arrivals.report_rest()
            owner.outbox.release()
            self.end_if_blocked()
        elif within is not None:
            owner.session.handle(events.Close(nanoseconds(within)))

    def leave(self, within: float | None, *, drain: bool = True) -> None:
        """Sends nothing more, and ends when all own messages have arrived; the others continue.

        After `within` seconds, or at once without `drain`, it leaves whatever has arrived.
        """
        owner = self._owner
        if owner.arrivals.returning is not None:
            owner.returns.leave_instead(drain=drain)
        if owner.host is None or owner.host.closed:
            return
        if not self.leaving.begun:
            self.leaving.begin()
            owner.flow.disable()
            self.why = GroupClosed(f"{owner.name} has left the group: nothing can be sent any more")
            self._logs.shutdown.debug("%s leaves the group", owner.name)
            owner.outbox.release()
        if owner.reachability.is_blocked:
            self.end_if_blocked()
        elif not drain:
            self.leaving.say(owner.host, drain=False)
        elif within is not None:
            self.leaving.by(within)
        self.leaving.say_if_sent(owner.host)

    # --- what else ends it ---

    def abort(self, why: str) -> None:
        """Aborts the group, for all members; one without which the others have gone on ends alone."""
        if self._owner.arrivals.returning is not None:
            self._owner.returns.withdraw(why)
        else:
            self._owner.session.handle(events.GiveUp(why))

    def fail(self, why: str, *, told: str | None = None) -> None:
        """The others continue without this member.

        `told`: to the others, if they must not hear all: texts of errors may have what is only for this process.
        """
        owner = self._owner
        view, place, told = owner.views.view, owner.session.places[owner.me], (told or why)[:MAX_WHY]
        for _ in range(_TIMES_TOLD):
            owner.transport.send_membership(Suspicion(view.number, place, 1 << place, told), None, view.number)
        self._loop.call_soon(self.end_alone, why, 0)

    def internal_error(self, error: Exception) -> str:
        """What the others are told of an error in our own code; its text stays in the local log."""
        name = self._owner.name
        self._logs.live.error("internal error: %s leaves the group", name, exc_info=error)
        return f"{name} failed ({type(error).__name__})"

    def end_if_blocked(self) -> None:
        """Nobody could agree that this member closes or leaves: when the machine's turn is over, it ends alone."""
        reachability = self._owner.reachability
        if reachability.is_blocked:
            self._loop.call_soon(self.end_alone, reachability.lacking(), 0)

    def end_alone(self, why: GroupClosed | str, notice: int) -> None:
        """The group is over for this member only. For so long it still answers those that ask for the next view.

        With a log, longer, while what they are to be told waits for the disk: at most a failure timeout.
        """
        if self._owner.left.done():
            return
        self._stop_joining()
        self._owner.session.stop()
        self.end(why, alone=True)
        log, seconds, at_most = self._owner.log, notice / SECOND, notice / SECOND
        if notice and log is not None and log.unsaid:
            log.when_durable(lambda: self._loop.call_later(seconds, self.disconnect))
            at_most += self._owner.parameters.failure_timeout / SECOND
        self._loop.call_later(at_most, self.disconnect)

    # --- what all of them come to ---

    def end(self, why: BaseException | str, *, alone: bool = False) -> None:
        """The protocol is over; the session may still have to tell others. `alone`: the others continue."""
        owner = self._owner
        if isinstance(why, str):
            why = JoinError(why) if owner.host is None else self._aborted(why, owner.host)
        self.why = why
        owner.arrivals.detection.stop()
        owner.state.stop(why)
        if owner.host is not None:
            owner.host.stop(why)
        if owner.log is not None:
            owner.log.durability.stop(why)
        if not owner.opened.done():
            owner.opened.set_exception(why)
        owner.inbox.end(why)
        owner.outbox.release()
        if isinstance(why, GroupAborted):
            sentence = f"{owner.name} is not in the group any more" if alone else "the group was aborted"
            self._logs.shutdown.warning("%s: %s", sentence, why.why, extra={"reason": why.why})
        elif isinstance(why, GroupClosed):
            sentence = f"{owner.name} has left the group" if alone else "the group was closed"
            self._logs.shutdown.info("%s", sentence, extra={"reason": "left" if alone else "closed"})

    def disconnect(self) -> None:
        """Sends, receives and answers nothing any more."""
        owner = self._owner
        if owner.left.done():
            return
        self._stop_joining()
        owner.founding.founders.stop()
        owner.session.stop()
        owner.flow.stop()
        owner.arrivals.stop()
        owner.transport.close()
        owner.left.set_result(None)

    def _aborted(self, why: str, host: "Host") -> GroupAborted:
        return GroupAborted(why, self._owner.inbox.delivered, host.unconfirmed())

    def _stop_joining(self) -> None:
        owner = self._owner
        if owner.arrivals.returning is not None:
            owner.arrivals.returning.stop()
        owner.founding.stop_asking()
        owner.views.partials.stop()
