"""Where those wait who may not go on yet: until a condition holds, however often it is in vain."""

import asyncio
from collections.abc import Callable


class BackPressure:
    """Used inside one event loop."""

    def __init__(self, is_open: Callable[[], bool]) -> None:
        self._is_open = is_open
        self.waiting: list[asyncio.Future[None]] = []

    async def passed(self) -> None:
        """Comes back when it is open."""
        while not self._is_open():
            future = asyncio.get_running_loop().create_future()
            self.waiting.append(future)
            try:
                await future
            finally:
                if future in self.waiting:  # it was cancelled
                    self.waiting.remove(future)

    def look(self) -> None:
        """Whether it is open has to be asked anew."""
        if self.waiting and self._is_open():
            waiting, self.waiting = self.waiting, []
            for future in waiting:
                if not future.done():
                    future.set_result(None)
