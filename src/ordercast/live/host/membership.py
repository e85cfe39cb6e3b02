"""Who is in the group now: protocols number the members, users know them by their names."""

import re
from collections.abc import Callable

from ordercast.live.events import View
from ordercast.live.logs import GroupLogs
from ordercast.model.machine import ViewInstalled
from ordercast.model.nodes import chosen, everybody, name_of

_NODE = re.compile(r"\bE[0-9]+\b")  # as `name_of` prints them


class Membership:
    """The names of all members, and the view that is installed."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names
        self.view = ViewInstalled(0, everybody(len(names)), "")
        self.on_view: Callable[[View], None] = lambda _: None
        self._named = {name_of(place): name for place, name in enumerate(names)}

    @property
    def members(self) -> tuple[str, ...]:
        """The names of the current members."""
        return chosen(self.names, self.view.members)

    def install(self, view: ViewInstalled, position: int) -> View:
        """Makes a view the current one; as the application is told of it. `position`: of the next message."""
        before, self.view = self.view.members, view
        self._named = {name_of(place): name for place, name in enumerate(self.members)}
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
        """A sentence for users, of the machine of the current view.

        Machines know no names, only places of the view, and their sentences are in traces and travel between members:
        so they print them as E1, E2 and so on, and only here, where a sentence is shown, are these replaced. A sentence
        of an application must not come here.
        """
        return _NODE.sub(lambda found: self._named.get(found[0], found[0]), why)
