"""What the C library does with memory that is freed."""

from functools import cache

_BLOCK = 16 << 20


@cache
def keep_freed_memory() -> None:
    """Lets the GNU C library keep up to twice `_BLOCK` at the end of its heap, instead of giving it back at once.

    Packets come and go by the megabyte. By default all above 128 KiB at the end of the heap goes back to the system,
    which has to find and clear each page again a moment later: a tenth of the processor time of messages of 1 KiB, and
    more with a log. The library has learned that a process uses large blocks when it has seen one be freed. This one is
    never touched, so it costs no memory; a third one of a process would be, since the library takes it out of its heap
    and clears it: so once for a process. Other libraries do nothing of the kind.
    """
    bytes(_BLOCK)
