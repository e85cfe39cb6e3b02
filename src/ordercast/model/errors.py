"""The errors that ordercast raises, and whose fault each is.

OrdercastError
├── ConfigError          a value in a configuration is wrong: the sentence says which and what would be right
├── GroupError           a live group, and this member's part in it
│   ├── JoinError        it did not come about: somebody is missing, or means another group
│   ├── GroupAborted     it was given up; the error tells what was delivered and what may be lost
│   └── GroupClosed      it was closed before; nothing can be sent any more
├── LocalProtocolError   the application asked a protocol for the impossible (a message to nobody)
├── PipelineError        Spark failed in the middle of its work, through no fault of a run
└── TraceError           a trace cannot be written or read: the sentence names the file

A peer's bad message is none of these: it is counted and dropped (see `Discard`), since whoever sends on a
network must not be able to raise anything here.
"""


def reason_of(error: Exception) -> str:
    """In the system's words where it has some, without its numbers and the name of a file that was told already."""
    return getattr(error, "strerror", None) or str(error)


class OrdercastError(Exception):
    """The root of all errors that ordercast raises on purpose."""


class ConfigError(OrdercastError, ValueError):
    """A configuration value is wrong."""


class GroupError(OrdercastError):
    """A live group cannot do what was asked."""


class JoinError(GroupError):
    """The group did not come about."""


class GroupAborted(GroupError):  # noqa: N818 (it is what happened)
    """The group was given up."""

    def __init__(self, why: str, delivered: dict[str, int], unconfirmed: int) -> None:
        super().__init__(why)
        self.why = why
        self.delivered = delivered
        """Messages that were delivered here, by sender: of each sender, or of all together, a beginning."""
        self.unconfirmed = unconfirmed
        """Messages of ours that may not have reached everybody."""

    def __str__(self) -> str:
        heard = ", ".join(f"{count} of {name}" for name, count in self.delivered.items() if count) or "nothing"
        sent = f"{self.unconfirmed} of our messages may be lost" if self.unconfirmed else "all of ours arrived"
        return f"{self.why} (delivered here: {heard}; {sent})"


class GroupClosed(GroupError):  # noqa: N818 (it is what happened)
    """The group was closed before."""


class LocalProtocolError(OrdercastError):
    """The application asked for what the protocol cannot do."""


class PipelineError(OrdercastError):
    """Spark failed in the middle of its work."""


class TraceError(OrdercastError):
    """A trace cannot be written or read."""
