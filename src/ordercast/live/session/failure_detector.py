"""The failure detector: which members are suspected, since nothing arrived from them for the failure timeout.

Time is measured by our own timer, which may be late as well.

Live groups use it no more: `host.failure_detection` runs the detector of the membership protocol, for the members of
the current view. It is used by sessions that detect failures themselves, as those of the tests do.
"""

from typing import Final

from ordercast.live.session.events import SessionConfig
from ordercast.model.nodes import members
from ordercast.model.state import DeclaredState


class FailureDetector(DeclaredState):
    """Adds up the silence of each member at each tick, two in a heartbeat.

    If our own timer is late by more than a heartbeat, this process was suspended, and what the others sent meanwhile
    may be lost or not read yet: each of them then has as long as we were suspended to be heard again, or half of the
    failure timeout, if that is less. Were it always half, a member that is short of a processor now and then would
    never detect a failure.
    """

    config: Final[SessionConfig]
    tick_interval: Final[int]
    silent: list[int]
    """Nanoseconds without traffic, by member."""
    active: int
    """Members from which something arrived since the last tick."""
    suspected: int
    ticked_at: int | None

    def __init__(self, nodes: int, config: SessionConfig) -> None:
        self.config = config
        self.tick_interval = config.heartbeat // 2
        self.silent = [0] * nodes
        self.active = self.suspected = 0
        self.ticked_at = None

    def tick(self, now: int, watched: int) -> tuple[int, int]:
        """Among the members that are watched: those to ask for a heartbeat, and those newly suspected."""
        elapsed = self.tick_interval if self.ticked_at is None else max(now - self.ticked_at, 0)
        self.ticked_at = now
        was_suspended = elapsed > self.tick_interval + self.config.heartbeat
        most = self.config.failure_timeout - min(elapsed, self.config.failure_timeout // 2)
        asked = suspected = 0
        for member in members(watched):
            if self.active >> member & 1:
                self.silent[member] = 0
                continue
            self.silent[member] += elapsed
            if was_suspended:
                self.silent[member] = min(self.silent[member], most)
            if self.silent[member] >= self.config.failure_timeout:
                suspected |= 1 << member
            if 2 * self.silent[member] > 3 * self.config.heartbeat:
                asked |= 1 << member
        newly = suspected & ~self.suspected
        self.suspected = (self.suspected & ~self.active) | suspected
        self.active = 0
        return asked, newly
