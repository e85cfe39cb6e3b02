"""The simplest failure detector that suffices where nothing but the order is measured: in simulator and explorer.

While something is outstanding, a member that is silent for one beat is probed, and suspected if it is silent for
several. A group in which nothing is outstanding is silent. With many beats the detector also runs while somebody asks
to join: a member that has failed unnoticed would keep that one out.
"""

from typing import Final

from ordercast.model.declared_state import DeclaredState
from ordercast.model.machine import Output, SetTimer
from ordercast.model.nodes import members
from ordercast.protocols.membership.machine import MembershipMachine

BEATS = 4
"""Beats without a word after which a member is suspected; after one it is probed. Few, for searches."""
MANY_BEATS = 10
"""The same where units are lost: of a member that lives hardly ever all probes and answers are."""


class SilenceDetector(DeclaredState):
    """Counts the beats in which members said nothing."""

    beat: Final[int]
    beats: Final[int]

    runs: bool  # the timer runs
    silent: dict[int, int]  # by place: beats without a word
    asking: int  # beats for which it goes on, because somebody asks to join

    def __init__(self, failure_timeout: int, beats: int = BEATS) -> None:
        self.beat, self.beats = failure_timeout // beats, beats
        self.runs, self.silent, self.asking = False, {}, 0

    def heard(self, place: int) -> None:
        """A unit of this member came."""
        self.silent[place] = 0

    def asked(self) -> None:
        """Somebody wants to join."""
        self.asking = 2 * self.beats if self.beats > BEATS else 0

    def begin_if_needed(self, member: MembershipMachine, out: list[Output]) -> None:
        """Sets the timer if something is outstanding."""
        if not self.runs and self._is_needed(member):
            self.silent = {}
            self._set_timer(out)

    def due(self, member: MembershipMachine | None, out: list[Output]) -> tuple[tuple[int, ...], int]:
        """The timer has fired: who is to be probed, and who is suspected. `member`: None if it has not joined."""
        self.runs = False
        if member is None or not self._is_needed(member):
            return (), 0
        self.asking = max(0, self.asking - 1)
        probed, suspects = [], 0
        for place in members(member.current.others):
            count = self.silent.get(place, 0)
            self.silent[place] = count + 1
            if count >= self.beats:
                suspects |= 1 << place
            elif count:
                probed.append(place)
        self._set_timer(out)
        return tuple(probed), suspects

    def _is_needed(self, member: MembershipMachine) -> bool:
        can_fail = not member.stopped and len(member.current.view.members) > 1
        return (can_fail and self.asking > 0) or waits(member)

    def _set_timer(self, out: list[Output]) -> None:
        self.runs = True
        out.append(SetTimer("view.beat", self.beat))


def waits(member: MembershipMachine) -> bool:
    """The epoch has something outstanding; who has stopped is cared for by its coordinator."""
    if member.stopped or len(member.current.view.members) == 1:
        return False
    sizes = member.machine.log_sizes()
    return bool(sizes.waiting or sizes.sent or sizes.held or sizes.accepted or sizes.preacknowledged)
