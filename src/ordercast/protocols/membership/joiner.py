"""The joiner's side of joining: a machine of its own, until it is in a view.

- J1: asks all contacts for the group, again and again, and takes the highest view that is not blocked. Nobody founds a
  group because none was found.
- J2: applies at the member that is named, again and again; if nothing comes for a failure timeout, it asks anew.
- J4: it asks every member of the view; those that answer are reached, both ways.
- J6: with the welcome it is in the view. The host makes a `Member` of it (`Member.joins`).
"""

from typing import Final

import msgspec

from ordercast.model.declared_state import DeclaredState
from ordercast.model.machine import CancelTimer, Discard, SetTimer, TimerFired
from ordercast.model.nodes import mask_of, members
from ordercast.protocols.membership.applicants import Terms
from ordercast.protocols.membership.events import MemberOutput, ReceiveOutside, SendOutside
from ordercast.protocols.membership.units import Answer, Apply, Find, Found, Welcome, problem_of_outside
from ordercast.protocols.membership.view import Incarnation, MembershipConfig
from ordercast.protocols.shared.jitter import spread

APPLY_ROUNDS = 4
FIND_ROUNDS = 40
"""The longest time between two searches, in rounds: 2 s with the default settings."""
MAX_CONTACTS = 1024
_NONCES = 1 << 64


class Joined(msgspec.Struct, frozen=True, gc=False):
    """Output: this incarnation is a member now."""

    welcome: Welcome


class Refused(msgspec.Struct, frozen=True, gc=False):
    """Output: the group does not take this incarnation in."""

    why: str


class Waits(msgspec.Struct, frozen=True, gc=False):
    """Output: why it takes so long, for people."""

    why: str


JoinerInput = ReceiveOutside | TimerFired
JoinerOutput = MemberOutput | Joined | Refused | Waits


