"""How far a group has closed: our own stage and those of the others.

Why two rounds: a member that closes first may be disturbed again, by one that still sends. But once *all* have
reported that they send nothing more and that what they sent is stable, nobody has anything new to accept; a member at
rest then stays at rest (DONE). When all have reported that, nobody needs anybody any more.
"""

from collections.abc import Mapping

from ordercast.model.declared_state import DeclaredState
from ordercast.model.nodes import mask_of, members
from ordercast.wire.control import Stage


class Closing(DeclaredState):
    """The stages of one group, as one member knows them."""

    others: int
    """The other members with which the protocol continues."""
    wanted: bool
    """This member sends nothing more."""
    at_rest: bool
    stage: Stage
    stages: dict[int, Stage]

    def __init__(self, others: int) -> None:
        self.others = others
        self.wanted = self.at_rest = False
        self.stage = Stage.OPEN
        self.stages = dict.fromkeys(members(others), Stage.OPEN)

    def remain(self, others: int) -> None:
        """The protocol continues with these: who is new has not closed."""
        self.others = others
        self.stages = {member: self.stages.get(member, Stage.OPEN) for member in members(others)}

    def received(self, member: int, stage: Stage) -> None:
        """Stages are final: an old heartbeat that arrives late changes nothing."""
        if member in self.stages:
            self.stages[member] = max(self.stages[member], stage)

    def below(self, stage: Stage) -> int:
        """The others that have not reached this stage."""
        return mask_of(member for member in members(self.others) if self.stages[member] < stage)

    def advance(self) -> bool:
        """Takes every step that may be taken now; True if there was one."""
        before = self.stage
        if self.stage is Stage.OPEN and self.wanted and self.at_rest:
            self.stage = Stage.CLOSING
        if self.stage is Stage.CLOSING and self.at_rest and not self.below(Stage.CLOSING):
            self.stage = Stage.DONE
        if self.stage is Stage.DONE and (not self.below(Stage.DONE) or self._somebody_leaves()):
            self.stage = Stage.ALL_DONE
        return self.stage is not before

    def _somebody_leaves(self) -> bool:
        """True if somebody knows already that all are done."""
        return any(self.stages[member] is Stage.ALL_DONE for member in members(self.others))

    def waits_for(self, me: int, names: Mapping[int, str]) -> tuple[str, ...]:
        """What keeps this member from leaving, in words."""
        if not self.wanted or self.stage is Stage.ALL_DONE:
            return ()
        waits = [] if self.at_rest else [f"{names[me]} still has messages in flight"]
        behind = members(self.below(Stage.DONE if self.stage is Stage.DONE else Stage.CLOSING))
        for member in behind:
            if self.stages[member] is Stage.OPEN:
                waits.append(f"{names[member]} has not closed, or still has messages in flight")
            else:
                waits.append(f"{names[member]} still waits for messages")
        return tuple(waits)
