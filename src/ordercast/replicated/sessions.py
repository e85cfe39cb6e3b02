"""Which commands were applied: each at most once, whatever is sent again, and with its result for a caller that asks.

A process draws the number of its session when it joins, and numbers its commands for each object and priority from 1. A
command is applied if it is the next of its stream: one that comes again is not, and one before which another is missing
is not either, since the caller sends both again.
"""

import msgspec

REMEMBERED_SESSIONS = 8
"""Of each member: the processes that it was, one after the other."""


class Stream(msgspec.Struct, array_like=True):
    """The commands of one session with one priority to one object."""

    last: int = 0
    """The sequence number of the last command that was applied."""
    kept_from: int = 1
    """Results below it are not kept any more: the caller has them."""
    results: dict[int, tuple[str, bytes]] = {}
    """Errors and encoded results by sequence number, of commands that have one."""

    def keep(self, sequence: int, error: str, value: bytes) -> None:
        """Remembers the result of a command until the caller has it."""
        self.results[sequence] = error, value

    def acknowledge(self, through: int) -> None:
        """The caller has the results up to this one, inclusive."""
        if through >= self.kept_from:
            if self.results:
                for sequence in range(self.kept_from, through + 1):
                    self.results.pop(sequence, None)
            self.kept_from = through + 1


class Sessions:
    """The sessions of all members, the current one of each last."""

    def __init__(self) -> None:
        self.numbers: dict[str, list[int]] = {}

    def begin(self, member: str, session: int) -> int | None:
        """A process begins, or goes on; the session that is forgotten for it, if there is one."""
        numbers = self.numbers.setdefault(member, [])
        if session not in numbers:
            numbers.append(session)
        return numbers.pop(0) if len(numbers) > REMEMBERED_SESSIONS else None

    def current(self, member: str) -> int | None:
        """The session in which the commands of a member are numbered now."""
        numbers = self.numbers.get(member)
        return numbers[-1] if numbers else None
