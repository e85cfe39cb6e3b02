"""What can be recorded of a live member. `trace_recorder` has the recorder that writes a trace."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryFile

from ordercast.model.errors import ConfigError
from ordercast.model.machine import Level, Resumed, ViewInstalled
from ordercast.model.units import Packet, Unit

RunRow = Mapping[str, object]
"""Columns of the row of a run."""


class MemberRecorder:
    """Is told everything that happens, and records nothing: the default."""

    failed: str | None = None
    """Why nothing is recorded any more; None: there was no error."""
    behind = False
    """More waits to be written than should: until it is written, nothing more is sent, and no data is received."""
    on_caught_up: Callable[[], None]
    """Called in the event loop when that is over."""

    def turn(self) -> None:
        """An input is about to be handled: what follows has this moment's time."""

    def send(self, packet: Packet) -> None:
        """A packet of ours got its number."""

    def deliver(self, packet: Packet) -> None:
        """A packet was handed to the application."""

    def level(self, level: Level, packet: Packet, *, by_view: bool = False) -> None:
        """A packet has reached a level; `by_view`: because it is in the cut that ends a view."""

    def transmit(self, unit: Unit, *, again: bool) -> None:
        """A unit was sent."""

    def arrive(self, unit: Unit) -> None:
        """A unit arrived."""

    def discard(self, unit: Unit, why: str) -> None:
        """A unit was discarded."""

    def view(self, view: ViewInstalled, members: Mapping[int, str]) -> None:
        """A view was installed; `members`: nodes, which packets name by their places from now on, and their names."""

    def exclude(self, number: int, why: str) -> None:
        """The member was told that the view of this number is without it."""

    def leave(self, *, drained: bool) -> None:
        """The member has left by itself; `drained`: all of its messages are known to be delivered."""

    def expect_state(self) -> None:
        """The member joined with the view that was recorded last, and is about to load the state of it."""

    def state(self, number: int, donor: int, size: int) -> None:
        """The member joined, and has loaded the state of the view of this number.

        It belongs before all that is delivered, and is recorded there, although the protocol delivers meanwhile.
        """

    def block(self, lacks: int) -> None:
        """Too few members can be reached to agree on the next view; `lacks`: nodes that are not."""

    def unblock(self) -> None:
        """Enough members can be reached again."""

    def renumber(self, packet: Packet, number: int) -> None:
        """A packet of ours is sent again, in the view of this number."""

    def stopped(self, why: str) -> None:
        """A recovery began."""

    def resumed(self, found: Resumed) -> None:
        """The recovery ended."""

    def timeout(self, name: str) -> None:
        """A timer fired."""

    def abort(self, why: str) -> None:
        """The group was aborted."""

    def end(self, counters: RunRow) -> None:
        """Nothing more happens; `counters` are columns of the run's row."""

    async def written(self) -> None:
        """Returns when everything is on the disk, after `end`."""


NewRecorder = Callable[[int, int, Sequence[str]], MemberRecorder]
"""Makes the recorder of a session, given its tag, the own node, and the names of all nodes that are known."""


def no_recorder(session: int, node: int, names: Sequence[str]) -> MemberRecorder:
    """A recorder that records nothing."""
    del session, node, names
    return MemberRecorder()


def require_writable(folder: Path) -> None:
    """Raises `ConfigError` if nothing can be written there: before the others count on us."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise ConfigError(f"cannot record to {folder}: {error.strerror}; use another folder") from error
