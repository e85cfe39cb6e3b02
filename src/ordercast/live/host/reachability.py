"""Which members this one reaches: it suspects the silent ones, and is blocked when too few are left for a view."""

from typing import TYPE_CHECKING, Protocol

from ordercast.live.host.inbox import Inbox
from ordercast.live.host.membership import Membership
from ordercast.live.logs import GroupLogs

if TYPE_CHECKING:
    from ordercast.live.host.ending import MemberEnding
    from ordercast.live.host.host import Host
    from ordercast.live.host.view_entry import ViewEntry


class ReachabilityOwner(Protocol):
    """The member."""

    name: str
    host: "Host | None"
    inbox: Inbox
    membership: Membership
    views: "ViewEntry"
    ending: "MemberEnding"


class Reachability:
    """Of the members of the current view, by one of them."""

    def __init__(self, owner: ReachabilityOwner, logs: GroupLogs) -> None:
        self._owner, self._logs = owner, logs
        self._lacks = 0  # places that this member does not reach, while they are too many to agree on the next view

    @property
    def is_blocked(self) -> bool:
        """Too few members can be reached to agree on the next view."""
        return self._lacks != 0

    def lacking(self) -> str:
        """Why a blocked member that closes or leaves ends without the others."""
        return self._owner.membership.unreached(self._owner.name, self._lacks)

    def suspect(self, places: int) -> None:
        """These places of the current view seem to have failed."""
        owner = self._owner
        names = owner.views.view.names(places)
        self._logs.membership.warning("%s suspects that %s has failed", owner.name, names, extra={"peer": names})
        if owner.host is not None:
            owner.host.suspect(places)

    def unheard(self, places: int) -> None:
        """Others hear these places, and this member does not."""
        owner = self._owner
        names = owner.views.view.names(places)
        self._logs.membership.warning("%s does not hear %s, which others do", owner.name, names, extra={"peer": names})
        if owner.host is not None:
            owner.host.unheard(places)

    def blocked(self, lacks: int) -> None:
        """Too few members can be reached, or enough again."""
        owner = self._owner
        self._lacks = lacks
        owner.inbox.put_notice(owner.membership.notice(lacks))
        if lacks and (owner.ending.leaving.begun or owner.ending.is_closing):
            owner.ending.end_if_blocked()
        else:
            owner.membership.log_blocked(owner.name, lacks, self._logs)

    def retire(self) -> None:
        """The view is not this member's any more."""
        self._lacks = 0
