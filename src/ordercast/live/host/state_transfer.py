"""The application's state: offered to those that join, and loaded when this member joins or returns.

As a donor a member saves the state when its application is handed the view, not when the protocol installs it: between
the two the application may still have to read messages of the view before. As a joiner it is a full member meanwhile;
what is delivered is held until the state is loaded.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from ordercast.live.state_transfer.application import State
from ordercast.live.state_transfer.connection import Request
from ordercast.live.state_transfer.donor import Donor
from ordercast.live.state_transfer.joiner import DonorsGoneError, Loaded, Source, StateLoader
from ordercast.live.transport.addresses import Address
from ordercast.model.errors import JoinError
from ordercast.protocols.membership.events import InstallView
from ordercast.protocols.membership.view import GroupView, Incarnation
from ordercast.wire.keys import GroupKeys

if TYPE_CHECKING:
    from ordercast.live.host.durable.exchange import LogExchange


class StateOptions(NamedTuple):
    """The application's state, and what its transfer needs besides."""

    state: State | None
    """None: members have logs, and nothing else to give."""
    timeout: float
    """Seconds to load it."""
    join_timeout: float
    """Seconds to join, again if all donors are gone."""
    keys: GroupKeys | None
    log: "LogExchange | None" = None
    """The durable log of this member, for those that join and when it joins itself."""
    bind: Address | None = None
    """Where our sockets are bound, if that is not where others send to."""

    def listens_at(self, own: Address) -> Address:
        """Where those that join connect to, at the machine of this member, which others reach at its own address."""
        return own if self.bind is None else Address(self.bind.host, self.bind.port or own.port)


class LoadingOwner(Protocol):
    """Who is told what becomes of the state that is loaded."""

    async def read_up(self) -> None:
        """Returns when the application was handed all that came before the state."""

    def state_loaded(self, loaded: Loaded, start: int | None) -> None:
        """The application has it. `start`: it is handed what its log has from this position on; None: no log."""

    def state_not_loaded(self, error: JoinError) -> None:
        """It will not have it."""

    def donors_gone(self, why: str) -> None:
        """Nobody has the state of this view any more."""


class StateTransfer:
    """The state of one member. Used inside one event loop."""

    def __init__(  # noqa: PLR0913
        self,
        options: StateOptions,
        own: Address,
        *,
        group: str,
        name: str,
        failure_timeout: float,
        is_busy: Callable[[], bool],
        owner: LoadingOwner,
    ) -> None:
        """`is_busy`: whether this member has messages to send; `failure_timeout` in seconds."""
        self._options, self._group, self._failure_timeout = options, group, failure_timeout
        self.keys = options.keys
        self._owner = owner
        self._present: set[tuple[str, int]] = set()  # in the current view: names and incarnations
        self._loading: asyncio.Task[None] | None = None
        self._loader: StateLoader | None = None  # of the last incarnation
        self._received_before = 0  # bytes, by other incarnations
        self._interrupted: asyncio.Task[None] | None = None  # the one before
        self._donor = Donor(
            options.state,
            own,
            group,
            name=name,
            keys=lambda: self.keys,
            failure_timeout=failure_timeout,
            state_timeout=options.timeout,
            is_busy=is_busy,
            log=options.log,
        )

    @property
    def bytes_sent(self) -> int:
        """To those that joined."""
        return self._donor.bytes_sent

    @property
    def bytes_received(self) -> int:
        """From donors, by all incarnations of this member."""
        return self._received_before + (0 if self._loader is None else self._loader.bytes_received)

    # --- as a donor ---

    def view_installed(self, change: InstallView) -> None:
        """The protocol has installed a view: this member may have to offer the state of it."""
        self._present = {(member.name, member.number) for member in change.view.members}
        self._donor.keep(self._present)
        if change.gives_state and change.value is not None:
            self._donor.offer(change.view, change.value.joined)

    def offer(self, view: GroupView, joined: Sequence[Incarnation]) -> None:
        """Offers the log, as that of a view which this member is not in."""
        self._donor.offer(view, joined)

    def handed_out(self, number: int) -> None:
        """The application is handed the view of this number: its state is that of the place."""
        self._donor.save(number)

    def refuse_unsaved(self, after: float) -> None:
        """The application need not read any more: it has so many seconds to come to the places of states."""
        self._donor.refuse_unsaved(after)

    def confirm(self, view: GroupView, stateless: int) -> list[int]:
        """Drops states that were loaded. `stateless`: places that are not known to have one.

        Returns the places of those that were offered a state and may not have loaded it.
        """
        found, waiting = [], self._donor.waiting
        for place, member in enumerate(view.members if waiting else ()):
            if (member.name, member.number) in waiting:
                if stateless >> place & 1:
                    found.append(place)
                else:
                    self._donor.loaded(member.name, member.number)
        return found

    # --- as a joiner ---

    @property
    def is_loading(self) -> bool:
        """A state is being loaded."""
        return self._loading is not None

    def load(self, change: InstallView, me: Incarnation, address: Callable[[int], Address]) -> None:
        """Begins to load the state of the first view of an incarnation. `address`: of a place."""
        view, value = change.view, change.value
        assert value is not None, "founders have the state"
        self._present = {(member.name, member.number) for member in view.members}
        donors = [self._source(view, place, address(place)) for place in value.donors]
        self._received_before = self.bytes_received
        self._loader = StateLoader(
            self._options.state,
            Request(view.number, view.tag, me.name, me.number),
            donors,
            group=self._group,
            keys=self.keys,
            failure_timeout=self._failure_timeout,
            state_timeout=self._options.timeout,
            log=self._options.log,
        )
        self._loading = asyncio.get_running_loop().create_task(self._load(self._loader, self._interrupted))

    def _source(self, view: GroupView, place: int, address: Address) -> Source:
        member = view.members[place]
        key = (member.name, member.number)
        return Source(member.name, view.nodes[place], address, lambda: key not in self._present)

    async def _load(self, loader: StateLoader, interrupted: "asyncio.Task[None] | None") -> None:
        if interrupted is not None:
            await asyncio.wait((interrupted,))  # the application may have to clean up
        if self._options.state is not None:
            await self._owner.read_up()
        start = None
        try:
            loaded = await loader.load()
            if self._options.log is not None:
                start = await self._options.log.prepare()
        except JoinError as error:
            self._loading = None
            self._owner.state_not_loaded(error)
        except DonorsGoneError as error:
            self._loading = None
            self._owner.donors_gone(str(error))
        else:
            self._loading = None
            self._owner.state_loaded(loaded, start)

    def interrupt(self) -> None:
        """The incarnation that loads is no member any more."""
        if self._loading is not None:
            self._loading.cancel()
            self._interrupted, self._loading = self._loading, None

    def close(self) -> None:
        """Nothing is offered or loaded any more."""
        self.interrupt()
        self._donor.close()
