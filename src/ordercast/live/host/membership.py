"""Who is in the group now: protocols number the members, users know them by their names."""

from collections.abc import Callable

from ordercast.live.events import View
from ordercast.live.logs import GroupLogs
from ordercast.model.machine import ViewInstalled
from ordercast.model.nodes import chosen, everybody, with_names


class Membership:
    """The names of all members, and the view that is installed."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names
        self.view = ViewInstalled(0, everybody(len(names)), "")
        self.on_view: Callable[[View], None] = lambda _: None

    @property
    def members(self) -> tuple[str, ...]:
        """The names of the current members."""
        return chosen(self.names, self.view.members)

    def install(self, view: ViewInstalled, position: int) -> View:
        """Makes a view the current one; as the application is told of it. `position`: of the next message."""
        before, self.view = self.view.members, view
        return View(
            number=view.number,
            position=position,
            members=self.members,
            joined=chosen(self.names, view.members & ~before),
            left=chosen(self.names, before & ~view.members),
            why=view.why,
        )

    def tell(self, view: View, logs: GroupLogs) -> None:
        """Calls `on_view`, whose errors have no effect."""
        try:
            self.on_view(view)
        except Exception:
            logs.live.exception("on_view raised an exception")

    def with_names(self, why: str) -> str:
        """A sentence of the machine of the current view, which knows places of that view, for users."""
        return with_names(why, self.members)
