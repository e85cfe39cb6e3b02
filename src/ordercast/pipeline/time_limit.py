"""A time limit for a block of Python code, by a signal."""

import gc
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread
from types import FrameType

_REPEAT = 1.0  # seconds until the signal is raised again, in case its exception was swallowed
_RETRY = 0.01  # seconds until it is raised again if the running code would swallow the exception


class OutOfTimeError(BaseException):
    """The time limit was exceeded. Not an `Exception`, so that code within does not handle it as its own."""


@contextmanager
def time_limit(seconds: float | None, *, cpu_time: bool = False) -> Iterator[None]:
    """Raises `OutOfTimeError` in a block that takes longer; None: no limit.

    Works in the main thread only, which is where Spark's Python workers run tasks; elsewhere there is no limit.
    `cpu_time` counts the CPU time of this process instead of the time of day.
    """
    if seconds is None or current_thread() is not main_thread():
        yield
        return

    collecting = False

    def note_collection(phase: str, info: dict[str, int]) -> None:
        nonlocal collecting
        del info
        collecting = phase == "start"

    def expire(number: int, frame: FrameType | None) -> None:
        del number
        if collecting or _swallows_exceptions(frame):
            signal.setitimer(clock, _RETRY, _REPEAT)
        else:
            raise OutOfTimeError

    clock, number = (signal.ITIMER_PROF, signal.SIGPROF) if cpu_time else (signal.ITIMER_REAL, signal.SIGALRM)
    before = signal.signal(number, expire)
    gc.callbacks.append(note_collection)
    signal.setitimer(clock, seconds, _REPEAT)
    try:
        yield
    finally:
        signal.setitimer(clock, 0)
        gc.callbacks.remove(note_collection)
        signal.signal(number, before)


def _swallows_exceptions(frame: FrameType | None) -> bool:
    """True within a destructor, or a callback of a weak reference or of the collector: exceptions are dropped there."""
    callbacks = {getattr(callback, "__code__", None) for callback in gc.callbacks}
    while frame is not None:
        if frame.f_code in callbacks or frame.f_code.co_name == "__del__":
            return True
        if frame.f_globals.get("__name__") in {"weakref", "_weakrefset"}:
            return True
        frame = frame.f_back
    return False
