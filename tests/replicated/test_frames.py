"""Values in values: there is room for them, whatever other threads do meanwhile."""

import sys
from threading import Event, Thread

from ordercast.replicated.frames import with_room


class Deep:
    """Something that needs more room, and takes its time there."""

    def __init__(self) -> None:
        self.begun, self.goes_on = Event(), Event()
        self.calls = 0
        self.thread = Thread(target=with_room, args=(self,), daemon=True)
        self.thread.start()

    def __call__(self) -> None:
        self.calls += 1
        if self.calls == 1:
            raise RecursionError
        self.begun.set()
        self.goes_on.wait(10)

    def finish(self) -> None:
        """Lets it end."""
        self.goes_on.set()
        self.thread.join(10)


def test_two_threads_that_need_room_do_not_take_it_from_each_other_nor_leave_it_behind() -> None:
    limit = sys.getrecursionlimit()
    one = Deep()
    one.begun.wait(10)
    other = Deep()
    other.begun.wait(0.05)
    one.finish()
    other.begun.wait(10)
    while_the_other_needs_it = sys.getrecursionlimit()
    other.finish()
    assert while_the_other_needs_it > limit
    assert sys.getrecursionlimit() == limit
