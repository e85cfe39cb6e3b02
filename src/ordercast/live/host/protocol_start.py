"""How a member begins the protocol: in the first view with the other founders, or in a view of the open group."""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from msgspec.structs import replace

from ordercast.live.events import View
from ordercast.live.host.application_state import MemberState
from ordercast.live.host.founding import Founding
from ordercast.live.host.group_terms import GroupTerms
from ordercast.live.host.host import Host
from ordercast.live.host.parameters import Parameters
from ordercast.live.host.reachability import Reachability
from ordercast.live.host.running_group import membership_config
from ordercast.live.host.session_host import SessionHost
from ordercast.live.host.view_entry import ViewEntry
from ordercast.live.logs import GroupLogs
from ordercast.live.session import events
from ordercast.live.transport.transport import Transport
from ordercast.model.config import GroupConfig
from ordercast.model.nodes import name_of
from ordercast.protocols.membership.machine import MembershipMachine
from ordercast.protocols.membership.order import order_of
from ordercast.protocols.membership.units import Welcome
from ordercast.protocols.membership.view import Incarnation, founding_view

if TYPE_CHECKING:
    from ordercast.live.host.durable.member_log import MemberLog
    from ordercast.protocols.restart.standing import Plan

_ANEW = "the group began anew, from the logs of its members"


class StartOwner(Protocol):
    """The member."""

    me: int
    group: str
    parameters: Parameters
    transport: Transport
    session: SessionHost
    host: Host | None
    founding: Founding
    views: ViewEntry
    reachability: Reachability
    state: MemberState
    log: "MemberLog | None"
    terms: GroupTerms
    opened: "asyncio.Future[None]"

    def run(self, machine: MembershipMachine, names: Sequence[str]) -> None:
        """Runs the protocol of a view from now on. `names`: of all nodes that the group had."""


class ProtocolStart:
    """Of one member, for each incarnation. Used inside one event loop."""

    def __init__(self, owner: StartOwner, logs: GroupLogs, plan: "Plan | None") -> None:
        """`plan`: the group begins anew, with this view."""
        self._owner, self._logs, self._plan = owner, logs, plan
        self._loop = asyncio.get_running_loop()
        self._opened_at = 0.0

    def open(self, opened: events.Opened) -> None:
        """The founders have agreed on the session: the group opens with all of them."""
        owner, founding, log = self._owner, self._owner.founding, self._owner.log
        parameters, names = owner.parameters, tuple(name for name, _ in founding.members)
        owner.terms = GroupTerms(parameters, opened.session)
        round_trip = owner.session.round_trips.typical()
        config = self._config(round_trip)
        founders = tuple(
            Incarnation(name, incarnation, str(address))
            for (name, address), incarnation in zip(founding.members, opened.incarnations, strict=True)
        )
        view = founding_view(founders, opened.session.to_bytes(8, "big"))
        if self._plan is not None:
            view = replace(view, number=self._plan.number)
            opened_with = View(number=view.number, position=self._plan.position, members=names, joined=names, why=_ANEW)
            owner.views.joined_view = opened_with
        machine = MembershipMachine(
            *(founders[owner.me], view, order_of(parameters.protocol), config),
            membership_config(parameters, round_trip),
            group=owner.group,
            terms=owner.terms.encoded(),
        )
        owner.run(machine, names)
        if log is not None:
            log.terms = owner.terms.encoded()
            log.found(view, owner.me)
            log.has_begun = log.has_begun or self._plan is None
            self._answer_restarts(log, founders[owner.me])
        founding.stop_asking()
        self._logs.membership.info(
            "session %016x is open with %s", opened.session, ", ".join(names), extra={"members": names}
        )
        self._has_opened()

    def enter(self, me: Incarnation, welcome: Welcome, terms: GroupTerms, round_trip: int | None) -> None:
        """Begins in a view of the open group, which this process joined, or returned to, as `me`."""
        owner, view, log = self._owner, welcome.view, self._owner.log
        owner.terms = terms
        owner.views.joins_by(welcome)
        owner.founding.founders.know(welcome.founders)
        if log is not None:
            log.terms = terms.encoded()
            self._answer_restarts(log, me)
        machine = MembershipMachine.joins(
            *(me, welcome, order_of(owner.parameters.protocol), self._config(round_trip)),
            membership_config(owner.parameters, round_trip),
            group=owner.group,
            terms=terms.encoded(),
        )
        known = {node: person.name for person, node in zip(view.members, view.nodes, strict=True)}
        owner.me = view.nodes[machine.current.place]
        owner.run(machine, tuple(known.get(node, name_of(node)) for node in range(view.next_node)))
        if not owner.opened.done():
            self._has_opened()
        owner.session.handle(events.Begin())
        assert owner.host is not None
        owner.host.begin()

    def uptime(self) -> float:
        """Seconds since the group opened."""
        return self._loop.time() - self._opened_at

    def _has_opened(self) -> None:
        self._opened_at = self._loop.time()
        self._owner.opened.set_result(None)

    def _config(self, round_trip: int | None) -> GroupConfig:
        config = self._owner.parameters.config_for(round_trip)
        self._owner.views.timing = config.timing
        return config

    def _answer_restarts(self, log: "MemberLog", me: Incarnation) -> None:
        """Gives the log to those that begin the group anew, if this member does not reach enough others to go on."""
        from ordercast.live.host.durable.restart_host import SurvivorHost  # noqa: PLC0415 (only those with a log)

        owner = self._owner
        survivor = SurvivorHost(log, owner.state.offer, me)

        def answer(body: bytes) -> None:
            if owner.reachability.is_blocked:
                survivor.receive(body, owner.transport.send_restarting)

        owner.transport.answer_discovery = answer
