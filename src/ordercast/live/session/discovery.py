"""How members find each other when they know only a group's name, its size, and where everybody listens.

Each says hello again and again: its name and address, and whom it knows. Members prefer the names that come first, so
that all end with the same ones if more come than there is place for. Who knows as many as there are to be, and has
heard from all of these that they know just the same, has found the group; so has one that is told so by another of
them. A place in the list then belongs to a life of a process: another one of the same name is turned away.

Somebody may have kept hellos of earlier days, and say them again. So a process is counted only if its hello names our
own life among those that it hears, and only a `HelloRejection`, which names our life too, ends our search: who cannot
be in one group with us is told so, and will, if it is alive, tell us. Who is turned away goes on for a few rounds, in
which it does that.

What is found is only a list: whether all have the same is made sure of when the session opens.
"""

import msgspec

from ordercast.live.session.events import SessionConfig
from ordercast.live.session.whole_state import WholeState
from ordercast.model.config import SECOND, require
from ordercast.model.machine import CancelTimer, SetTimer
from ordercast.protocols.shared.timers import spread
from ordercast.wire.control import MAX_HEARD, MAX_MEMBERS, MAX_NAME_LENGTH, Hello, HelloRejection, Known, truncated

FORGET_AFTER = 40
"""Rounds after which a process that says nothing is no longer counted, while the group is not found."""
CLOSE = 1
"""Rounds by which two processes differ that may have begun at the same time."""
FAREWELL = 6
"""Rounds, of half the time, in which one that was turned away turns others away; and in which that is repeated."""


class Begin(msgspec.Struct, frozen=True, gc=False):
    """Input: look for the others."""


class AnnouncementReceived(msgspec.Struct, frozen=True, gc=False):
    """Input: somebody said something where all listen; our own words may come back."""

    message: Hello | HelloRejection


class TimerFired(msgspec.Struct, frozen=True, gc=False):
    """Input: the time of a timer has come."""

    name: str


Input = Begin | AnnouncementReceived | TimerFired


class Announce(msgspec.Struct, frozen=True, gc=False):
    """Output: say this where all listen."""

    message: Hello | HelloRejection


class Found(msgspec.Struct, frozen=True, gc=False):
    """Output: the members in the order that all have, and their addresses. We still answer those who look."""

    names: tuple[str, ...]
    addresses: tuple[str, ...]
    incarnations: tuple[int, ...]


class NotFound(msgspec.Struct, frozen=True, gc=False):
    """Output: the group was not found, or has no place for us. Nothing is said any more."""

    why: str


Output = Announce | SetTimer | CancelTimer | Found | NotFound


