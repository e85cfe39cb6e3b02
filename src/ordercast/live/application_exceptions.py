"""What an exception of the application does here; the other members are never told what it was.

One that leaves the block of a group stays as it is: this member leaves at once, and the others continue. One in a
callback is logged, and has no other effect. Of `save` and `load` see `host.application_state`, of the commands of
replicated objects `replicated.results`.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

Value = TypeVar("Value")


async def end_block(
    error: BaseException | None, leave: Callable[[], Awaitable[None]], leave_at_once: Callable[[], Awaitable[None]]
) -> None:
    """Ends the block of a group that this error leaves, or none. An interrupt of the end is such an error, too.

    `leave_at_once`: without waiting until own messages have arrived.
    """
    if error is not None:
        await leave_at_once()
        return
    try:
        await leave()
    except asyncio.CancelledError:
        await leave_at_once()
        raise


def call_back(
    callback: Callable[[Value], Any],
    value: Value,
    name: str,
    log: logging.Logger | logging.LoggerAdapter[logging.Logger],
) -> None:
    """Calls a callback of the application; `name`: of the argument of `join` that it is."""
    try:
        callback(value)
    except Exception:
        log.exception("%s raised an exception", name)
