"""The errors that ordercast raises.

OrdercastError
├── ConfigError          a configuration value is invalid: the message names it, and what is valid
├── GroupError           a live group, and this member's part in it
│   ├── JoinError        the group did not open: a member is missing, or has other settings
│   ├── GroupAborted     the group was aborted; the error has what was delivered and what may be lost
│   ├── GroupClosed      the group is closed: nothing can be sent any more
│   ├── CommandFailed    a command raised an exception, which only another member has
│   ├── Diverged         the replicated state of this member differs from that of the others
│   └── Undelivered      all destinations of a message left the group, or failed, before it was delivered
├── LocalProtocolError   the application requested what the protocol does not support (a message without destinations)
├── LogError             a log cannot be opened, written or read: the message names the folder
│   └── LogDamaged       what was on the disk is missing or changed: the message names the place
├── PipelineError        Spark failed
└── TraceError           a trace cannot be written or read: the message names the file

A peer's invalid message raises none of these: it is counted and dropped (see `Discard`), since no peer
may be able to raise an exception here.
"""


def reason_of(error: Exception) -> str:
    """The system's text for an error, if there is one, without its number and the name of the file."""
    return getattr(error, "strerror", None) or str(error)


class OrdercastError(Exception):
    """The base class of all errors that ordercast raises on purpose."""


class ConfigError(OrdercastError, ValueError):
    """A configuration value is invalid."""


class GroupError(OrdercastError):
    """The base class of errors of live groups."""


class JoinError(GroupError):
    """The group did not open: a member is missing, has other settings, or gave up."""


class GroupAborted(GroupError):  # noqa: N818 (it names what happened)
    """The group was aborted: by a member, by a failure that the order does not survive, or by a timeout."""

    def __init__(self, why: str, delivered: dict[str, int], unconfirmed: int) -> None:
        super().__init__(why, delivered, unconfirmed)
        self.why = why
        """The reason, with the name of the member that gave it."""
        self.delivered = delivered
        """The number of messages that were delivered here, by sender: the first ones of each sender."""
        self.unconfirmed = unconfirmed
        """The number of messages of this member that may not have reached all their destinations."""

    def __str__(self) -> str:
        delivered = ", ".join(f"{count} from {name}" for name, count in self.delivered.items() if count) or "nothing"
        lost = f"{self.unconfirmed} of our messages may be lost" if self.unconfirmed else "all our messages arrived"
        return f"{self.why} (delivered here: {delivered}; {lost})"


class GroupClosed(GroupError):  # noqa: N818 (it names what happened)
    """The group is closed: nothing can be sent any more, and after the last message nothing received."""


class Undelivered(GroupError):  # noqa: N818 (it names what happened)
    """All destinations of a message left the group, or failed, before it was delivered."""


class CommandFailed(GroupError):  # noqa: N818 (it names what happened)
    """A replicated command raised an exception, and was applied by other members while this one was away.

    Or it raised what no call can raise, such as `StopIteration` or `SystemExit`.
    The message has the name of the exception and its text.
    """


class Diverged(GroupError):  # noqa: N818 (it names what happened)
    """The replicated state of this member differs from that of the others: it has left the group.

    A command is not deterministic, or the state was changed without a command.
    """

    def __init__(self, member: str, object_name: str, members: tuple[str, ...]) -> None:
        super().__init__(member, object_name, members)
        self.member = member
        """The first member that differs."""
        self.object_name = object_name
        """The name of the object whose state differs."""
        self.members = members
        """All members that differ."""

    def __str__(self) -> str:
        others = f" (and {', '.join(self.members[1:])})" if len(self.members) > 1 else ""
        what = f"the state of {self.object_name!r}" if self.object_name else "the replicated state"
        return (
            f"{what} differs at {self.member}{others} from the state of the other members: a command is not "
            "deterministic, or the state was changed outside of commands; restart the member to get their state"
        )


class LocalProtocolError(OrdercastError):
    """The application requested what the protocol does not support."""


class LogError(OrdercastError):
    """A log cannot be opened, written or read."""


class LogDamaged(LogError):  # noqa: N818 (it names what happened)
    """What a log once had on the disk is missing or changed."""


class PipelineError(OrdercastError):
    """Spark failed in the middle of its work."""


class TraceError(OrdercastError):
    """A trace cannot be written or read."""
