"""Discovery: how members find each other when they know only a group's name, its size, and a multicast address.

Each announces itself again and again (`Hello`): its name, its address, and whom it knows. Members prefer the names that
sort first, so that all end with the same ones if more come than there is place for. Who knows as many as the group has,
and has received from all of these that they know the same, has found the group; so has one that learns it from another
of them. A place in the list belongs to one incarnation of a process: another one of the same name is rejected.

Replay protection: somebody may have recorded hellos of earlier days, and send them again. So a process is counted only
if its hello names our own incarnation among those that it has received from, and only a `HelloRejection`, which names
our incarnation too, ends our search: a process that cannot be in one group with us is told so, and if it is alive will
tell us. One that is rejected continues for a few rounds, in which it does that.

What is found is only a list: the handshake makes sure that all have the same.
"""

from typing import Final

import msgspec

from ordercast.live.session.events import Begin, SessionConfig
from ordercast.model.config import SECOND, require
from ordercast.model.declared_state import DeclaredState
from ordercast.model.machine import CancelTimer, SetTimer, TimerFired
from ordercast.protocols.shared.jitter import spread
from ordercast.wire.control import MAX_HEARD, MAX_MEMBERS, MAX_NAME_LENGTH, Hello, HelloRejection, Known, truncated

FORGET_AFTER = 40
"""Rounds after which a process that sends nothing is no longer counted, while the group is not found."""
CLOSE = 1
"""Rounds by which two processes differ that may have begun at the same time."""
LAST_ROUNDS = 6
"""Rounds, of half the time, in which a rejected process rejects others; and in which that is repeated."""


class AnnouncementReceived(msgspec.Struct, frozen=True, gc=False):
    """Input: an announcement arrived by multicast; our own may come back."""

    message: Hello | HelloRejection


Input = Begin | AnnouncementReceived | TimerFired


class Announce(msgspec.Struct, frozen=True, gc=False):
    """Output: send this by multicast."""

    message: Hello | HelloRejection


class Found(msgspec.Struct, frozen=True, gc=False):
    """Output: the members in the order that all have, and their addresses. We still answer those who look."""

    names: tuple[str, ...]
    addresses: tuple[str, ...]
    incarnations: tuple[int, ...]


class NotFound(msgspec.Struct, frozen=True, gc=False):
    """Output: the group was not found, or has no place for us. Nothing is sent any more."""

    why: str


Output = Announce | SetTimer | CancelTimer | Found | NotFound


