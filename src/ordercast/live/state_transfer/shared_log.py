"""What the transfer of a state needs of the durable logs of both sides: the end of a log instead of a state.

Where members have logs, one that joins says which places of its log it knows. If the donor's log has one of them, what
follows is sent; else the application's state is, at a place of the log.
"""

from collections.abc import AsyncIterator
from typing import Protocol


class DonorLog(Protocol):
    """The log of a donor."""

    async def suffix(self, view: int, locator: bytes) -> tuple[bytes, AsyncIterator[bytes]] | None:
        """A heading, and what a joiner lacks before a view; None: its log has nothing in common with this one.

        Raises `LogError` if the log cannot be read.
        """
        ...

    async def state_heading(self, view: int) -> bytes:
        """The place of the state of a view; raises `LogError`."""
        ...


class JoinerLog(Protocol):
    """The log of one that joins."""

    async def locator(self) -> bytes:
        """The places that it knows; raises `LogError`."""
        ...

    async def take_suffix(self, heading: bytes, parts: AsyncIterator[bytes]) -> bool:
        """Writes what it lacks; True when that is on the disk, False if the application needs a state instead.

        Then the next locator is empty. Raises `LogError`.
        """
        ...

    async def take_state(self, heading: bytes) -> None:
        """The application has loaded the state of a place: the log goes on there; raises `LogError`."""
        ...
