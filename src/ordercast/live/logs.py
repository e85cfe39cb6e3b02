"""The loggers of live groups, silent unless the application configures logging.

Every record has the fields `group` and `member` besides those that are named below; the names of fields are fixed.
"""

import logging
from collections.abc import MutableMapping
from typing import Any

logging.getLogger("ordercast").addHandler(logging.NullHandler())


class _Log(logging.LoggerAdapter[logging.Logger]):
    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        kwargs["extra"] = {**(self.extra or {}), **kwargs.get("extra", {})}
        return msg, kwargs


class GroupLogs:
    """The loggers of one member of one group."""

    def __init__(self, group: str, member: str) -> None:
        fields = {"group": group, "member": member}
        self.live = _Log(logging.getLogger("ordercast.live"), fields)
        """Errors in our own code, and in callbacks of the application."""
        self.membership = _Log(logging.getLogger("ordercast.membership"), fields)
        """Sessions that open, suspicions (`peer`), views (`view`, `members`)."""
        self.protocol = _Log(logging.getLogger("ordercast.protocol"), fields)
        """Recoveries (`reason`), loss and overrun above a rate (`count`, `units`)."""
        self.security = _Log(logging.getLogger("ordercast.security"), fields)
        """Key rotation (`key_id`), datagrams rejected above a rate (`reason`, `count`)."""
        self.shutdown = _Log(logging.getLogger("ordercast.shutdown"), fields)
        """The end of a group (`reason`)."""