class Joiner(DeclaredState):
    """One that wants to become a member."""

    me: Final[Incarnation]
    group: Final[str]
    terms: Final[Terms | None]
    settings: Final[MembershipConfig]
    old: Final[int | None]
    first_nonce: Final[int]

    contacts: tuple[str, ...]  # given, and learned from members
    found: Found | None  # of the highest view that is not blocked
    reached: int  # places of that view that have answered
    tickets: dict[int, int]  # by place: what an application at that member has to show
    searches: int  # how often it has searched for the group
    silent_rounds: int  # since anything came
    ended: bool  # it is a member, or has given up

    def __init__(  # noqa: PLR0913
        self,
        me: Incarnation,
        group: str,
        contacts: tuple[str, ...],
        nonce: int,
        settings: MembershipConfig,
        *,
        terms: Terms | None = (),
        old: int | None = None,
    ) -> None:
        """`nonce`: a random number; the questions count up from it. `old`: the node that this process was before.

        `terms`: what it has in common with all members; None: whatever the members have.
        """
        self.me, self.group, self.settings, self.terms, self.old = me, group, settings, terms, old
        self.first_nonce = nonce
        self.contacts = contacts
        self.found, self.tickets = None, {}
        self.reached = self.searches = self.silent_rounds = 0
        self.ended = False

    def begin(self) -> list[JoinerOutput]:
        """The first search."""
        out: list[JoinerOutput] = []
        self._search(out)
        return out

    def handle(self, event: JoinerInput) -> list[JoinerOutput]:
        """Takes one input and returns all outputs that follow from it."""
        out: list[JoinerOutput] = []
        if self.ended:
            return out
        if isinstance(event, TimerFired):
            if event.name == "join.find":
                self._search(out)
            elif event.name == "join.apply":
                self._apply_again(out)
        elif problem := problem_of_outside(event.unit):
            out.append(Discard(event.unit, problem))
        elif type(event.unit) is Found:
            self._receive_found(event.unit, out)
        elif type(event.unit) is Answer:
            self._receive_answer(event.unit, out)
        elif type(event.unit) is Welcome:
            self._receive_welcome(event.unit, out)
        else:
            out.append(Discard(event.unit, "stray"))
        return out

    # --- J1 ---

    def _nonce(self) -> int:
        return (self.first_nonce + self.searches) % _NONCES

    def _is_own_nonce(self, nonce: int) -> bool:
        """One of this joiner's questions, the last one or an earlier one."""
        return (nonce - self.first_nonce) % _NONCES <= self.searches

    def _search(self, out: list[JoinerOutput]) -> None:
        """Asks all that have not answered; with a new number, because each is answered once."""
        self.searches += 1
        self._ask(self.contacts if self.found is None else self._unreached(self.found), out)
        wait = self.settings.repeat * min(1 << min(self.searches, 16), FIND_ROUNDS)
        out.append(SetTimer("join.find", spread(wait, self.me.number & 0xFFFF, self.searches)))

    def _unreached(self, found: Found) -> tuple[str, ...]:
        missing = ((1 << len(found.addresses)) - 1) & ~self.reached
        return tuple(found.addresses[place] for place in members(missing))

    def _ask(self, addresses: tuple[str, ...], out: list[JoinerOutput]) -> None:
        find = Find(self.group, self.me.name, self.me.number, self._nonce())
        out.extend(SendOutside(find, address) for address in addresses if address != self.me.address)

    def _receive_found(self, unit: Found, out: list[JoinerOutput]) -> None:
        """Takes the highest view that is not blocked; then every member of it is asked."""
        mine = (unit.group, unit.name, unit.incarnation) == (self.group, self.me.name, self.me.number)
        if not mine or not self._is_own_nonce(unit.nonce):
            out.append(Discard(unit, "stray"))
            return
        known = self.found
        if unit.blocked or (known is not None and unit.view < known.view):
            out.append(Discard(unit, "old"))
            if unit.blocked and known is None:
                out.append(Waits("all members that answered are cut off from too many others"))
            return
        self.silent_rounds = 0
        if known is None or unit.view > known.view:
            self.found, self.reached, self.tickets = unit, 1 << unit.place, {}
            self.contacts = tuple(dict.fromkeys((*unit.addresses, *self.contacts)))[:MAX_CONTACTS]
            self._ask(self._unreached(unit), out)
            self._set_apply_timer(1, out)
        else:
            self.reached |= 1 << unit.place
            if (unit.apply_at, unit.to) != (known.apply_at, known.to):
                self.found = unit
        self.tickets[unit.place] = unit.ticket
        at_own_address = mask_of(at for at, address in enumerate(unit.addresses) if address == self.me.address)
        if self.reached | at_own_address == (1 << len(unit.addresses)) - 1:  # the incarnation before does not answer
            self._apply(out)

    # --- J2 ---

    def _apply(self, out: list[JoinerOutput]) -> None:
        found = self.found
        assert found is not None, "it applies where it found the group"
        terms = found.terms if self.terms is None else self.terms
        ticket = self.tickets.get(found.apply_at, 0)
        apply = Apply(self.me, found.to, found.view, terms, self.old, self.reached, self._nonce(), ticket)
        out.append(SendOutside(apply, found.addresses[found.apply_at]))
        self._set_apply_timer(APPLY_ROUNDS, out)

    def _set_apply_timer(self, rounds: int, out: list[JoinerOutput]) -> None:
        duration = rounds * self.settings.repeat
        out.append(SetTimer("join.apply", spread(duration, self.me.number & 0xFFFF, self.searches)))

    def _apply_again(self, out: list[JoinerOutput]) -> None:
        """After a failure timeout without any word it looks for the group anew."""
        self.silent_rounds += APPLY_ROUNDS
        if self.found is None:
            return
        if self.silent_rounds * self.settings.repeat >= self.settings.failure_timeout:
            self.found, self.reached, self.silent_rounds = None, 0, 0
            out.append(Waits("no member answers"))
            self._search(out)
        else:
            self._apply(out)

    def _receive_answer(self, unit: Answer, out: list[JoinerOutput]) -> None:
        if unit.incarnation != self.me.number or not self._is_own_nonce(unit.nonce):
            out.append(Discard(unit, "stray"))
            return
        self.silent_rounds = 0
        if unit.refused:
            self._end(out)
            out.append(Refused(unit.why))
        else:
            if self.found is not None and unit.reach:
                self.reached &= ~unit.reach
                self._search(out)
            out.append(Waits(unit.why))

    # --- J6 ---

    def _receive_welcome(self, unit: Welcome, out: list[JoinerOutput]) -> None:
        if unit.incarnation != self.me.number or unit.view.place_of(self.me) is None:
            out.append(Discard(unit, "stray"))
            return
        self._end(out)
        out.append(Joined(unit))

    def _end(self, out: list[JoinerOutput]) -> None:
        self.ended = True
        out += [CancelTimer("join.find"), CancelTimer("join.apply")]
