"""What the application submits: given to the epoch, or kept until the next one begins.

- R12: when a view begins, own packets from the cut on are submitted first, in their order; then what waited, to those
  that are still members. What has no destination any more is withdrawn, and its message numbers are left out.
"""

from collections import deque
from typing import Final

from ordercast.model.declared_state import DeclaredState
from ordercast.model.machine import Level, Output, Reached, Submit
from ordercast.protocols.membership.current import Current
from ordercast.protocols.membership.events import MemberOutput, Withdrawn
from ordercast.protocols.membership.order import Epoch
from ordercast.protocols.membership.view import NextView, Reason, places_after


class Submissions(DeclaredState):
    """The part of a member that hands submissions to the epoch."""

    current: Final[Current]
    epoch: Final[Epoch]

    waiting: deque[Submit]  # submitted while stopped, in places of the current view
    skips: int  # message numbers that the next submission leaves out: of what was withdrawn

    def __init__(self, current: Current, epoch: Epoch) -> None:
        self.current, self.epoch = current, epoch
        self.waiting, self.skips = deque(), 0

    def submit(self, event: Submit, out: list[MemberOutput]) -> None:
        """While the epoch takes inputs."""
        self._give(event, self.current.view.everybody if event.to_all else event.destinations, out)

    def _give(self, event: Submit, to: int, out: list[MemberOutput]) -> None:
        """With the message numbers of what was withdrawn before it left out."""
        skips, self.skips = self.skips + event.skips, 0
        submit = Submit(to, event.lengths, event.payload, event.priority, skips, event.to_all)
        out += self.epoch.machine.handle(submit)

    # --- from one view to the next ---

    def withdraw_if_undelivered(self, output: Output, value: NextView, out: list[MemberOutput]) -> None:
        """An own packet that only members were to get that are gone was perhaps never given to them.

        `output`: one of those that end the epoch.
        """
        if not isinstance(output, Reached) or output.level is not Level.ACKNOWLEDGED:
            return
        packet, finishing = output.packet, value.stay
        for leaver, reason in value.left:
            finishing |= (reason is Reason.LEFT) << leaver
        if packet.source == self.current.place and not packet.destinations & finishing:
            submit = Submit(packet.destinations, packet.lengths, packet.payload, packet.priority)
            out.append(Withdrawn(submit, packet.first))

    def resubmit(self, again: list[Submit], number: int, value: NextView, out: list[MemberOutput]) -> None:
        """R12: in the new epoch. `again`: what was not in the cut, in places of the old view.

        `number`: of the first message. What was withdrawn at the end of an earlier view lies between the two.
        """
        waited, self.waiting = self.waiting, deque()
        before, self.skips = self.skips, 0
        for event in again:
            number = self._resubmit_one(event, number, value, out)
        self.skips += before
        number += before
        for event in waited:
            number = self._resubmit_one(event, number, value, out)

    def _resubmit_one(self, event: Submit, number: int, value: NextView, out: list[MemberOutput]) -> int:
        """The number of the message after it."""
        first = number + event.skips
        to = self._in_next_view(event, value)
        if to:
            self._give(event, to, out)
        else:
            self.skips += event.skips + len(event.lengths)
            out.append(Withdrawn(event, first))
        return first + len(event.lengths)

    def _in_next_view(self, event: Submit, value: NextView) -> int:
        """The destinations, as places of the current view."""
        if event.to_all or self.epoch.order.to_all:
            return self.current.view.everybody
        return places_after(value.stay, event.destinations)
