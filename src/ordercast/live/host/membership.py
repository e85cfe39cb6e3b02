"""Who is in the group now: protocols number the members, users know them by their names."""

from collections.abc import Callable, Mapping

from ordercast.live.application_exceptions import call_back
from ordercast.live.events import Blocked, Unblocked, View
from ordercast.live.logs import GroupLogs
from ordercast.model.nodes import mask_of, members, with_names
from ordercast.protocols.membership.events import InstallView
from ordercast.protocols.membership.view import Departed, GroupView


class Membership:
    """The view that is installed, with the names and nodes of its members."""

    def __init__(self) -> None:
        self.view: GroupView | None = None
        """None before the group is open."""
        self.nodes: dict[str, int] = {}
        """Of the members, and the last one of each name that was a member since this process is."""
        self.present = 0
        """The nodes of the members."""
        self.on_view: Callable[[View], None] = lambda _: None

    @property
    def members(self) -> tuple[str, ...]:
        """The names of the current members, by place."""
        return () if self.view is None else tuple(member.name for member in self.view.members)

    @property
    def number(self) -> int:
        """That of the view."""
        return 0 if self.view is None else self.view.number

    def enter(self, view: GroupView) -> None:
        """Makes a view the current one."""
        self.view, self.present = view, mask_of(view.nodes)
        self.nodes.update((member.name, node) for member, node in zip(view.members, view.nodes, strict=True))

    def tell(self, view: View, logs: GroupLogs) -> None:
        """Calls `on_view`, whose errors have no effect."""
        call_back(self.on_view, view, "on_view", logs.live)

    def notice(self, lacks: int) -> Blocked | Unblocked:
        """What the application is told: these places are not reached; none: it goes on."""
        return Blocked(tuple(self.members[place] for place in members(lacks))) if lacks else Unblocked()

    def unreached(self, me: str, lacks: int) -> str:
        """Why a member that closes or leaves ends without the others."""
        names = ", ".join(self.members[place] for place in members(lacks))
        return f"{me} ended alone: it did not reach {names}, and without them too few members are left"

    def log_blocked(self, me: str, lacks: int, logs: GroupLogs) -> None:
        """The same, for operators."""
        if lacks:
            names = ", ".join(self.members[place] for place in members(lacks))
            logs.membership.warning(
                "%s is blocked: it does not reach %s, and those that it reaches are too few of view %d",
                *(me, names, self.number),
                extra={"peer": names, "view": self.number},
            )
        else:
            logs.membership.warning("%s is not blocked any more", me)

    def with_names(self, why: str) -> str:
        """A sentence of the machine of the current view, which knows places of that view, for users."""
        return with_names(why, self.members)


def told(change: InstallView, position: int, departed: tuple[Departed, ...] = ()) -> View:
    """A view as the application is told of it. `position`: of the next message.

    `departed`: those that went, for a member whose first view this is: it does not know the one before.
    """
    view, value = change.view, change.value
    left: Mapping[str, str] = dict(change.left)
    if value is not None and departed:
        gone = [one.name for one in departed if one.view == value.number]
        left = {name: reason.value for name, (_, reason) in zip(gone, value.left, strict=False)}
    names = tuple(member.name for member in view.members)
    return View(
        number=view.number,
        position=position,
        members=names,
        joined=names if value is None else change.joined,
        left=left,
        together=() if value is None else names[: value.stay.bit_count()],
        why=change.why,
    )


def log_view(view: View, logs: GroupLogs) -> None:
    """For operators."""
    logs.membership.warning(
        "view %d: %s (%s)",
        *(view.number, ", ".join(view.members), view.why),
        extra={"view": view.number, "members": view.members, "left": dict(view.left), "reason": view.why},
    )


def places_of(change: InstallView) -> dict[int, int]:
    """The places of those that go on, by their places in the view before."""
    return {} if change.value is None else {old: new for new, old in enumerate(members(change.value.stay))}


def joined_nodes(change: InstallView) -> tuple[tuple[int, str], ...]:
    """Those that joined with a view: nodes and names."""
    view, stayed = change.view, 0 if change.value is None else change.value.stay.bit_count()
    return tuple((node, member.name) for node, member in zip(view.nodes[stayed:], view.members[stayed:], strict=True))
