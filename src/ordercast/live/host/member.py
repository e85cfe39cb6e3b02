"""One member of a live group: its session, then its protocol's machine, and what the application sends and hears."""

import asyncio
import logging
import re
import time
from collections import deque
from collections.abc import Callable

import msgspec

from ordercast.live.events import View
from ordercast.live.host.back_pressure import BackPressure
from ordercast.live.host.batching import Outbox, messages_in
from ordercast.live.host.busy_polling import BusyPolling
from ordercast.live.host.congestion import CongestionControl
from ordercast.live.host.host import Host
from ordercast.live.host.inbox import Inbox
from ordercast.live.host.parameters import HIGHEST_LEVEL, Parameters, longest_wait
from ordercast.live.host.recording import MemberRecorder
from ordercast.live.host.round_trips import RoundTrips
from ordercast.live.session import events
from ordercast.live.session.events import HEARTBEATS_PER_TIMEOUT
from ordercast.live.session.machine import Session
from ordercast.live.stats import Stats, counted
from ordercast.live.transport.addresses import Address
from ordercast.live.transport.relay import Relay
from ordercast.live.transport.transport import Transport
from ordercast.model.config import SECOND, Rules
from ordercast.model.errors import GroupAborted, GroupClosed, JoinError
from ordercast.model.machine import CancelTimer, Level, SetTimer
from ordercast.model.machine import View as ProtocolView
from ordercast.model.nodes import everybody
from ordercast.model.units import DataUnit, Packet, Unit
from ordercast.protocols.registry import machine_class
from ordercast.wire.control import Control, Join
from ordercast.wire.keys import GroupKeys

_log = logging.getLogger("ordercast.protocol")
_callbacks = logging.getLogger("ordercast.live")

INBOX_LIMIT = 8 << 20
"""Bytes that wait for an application that does not listen, before more is dropped."""
OUTBOX_LIMIT = 1 << 20
"""Bytes that wait for the protocol, before who sends has to wait."""


_TICKS_OF_CHANNEL = 4 * HEARTBEATS_PER_TIMEOUT  # two silences: it may be started again
_MOST_TURNS = 32  # of the event loop that a packet waits for more


