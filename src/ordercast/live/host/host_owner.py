"""What a host tells the member that it belongs to."""

from typing import Protocol

from ordercast.protocols.membership.events import Excluded, InstallView
from ordercast.protocols.membership.units import Found, Welcome


class HostOwner(Protocol):
    """Who is told what becomes of the group."""

    def view_installed(self, change: InstallView) -> None:
        """The group continues with these members. The machine is in the middle of a turn, as in all that follow."""

    def left_group(self) -> None:
        """The others continue without this member, as it wanted."""

    def excluded(self, output: Excluded) -> None:
        """The others continue without this member."""

    def found(self, unit: Found, address: str) -> Found:
        """The same, with what one that asks from this address is told besides."""

    def welcome(self, unit: Welcome) -> Welcome:
        """The same, with what those that join are told besides."""

    def blocked(self, lacks: int) -> None:
        """Too few members can be reached to agree on the next view: these places are silent; 0: it is over."""

    def recovery_started(self, why: str) -> None:
        """The group agrees on its order anew."""

    def protocol_aborted(self, why: str) -> None:
        """The machine gave the group up."""

    def protocol_failed(self, error: Exception) -> None:
        """There is an error in our own code: the machine's state is worth nothing any more."""
