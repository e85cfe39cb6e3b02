"""What an application says about the durable log of a member: `join(..., log=...)`."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ordercast.model.config import require
from ordercast.model.errors import ConfigError

if TYPE_CHECKING:
    from ordercast.log.files import Options

_NO_SUBSETS = (
    "a log has one position for each message, the same at all members: in the order 'partial' members are delivered "
    "different messages in different orders; use 'total', 'priority' or 'sequenced', or leave out log="
)


@dataclass(frozen=True, slots=True)
class LogSettings:
    """The durable log of a member: `join(..., log="folder")` is short for `LogSettings("folder")`."""

    folder: Path | str
    """Of this member alone. The member recovers what is in it, and goes on there."""
    start: int | None = None
    """The position of the first message that the application is handed, from its log if it is older than the group.

    Default: the one after the last in the log, so that a process that is started again is handed what it has not been.
    With `state=` this has no effect: the newest snapshot is loaded, and all messages after it are handed out.
    """
    on_failure: Literal["leave", "stay"] = "leave"
    """What a member does when its disk fails: leaves the group, or stays without a log.

    Who stays has lost its disk, as far as the group is concerned: its folder must be moved away before it is started
    again.
    """
    force: bool = False
    """After a failure of all members: goes on without a majority of the last view. What only the missing ones had on
    their disks is lost, though it may have been told durable."""
    verify: bool = False
    """Verifies all of the log when it is opened, not only its last segment. What is damaged, and all that follows, is
    then fetched again from another member."""
    options: "Options | None" = None
    """Size of segments, retention: see `ordercast.log.Options`."""

    def __post_init__(self) -> None:
        require(
            self.start is None or self.start >= 0,
            f"log: start must be a position, 0 or more, not {self.start}",
        )
        require(
            self.on_failure in {"leave", "stay"},
            f"log: on_failure must be 'leave' or 'stay', not {self.on_failure!r}",
        )


def log_settings(log: object) -> LogSettings | None:
    """What was given as `log=`; raises `ConfigError` if it cannot be one."""
    if log is None or isinstance(log, LogSettings):
        return log
    if isinstance(log, str | Path) and str(log):
        return LogSettings(Path(log))
    raise ConfigError(f"log must be a folder, or an ordercast.LogSettings, not {log!r}")


def require_one_order(order: str) -> None:
    """Raises `ConfigError` for an order whose messages have no common positions."""
    if order == "partial":
        raise ConfigError(_NO_SUBSETS)
