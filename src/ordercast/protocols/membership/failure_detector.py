"""The failure detector of a view: few watch each member, and ask each other before one suspects it.

A member is watched by at most three others, so that an idle group of n members sends 3n heartbeats an interval and not
n(n-1). Whatever a member sends to a watcher counts as a heartbeat. A watcher that has not heard from a member asks it;
when most of the failure timeout has passed, it asks the other watchers too, and suspects the member only if none of
them has heard from it lately. A member that one watcher alone cannot hear is alive.

Time is measured by our own timer, which may be late as well: a process that was suspended must not suspect others for
what it missed, and one that hears from nobody has probably lost its own connection.

No clock and no timer is here: the host calls `tick` twice in a heartbeat interval and hands in the time.
"""

from typing import Final

import msgspec

from ordercast.model.config import SECOND, ConfigValue, require
from ordercast.model.declared_state import DeclaredState
from ordercast.model.nodes import members

HEARTBEATS_PER_TIMEOUT = 12
"""Heartbeats that must all be lost, and the answers to as many questions, before a member is suspected."""
TICKS_PER_TIMEOUT = 2 * HEARTBEATS_PER_TIMEOUT
STALL_TIMEOUTS = 4
"""Failure timeouts for which a member is not heard that others hear, before it is told that a link is broken."""
_SMALL = 5  # members up to which the watchers are the next three
_NOT_SEEN = 1 << 62  # nanoseconds: nobody has vouched for it


class DetectorConfig(ConfigValue, frozen=True, kw_only=True):
    """The timing of a failure detector, in nanoseconds."""

    failure_timeout: int = 3 * SECOND
    """A member from which nobody heard for this time is suspected."""

    def __post_init__(self) -> None:
        require(
            self.failure_timeout >= 2 * HEARTBEATS_PER_TIMEOUT,
            f"the failure timeout must be at least {2 * HEARTBEATS_PER_TIMEOUT} ns, not {self.failure_timeout}",
        )

    @property
    def heartbeat(self) -> int:
        """The interval of heartbeats."""
        return self.failure_timeout // HEARTBEATS_PER_TIMEOUT

    @property
    def tick(self) -> int:
        """The interval in which `tick` is to be called."""
        return self.heartbeat // 2


class Duties(msgspec.Struct, frozen=True, gc=False):
    """What a tick asks for. Sets of members are bit masks of places."""

    heartbeats: int = 0
    """Send them a heartbeat: they watch us, and were sent nothing else."""
    questions: int = 0
    """Send them a heartbeat that is to be answered at once: nothing came from them."""
    probes: tuple[tuple[int, int], ...] = ()
    """(watcher, member): ask this watcher when it last heard from this member."""
    suspected: int = 0
    """Newly suspected members."""
    unheard: int = 0
    """Members that we have not heard for long, though others have: a link is broken. Told once in a failure timeout."""


def watchers_of(place: int, nodes: int) -> int:
    """The members that watch a place, as a bit mask; at most three."""
    steps = (1, 2, 3) if nodes <= _SMALL else (1, 2, 4)
    mask = 0
    for step in steps:
        mask |= 1 << (place + step) % nodes
    return mask & ~(1 << place)


def watched_by(place: int, nodes: int) -> int:
    """The members that a place watches."""
    mask = 0
    for other in range(nodes):
        if watchers_of(other, nodes) >> place & 1:
            mask |= 1 << other
    return mask


