"""What a member notes in its log besides messages: which view it is in, and what it has promised for the next one."""

from hashlib import blake2b
from typing import Self

import msgspec

from ordercast.protocols.membership.view import Ballot, GroupView, Incarnation, NextView, view_after


class Plan(msgspec.Struct, frozen=True, array_like=True):
    """How a group goes on after so many members failed that no view could follow: a view that begins anew."""

    number: int
    """Of the view that begins."""
    tag: bytes
    """Random: it names this plan."""
    position: int
    """Of the next message, and the running hash there: what the longest log has."""
    hash: bytes
    members: tuple[Incarnation, ...]
    """Of that view, in their places."""
    holder: Incarnation
    """Who has the log up to there. It need not be one of the members."""
    basis: tuple[bytes, ...] = ()
    """By place: what each member had noted when the plan was made. One that has noted something else does not agree."""


class Standing(msgspec.Struct, frozen=True, array_like=True):
    """Where a member was last."""

    view: GroupView
    complete: bool = True
    """The log has everything before this view; False: the member joined, and was about to catch up."""
    promised: Ballot | None = None
    """The highest ballot for the next view that it has promised."""
    accepted: NextView | None = None
    """The next view that it has accepted: it may have been decided."""
    plan: Plan | None = None
    """The plan that it has agreed to, which may have begun."""
    terms: tuple[tuple[str, str], ...] = ()
    """What all members have in common."""
    forgot: bool = False
    """Its log was damaged: it may have promised more than it remembers, and been delivered more."""
    name: str = ""
    """Of the member whose log this is: a copy that another one uses would count as a disk of its own."""

    def with_complete(self) -> Self:
        """The log has caught up."""
        return msgspec.structs.replace(self, complete=True)

    def possible_views(self) -> list[tuple[str, ...]]:
        """The names of the members of views that may have followed its last one, in their places."""
        found = []
        if self.accepted is not None:
            found.append(tuple(one.name for one in view_after(self.view, self.accepted).members))
        if self.plan is not None:
            found.append(tuple(one.name for one in self.plan.members))
        return found

    def highest_number(self) -> int:
        """Of all views that it knows, those that may have followed among them."""
        numbers = [self.view.number]
        numbers += [self.accepted.number] if self.accepted is not None else []
        numbers += [self.plan.number] if self.plan is not None else []
        return max(numbers)


def forgetting(note: bytes) -> bytes:
    """What is noted in a log whose end is lost, instead of the newest note that is left of it."""
    found = decode_standing(note)
    return b"" if found is None else encode_standing(msgspec.structs.replace(found, complete=False, forgot=True))


def stamp_of(standing: Standing) -> bytes:
    """Tells whether something else was noted meanwhile."""
    return blake2b(encode_standing(standing), digest_size=16).digest()


_decoder = msgspec.msgpack.Decoder(Standing)


def encode_standing(standing: Standing) -> bytes:
    """As it is noted."""
    return msgspec.msgpack.encode(standing)


def decode_standing(note: bytes) -> Standing | None:
    """What was noted; None: nothing was."""
    return _decoder.decode(note) if note else None
