"""A barrier: all wait until enough have arrived."""

import asyncio

from ordercast.model.errors import ConfigError
from ordercast.replicated.objects import Replicated, command, query, undo_later


class Barrier(Replicated):
    """Callers wait here until enough of the whole group have arrived; then all go on, and it is closed again.

    `parties`: how many; 0: at least one caller of each member of the view. Whoever leaves the group has not arrived.
    """

    parties: int = 0
    round: int = 0
    """How often it has opened."""
    arrived: dict[int, str] = {}
    """Those that wait, by ticket."""
    last_ticket: int = 0

    def __post_init__(self) -> None:
        if self.parties < 0:
            raise ConfigError(f"parties must be 0 or more, not {self.parties}")

    @command
    def arrive(self) -> tuple[int, int]:
        """A caller waits: the round, and its ticket."""
        self.last_ticket += 1
        self.arrived[self.last_ticket] = self.context.caller
        found = self.round, self.last_ticket
        self._open_if_complete()
        return found

    @command
    def give_up(self, ticket: int) -> bool:
        """A caller does not wait any longer; whether it was waiting."""
        return self.arrived.pop(ticket, None) is not None

    @query
    def waiting(self) -> tuple[str, ...]:
        """The members whose callers wait."""
        return tuple(self.arrived.values())

    def left(self, member: str) -> None:
        """Its callers do not wait any longer, and nobody waits for it."""
        self.arrived = {ticket: each for ticket, each in self.arrived.items() if each != member}
        self._open_if_complete()

    def _open_if_complete(self) -> None:
        if self.parties:
            complete = len(self.arrived) >= self.parties
        else:
            complete = bool(self.arrived) and set(self.context.members) <= set(self.arrived.values())
        if complete:
            self.round += 1
            self.arrived = {}

    async def wait(self) -> int:
        """Returns when enough have arrived: the number of this round, from 0. A call that is cancelled has not arrived.

        If this member is excluded meanwhile and returns, it arrives again.
        """
        while True:
            asked = self.arrive()
            try:
                number, ticket = await asyncio.shield(asked)
                await self.until(lambda: self.round > number or ticket not in self.arrived)  # noqa: B023
            except asyncio.CancelledError:
                undo_later(asked, lambda found: self.give_up(found[1]))
                raise
            if self.round > number:
                return number
