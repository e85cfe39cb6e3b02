"""Which of a sender's counters came already, so that nothing is taken twice."""

from ordercast.wire.lru_map import LruMap

WINDOW = 4096
"""How far behind the latest counter one may be and still be taken. Beyond that nothing is remembered."""
_ALL = (1 << WINDOW) - 1


class ReplayWindow:
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


class ReplayWindows:
    """The windows of all senders and tags.

    Those of the session that is open are held for good: somebody who kept datagrams of very many earlier lives could
    else say them all again, and push out the windows that matter. Of the others those stay that took something last.
    """

    def __init__(self) -> None:
        self._held: int | None = None
        self._windows: dict[int, ReplayWindow] = {}  # of the tag that is held, by sender
        self._recent: LruMap[tuple[int, int], ReplayWindow] = LruMap()  # by tag and sender

    def hold(self, tag: int) -> None:
        """The tag of the session: there is one in the life of a seal."""
        self._held = tag
        for key in [key for key in self._recent if key[0] == tag]:
            self._windows[key[1]] = self._recent.pop(key)

    def find(self, tag: int, sender: int) -> ReplayWindow | None:
        """The window to ask, if there is one. Asking changes nothing: a forger asks, too."""
        return self._windows.get(sender) if tag == self._held else self._recent.get((tag, sender))

    def take(self, tag: int, sender: int, window: ReplayWindow | None, counter: int) -> None:
        """Takes a counter that is new, of a datagram that is real; the window is the one that was found."""
        if window is None:
            window = ReplayWindow()
            if tag == self._held:
                self._windows[sender] = window
            else:
                self._recent.keep((tag, sender), window)
        elif tag != self._held:
            self._recent.move_to_end((tag, sender))
        window.take(counter)

    def __len__(self) -> int:
        return len(self._windows) + len(self._recent)
