"""What a member does that the others continued without: it returns, or ends alone."""

import asyncio
from typing import TYPE_CHECKING, Protocol

from ordercast.live.events import Excluded
from ordercast.live.host.application_state import MemberState
from ordercast.live.host.arrivals import Arrivals
from ordercast.live.host.batching import Outbox
from ordercast.live.host.flow_control import FlowControl
from ordercast.live.host.group_terms import GroupTerms, read_terms
from ordercast.live.host.host import Host
from ordercast.live.host.inbox import Inbox
from ordercast.live.host.member_addresses import MemberAddresses
from ordercast.live.host.parameters import Parameters
from ordercast.live.host.reachability import Reachability
from ordercast.live.host.returning import WITHDRAWN, Exclusions, Returning, settle
from ordercast.live.host.running_group import joined_session, membership_config
from ordercast.live.host.session_host import SessionHost
from ordercast.live.host.view_entry import ViewEntry
from ordercast.live.logs import GroupLogs
from ordercast.live.session.machine import Session
from ordercast.live.transport.addresses import Address
from ordercast.live.transport.transport import Transport
from ordercast.model.config import SECOND
from ordercast.model.errors import GroupClosed
from ordercast.protocols.membership import events as membership_events
from ordercast.protocols.membership.applicants import Terms
from ordercast.protocols.membership.units import Welcome
from ordercast.protocols.membership.view import Incarnation

if TYPE_CHECKING:
    from ordercast.live.host.durable.member_log import MemberLog
    from ordercast.live.host.ending import MemberEnding
    from ordercast.live.host.protocol_start import ProtocolStart


class ReturnOwner(Protocol):
    """The member."""

    name: str
    address: Address
    group: str
    me: int
    parameters: Parameters
    transport: Transport
    session: SessionHost
    host: Host | None
    inbox: Inbox
    outbox: Outbox
    flow: FlowControl
    arrivals: Arrivals
    addresses: MemberAddresses
    state: MemberState
    log: "MemberLog | None"
    views: ViewEntry
    terms: GroupTerms
    left: "asyncio.Future[None]"
    start: "ProtocolStart"
    ending: "MemberEnding"
    reachability: Reachability

    @property
    def size(self) -> int:
        """How many members the current view has."""

    def use_session(self, session: Session) -> None:
        """Runs this session from now on."""


