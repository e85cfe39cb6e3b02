"""What an application hands over so that members that join get its state."""

from collections.abc import AsyncIterator, Iterable
from typing import Protocol


class State(Protocol):
    """The application's state, as it is given to members that join: `join(..., state=...)`."""

    def save(self) -> bytes | Iterable[bytes] | AsyncIterator[bytes]:
        """The state as it is now: bytes, or an iterator over parts of something that does not change any more.

        Called when the application is handed a view with members that joined, after all messages before it and before
        all after it; several times, if an iterator is returned and several members joined. It must return at once.
        Parts are taken only as fast as the joining member loads them.
        """
        ...

    async def load(self, parts: AsyncIterator[bytes]) -> None:
        """Replaces the state by the one that was saved; its parts are cut anew, and need not be those of `save`.

        The state is complete when `parts` ends. If the connection breaks before, `parts` raises a `ConnectionError`,
        and `load` is called again, from the beginning. In a member that was excluded and returns it is called when the
        application was handed `Excluded`.
        """
        ...


class StateInterruptedError(ConnectionError):
    """The connection over which a state came broke: it comes again from the beginning."""
