"""One that was started again with its log, and looks for those with whom it begins the group anew.

`assessment` has the rules. Each says again and again what its log has, and what it has heard. The first of those that
may go on makes a plan. One that agrees gets the log of the plan, notes that it has agreed, and says that it is ready;
when all are, the first one begins, and the others follow. A plan with one that says nothing any more is given up.

Time is counted in calls of `tick`.
"""

from hashlib import blake2b
from typing import Final

import msgspec

from ordercast.model.declared_state import DeclaredState
from ordercast.protocols.membership.view import GroupView, Incarnation
from ordercast.protocols.restart.assessment import Assessment, Here, assess
from ordercast.protocols.restart.standing import Plan, Standing, encode_standing, stamp_of

TAG_SIZE = 8


class Say(msgspec.Struct, frozen=True):
    """Output: to all others, wherever they may be."""

    here: Here


class Offer(msgspec.Struct, frozen=True):
    """Output: this one's log is that of a plan; others may ask for it."""

    plan: Plan


class FetchLog(msgspec.Struct, frozen=True):
    """Output: the log is to become that of the plan; then `log_is`, or `log_failed`."""

    plan: Plan


class NotePlan(msgspec.Struct, frozen=True):
    """Output: note in the log that this one has agreed to a plan; then `noted`."""

    plan: Plan


class Abandon(msgspec.Struct, frozen=True):
    """Output: nothing more is to be done for the plan."""


class BeginAnew(msgspec.Struct, frozen=True):
    """Output: the last one. The view of the plan begins."""

    plan: Plan


RestartOutput = Say | Offer | FetchLog | NotePlan | Abandon | BeginAnew


class Patience(msgspec.Struct, frozen=True):
    """How long is waited, in ticks."""

    forget: int = 10
    """After this, one that says nothing is not there."""
    silent: int = 30
    """After this, a plan with one that says nothing is given up."""
    grace: int = 10
    """For those that are missing, when there are enough."""
    plan: int = 100
    """For a plan to begin."""


