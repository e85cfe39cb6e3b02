"""What a member is told, and what it does, besides the inputs and outputs of its order's machine."""

import msgspec

from ordercast.model.machine import Input, Output, Submit
from ordercast.protocols.membership.units import ControlUnit, OutsideUnit
from ordercast.protocols.membership.view import GroupView, NextView


class Begin(msgspec.Struct, frozen=True, gc=False):
    """Input: the first one."""


class ReceiveControl(msgspec.Struct, frozen=True, gc=False):
    """Input: a unit that came under the tag of the current view, or of the one before."""

    unit: ControlUnit


class ReceiveOutside(msgspec.Struct, frozen=True, gc=False):
    """Input: a unit that came under no view's tag."""

    unit: OutsideUnit
    address: str
    """Where it came from, and where answers go."""


class OtherView(msgspec.Struct, frozen=True, gc=False):
    """Input: a unit of the order came under the tag of the view before the current one."""

    place: int
    """Its sender's, in that view."""


class LeaveGroup(msgspec.Struct, frozen=True, gc=False):
    """Input: the application leaves. No more submissions are taken."""

    drain: bool = True
    """Own messages are waited for; False: they may be lost. A second input may say False after a first True."""
    may_stay: bool = False
    """It does not have to: if the next view has this member, because too few others go on, it does not leave."""


class StateLoaded(msgspec.Struct, frozen=True, gc=False):
    """Input: this member joined, and has the state now."""


class ChangeView(msgspec.Struct, frozen=True, gc=False):
    """Input: begin a ballot, for a reason that the host knows: the order waits too long for a living member."""

    why: str


class Unheard(msgspec.Struct, frozen=True, gc=False):
    """Input: nothing was heard of these members for long, though others hear them: a link is broken."""

    members: int
    """Places of the current view."""


class SendControl(msgspec.Struct, frozen=True, gc=False):
    """Output: send a unit under the tag of a view: the current one or the one before."""

    unit: ControlUnit
    to: int | None
    """A place in that view; None: all other places."""
    view: int
    """The number of that view."""


class SendOutside(msgspec.Struct, frozen=True, gc=False):
    """Output: send a unit under no view's tag."""

    unit: OutsideUnit
    address: str


class InstallView(msgspec.Struct, frozen=True, gc=False):
    """Output: a new view, after the last output of the old epoch and before the first of the new one.

    The host cancels all timers whose names do not begin with "view.", and uses the new tag and list of places.
    """

    view: GroupView
    place: int
    """The own one."""
    joined: tuple[str, ...]
    left: tuple[tuple[str, str], ...]
    """Names and reasons."""
    why: str
    value: NextView | None
    """What was agreed on; None: the founding view."""
    gives_state: bool
    """This member is a donor: it takes a snapshot of the application's state here, for those that joined."""


class Excluded(msgspec.Struct, frozen=True, gc=False):
    """Output: a view without this member was decided. Its host may return as a new incarnation."""

    number: int
    why: str
    end: int | None
    """Own packets of the last view that are delivered by those that go on: below this number; None: not known."""
    remaining: int
    """How many members the others' view has."""


class LeftGroup(msgspec.Struct, frozen=True, gc=False):
    """Output: this member has left; it was delivered everything up to the end of its last view."""


class Blocked(msgspec.Struct, frozen=True, gc=False):
    """Output: too few members of the view can be reached to agree on the next one; it keeps trying."""

    lacks: int
    """Places that nothing was heard of since this member stopped."""


class Unblocked(msgspec.Struct, frozen=True, gc=False):
    """Output: it goes on; followed by the next view, or by Excluded."""


class Withdrawn(msgspec.Struct, frozen=True, gc=False):
    """Output: none of the destinations of a submission is a member any more: it may never have been delivered.

    Places are of the old view.
    """

    submit: Submit
    first: int
    """The number of its first message, which is not given again."""


class Retired(msgspec.Struct, frozen=True, gc=False):
    """Output: this member has left or was excluded, and need not answer the others any more: the host may close it."""


MemberInput = (
    Input
    | Begin
    | ReceiveControl
    | ReceiveOutside
    | OtherView
    | LeaveGroup
    | StateLoaded
    | ChangeView
    | Unheard
)  # fmt: skip
MemberOutput = (
    Output | SendControl | SendOutside | InstallView | Excluded | LeftGroup | Blocked | Unblocked | Withdrawn | Retired
)