class FailureDetector(DeclaredState):
    """The detector of the member at place `me` in a view of `nodes` members; every view has its own."""

    me: Final[int]
    nodes: Final[int]
    config: Final[DetectorConfig]
    watchers: Final[int]
    """Who watches us."""
    watched: Final[int]
    """Whom we watch."""

    silent: list[int]
    """Nanoseconds without traffic, by place, of everybody: whoever is probed has to know."""
    vouched: list[int]
    """Nanoseconds since another watcher heard from it, by place, as far as it was told."""
    active: int
    """Members from which something arrived since the last tick; the host sets bits as it receives."""
    sent: int
    """Members that were sent something since our last heartbeat; the host sets bits as it sends."""
    suspected: int
    """Members taken for failed, one bit each."""
    ticks: int
    """Ticks so far; numbers the probes."""
    ticked_at: int | None
    """The time of the last tick; None: there was none yet."""
    suspended_before: int
    """Nanoseconds since we were last taken for suspended; at most the failure timeout."""

    def __init__(self, me: int, nodes: int, config: DetectorConfig) -> None:
        self.me, self.nodes, self.config = me, nodes, config
        self.watchers, self.watched = watchers_of(me, nodes), watched_by(me, nodes)
        self.silent = [0] * nodes
        self.vouched = [_NOT_SEEN] * nodes
        self.active = self.sent = self.suspected = self.ticks = 0
        self.ticked_at = None
        self.suspended_before = config.failure_timeout

    def tick(self, now: int) -> Duties:
        """Twice in a heartbeat: what is to be sent, and who is suspected. `now`: by any monotonic clock."""
        elapsed = self.config.tick if self.ticked_at is None else max(now - self.ticked_at, 0)
        self.ticked_at = now
        self.ticks += 1
        self._age(elapsed)
        heartbeats = 0
        if self.ticks % 2 == 0:
            heartbeats, self.sent = self.watchers & ~self.sent, 0
        doubtful = members(self._silent_for(self.config.failure_timeout * 2 // 3))
        probes = tuple((watcher, member) for member in doubtful for watcher in members(self._others(member)))
        unheard = self._unheard() if self.ticks % TICKS_PER_TIMEOUT == 0 else 0
        return Duties(heartbeats, self._silent_for(self._quiet), probes, self._suspect(), unheard)

    @property
    def _quiet(self) -> int:
        """The silence after which a member is asked: more than one heartbeat was lost, or it has failed."""
        return self.config.heartbeat * 3 // 2 + 1

    def _age(self, elapsed: int) -> None:
        """Adds the time since the last tick to every silence, unless we were suspended ourselves.

        If our own timer is late by more than a heartbeat, what the others sent meanwhile may be lost or not read yet:
        each of them has as long as we were suspended to be heard again, or half of the failure timeout if that is less.
        That is granted once in a failure timeout: a member that is always late must detect failures, too.
        """
        config = self.config
        was_suspended = elapsed > config.tick + config.heartbeat and self.suspended_before >= config.failure_timeout
        self.suspended_before = 0 if was_suspended else min(self.suspended_before + elapsed, config.failure_timeout)
        most = config.failure_timeout - min(elapsed, config.failure_timeout // 2)
        for place in range(self.nodes):
            if self.vouched[place] < _NOT_SEEN:
                self.vouched[place] += elapsed
            if self.active >> place & 1:
                self.silent[place], self.vouched[place] = 0, _NOT_SEEN
                self.suspected &= ~(1 << place)
            else:
                self.silent[place] += elapsed
                if was_suspended:
                    self.silent[place] = min(self.silent[place], most)
        self.active = 0

    def _silent_for(self, duration: int) -> int:
        """The members that we watch and that were silent for at least so long."""
        mask = 0
        for place in members(self.watched):
            if self.silent[place] >= duration:
                mask |= 1 << place
        return mask

    def _others(self, member: int) -> int:
        """The other watchers of a member that can be asked about it."""
        return watchers_of(member, self.nodes) & ~(1 << self.me) & ~self.suspected

    def _unheard(self) -> int:
        """Whom we watch and do not hear, while other watchers do."""
        timeout, mask = self.config.failure_timeout, 0
        for place in members(self._silent_for(STALL_TIMEOUTS * timeout)):
            if self.vouched[place] <= timeout // 3:
                mask |= 1 << place
        return mask

    def _suspect(self) -> int:
        timeout = self.config.failure_timeout
        # If all are silent, our own connection is more likely to have failed: then they have twice as long.
        alone = self.watched.bit_count() > 1 and self._silent_for(self._quiet) == self.watched
        newly = 0
        for place in members(self._silent_for(2 * timeout if alone else timeout) & ~self.suspected):
            if self.vouched[place] > timeout // 3:
                newly |= 1 << place
        self.suspected |= newly
        return newly

    # --- what watchers ask each other ---

    def last_heard(self, member: int) -> int:
        """The answer to a probe: nanoseconds since we heard from a member, at the last tick."""
        return 0 if self.active >> member & 1 else self.silent[member]

    def vouch(self, member: int, ago: int, asked_in_tick: int) -> None:
        """The answer to a probe that we sent in a tick of this number; what was on its way for long counts for less."""
        if not 0 <= member < self.nodes or member == self.me or asked_in_tick > self.ticks or ago < 0:
            return
        heard = ago + (self.ticks - asked_in_tick) * self.config.tick
        self.vouched[member] = min(self.vouched[member], heard)