class Discovery(DeclaredState):
    """One process that looks for its group."""

    group: Final[str]
    name: Final[str]
    address: Final[str]
    incarnation: Final[int]
    size: Final[int]
    config: Final[SessionConfig]
    round: int
    began: bool
    found: bool
    over: bool
    others: list[Hello]
    """The last hello of each other process that we count; never more than fit beside us."""
    received_at: list[int]
    """Our round when it arrived."""
    recent: list[int]
    """The incarnations that sent a hello last, whether they are counted or not; the latest is the last."""
    rejected: str
    """Why we were rejected; empty if we were not."""
    rounds_left: int
    other_size: Hello | None
    """The last hello for a group of another size."""
    other_size_at: int
    """Our round when it arrived."""

    def __init__(
        self,
        group: str,
        name: str,
        address: str,
        incarnation: int,
        size: int,
        config: SessionConfig = SessionConfig(),  # noqa: B008 (it is frozen)
    ) -> None:
        for what, text in (("group name", group), ("name", name), ("address", address)):
            require(
                1 <= len(text) <= MAX_NAME_LENGTH, f"a {what} has 1 to {MAX_NAME_LENGTH} characters, not {len(text)}"
            )
        require(1 <= size <= MAX_MEMBERS, f"a group has 1 to {MAX_MEMBERS} members, not {size}")
        self.group, self.name, self.incarnation, self.size, self.config = group, name, incarnation, size, config
        self.address = address
        self.round = 0
        self.began = self.found = self.over = False
        self.others = []
        self.received_at = []
        self.recent = []
        self.rejected = ""
        self.rounds_left = LAST_ROUNDS
        self.other_size = None
        self.other_size_at = 0

    def handle(self, event: Input) -> list[Output]:
        """Takes one input and returns all that follows from it."""
        out: list[Output] = []
        if self.over:
            return out
        match event:
            case Begin():
                if not self.began:
                    self.began = True
                    out.append(SetTimer("discovery", self.config.handshake_timeout))
                    self._repeat(out)
                    self._check_found(out)
            case TimerFired("hello"):
                self._next_round(out)
            case TimerFired("discovery"):
                if not self.found:
                    self._end(self._missing(), out)
            case AnnouncementReceived(Hello() as hello):
                self._receive(hello, out)
            case AnnouncementReceived(HelloRejection() as rejection):
                self._receive_rejection(rejection)
        return out

    # --- sending ---

    def _next_round(self, out: list[Output]) -> None:
        if self.rejected:
            self.rounds_left -= 1
        if not self.rounds_left:
            self._end(self.rejected, out)
        elif not self.found:
            self._forget()
            if self.other_size is not None and self.round - self.other_size_at < LAST_ROUNDS:
                self._reject(self.other_size, self._sizes(self.other_size), out)
            self._repeat(out)

    def _hello(self) -> Hello:
        self.round += 1
        knows = tuple(Known(hello.name, hello.incarnation) for hello in self._everybody())
        return msgspec.structs.replace(self._own(), knows=knows, hears=tuple(self.recent))

    def _own(self) -> Hello:
        return Hello(self.group, self.name, self.incarnation, self.address, self.size, self.round, (), self.found)

    def _everybody(self) -> list[Hello]:
        """Everybody that we count and ourselves, by name."""
        return sorted([*self.others, self._own()], key=lambda hello: hello.name)

    def _repeat(self, out: list[Output]) -> None:
        out.append(Announce(self._hello()))
        wait = self.config.repeat if self.rejected else 2 * self.config.repeat
        out.append(SetTimer("hello", spread(wait, self.incarnation & 0xFFFF, self.round)))

    def _reject(self, hello: Hello, why: str, out: list[Output]) -> None:
        out.append(Announce(HelloRejection(self.group, hello.name, hello.incarnation, truncated(why))))

    def _end(self, why: str, out: list[Output]) -> None:
        self.over = True
        out += [CancelTimer("hello"), CancelTimer("discovery"), NotFound(truncated(why))]

    # --- receiving ---

    def _receive_rejection(self, rejection: HelloRejection) -> None:
        mine = (self.group, self.name, self.incarnation)
        if not self.found and mine == (rejection.group, rejection.name, rejection.incarnation):
            self.rejected = self.rejected or rejection.why or "the group has no place for this process"

    def _receive(self, hello: Hello, out: list[Output]) -> None:
        if not self.began or hello.group != self.group or hello.incarnation == self.incarnation:
            return
        self._remember(hello.incarnation)
        if hello.name == self.name:
            self._receive_from_namesake(hello, out)
            return
        if hello.size != self.size:
            self.other_size, self.other_size_at = hello, self.round
            self._reject(hello, self._sizes(hello), out)
            if self.incarnation not in hello.hears:
                out.append(Announce(self._hello()))  # so that it can reject us
            return
        if self.rejected:
            return  # others decide who is in the group
        place = next((index for index, known in enumerate(self.others) if known.name == hello.name), None)
        if place is None:
            self._consider(hello, out)
        elif self.others[place].incarnation != hello.incarnation:
            if self.found:  # else it is counted when the other one is silent for long, or they settle it
                self._reject(hello, f"another process uses the name {hello.name}, and is a member", out)
        elif hello.round > self.others[place].round or hello.found:
            self.others[place], self.received_at[place] = hello, self.round
            self._check_found(out)
            if self.found and not hello.found:
                out.append(Announce(self._hello()))

    def _sizes(self, hello: Hello) -> str:
        return f"{hello.name} looks for a group of {hello.size} members, {self.name} for one of {self.size}"

    def _remember(self, incarnation: int) -> None:
        """Our next hello names it: a hello that answers this one proves that its process is alive."""
        if incarnation in self.recent:
            self.recent.remove(incarnation)
        self.recent = [*self.recent, incarnation][-MAX_HEARD:]

    def _receive_from_namesake(self, hello: Hello, out: list[Output]) -> None:
        """Of two processes with our name the one that began first stays, and rejects the other.

        Rounds tell which did, if they differ by more than what is in flight; else any rule will do that both have.
        """
        ahead = self.round - hello.round
        stays = self.found or ahead > CLOSE or (ahead >= -CLOSE and self.incarnation > hello.incarnation)
        if stays and not self.rejected:
            self._reject(hello, f"another process uses the name {self.name}; give every member a name of its own", out)

    def _consider(self, hello: Hello, out: list[Output]) -> None:
        """Counted if there is place, or if its name sorts before one that we count; not once the group is found."""
        if self.found:
            names = ", ".join(known.name for known in self._everybody())
            self._reject(hello, f"the group has its {self.size} members: {names}", out)
            return
        if self.incarnation not in hello.hears:
            return  # it may be a replay; if it is not, it will receive from us
        self.others.append(hello)
        self.received_at.append(self.round)
        if len(self.others) >= self.size:
            last = max(range(len(self.others)), key=lambda index: self.others[index].name)
            del self.others[last], self.received_at[last]
        self._check_found(out)

    def _forget(self) -> None:
        """A process that is silent for long is gone: its place is free."""
        kept = [index for index, round_ in enumerate(self.received_at) if self.round - round_ < FORGET_AFTER]
        self.others = [self.others[index] for index in kept]
        self.received_at = [self.received_at[index] for index in kept]

    # --- the result ---

    def _check_found(self, out: list[Output]) -> None:
        """The group is found if all that we know know the same, or one of them has found it."""
        everybody = self._everybody()
        known = tuple(Known(hello.name, hello.incarnation) for hello in everybody)
        if self.found or len(known) < self.size:
            return
        if all(hello.knows == known for hello in self.others) or any(
            hello.found and hello.knows == known for hello in self.others
        ):
            self.found = True
            out += [CancelTimer("hello"), CancelTimer("discovery"), Announce(self._hello())]
            out.append(
                Found(
                    tuple(hello.name for hello in everybody),
                    tuple(hello.address for hello in everybody),
                    tuple(hello.incarnation for hello in everybody),
                )
            )

    def _missing(self) -> str:
        names = ", ".join(hello.name for hello in self._everybody())
        if self.rejected:
            return self.rejected
        within = f"within {self.config.handshake_timeout / SECOND:g} s"
        if len(self.others) + 1 < self.size:
            sentence = f"{within} {len(self.others) + 1} of {self.size} members of {self.group} were found: {names}"
            return f"{sentence}; {self._sizes(self.other_size)}" if self.other_size is not None else sentence
        return f"{within} the members of {self.group} did not agree on the same list; {self.name} knows {names}"
