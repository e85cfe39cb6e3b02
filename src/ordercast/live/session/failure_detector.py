"""Who is silent for how long, measured by our own timer, which may be late as well."""

from ordercast.live.session.events import SessionConfig
from ordercast.live.session.whole_state import WholeState
from ordercast.model.nodes import members


class FailureDetector(WholeState):
    """Counts silence at each tick, two in a beat.

    If our own timer is late by more than a beat, we have slept, and what the others said meanwhile may be lost or has
    still to be read: everybody then has as long as we slept to say it again, or half of what is allowed, if that is
    less. Were it always half, a member that is short of a processor now and then would never find a dead one.
    """

    def __init__(self, nodes: int, config: SessionConfig) -> None:
        self.config = config
        self.tick_every = config.beat // 2
        self.silent = [0] * nodes
        self.heard = 0
        """Members of whom there was a sign since the last tick."""
        self.suspected = 0
        self.ticked_at: int | None = None

    def tick(self, now: int, watched: int) -> tuple[int, int]:
        """Whom to ask whether they are alive, and who is newly suspected, among those that we watch."""
        elapsed = self.tick_every if self.ticked_at is None else max(now - self.ticked_at, 0)
        self.ticked_at = now
        slept = elapsed > self.tick_every + self.config.beat
        most = self.config.silence - min(elapsed, self.config.silence // 2)
        asked = suspected = 0
        for member in members(watched):
            if self.heard >> member & 1:
                self.silent[member] = 0
                continue
            self.silent[member] += elapsed
            if slept:
                self.silent[member] = min(self.silent[member], most)
            if self.silent[member] >= self.config.silence:
                suspected |= 1 << member
            if 2 * self.silent[member] > 3 * self.config.beat:
                asked |= 1 << member
        newly = suspected & ~self.suspected
        self.suspected = (self.suspected & ~self.heard) | suspected
        self.heard = 0
        return asked, newly
