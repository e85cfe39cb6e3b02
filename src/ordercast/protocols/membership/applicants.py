"""The members' side of joining: who is found, who is ready, who is refused.

- J3: the terms must be equal, the name well-formed and not in use by a member that answers; at most 64 members.
- J4: an applicant is ready when it has reached every member of the present view directly.
- J5: one view takes in as many as `choice.admitted` allows.
- An application names the view, and shows the ticket that the member gave out last: one that is recorded and repeated
  when its sender is gone changes nothing.
- J9: an incarnation enters once. A member that applies again is welcomed again; one that has departed is refused.
"""

from collections import deque
from collections.abc import Sequence
from typing import Final

import msgspec

from ordercast.model.declared_state import DeclaredState
from ordercast.model.machine import Discard
from ordercast.model.nodes import members
from ordercast.protocols.membership.choice import admitted
from ordercast.protocols.membership.current import Current
from ordercast.protocols.membership.events import MemberOutput, SendOutside
from ordercast.protocols.membership.units import Answer, Apply, Find, Found, Probe, Welcome
from ordercast.protocols.membership.view import MAX_MEMBERS, MAX_WHY, Incarnation

MAX_APPLICANTS = 64
PROBE_ROUNDS = 4
"""Probes that an incarnation whose name somebody else applies with may leave unanswered."""
ANSWERED = 64
"""Questions that are remembered, so that each is answered once."""

Terms = tuple[tuple[str, str], ...]
"""Parameters that must be equal at all members: names and values, sorted."""


class Application(msgspec.Struct, frozen=True, array_like=True):
    """One that is ready to join."""

    applicant: Incarnation
    old: int | None
    order: int
    """Among all applications."""
    age: int
    """Rounds since it was last repeated."""


