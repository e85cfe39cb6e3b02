"""Options that had another name in an earlier version: whoever uses the old one is told the new one."""

from collections.abc import Iterable

from ordercast.model.errors import ConfigError

RENAMED_OPTIONS = {
    "node": {
        "--silence": "--failure-timeout",
        "--datagram": "--max-datagram-size",
        "--channel": "--relay",
        "--recorded": "--record-detail",
    },
    "check": {"--owed": "--liveness-goal", "--most": "--max-states", "--every-interleaving": "--no-reduction"},
    "replay": {"--most": "--max-states"},
}
"""By command: the old names and the new ones."""


def require_current_options(command: str, arguments: Iterable[str]) -> None:
    """Raises `ConfigError` if one of the arguments is an option by its old name."""
    renamed = RENAMED_OPTIONS.get(command, {})
    for argument in arguments:
        name = argument.partition("=")[0]
        if name == "--":
            return
        if name in renamed:
            raise ConfigError(f"the option {name} was renamed to {renamed[name]}")
