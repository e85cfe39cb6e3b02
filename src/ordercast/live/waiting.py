"""What is told to those who wait for a group that does not come about."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from ordercast.wire.datagram import Rejection

_PATIENCE = 2.0  # seconds before it is told for whom we wait
_REASONS = {
    "datagrams came that could not be opened: have all the same key, and the same name of the group?": (
        Rejection.KEY,
        Rejection.FORGED,
        Rejection.SEALED,
        Rejection.UNSEALED,
    ),
    "datagrams of another group came: have all the same name of the group?": (Rejection.GROUP,),
    "datagrams of another version came: have all the same ordercast?": (Rejection.VERSION,),
}


def refusals_in_words(dropped: Mapping[str, int]) -> str:
    """What those that were dropped tell about members that seem to be silent; empty if they tell nothing."""
    return "; ".join(told for told, reasons in _REASONS.items() if any(dropped.get(reason) for reason in reasons))


def for_whom(silent: Sequence[str], dropped: Mapping[str, int]) -> str:
    """Those of whom nothing was heard, and why that may be."""
    return "; ".join(filter(None, (", ".join(silent) or "all to agree", refusals_in_words(dropped))))


@contextmanager
def waiting(tell: Callable[[str], None] | None, awaited: Callable[[], str]) -> Iterator[None]:
    """If what is within takes long, it is told once for whom we wait."""
    handle = asyncio.get_running_loop().call_later(_PATIENCE, lambda: tell and tell(f"waiting for {awaited()}"))
    try:
        yield
    finally:
        handle.cancel()