class Applicants(DeclaredState):
    """What a member knows about those that want to join."""

    current: Final[Current]
    terms: Final[Terms]
    group: Final[str]

    applications: dict[tuple[str, int], Application]  # ready ones, by name and incarnation
    olds: dict[tuple[str, int], int]  # of applications in the view before: the nodes that these were before
    next_order: int  # the place of the next application in the order in which they came
    probing: dict[int, int]  # places whose names are applied with: probes left unanswered
    probed_for: dict[int, int]  # such places: the incarnation that applied last
    refused: deque[int]  # incarnations that applied in this view with a name that is in use
    stateless: int  # places of the view that are not known to have the state
    answered: deque[tuple[int, int]]  # the last questions: incarnation and nonce
    ticket: int  # what applications must show: another one when an applicant has fallen silent
    ticking: bool  # the timer of applications runs
    gathering: bool  # the timer runs after which ready applicants are taken in
    asking: set[int]  # incarnations that have asked for the group since, and may apply soon

    def __init__(self, current: Current, group: str, terms: Terms) -> None:
        self.current, self.group, self.terms = current, group, terms
        self.next_order = 0
        self.applications, self.answered = {}, deque()
        self.ticking = self.gathering = False
        self.start_view()

    def start_view(self) -> None:
        """Readiness is about the members of one view: who still waits applies again."""
        self.olds = {key: each.old for key, each in self.applications.items() if each.old is not None}
        self.applications, self.probing, self.probed_for = {}, {}, {}
        self.refused, self.ticket = deque(), 0
        self.asking = set()
        self.stateless = self.current.value.stateless if self.current.value else 0

    def ready(self) -> Sequence[Incarnation]:
        """Those that may join, the oldest application first."""
        waiting = sorted(self.applications.values(), key=lambda application: application.order)
        return [application.applicant for application in waiting]

    def may_enter(self, suspects: int) -> bool:
        """Whether a view with one more would be proposed now, as far as this member knows."""
        current = self.current
        stay = current.view.everybody & ~suspects
        stateful = stay & ~self.without_state()
        return bool(admitted(current.view, stay, stateful, self.ready(), current.settings))

    # --- finding (J1) ---

    def receive_find(
        self, unit: Find, address: str, coordinator: int, out: list[MemberOutput], *, blocked: bool
    ) -> None:
        """Each question is answered once, whoever repeats it."""
        asked = (unit.incarnation, unit.nonce)
        if unit.group != self.group or asked in self.answered:
            out.append(Discard(unit, "old" if asked in self.answered else "stray"))
            return
        self.answered.append(asked)
        if len(self.answered) > ANSWERED:
            self.answered.popleft()
        asks = Incarnation(unit.name, unit.incarnation, "")
        if len(self.asking) < MAX_APPLICANTS and self.current.view.place_of(asks) is None:
            self.asking.add(unit.incarnation)
        out.append(SendOutside(self._found(unit, coordinator, blocked=blocked), address))
        if blocked and self._joined_now(asks):  # it applies at nobody that is blocked, and is lacking here
            out.append(SendOutside(self.welcome_for(asks), address))

    def _found(self, unit: Find, coordinator: int, *, blocked: bool) -> Found:
        view, current = self.current.view, self.current
        asks = Incarnation(unit.name, unit.incarnation, "")
        return Found(
            *(self.group, unit.name, unit.incarnation, unit.nonce, current.me, view.number, current.place, blocked),
            view.place_of(asks) is not None,
            tuple(member.address for member in view.members),
            coordinator,
            view.members[coordinator].number,
            self.terms,
            self.ticket,
        )

    # --- applying (J3, J4, J9) ---

    def receive_apply(
        self, unit: Apply, address: str, coordinator: int, out: list[MemberOutput], *, blocked: bool
    ) -> None:
        """Takes note of an applicant that is ready; otherwise it is told what it has to wait for."""
        current, applicant = self.current, unit.applicant
        if unit.to != current.me.number:
            out.append(Discard(unit, "stray"))
        elif current.view.place_of(applicant) is not None:
            self._welcome_again(unit, address, out)
        elif refusal := self.refusal(unit):
            self._answer(unit, address, refusal, out, refused=True)
        elif (unit.view, unit.ticket) != (current.view.number, self.ticket) or coordinator != current.place:
            find = Find(self.group, applicant.name, applicant.number, unit.nonce)
            out.append(SendOutside(self._found(find, coordinator, blocked=blocked), address))
        elif missing := self.unreached(unit):
            names = current.view.names(missing)
            self._answer(unit, address, f"it does not reach {names}", out, reach=missing)
        elif self._name_is_in_use(unit, out):
            self._answer(unit, address, f"the name {applicant.name} is in use", out, refused=True)
        else:
            self._note(unit, out)
            cut_off = f"{current.me.name} is cut off from too many members of view {current.view.number}"
            self._answer(unit, address, cut_off if blocked else "the group takes it in soon", out)

    def refusal(self, unit: Apply) -> str | None:
        """Why an applicant is never taken in; None if it may be."""
        current, applicant = self.current, unit.applicant
        if current.departed_as(applicant) is not None:  # J9
            return "this incarnation was a member before: return with a new incarnation"
        if unit.terms != self.terms:
            ours, theirs = dict(self.terms), dict(unit.terms)
            differing = sorted(name for name in {*ours, *theirs} if ours.get(name) != theirs.get(name))
            return "; ".join(f"{name} is {ours.get(name)} here, not {theirs.get(name)}" for name in differing)[:MAX_WHY]
        if current.size >= MAX_MEMBERS:
            return f"the group has {MAX_MEMBERS} members, which is the most"
        return None

    def unreached(self, unit: Apply) -> int:
        """J4: members that the applicant has not exchanged words with."""
        return self.current.view.everybody & ~unit.reached & ~self.place_bit(unit.applicant.name)

    def place_bit(self, name: str) -> int:
        """The place of the member of this name; of another incarnation, which need not be reached: it is replaced."""
        for place, member in enumerate(self.current.view.members):
            if member.name == name:
                return 1 << place
        return 0

    def _name_is_in_use(self, unit: Apply, out: list[MemberOutput]) -> bool:
        """Another member of this name is probed: if it answers, the applicant is refused; if not, it is suspected.

        Meanwhile the application is noted: it does not enter a view in which that member stays.
        """
        place_bit, number = self.place_bit(unit.applicant.name), unit.applicant.number
        place = place_bit.bit_length() - 1
        if not place_bit or number in self.refused:
            return bool(place_bit)
        if place == self.current.place:
            return True
        if self.probed_for.get(place) != number:
            self.probing.setdefault(place, 0)
            self.probed_for[place] = number
            self._probe(place_bit, out)
        return False

    def _note(self, unit: Apply, out: list[MemberOutput]) -> None:
        key = (unit.applicant.name, unit.applicant.number)
        known = self.applications.get(key)
        if known is None and len(self.applications) >= MAX_APPLICANTS:
            return
        order = known.order if known else self.next_order
        if known is None:
            self.next_order += 1
        self.applications[key] = Application(unit.applicant, unit.old, order, 0)
        self._tick_later(out)

    def _answer(
        self, unit: Apply, address: str, why: str, out: list[MemberOutput], *, refused: bool = False, reach: int = 0
    ) -> None:
        out.append(SendOutside(Answer(unit.applicant.number, unit.nonce, refused, why[:MAX_WHY], reach), address))

    # --- welcoming (J6, J9) ---

    def _welcome_again(self, unit: Apply, address: str, out: list[MemberOutput]) -> None:
        """Only one that joined with this very view can have missed its welcome."""
        if self._joined_now(unit.applicant):
            out.append(SendOutside(self.welcome_for(unit.applicant, unit.old), address))
        else:
            out.append(Discard(unit, "old"))

    def _joined_now(self, applicant: Incarnation) -> bool:
        """With this very view."""
        value = self.current.value
        return value is not None and any(member.is_same(applicant) for member in value.joined)

    def welcome_for(self, joined: Incarnation, old: int | None = None) -> Welcome:
        """Tells one that joined with the current view where it is."""
        current = self.current
        assert current.value is not None, "somebody joined with this view"
        old = self.olds.get((joined.name, joined.number)) if old is None else old
        end = next((gone for gone in reversed(current.departed) if gone.node == old), None)
        return Welcome(joined.number, current.place, current.value, current.view, current.departed, end)

    # --- rounds ---

    def _probe(self, places: int, out: list[MemberOutput]) -> None:
        current = self.current
        for place in members(places & current.others):
            current.send(Probe(current.view.number, current.place, self.probed_for.get(place)), place, out)

    def heard_of(self, place: int, *, has_state: bool) -> None:
        """A member has said that it is there: it may have got the state."""
        if has_state:
            self.stateless &= ~(1 << place)

    def name_is_in_use(self, place: int, applicant: int) -> None:
        """A member has answered a probe that was sent because this incarnation applied with its name.

        What it said before is no answer: it may have crashed since, and the applicant be its next incarnation.
        """
        if place not in self.probing:
            return
        self.applications.pop((self.current.view.members[place].name, applicant), None)
        self.refused.append(applicant)
        if len(self.refused) > MAX_APPLICANTS:
            self.refused.popleft()
        if self.probed_for[place] == applicant:
            del self.probing[place], self.probed_for[place]

    def without_state(self) -> int:
        """Places that are not known to have the state."""
        own = 1 << self.current.place
        return self.stateless & ~own if self.current.has_state else self.stateless | own

    def tick(self, out: list[MemberOutput]) -> int:
        """A round is over; returns the places that have left too many probes unanswered."""
        self.ticking = False
        settings = self.current.settings
        limit = settings.failure_timeout // settings.repeat
        if any(application.age >= limit for application in self.applications.values()):
            self.ticket += 1  # its old words must not bring it back
        self.applications = {
            key: msgspec.structs.replace(application, age=application.age + 1)
            for key, application in self.applications.items()
            if application.age < limit
        }
        silent = 0
        for place in sorted(self.probing):
            self.probing[place] = min(self.probing[place] + 1, PROBE_ROUNDS)
            if self.probing[place] == PROBE_ROUNDS:
                silent |= 1 << place
            else:
                self._probe(1 << place, out)
        if self.applications and self.stateless:
            self._probe(self.stateless, out)
        if self.applications or any(rounds < PROBE_ROUNDS for rounds in self.probing.values()):
            self._tick_later(out)
        return silent

    def _tick_later(self, out: list[MemberOutput]) -> None:
        if not self.ticking:
            self.ticking = True
            self.current.set_timer("applicants", self.current.settings.repeat, out)

    def others_ask(self) -> bool:
        """Whether some have asked for the group that have not applied: they may be about to join, too."""
        applied = {application.applicant.number for application in self.applications.values()}
        return not self.asking <= applied

    def gather(self, out: list[MemberOutput]) -> None:
        """Waits a little for others that want to join, too."""
        if not self.gathering:
            self.gathering = True
            self.current.set_timer("gather", self.current.settings.gather, out)

    def joined_places(self) -> tuple[int, ...]:
        """Places of those that joined with the current view."""
        value = self.current.value
        if value is None:
            return ()
        return members(self.current.view.everybody)[value.stay.bit_count() :]