class Member:
    """Holds everything together. Made and used inside one event loop."""

    def __init__(  # noqa: PLR0913, PLR0917 (what it holds together)
        self,
        names: tuple[str, ...],
        me: int,
        agreed: Parameters,
        lines: Transport,
        session: Session,
        relay: Callable[[], Relay] | Address | None,
        record: Callable[[int], MemberRecorder],
        *,
        busy_poll: bool = True,
    ) -> None:
        """`relay`: how to make that of the group, if it is ours, or where it is; `record`: that of a session."""
        self.names, self.me, self._agreed, self._lines, self._session = names, me, agreed, lines, session
        self._relay, self._record = relay, record
        self._loop = asyncio.get_running_loop()
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._round_trips = RoundTrips(me, len(names))
        self._told: deque[events.Input] = deque()  # what the session has to be told; the first, it is being told
        self._signed = 0  # members of which the session knows that they live, for this half beat
        self._host: Host | None = None
        self.members = everybody(len(names))
        self.max_message_size = agreed.max_message_size
        self.inbox = Inbox(names, agreed.max_message_size)
        self._pace = CongestionControl(agreed.datagram_sizes(lines.network.receive_buffer))
        self.outbox = Outbox(agreed.room_in(self._pace.datagram))
        self.opened: asyncio.Future[None] = self._loop.create_future()
        self.left: asyncio.Future[None] = self._loop.create_future()
        self.end: BaseException | None = None
        """Why nothing can be sent any more."""
        self.gate = BackPressure(lambda: self.end is not None or self.outbox.waiting <= OUTBOX_LIMIT)
        """Opens when there is room in the outbox, or the group is over."""
        self._closing = self._resting = self.flushing = False
        self._turns, self._last = 0, self.outbox.last()
        self._lingering, self._awake = BusyPolling(enabled=busy_poll), False
        self._lone_since: float | None = None  # when what is under way was sent, if it is a lone message
        self.on_view: Callable[[View], None] = lambda _: None
        self.delivered = [0] * len(names)
        self.overrun = self.view = 0
        """Units that were dropped since the application does not listen; changes of membership."""
        self._opened_at = 0.0

    # --- opening and ending ---

    def begin(self, incarnation: int) -> None:
        """Looks for the others."""
        self._lines.start(incarnation, self, self._drained)
        self._tell(events.Begin())
        self._tick()

    def close(self, within: float | None) -> None:
        """Sends nothing more, and leaves when everybody has everything and wants to leave."""
        if not self._closing and self.end is None:
            self._closing = True
            self.end = GroupClosed("the group is closed: nothing can be sent any more")
            self._tell(events.Close(0 if within is None else max(int(within * SECOND), 1)))
            self._rest()

    def rotate(self, keys: GroupKeys) -> None:
        """Other keys, from now on."""
        self._lines.rotate(keys)

    def give_up(self, why: str) -> None:
        """Ends the group, for all."""
        self._tell(events.GiveUp(why))

    def _open(self, opened: events.Opened) -> None:
        agreed = self._agreed
        config = agreed.config_for(self._round_trips.typical())
        config = msgspec.structs.replace(config, first_seq=opened.first_seqs)
        machine = machine_class(agreed.protocol, Rules.SOUND)(self.me, config)
        relay = self._relay() if callable(self._relay) else self._relay
        self._lines.open(opened.session, machine.needs, relay, longest_wait=longest_wait(config.timing.guard))
        highest = HIGHEST_LEVEL.get(agreed.protocol, Level.ACKNOWLEDGED)
        self._host = Host(machine, self.me, highest, self.outbox, self, self._record(opened.session))
        self._opened_at = self._loop.time()
        self.opened.set_result(None)

    def _give_up_protocol(self, why: str) -> None:
        """What is certain is delivered first, so that the account is of all of it."""
        if self._host is not None:
            self._host.give_up(why)
        self._stop(self._account(why))

    def _stop(self, why: BaseException) -> None:
        """The protocol is over; the session may still have to tell others."""
        self.end = why
        if self._host is not None:
            self._host.stop(why)
        if not self.opened.done():
            self.opened.set_exception(why)
        self.inbox.end(why)
        self.has_room()

    async def recorded(self) -> None:
        """Comes back when the record is written, if there is one, after the end."""
        if self._host is not None:
            await self._host.record.written()

    def stats(self, group: str) -> Stats:
        """How things stand."""
        host, network = self._host, self._lines.network
        assert host is not None, "there is no group before it is open"
        return Stats(
            group=group,
            me=self.names[self.me],
            protocol=self._agreed.protocol,
            members=self._names_of(self.members),
            view=self.view,
            uptime=self._loop.time() - self._opened_at,
            round_trip=None if (measured := self._round_trips.typical()) is None else measured / SECOND,
            messages_sent=host.sent,
            messages_delivered=dict(zip(self.names, self.delivered, strict=True)),
            units_sent=host.transmitted,
            retransmissions=host.retransmitted,
            retransmission_requests=host.requests,
            recoveries=host.recoveries,
            units_discarded=dict(host.discarded),
            units_overrun=self.overrun,
            datagrams_received=network.datagrams_in,
            datagrams_sent=network.datagrams_out,
            bytes_received=network.bytes_in,
            bytes_sent=network.bytes_out,
            datagrams_rejected=counted(
                self._lines.dropped, incomplete=network.incomplete, oversized=self.inbox.too_large
            ),
            send_errors=counted(network.not_sent, oversized=self._lines.too_large),
            pending_bytes=self.outbox.waiting,
            unread_bytes=self.inbox.bytes,
            logs=msgspec.structs.asdict(host.machine.log_sizes()),
            recording_error=host.record.failed,
        )

    def _account(self, why: str) -> GroupAborted | JoinError:
        if self._host is None:
            return JoinError(why)
        delivered = dict(zip(self.names, self.delivered, strict=True))
        return GroupAborted(why, delivered, self._host.unconfirmed())

    def leave(self) -> None:
        """Nothing is heard or said any more."""
        if self.left.done():
            return
        for handle in self._timers.values():
            handle.cancel()
        self._timers.clear()
        self._lines.close()
        self.left.set_result(None)

    # --- the session ---

    def _tell(self, event: events.Input) -> None:
        """One input after the other: what follows from one may lead to the next, which waits until all is done."""
        self._told.append(event)
        if len(self._told) > 1:
            return
        try:
            while self._told:
                for output in self._session.handle(self._told[0]):
                    self._carry_out(output)
                self._told.popleft()
        except Exception as error:  # a mistake of ours: the session cannot tell anybody any more
            self._stop(self._account(self._failure(error)))
            self.leave()
            self._told.clear()

    def _carry_out(self, output: events.Output) -> None:
        match output:
            case events.SendControl(message=message, to=to):
                if isinstance(message, Join):
                    self._round_trips.said(message, time.monotonic_ns())
                self._lines.say(message, to)
            case SetTimer(name=name, after=after):
                self._cancel(name)
                self._timers[name] = self._loop.call_later(after / SECOND, self._fire, name)
            case CancelTimer(name=name):
                self._cancel(name)
            case events.Opened():
                self._open(output)
            case events.Refused(why=why):
                self._stop(JoinError(why))
            case events.Aborted(why=why):
                self._give_up_protocol(why)
            case events.Closed():
                self._stop(GroupClosed("the group was closed"))
            case events.Left():
                self.leave()
            case events.Suspected(member=member):
                if self._host is not None:
                    self._host.suspect(1 << member)

    def _failure(self, error: Exception) -> str:
        """What the others are told of a mistake that was made here; the rest is in the log."""
        _log.error("%s failed, and gives its group up", self.names[self.me], exc_info=error)
        return f"{self.names[self.me]} failed ({type(error).__name__})"

    def _cancel(self, name: str) -> None:
        handle = self._timers.pop(name, None)
        if handle is not None:
            handle.cancel()

    def _fire(self, name: str) -> None:
        handle = self._timers[name]
        self._lines.read_all()
        if self._timers.get(name) is handle:
            del self._timers[name]
            self._tell(events.TimerExpired(name, time.monotonic_ns()))
        self._drained()

    def _tick(self) -> None:
        self._signed = 0
        if self._host is not None and not self._host.closed:
            self._suit_losses(self._host)
            if self._lines.watch_channel() > _TICKS_OF_CHANNEL:
                self.give_up(
                    f"nothing of {self.names[self.me]} came back from the channel at {self._relay} "
                    f"for {2 * self._agreed.failure_timeout / SECOND:g} s"
                )
        if not self.left.done():
            self._loop.call_later(self._agreed.heartbeat / SECOND / 2, self._tick)

    def _suit_losses(self, host: Host) -> None:
        self._pace.suit(host)
        host.most_under_way, self._lines.datagram = self._pace.under_way, self._pace.datagram
        self.outbox.room = self._agreed.room_in(self._pace.datagram)

    def opens(self, member: int, session: int) -> bool:
        """Whoever speaks in the session that we have agreed to has heard that all agree."""
        if self._host is None and session == self._session.session:
            self._tell(events.TrafficReceived(member))
        return self._host is not None and session == self._session.session

    def hears(self, member: int, message: Control) -> None:
        """A control message came."""
        if isinstance(message, Join):
            self._round_trips.heard(member, message, time.monotonic_ns())
        self._rest()  # a beat may be all that the session waited for, and what came just before it may not be done
        self._tell(events.ControlReceived(member, message))

    # --- the protocol ---

    def receives(self, member: int, unit: Unit) -> None:
        """A unit came."""
        if not self._signed >> member & 1:
            self._signed |= 1 << member
            self._tell(events.TrafficReceived(member))
        if self._host is None:
            return
        if self.inbox.bytes > INBOX_LIMIT and not self._closing and isinstance(unit, DataUnit):
            self.overrun += 1  # as if it had been lost: it will be sent again, and who sends is slowed down
            return
        self._host.receive(unit)

    def _drained(self) -> None:
        host = self._host
        if host is not None:
            host.drained()
            if self._lone_since is not None and host.is_idle():
                self._lingering.took(time.perf_counter() - self._lone_since)
                self._lone_since = None
            self._rest()

    def _rest(self) -> None:
        """Who closes has to know whether anything is still under way."""
        if self._closing and self._host is not None:
            resting = self._host.is_at_rest()
            if resting != self._resting:
                self._resting = resting
                self._tell(events.AtRest(resting))

    def put(self) -> None:
        """Something is in the outbox: if nothing of ours is under way it goes at once; what follows, when it is all."""
        host = self._host
        if host is None or self.flushing:
            return
        if host.is_idle():
            since = time.perf_counter()
            host.pump()
            if not host.is_idle():
                self._lone_since, self._awake = since, self._lingering.begins()
        self._flush_soon()

    def _flush_soon(self) -> None:
        self.flushing = self.outbox.growing = True
        self._turns, self._last = 0, self.outbox.last()
        self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        """What is full goes; the rest when a turn has passed in which nothing was added, or many have passed."""
        last, self._last = self._last, self.outbox.last()
        if self._last != last and self._turns < _MOST_TURNS:
            self._turns += 1
            self._lone_since = None
            self._loop.call_soon(self._flush)
        else:
            self.flushing = self.outbox.growing = False
        if self._host is not None:
            self._host.pump()
            if self._awake and self._lone_since is not None and self._lines.linger():
                self._drained()

    # --- what a host has done for it ---

    def send(self, unit: Unit, to: int | None) -> None:
        """Puts a unit on the network."""
        self._lines.send(unit, to)

    def flush(self) -> bool:
        """The end of a turn."""
        return self._lines.flush()

    def read_all(self) -> None:
        """Hears what has come."""
        self._lines.read_all()

    def deliver(self, packet: Packet) -> None:
        """To the application."""
        self.delivered[packet.source] += messages_in(packet)
        self.inbox.put(packet)

    def has_view(self, view: ProtocolView) -> None:
        """The group goes on with these members."""
        before, self.members, self.view = self.members, view.members, view.number
        shown = View(
            number=view.number,
            position=sum(self.delivered),
            members=self._names_of(view.members),
            joined=self._names_of(view.members & ~before),
            left=self._names_of(before & ~view.members),
            why=self._named(view.why),
        )
        self.inbox.put_view(shown)
        self._loop.call_soon(self._remain, view.members)  # when the machine's turn is over
        if not self.flushing:
            self._flush_soon()  # what is sent from there waits: the machine is in the middle of something
        self._loop.call_soon(self._tell_view, shown)

    def _tell_view(self, view: View) -> None:
        try:
            self.on_view(view)
        except Exception:
            _callbacks.exception("on_view raised an exception")

    def _names_of(self, members: int) -> tuple[str, ...]:
        return tuple(name for place, name in enumerate(self.names) if members >> place & 1)

    def _remain(self, members: int) -> None:
        self._rest()
        self._tell(events.Remaining(members))

    def has_aborted(self, why: str) -> None:
        """The protocol gave the group up. Whoever did not answer may live, and the channel may not."""
        by = f" (by the channel at {self._relay})" if isinstance(self._relay, Address) else ""
        self.give_up(f"{self.names[self.me]} gave the group up: {self._named(why)}{by}")

    def _named(self, why: str) -> str:
        """Protocols count nodes, and call the first one E1; people know them by their names."""
        named = {f"E{place}": name for place, name in enumerate(self.names, start=1)}
        return re.sub(r"\bE[0-9]+\b", lambda found: named.get(found[0], found[0]), why)

    def has_failed(self, error: Exception) -> None:
        """The protocol made a mistake: what it holds is worth nothing any more."""
        self.give_up(self._failure(error))

    def has_room(self) -> None:
        """Whoever waits to send may go on."""
        self.gate.look()
