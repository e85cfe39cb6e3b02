"""Why a group does not open: sentences for those who wait for it."""

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from ordercast.live.application_exceptions import call_back
from ordercast.wire.datagram import Rejection

_log = logging.getLogger("ordercast.join")
_callbacks = logging.getLogger("ordercast.live")

_PATIENCE = 2.0  # seconds before the missing members are named
_CAUSES = {
    "decryption failed: check that all members have the same key and group name; members on one machine without a key "
    "have that of their user": (
        Rejection.KEY,
        Rejection.FORGED,
        Rejection.CIPHERTEXT,
        Rejection.PLAINTEXT,
    ),
    "received datagrams of another group: check that all members have the same group name": (Rejection.GROUP,),
    "received datagrams of another version: check that all members run the same version of ordercast": (
        Rejection.VERSION,
    ),
}


def describe_rejections(dropped: Mapping[str, int]) -> str:
    """The likely mistake, if datagrams were dropped that missing members may have sent; else empty."""
    return "; ".join(cause for cause, reasons in _CAUSES.items() if any(dropped.get(reason) for reason in reasons))


def describe_missing(missing: Sequence[str], dropped: Mapping[str, int]) -> str:
    """The members from which nothing was received, and the likely mistake."""
    return "; ".join(filter(None, (", ".join(missing) or "all members to agree", describe_rejections(dropped))))


@contextmanager
def notify_if_slow(callback: Callable[[str], None] | None, describe: Callable[[], str]) -> Iterator[None]:
    """If the block takes long, logs once what it waits for, and calls back with the same sentence."""

    def notify() -> None:
        sentence = f"waiting for {describe()}"
        _log.info("%s", sentence)
        if callback is not None:
            call_back(callback, sentence, "on_waiting", _callbacks)

    handle = asyncio.get_running_loop().call_later(_PATIENCE, notify)
    try:
        yield
    finally:
        handle.cancel()