class RestartMachine(DeclaredState):
    """One attempt to begin anew."""

    me: Final[Incarnation]
    group: Final[str]
    least: Final[int]
    force: Final[bool]
    patience: Final[Patience]

    standing: Standing  # what is noted in the log
    position: int  # of the end of the log that is on the disk, and the running hash there
    hash: bytes  # the running hash of the log up to there
    now: int  # ticks since it began
    peers: dict[str, tuple[Here, int]]  # by name, and when they were heard last
    enough_since: int | None  # the tick since which enough are there; None: they are not
    plan: Plan | None  # what it has agreed to: who begins, and with which log
    planned_at: int  # the tick of that
    plans: int  # that this one has made
    ready: bool  # its log is that of the plan, and the plan is noted in it
    begins: bool  # the first of the plan has seen that all are ready: the view begins
    apart: bool  # it takes no part: it joins those that go on
    offered: set[bytes]  # plans whose log it has, and has offered to others
    waits_for: str  # why it takes so long: a sentence

    def __init__(
        self,
        me: Incarnation,
        group: str,
        standing: Standing,
        *,
        least: int = 1,
        force: bool = False,
        patience: Patience = Patience(),  # noqa: B008 (frozen)
    ) -> None:
        self.me, self.group, self.least, self.force, self.patience = me, group, least, force, patience
        self.standing, self.position, self.hash = standing, 0, b""
        self.now, self.peers, self.enough_since = 0, {}, None
        self.plan, self.planned_at, self.plans = None, 0, 0
        self.ready = self.begins = False
        self.apart = standing.forgot and not force
        self.offered = set()
        self.waits_for = "the others, which have to begin without it: its own log was damaged" if self.apart else ""

    # --- inputs ---

    def place(self, position: int, hash_: bytes) -> None:
        """The end of the log that is on the disk."""
        self.position, self.hash = position, hash_

    def tick(self) -> list[RestartOutput]:
        """Time passes."""
        out: list[RestartOutput] = []
        self.now += 1
        if self.plan is not None and self.now - self.planned_at > self.patience.plan:
            self._give_up(out)
        self._say(out)
        self._step(out)
        return out

    def hear(self, here: Here) -> list[RestartOutput]:
        """Another one has said what it has."""
        out: list[RestartOutput] = []
        if here.me.name == self.me.name:
            return out
        known = self.peers.get(here.me.name)
        if known is None or known[0].me.number == here.me.number or here.hears(self.me):
            self.peers[here.me.name] = (here, self.now)
        if here.plan is not None and here.hears(self.me):
            self._consider(here, here.plan, out)
        self._step(out)
        return out

    def log_is(self, position: int, hash_: bytes) -> list[RestartOutput]:
        """What is asked for with `FetchLog` has come, and is on the disk."""
        out: list[RestartOutput] = []
        self.place(position, hash_)
        if self.plan is not None and not self.ready:
            if (position, hash_) == (self.plan.position, self.plan.hash):
                out.append(NotePlan(self.plan))
            else:
                self._give_up(out)
        return out

    def log_failed(self, *, apart: bool) -> list[RestartOutput]:
        """It does not come. `apart`: the log has nothing in common with that of the plan."""
        out: list[RestartOutput] = []
        self.apart = self.apart or apart
        if self.plan is not None:
            self._give_up(out)
        return out

    def noted(self, tag: bytes) -> list[RestartOutput]:
        """The plan with this tag is noted on the disk."""
        out: list[RestartOutput] = []
        if self.plan is not None and self.plan.tag == tag and not self.ready:
            self.standing = msgspec.structs.replace(self.standing, plan=self.plan)
            self.ready = True
            self._say(out)
            self._step(out)
        return out

    def others_have_begun(self) -> list[RestartOutput]:
        """Something came from the view of a plan."""
        return [BeginAnew(self.plan)] if self.plan is not None and self.ready else []

    # --- what it says ---

    def here(self) -> Here:
        """What this one has."""
        heard = tuple((here.me.name, here.me.number) for here, _ in self.peers.values())
        return Here(
            *(self.group, self.me, encode_standing(self.standing), self.position, self.hash),
            heard=heard,
            plan=self.plan,
            ready=self.ready,
            begins=self.begins,
        )

    def last_view(self) -> GroupView:
        """The latest view that is known to this one, by its own log or by what others have said."""
        known = [self.standing, *(here.standing() for here, _ in self.peers.values())]
        return max((each.view for each in known), key=lambda view: view.number)

    def _say(self, out: list[RestartOutput]) -> None:
        if not self.apart:
            out.append(Say(self.here()))

    # --- plans ---

    def _consider(self, here: Here, plan: Plan, out: list[RestartOutput]) -> None:
        """A plan of another one: the log may be needed, an agreement, or the beginning."""
        if plan.holder.is_same(self.me):
            self._offer(plan, out)
        if self.plan is not None and self.plan.tag == plan.tag:
            if here.begins and self.ready:
                out.append(BeginAnew(plan))
            return
        place = next((at for at, one in enumerate(plan.members) if one.is_same(self.me)), None)
        if (
            self.plan is None
            and not self.apart
            and place is not None
            and plan.members[0].is_same(here.me)
            and plan.basis[place] == stamp_of(self.standing)
            and plan.number > self.standing.highest_number()
        ):
            self._agree(plan, out)

    def _offer(self, plan: Plan, out: list[RestartOutput]) -> None:
        if plan.tag not in self.offered and self.position >= plan.position:
            self.offered.add(plan.tag)
            out.append(Offer(plan))

    def _step(self, out: list[RestartOutput]) -> None:
        """Makes a plan, if it is this one's turn, and begins when all are ready."""
        if self.apart:
            return
        if self.plan is not None:
            if self.ready and self.plan.members[0].is_same(self.me) and self._all_ready(self.plan):
                self.begins = True
                self._say(out)
                out.append(BeginAnew(self.plan))
            elif self.ready and self._is_void(self.plan):
                self._give_up(out)
            return
        found = assess(self._present(), self.least, force=self.force)
        self.waits_for = found.missing
        if found.missing:
            self.enough_since = None
            return
        if self.enough_since is None:
            self.enough_since = self.now
        if found.absent and self.now - self.enough_since < self._grace(found):
            self.waits_for = f"{', '.join(found.absent)} of view {found.view.number}, for a moment"
            return
        if found.participants[0].me.is_same(self.me):
            plan = found.plan(self._new_tag())
            if plan.holder.is_same(self.me):
                self._offer(plan, out)
            self._agree(plan, out)

    def _new_tag(self) -> bytes:
        """Its incarnation is random, or else given once."""
        self.plans += 1
        named = f"{self.me.name} {self.me.number} {self.plans}".encode()
        return blake2b(named, digest_size=TAG_SIZE).digest()

    def _agree(self, plan: Plan, out: list[RestartOutput]) -> None:
        self.plan, self.planned_at, self.ready = plan, self.now, False
        if (self.position, self.hash) == (plan.position, plan.hash):
            out.append(NotePlan(plan))
        else:
            self._say(out)  # the holder has to know the plan
            out.append(FetchLog(plan))

    def _give_up(self, out: list[RestartOutput]) -> None:
        self.plan, self.ready, self.begins, self.enough_since = None, False, False, None
        out.append(Abandon())

    # --- the others ---

    def _present(self) -> list[Here]:
        forget = self.patience.forget
        self.peers = {name: found for name, found in self.peers.items() if self.now - found[1] < forget}
        return [self.here(), *(here for here, _ in self.peers.values() if here.hears(self.me))]

    def _grace(self, found: Assessment) -> int:
        """Those in the last view that were not started again say so, if they are there."""
        there = {here.me.name for here, _ in self.peers.values() if here.is_member}
        return 0 if set(found.absent) <= there else self.patience.grace

    def _is_void(self, plan: Plan) -> bool:
        """One of its members was started once more, or says nothing: it cannot begin."""
        for one in plan.members:
            known = self.peers.get(one.name)
            if known is not None and not known[0].me.is_same(one):
                return True
            heard = self.planned_at if known is None else max(known[1], self.planned_at)
            if not one.is_same(self.me) and self.now - heard > self.patience.silent:
                return True
        return False

    def _all_ready(self, plan: Plan) -> bool:
        heres = {name: here for name, (here, _) in self.peers.items()}
        return all(
            one.is_same(self.me)
            or (
                (here := heres.get(one.name)) is not None
                and here.me.is_same(one)
                and here.ready
                and here.plan is not None
                and here.plan.tag == plan.tag
            )
            for one in plan.members
        )