class Discovery(WholeState):
    """One process that looks for its group."""

    def __init__(
        self,
        group: str,
        name: str,
        address: str,
        incarnation: int,
        size: int,
        config: SessionConfig = SessionConfig(),  # noqa: B008 (it is frozen)
    ) -> None:
        for what, text in (("name of a group", group), ("name", name), ("address", address)):
            require(1 <= len(text) <= MAX_NAME_LENGTH, f"a {what} has 1 to {MAX_NAME_LENGTH} letters, not {len(text)}")
        require(1 <= size <= MAX_MEMBERS, f"a group has 1 to {MAX_MEMBERS} members, not {size}")
        self.group, self.name, self.incarnation, self.size, self.config = group, name, incarnation, size, config
        self.address = address
        self.round = 0
        self.began = False
        self.found = False
        self.over = False
        self.others: list[Hello] = []
        """The last hello of each other process that we count, by name; never more than fit beside us."""
        self.heard_at: list[int] = []
        """Our round when it came."""
        self.hears: list[int] = []
        """The lives that said hello last, whether they are counted or not; the latest is the last."""
        self.turned_away = ""
        """Why, if we were."""
        self.rounds_left = FAREWELL
        self.unfit: Hello | None = None
        """The last hello that was for a group of another size."""
        self.unfit_at = 0
        """Our round when it came."""

    def handle(self, event: Input) -> list[Output]:
        """Takes one input and returns all that follows from it."""
        out: list[Output] = []
        if self.over:
            return out
        match event:
            case Begin():
                if not self.began:
                    self.began = True
                    out.append(SetTimer("finding", self.config.opening))
                    self._repeat(out)
                    self._look(out)
            case TimerFired("hello"):
                self._next_round(out)
            case TimerFired("finding"):
                if not self.found:
                    self._end(self._not_enough(), out)
            case AnnouncementReceived(Hello() as hello):
                self._hear(hello, out)
            case AnnouncementReceived(HelloRejection() as unwelcome):
                self._hear_unwelcome(unwelcome)
        return out

    # --- speaking ---

    def _next_round(self, out: list[Output]) -> None:
        if self.turned_away:
            self.rounds_left -= 1
        if not self.rounds_left:
            self._end(self.turned_away, out)
        elif not self.found:
            self._forget()
            if self.unfit is not None and self.round - self.unfit_at < FAREWELL:
                self._turn_away(self.unfit, self._sizes(self.unfit), out)
            self._repeat(out)

    def _hello(self) -> Hello:
        self.round += 1
        knows = tuple(Known(hello.name, hello.incarnation) for hello in self._all())
        return msgspec.structs.replace(self._own(), knows=knows, hears=tuple(self.hears))

    def _own(self) -> Hello:
        return Hello(self.group, self.name, self.incarnation, self.address, self.size, self.round, (), self.found)

    def _all(self) -> list[Hello]:
        """Everybody that we count and ourselves, by name."""
        return sorted([*self.others, self._own()], key=lambda hello: hello.name)

    def _repeat(self, out: list[Output]) -> None:
        out.append(Announce(self._hello()))
        wait = self.config.repeat if self.turned_away else 2 * self.config.repeat
        out.append(SetTimer("hello", spread(wait, self.incarnation & 0xFFFF, self.round)))

    def _turn_away(self, hello: Hello, why: str, out: list[Output]) -> None:
        out.append(Announce(HelloRejection(self.group, hello.name, hello.incarnation, truncated(why))))

    def _end(self, why: str, out: list[Output]) -> None:
        self.over = True
        out += [CancelTimer("hello"), CancelTimer("finding"), NotFound(truncated(why))]

    # --- hearing ---

    def _hear_unwelcome(self, unwelcome: HelloRejection) -> None:
        mine = (self.group, self.name, self.incarnation)
        if not self.found and mine == (unwelcome.group, unwelcome.name, unwelcome.incarnation):
            self.turned_away = self.turned_away or unwelcome.why or "the group has no place for us"

    def _hear(self, hello: Hello, out: list[Output]) -> None:
        if not self.began or hello.group != self.group or hello.incarnation == self.incarnation:
            return
        self._remember(hello.incarnation)
        if hello.name == self.name:
            self._namesake(hello, out)
            return
        if hello.size != self.size:
            self.unfit, self.unfit_at = hello, self.round
            self._turn_away(hello, self._sizes(hello), out)
            if self.incarnation not in hello.hears:
                out.append(Announce(self._hello()))  # so that it can turn us away
            return
        if self.turned_away:
            return  # who is in the group is for others to say
        place = next((index for index, known in enumerate(self.others) if known.name == hello.name), None)
        if place is None:
            self._newcomer(hello, out)
        elif self.others[place].incarnation != hello.incarnation:
            if self.found:  # else it is counted when the other one has said nothing for long, or they settle it
                self._turn_away(hello, f"another process calls itself {hello.name}, and is a member", out)
        elif hello.round > self.others[place].round or hello.found:
            self.others[place], self.heard_at[place] = hello, self.round
            self._look(out)
            if self.found and not hello.found:
                out.append(Announce(self._hello()))

    def _sizes(self, hello: Hello) -> str:
        return f"{hello.name} looks for a group of {hello.size} members, {self.name} for one of {self.size}"

    def _remember(self, incarnation: int) -> None:
        """Our next hello names it: that it is said again shows that its process is alive."""
        if incarnation in self.hears:
            self.hears.remove(incarnation)
        self.hears = [*self.hears, incarnation][-MAX_HEARD:]

    def _namesake(self, hello: Hello, out: list[Output]) -> None:
        """Of two processes with our name the one that was there first stays, and tells the other.

        Rounds tell who was, if they differ by more than what is under way; else any rule will do that both have.
        """
        ahead = self.round - hello.round
        stays = self.found or ahead > CLOSE or (ahead >= -CLOSE and self.incarnation > hello.incarnation)
        if stays and not self.turned_away:
            self._turn_away(hello, f"another process calls itself {self.name}; every member has its own name", out)

    def _newcomer(self, hello: Hello, out: list[Output]) -> None:
        """Counted if there is place, or if its name comes before one that we count; the group decides when found."""
        if self.found:
            names = ", ".join(known.name for known in self._all())
            self._turn_away(hello, f"the group has its {self.size} members: {names}", out)
            return
        if self.incarnation not in hello.hears:
            return  # it may be an old one; if it is not, it will hear us
        self.others.append(hello)
        self.heard_at.append(self.round)
        if len(self.others) >= self.size:
            last = max(range(len(self.others)), key=lambda index: self.others[index].name)
            del self.others[last], self.heard_at[last]
        self._look(out)

    def _forget(self) -> None:
        """Who has said nothing for long is not there: its place is free."""
        kept = [index for index, round_ in enumerate(self.heard_at) if self.round - round_ < FORGET_AFTER]
        self.others = [self.others[index] for index in kept]
        self.heard_at = [self.heard_at[index] for index in kept]

    # --- finding ---

    def _look(self, out: list[Output]) -> None:
        """Whether all that we know know just the same; or one of them has found it."""
        everybody = self._all()
        known = tuple(Known(hello.name, hello.incarnation) for hello in everybody)
        if self.found or len(known) < self.size:
            return
        if all(hello.knows == known for hello in self.others) or any(
            hello.found and hello.knows == known for hello in self.others
        ):
            self.found = True
            out += [CancelTimer("hello"), CancelTimer("finding"), Announce(self._hello())]
            out.append(
                Found(
                    tuple(hello.name for hello in everybody),
                    tuple(hello.address for hello in everybody),
                    tuple(hello.incarnation for hello in everybody),
                )
            )

    def _not_enough(self) -> str:
        names = ", ".join(hello.name for hello in self._all())
        if self.turned_away:
            return self.turned_away
        within = f"within {self.config.opening / SECOND:g} s"
        if len(self.others) + 1 < self.size:
            told = f"{within} {len(self.others) + 1} of {self.size} members of {self.group} came: {names}"
            return f"{told}; {self._sizes(self.unfit)}" if self.unfit is not None else told
        return f"{within} the members of {self.group} did not agree who they are; {self.name} knows {names}"
