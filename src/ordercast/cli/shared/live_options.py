"""Options that several commands for live groups share."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from signal import SIGHUP
from typing import Any, Literal

import typer

from ordercast.live.join import KeyRequiredError
from ordercast.live.log_settings import LogSettings
from ordercast.live.transport.addresses import LOOPBACK, address_of, place_of, reachable
from ordercast.model.config import require
from ordercast.model.errors import ConfigError
from ordercast.wire.keys import GroupKeys, keys_from_file

NETWORK = "Network"
LOCAL = "local"
MEMBERS = typer.Option(
    "--members", help="All members: names, such as A,B,C, on this machine; or NAME=ADDRESS, such as A=10.0.0.1:7000,…"
)
KEY = typer.Option(
    help="File with the group's keys (see `ordercast key`), read again on SIGHUP. Default: the variable ORDERCAST_KEY.",
    rich_help_panel=NETWORK,
)
KEY_ONCE = typer.Option(
    help="File with the group's keys (see `ordercast key`). Default: the variable ORDERCAST_KEY.",
    rich_help_panel=NETWORK,
)
INSECURE = typer.Option(
    "--insecure",
    help="Use no key: whoever reaches a member can take part. Default on one machine: a key of this user.",
    rich_help_panel=NETWORK,
)
MULTICAST = typer.Option(
    help="Multicast address, such as 239.7.7.7:7000, to send to all at once. Default: unicast.",
    rich_help_panel=NETWORK,
)
MTU = typer.Option(
    help="Bytes of UDP payload that fit into one packet; longer datagrams are fragmented. "
    "Default: 1352, and 0 (no fragmentation) on one machine.",
    rich_help_panel=NETWORK,
)
FORCE_HELP = (
    "With --log, after a failure of all members: go on without a majority of the last view. What only the missing "
    "members had on their disks is lost."
)
FORCE = typer.Option("--force", help=FORCE_HELP)
VERIFY_HELP = (
    "With --log: verify all of it at the start, not only its last segment. What is damaged is named, and fetched again "
    "from another member."
)
VERIFY = typer.Option("--verify", help=VERIFY_HELP)
UVLOOP = typer.Option(help="Run on uvloop, if it is installed.", rich_help_panel=NETWORK)


@contextmanager
def telling_options() -> Iterator[None]:
    """In the block errors name options of the command line, not arguments of Python."""
    try:
        yield
    except KeyRequiredError:
        raise KeyRequiredError("add --insecure") from None


def read_keys_on_hangup(path: Path, rotate: Callable[[GroupKeys], None], say: Callable[[str], None]) -> None:
    """On SIGHUP the key file is read again and its keys are handed over; if it has no usable key, the old ones stay.

    Called inside the event loop.
    """

    def read_again() -> None:
        try:
            keys = keys_from_file(path)
            rotate(keys)
        except ConfigError as error:
            say(f"the keys stay as they were: {error}")
        else:
            say(f"keys read again from {path}: encrypts with key {keys.current}")

    asyncio.get_running_loop().add_signal_handler(SIGHUP, read_again)


def members_from(text: str) -> dict[str, str]:
    """Reads A,B,C or A=10.0.0.1:7000,B=10.0.0.2:7000."""
    found: dict[str, str] = {}
    for part in text.split(","):
        name, given, address = (word.strip() for word in part.partition("="))
        if not name or (given and not address):
            raise ConfigError(f"--members: invalid member {part!r}; write A,B,C or A=10.0.0.1:7000,B=10.0.0.2:7000")
        if name in found:
            raise ConfigError(f"--members: {name} is named twice")
        found[name] = address
    return found


def log_from(log: Path | None, *, force: bool, verify: bool) -> LogSettings | None:
    """The log of --log, --force and --verify."""
    require(log is not None or not force, "--force is about a log: give --log")
    require(log is not None or not verify, "--verify is about a log: give --log")
    return None if log is None else LogSettings(log, force=force, verify=verify)


def contacts_from(text: str) -> list[str] | Literal["local"]:
    """Reads the value of --join: addresses of some members, or `local`."""
    if text == LOCAL:
        return "local"
    parts = [part.strip() for part in text.split(",")]
    for part in parts:
        try:
            reachable(place_of(part))
        except ConfigError as error:
            raise ConfigError(f"--join: {error}; or use `--join local`") from None
    return parts


def address_or_port(text: str) -> tuple[str, int]:
    """Reads the value of --metrics: 9100, a port on this machine only, or 10.0.0.1:9100."""
    if text.isdecimal():
        require(int(text) < 1 << 16, f"--metrics: invalid port {text}; ports are 1 to 65535, and 0 is any free one")
        return LOOPBACK, int(text)
    try:
        address = address_of(text)
    except ConfigError:
        raise ConfigError(
            f"--metrics: {text!r} is neither a port, such as 9100, nor an address with one, such as 10.0.0.1:9100"
        ) from None
    return address.host, address.port


def run(work: Coroutine[Any, Any, int], *, uvloop: bool) -> int:
    """Runs in the fastest event loop that is installed."""
    factory: Callable[[], asyncio.AbstractEventLoop] | None = None
    if uvloop:
        with suppress(ImportError):
            from uvloop import new_event_loop as factory
    with asyncio.Runner(loop_factory=factory) as runner:
        return runner.run(work)
