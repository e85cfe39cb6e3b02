"""Which of a sender's counters came already, so that nothing is taken twice."""

WINDOW = 4096
"""How far behind the latest counter one may be and still be taken. Beyond that nothing is remembered."""
_ALL = (1 << WINDOW) - 1


class Window:
    """The counters that were taken of one sender with one tag.

    To ask and to take are two calls, since a counter may be taken only after its datagram proved to be real: else a
    forger could make us deaf with one high number.
    """

    __slots__ = ("_below", "_taken")

    def __init__(self) -> None:
        self._below = 0  # one more than the latest taken
        self._taken = 0  # bit i: _below - 1 - i was taken

    def is_new(self, counter: int) -> bool:
        """Whether it was not taken yet and is not too old to know."""
        age = self._below - 1 - counter
        return age < 0 or (age < WINDOW and not self._taken >> age & 1)

    def take(self, counter: int) -> None:
        """Takes a counter that is new."""
        ahead = counter + 1 - self._below
        if ahead >= WINDOW:  # shifting by what a sender may choose would cost any amount of memory
            self._taken = 1
        elif ahead > 0:
            self._taken = (self._taken << ahead | 1) & _ALL
        else:
            self._taken |= 1 << -ahead
            return
        self._below = counter + 1
