"""The application's state at one member: what its transfer means for what the member sends, delivers and is.

While the state is loaded, the member votes, receives and acknowledges as any other. It sends nothing of its own, and
what it is delivered is held. If all donors are gone it leaves, and joins again as a new incarnation; if the application
cannot load the state, it leaves for good.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from ordercast.live.host.batching import Outbox
from ordercast.live.host.host import Host
from ordercast.live.host.inbox import Inbox
from ordercast.live.host.parameters import Parameters
from ordercast.live.host.state_transfer import StateOptions, StateTransfer
from ordercast.live.logs import GroupLogs
from ordercast.live.state_transfer.joiner import Loaded
from ordercast.live.state_transfer.traffic import Traffic
from ordercast.live.transport.addresses import Address
from ordercast.live.transport.transport import Transport
from ordercast.model.config import SECOND
from ordercast.model.errors import JoinError
from ordercast.protocols.membership.events import Excluded, InstallView, StateLoaded
from ordercast.protocols.membership.units import Probe
from ordercast.protocols.membership.view import GroupView, Incarnation
from ordercast.wire.keys import GroupKeys

if TYPE_CHECKING:
    from ordercast.live.host.durable.member_log import MemberLog
    from ordercast.live.host.ending import MemberEnding

__all__ = ["MemberState", "StateOptions"]

_TICKS = 8  # between questions whether a joiner has the state


class StateOwner(Protocol):
    """The member."""

    name: str
    address: Address
    parameters: Parameters
    inbox: Inbox
    outbox: Outbox
    transport: Transport
    host: Host | None
    log: "MemberLog | None"
    left: "asyncio.Future[None]"
    ending: "MemberEnding"

    def log_failed(self, why: str) -> None:
        """The log is of no use any more."""


class MemberState:
    """The state of one member, if its application has one. Used inside one event loop."""

    def __init__(
        self,
        owner: StateOwner,
        address_of: Callable[[Incarnation, int], Address],
        group: str,
        options: StateOptions | None,
    ) -> None:
        """`address_of`: another member and node, as it is used here; `options`: None if there is no state."""
        self._owner, self._name, self._address_of = owner, owner.name, address_of
        self._failure_timeout = owner.parameters.failure_timeout / SECOND
        self._logs, self._loop = GroupLogs(group, owner.name), asyncio.get_running_loop()
        self._transfer: StateTransfer | None = None
        self._log = None if options is None else options.log
        self._replaying: asyncio.Task[None] | None = None
        self.starts_at = 0
        """The position of the first message that the application is handed."""
        self._join_timeout = 0.0
        if options is not None:
            self._join_timeout = options.join_timeout
            self._transfer = StateTransfer(
                *(options, options.listens_at(owner.address)),
                group=group,
                name=owner.name,
                failure_timeout=self._failure_timeout,
                is_busy=self._is_busy,
                owner=self,
            )
        self._loaded: asyncio.Future[None] = self._loop.create_future()
        self.joins_anew: Excluded | None = None
        """This member leaves and joins again, as if the others had excluded it."""
        self.problem: str | None = None
        """Why it leaves for good."""
        self._ticks = 0
        self._traffic = Traffic(lambda: owner.transport.endpoint.datagrams_in, self._loop.time)
        self._joining_again: asyncio.TimerHandle | None = None

    async def wait(self) -> None:
        """Returns when this member, which joined, has the state, if there is one.

        Raises `JoinError` when it has left without it; if this is cancelled, it leaves.
        """
        if self._transfer is None:
            return
        try:
            await asyncio.shield(self._loaded)
        except BaseException as error:
            if not isinstance(error, JoinError):  # the application does not wait any longer
                self._transfer.close()
                self._owner.ending.leave(None, drain=False)
            await asyncio.wait((self._owner.left,), timeout=2 * self._failure_timeout)
            self._owner.ending.disconnect()
            raise

    @property
    def bytes_sent(self) -> int:
        """Of states, to those that joined."""
        return 0 if self._transfer is None else self._transfer.bytes_sent

    @property
    def bytes_received(self) -> int:
        """Of states, when this member joined or returned."""
        return 0 if self._transfer is None else self._transfer.bytes_received

    # --- what happens to the member ---

    def view_installed(self, change: InstallView, *, joins: bool) -> None:
        """A view; `joins`: the first one of an incarnation that joined."""
        if self._transfer is None:
            return
        if not joins:
            self._transfer.view_installed(change)
        else:
            owner = self._owner
            assert owner.host is not None, "it is in a view"
            self.joins_anew = None
            if self._joining_again is not None:
                self._joining_again.cancel()
            owner.inbox.hold_for_state()
            if owner.log is not None:
                owner.log.resume_at = owner.inbox.resume_at if owner.log.has_begun else None
                owner.log.feed.catch_up()
            owner.outbox.paused = True
            people, nodes = change.view.members, change.view.nodes
            me = owner.host.member.current.me
            self._transfer.load(change, me, lambda place: self._address_of(people[place], nodes[place]))

    def handed_out(self, number: int) -> None:
        """The application is handed the view of this number."""
        if self._transfer is not None:
            self._transfer.handed_out(number)

    def offer(self, view: GroupView, joined: Sequence[Incarnation]) -> None:
        """Offers the log to those that begin the group anew."""
        if self._transfer is not None:
            self._transfer.offer(view, joined)

    def read_all(self) -> None:
        """The application has been handed everything that there is."""
        if self._log is not None:
            self._log.snapshot_if_due()

    def rotate_keys(self, keys: GroupKeys) -> None:
        """New connections use other keys from now on."""
        if self._transfer is not None:
            self._transfer.keys = keys

    def interrupt(self) -> None:
        """The others continue without this incarnation: if it had not got the state, its events mean nothing."""
        if self._transfer is not None:
            self._transfer.interrupt()
        if self._replaying is not None:
            self._replaying.cancel()
        self._owner.inbox.drop_held()

    def stop(self, why: BaseException) -> None:
        """The group is over for this member."""
        if self._transfer is not None:
            self._transfer.close()
        if self._joining_again is not None:
            self._joining_again.cancel()
        if not self._loaded.done():
            self._loaded.set_exception(JoinError(f"{self._name} did not get the state of the group: {why}"))
            self._loaded.exception()  # marks it as retrieved: nobody may be waiting

    def tick(self) -> None:
        """Now and then: drops states that were loaded, and asks for whether they were: what was said may be lost."""
        host = self._owner.host
        if host is None or self._transfer is None:
            return
        self._ticks += 1
        self._traffic.look()
        current = host.member.current
        for place in self._transfer.confirm(current.view, host.member.applicants.stateless):
            if self._ticks % _TICKS == 0:
                probe = Probe(current.view.number, current.place)
                self._owner.transport.send_membership(probe, place, current.view.number)
        if self._owner.ending.why is not None:
            self._transfer.refuse_unsaved(self._failure_timeout)

    def _is_busy(self) -> bool:
        """Whether there is traffic, or own messages wait to be sent: the state gives way to them."""
        return self._traffic.is_much or bool(self._owner.outbox)

    # --- what becomes of the state (state_transfer.LoadingOwner) ---

    async def read_up(self) -> None:
        """Returns when the application was handed all that came before the state."""
        await self._owner.inbox.read_up()

    def state_loaded(self, loaded: Loaded, start: int | None) -> None:
        """The application has it: it is given what was delivered meanwhile, behind what its log has from `start` on."""
        owner, host = self._owner, self._owner.host
        assert host is not None, "it is in a view"
        self._logs.membership.info(
            "%s has loaded %d bytes of state from %s",
            self._name,
            loaded.size,
            loaded.donor.name,
            extra={"peer": loaded.donor.name},
        )
        host.recorder.state(loaded.view, loaded.donor.node, loaded.size)
        if owner.log is not None:
            owner.log.caught_up()
        host.change(StateLoaded())
        owner.outbox.paused = False
        if start is None or owner.log is None:
            owner.inbox.release()
        else:
            self.replay(start, owner.log.position_of_view(loaded.view))
        if not self._loaded.done():
            self._loaded.set_result(None)
        host.pump()

    async def go_on(self, position: int) -> None:
        """The group began anew at this position: the application is handed what its log has before."""
        assert self._log is not None, "there is a log"
        self.replay(await self._log.prepare(), position)

    def replay(self, start: int, stop: int) -> None:
        """The application is handed what the log has between these positions, before all that is held."""
        assert self._log is not None, "there is a log"
        if self.starts_at == 0:
            self.starts_at = start
        self._replaying = self._loop.create_task(self._log.replay(self._owner.inbox, start, stop))
        self._replaying.add_done_callback(self._replayed)

    def _replayed(self, task: "asyncio.Task[None]") -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._logs.live.error("%s cannot read its log", self._name, exc_info=error)
            self._owner.log_failed(f"it cannot read its log: {error}")

    def state_not_loaded(self, error: JoinError) -> None:
        """It leaves."""
        self.problem = str(error)
        self._logs.membership.error("%s leaves: %s", self._name, error)
        if not self._loaded.done():
            self._loaded.set_exception(error)
            self._loaded.exception()  # marks it as retrieved: nobody may be waiting
        self._owner.ending.leave(None, drain=False)

    def donors_gone(self, why: str) -> None:
        """It leaves, and joins again: others have the state of a later view."""
        host = self._owner.host
        assert host is not None, "it is in a view"
        sentence = f"all that could give it the state are gone ({why})"
        current = host.member.current
        self.joins_anew = Excluded(current.view.number + 1, sentence, None, current.size - 1)
        self._logs.membership.warning("%s leaves and joins again: %s", self._name, sentence)
        if not self._loaded.done():
            self._joining_again = self._loop.call_later(self._join_timeout, self._has_not_joined_again, sentence)
        host.leave(drain=False)

    def _has_not_joined_again(self, why: str) -> None:
        self.state_not_loaded(JoinError(f"{self._name} could not join again within {self._join_timeout:g} s: {why}"))