class ReturnToGroup:
    """Of one member, for each of its exclusions."""

    def __init__(self, owner: ReturnOwner, logs: GroupLogs, *, rejoin: bool) -> None:
        """`rejoin`: if the others continue without this member, it joins again."""
        self._owner, self._logs, self._rejoin = owner, logs, rejoin
        self._loop = asyncio.get_running_loop()
        self.exclusions = Exclusions()
        self.withdrawn: GroupClosed | str | None = None
        """Why it does not return, though it may be taken in."""
        self._until_read = False  # it leaves, or has left, until its application has read what there is

    def leave_until_read(self) -> None:
        """The others have waited too long for this member's application: they go on, and it returns when that reads.

        One that is given a state or the beginnings of messages, is blocked, or is about to end or to return is not what
        they wait for. One without which too few would be left for a view stays, and so does, of several that are asked
        at once, the one that the others need.
        """
        owner = self._owner
        if owner.host is None or self._until_read or owner.arrivals.returning is not None:
            return
        if owner.inbox.is_held or owner.views.partials.fetches:
            return
        if owner.size <= owner.parameters.least_members:
            return
        if owner.ending.why is None and not owner.reachability.is_blocked:
            self._until_read = True
            self._logs.membership.warning("%s leaves until its application reads: the others have waited", owner.name)
            owner.host.leave(drain=False, may_stay=True)

    def stays(self) -> None:
        """A view has this member: it did not leave, if it was about to."""
        if self._owner.arrivals.returning is None:
            self._until_read = False

    def left(self) -> bool:
        """It has left; True if that was until its application reads: it returns then.

        False if its application has left meanwhile, unless something of its own has not arrived.
        """
        host, leaving = self._owner.host, self._owner.ending.leaving
        if host is None or not self._until_read:
            return False
        member, why = host.member, "its application does not read"
        if leaving.begun and (leaving.said or not (self._owner.outbox or member.not_delivered())):
            return False
        assert member.last is not None, "it has left with this view"
        end, remaining = member.last.cut.ends[member.current.place], member.last.stay.bit_count()
        self._loop.call_soon(self.excluded, membership_events.Excluded(member.last.number, why, end, remaining))
        return True

    def read_all(self) -> None:
        """The application has been handed everything that there is."""
        if self._until_read and self._owner.arrivals.returning is not None:
            self._until_read = False
            self._owner.arrivals.returning.begin(0)

    def excluded(self, output: membership_events.Excluded) -> None:
        """Joins again, unless the application does not want it, or is about to end anyway."""
        owner = self._owner
        sentence = f"the group continues without {owner.name}: {output.why}"
        if owner.host is None or owner.host.closed:
            return  # it has ended meanwhile, for another reason
        if not (self._rejoin or owner.inbox.is_held) or owner.ending.leaving.begun or owner.ending.is_closing:
            owner.ending.end_alone(sentence, owner.session.machine.config.notice_period)
            return
        self._logs.membership.warning("%s returns: %s", owner.name, sentence, extra={"reason": output.why})
        self._retire(owner.host)
        counts: tuple[int | None, int | None] = (None, None)
        if output.end is not None:
            counts = settle(owner.host, owner.outbox, output.end, owner.views.undurable)
        owner.inbox.put_notice(Excluded(sentence, *counts))
        owner.state.interrupt()
        timeout = owner.parameters.failure_timeout / SECOND
        owner.arrivals.returning = Returning(
            name=owner.name,
            address=str(owner.address),
            group=owner.group,
            contacts=[str(address) for address in owner.addresses.contacts(owner.views.view)],
            old=owner.me,
            terms=owner.terms.encoded(),
            settings=membership_config(owner.parameters, None),
            send=owner.transport.send_outside,
            returned=self._returned,
            refused=lambda why: owner.ending.end_alone(f"{owner.name} could not return to the group: {why}", 0),
            has_log=owner.log is not None,
        )
        if not self._until_read:
            owner.arrivals.returning.begin(self.exclusions.delay(self._loop.time(), timeout, output.remaining))

    def _retire(self, host: Host) -> None:
        """The protocol of the last view takes part no more, and nobody is suspected."""
        owner = self._owner
        owner.session.stop()
        owner.arrivals.detection.stop()
        owner.reachability.retire()
        owner.flow.leave_view()
        host.retire()

    def leave_instead(self, *, drain: bool) -> None:
        """Its application leaves. With `drain` it counts on its messages, which wait here for it to read."""
        owner = self._owner
        if self._until_read and drain and owner.outbox:
            self.withdraw(f"the group continues without {owner.name}, whose application leaves and has not read")
        else:
            self.withdraw(GroupClosed(f"{owner.name} has left the group"))

    def withdraw(self, why: GroupClosed | str) -> None:
        """It does not return. If the group takes it in all the same, it leaves, so that the others need not miss it."""
        owner, returning = self._owner, self._owner.arrivals.returning
        assert returning is not None
        if self.withdrawn is None and returning.withdraw():
            self.withdrawn = why
            owner.ending.why = GroupClosed(f"{owner.name} leaves the group: nothing can be sent any more")
            self._loop.call_later(WITHDRAWN, self._ends_withdrawn)
        elif self.withdrawn is None:
            owner.ending.end_alone(why, 0)

    def _ends_withdrawn(self) -> None:
        """It was not taken in."""
        if self._owner.arrivals.returning is not None:
            assert self.withdrawn is not None
            self._owner.ending.end_alone(self.withdrawn, 0)

    def _returned(self, me: Incarnation, welcome: Welcome, terms: Terms) -> None:
        """It is a member again, as another incarnation and node."""
        owner, end = self._owner, welcome.end_of_old
        assert owner.host is not None
        settle(owner.host, owner.outbox, None if end is None else end.end, owner.views.undurable)
        owner.arrivals.returning, owner.arrivals.retired = None, owner.host
        place = welcome.view.place_of(me)
        assert place is not None, "the joiner has checked it"
        node = welcome.view.nodes[place]
        owner.use_session(joined_session(owner.name, node, welcome.view, owner.session.machine.config))
        known = owner.terms
        if owner.log is not None and terms != known.encoded():
            known = read_terms(terms)
            owner.addresses.begin_anew()
            owner.log.durability.begin_anew()
        owner.start.enter(me, welcome, known, owner.session.round_trips.typical())
        if self.withdrawn is not None:
            owner.state.interrupt()
            owner.ending.leave(None, drain=False)
