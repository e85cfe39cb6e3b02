"""The end of a membership: one that has left or was excluded goes on answering for a while.

- R10: a member that the next view is without is excluded.
- R11: it answers for two failure timeouts: those that stay may need to hear of the view from it.
"""

from enum import Enum
from typing import Final

from ordercast.model.declared_state import DeclaredState
from ordercast.model.machine import Discard, Submit
from ordercast.protocols.membership.acceptor import Acceptor
from ordercast.protocols.membership.current import Current
from ordercast.protocols.membership.events import Excluded, LeftGroup, MemberOutput, Retired
from ordercast.protocols.membership.order import Epoch
from ordercast.protocols.membership.units import ControlUnit, Fetch, Flush, Install, Propose
from ordercast.protocols.membership.view import NextView

RETIRED_FOR = 2
"""Failure timeouts for which one that is no member any more goes on answering."""
_TIMERS = ("round", "blocked", "fetch", "install", "leave", "gather", "applicants")


class Phase(Enum):
    """Where a member is in its life."""

    MEMBER = "member"
    RETIRED = "retired"
    """It has left or was excluded, and still answers those that may need to hear it."""
    CLOSED = "closed"


class Retirement(DeclaredState):
    """The part of a member that ends its membership."""

    current: Final[Current]
    epoch: Final[Epoch]
    acceptor: Final[Acceptor]

    phase: Phase  # a member; retired: it left or was excluded, and still answers; or closed
    last: NextView | None  # of a retired one: what followed its last view, if it knows

    def __init__(self, current: Current, epoch: Epoch, acceptor: Acceptor) -> None:
        self.current, self.epoch, self.acceptor = current, epoch, acceptor
        self.phase, self.last = Phase.MEMBER, None

    def leave(self, value: NextView, out: list[MemberOutput]) -> None:
        """It has left, with this view."""
        out.append(LeftGroup())
        self._retire(value, out)

    def exclude(self, value: NextView, out: list[MemberOutput]) -> None:
        """R10: a view without this member was decided."""
        remaining = value.stay.bit_count() + len(value.joined)
        out.append(Excluded(value.number, value.why, value.cut.ends[self.current.place], remaining))
        self._retire(value, out)

    def exclude_unknown(self, number: int, remaining: int, out: list[MemberOutput]) -> None:
        """The others are in a view of this number, without this member: it does not know what followed its own."""
        out.append(Excluded(number, "the others went on", None, remaining))
        self._retire(None, out)

    def _retire(self, value: NextView | None, out: list[MemberOutput]) -> None:
        self.phase, self.last = Phase.RETIRED, value
        for name in _TIMERS:
            self.current.cancel_timer(name, out)
        self.current.set_timer("retired", RETIRED_FOR * self.current.settings.failure_timeout, out)

    def answer(self, unit: ControlUnit, out: list[MemberOutput]) -> None:
        """R11: tells the view that followed; one that does not know it answers as an acceptor."""
        if isinstance(unit, Flush | Propose):
            if self.last is not None:
                current = self.current
                current.send(Install(current.view.number, current.place, self.last), unit.source, out)
            elif isinstance(unit, Flush):
                self.acceptor.receive_flush(unit, out)
            else:
                self.acceptor.receive_propose(unit, out)
        elif isinstance(unit, Fetch):
            self.acceptor.receive_fetch(unit, out)
        else:
            out.append(Discard(unit, "old"))

    def close(self, out: list[MemberOutput]) -> None:
        """It has answered for long enough."""
        self.phase = Phase.CLOSED
        out.append(Retired())

    def left_over(self) -> list[Submit]:
        """Of one that was excluded by a view that it knows: own packets that nobody delivers, in their order."""
        return [] if self.last is None else self.epoch.flush.left_over(self.last.cut)
