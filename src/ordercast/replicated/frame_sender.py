"""What a member with replicated objects sends to its group, as long as it is a member."""

import logging
from collections.abc import Callable, Iterable

from ordercast.live.group import Group
from ordercast.model.errors import GroupError, LocalProtocolError, Undelivered
from ordercast.replicated.frames import Answer, Request, encode

_log = logging.getLogger("ordercast.replicated")
_MAX_PRIORITY = 255
_PRIORITISED = {"prito", "prio"}
_SELECTIVE = "st"


class FrameSender:
    """Used inside one event loop. Nothing is sent before `use` and after `stop`."""

    def __init__(self, *, has_log: bool) -> None:
        self._has_log = has_log
        self.me = ""
        """The name of this member."""
        self.error: Exception | None = None
        """Why nothing can be sent any more."""
        self.prioritised = self._selective = False
        self.send_to_all: Callable[..., object]
        self._group: Group | None = None

    def use(self, group: Group, protocol: str) -> None:
        """Sends in this group, whose order has priorities or destinations, or has not."""
        self._group, self.me, self.send_to_all = group, group.me, group.send_nowait
        self.prioritised, self._selective = protocol in _PRIORITISED, protocol == _SELECTIVE and not self._has_log

    def stop(self, error: Exception) -> None:
        """Nothing can be sent any more."""
        self.error = error

    @property
    def group(self) -> Group:
        """The group that was joined."""
        assert self._group is not None, "it has joined"
        return self._group

    @property
    def members(self) -> tuple[str, ...]:
        """As of what was applied here, the oldest first."""
        return self.group.members

    @property
    def first_priority(self) -> int:
        """That of what should not wait behind commands."""
        return _MAX_PRIORITY if self.prioritised else 0

    def require_open(self) -> None:
        """Raises the reason why nothing can be sent, if there is one."""
        if self._group is None:
            raise LocalProtocolError("it has not joined a group")
        if self.error is not None:
            raise self.error.with_traceback(None)

    def send(self, frame: Request | Answer, to: Iterable[str] | None) -> None:
        """For calls: sends a message; an answer goes to all if messages cannot have destinations."""
        if isinstance(frame, Answer) and not self._selective:
            to = None
        self.send_frame(encode(frame), None if to is None else frozenset(to), 0)

    def send_frame(self, payload: bytes, on: frozenset[str] | None, priority: int) -> None:
        """Sends a message to all, or to those of these that are members now."""
        if self.error is not None:
            raise self.error.with_traceback(None)
        to = None if on is None else self._present(on)
        if to is not None and not to:
            raise Undelivered(f"none of {', '.join(sorted(on or ()))} is a member now")
        self.group.send_nowait(payload, to=to, priority=priority)

    def try_to_send(self, payload: bytes, on: frozenset[str] | None, priority: int) -> None:
        """What others wait for, as long as this member does not leave."""
        try:
            self.send_frame(payload, on, priority)
        except (GroupError, LocalProtocolError) as error:
            _log.debug("%s has not sent what others asked for: %s", self.me, error)

    def _present(self, on: frozenset[str]) -> frozenset[str] | None:
        found = on & frozenset(self.members)
        return None if found == frozenset(self.members) else found
