"""What a live member may write down, and the record that writes nothing: `trace_record` has the one that does."""

from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryFile

from ordercast.model.errors import ConfigError
from ordercast.model.machine import Level, Resumed, View
from ordercast.model.runs import TraceDetail as Recorded
from ordercast.model.units import Packet, Unit

RunRow = Mapping[str, object]
"""Columns of the row of a run."""


class MemberRecorder:
    """Writes nothing down: the default."""

    failed: str | None = None
    """Why nothing is written down any more."""

    def turn(self) -> None:
        """Something begins: what follows from it happens now."""

    def send(self, packet: Packet) -> None:
        """A packet of ours got its number."""

    def deliver(self, packet: Packet) -> None:
        """A packet was handed to the application."""

    def level(self, level: Level, packet: Packet) -> None:
        """What is known of a packet rose."""

    def transmit(self, unit: Unit, *, again: bool) -> None:
        """A unit was put on the network."""

    def arrive(self, unit: Unit) -> None:
        """A unit came."""

    def discard(self, unit: Unit, why: str) -> None:
        """A unit was thrown away."""

    def view(self, view: View) -> None:
        """The group goes on with these members."""

    def stopped(self, why: str) -> None:
        """The group agrees on its order."""

    def resumed(self, found: Resumed) -> None:
        """It is agreed on."""

    def timeout(self, name: str) -> None:
        """A timer fired."""

    def abort(self, why: str) -> None:
        """The group was given up."""

    def end(self, counters: RunRow) -> None:
        """Nothing more happens; `counters` are columns of the run's row."""

    async def written(self) -> None:
        """Comes back when everything is on the disk, after `end`."""


NewRecorder = Callable[[int], MemberRecorder]
"""The record of a session."""


def no_recorder(_: int) -> MemberRecorder:
    """Nothing is written down."""
    return MemberRecorder()


def require_writable(folder: Path) -> None:
    """Found out before the others count on us."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise ConfigError(f"no record can be written to {folder}: {error.strerror}; name another folder") from error


def record_detail_of(recorded: Recorded | str) -> Recorded:
    """How much is to be written down, as a user says it."""
    try:
        return Recorded(recorded)
    except ValueError:
        raise ConfigError(f"recorded is all, deliveries or none, not {recorded!r}") from None
