"""Replay protection: which of a sender's counters were received already, so that nothing is accepted twice."""

from ordercast.wire.lru_map import LruMap

WINDOW = 4096
"""How far behind the latest counter one may be and still be accepted. Beyond that nothing is known."""
_ALL = (1 << WINDOW) - 1


class ReplayWindow:
    """The counters of one sender with one tag.

    Checking and accepting are two calls, since a counter may be accepted only after its datagram was authenticated:
    else a forger could make us reject everything with one high counter.
    """

    __slots__ = ("_below", "_taken")

    def __init__(self) -> None:
        self._below = 0  # one more than the latest accepted
        self._taken = 0  # bit i: _below - 1 - i was accepted

    def is_new(self, counter: int) -> bool:
        """True if it was not accepted yet and is not too old to tell."""
        age = self._below - 1 - counter
        return age < 0 or (age < WINDOW and not self._taken >> age & 1)

    def take(self, counter: int) -> None:
        """Accepts a counter that is new."""
        ahead = counter + 1 - self._below
        if ahead >= WINDOW:  # a shift by what a sender chooses could cost any amount of memory
            self._taken = 1
        elif ahead > 0:
            self._taken = (self._taken << ahead | 1) & _ALL
        else:
            self._taken |= 1 << -ahead
            return
        self._below = counter + 1


class ReplayWindows:
    """The windows of all senders and tags.

    Those of the current view and of the one before are kept for good: somebody who recorded datagrams of very many
    incarnations could else replay them all, and push out the windows that matter. Of the others those stay that
    accepted something last.
    """

    def __init__(self) -> None:
        self._held: int | None = None
        self._windows: dict[int, ReplayWindow] = {}  # of the current view, by sender
        self._previous: int | None = None
        self._previous_windows: dict[int, ReplayWindow] = {}  # of the view before
        self._recent: LruMap[tuple[int, int], ReplayWindow] = LruMap()  # by tag and sender

    def hold(self, tag: int) -> None:
        """Keeps the windows of this tag for good, until the second call after this one."""
        self._previous, self._previous_windows = self._held, self._windows
        self._held, self._windows = tag, {}
        for key in [key for key in self._recent if key[0] == tag]:
            self._windows[key[1]] = self._recent.pop(key)

    def find(self, tag: int, sender: int) -> ReplayWindow | None:
        """The window to check, if there is one. Finding it changes nothing: a forger can cause it, too."""
        if tag == self._held:
            return self._windows.get(sender)
        if tag == self._previous:
            return self._previous_windows.get(sender)
        return self._recent.get((tag, sender))

    def take(self, tag: int, sender: int, window: ReplayWindow | None, counter: int) -> None:
        """Accepts a counter that is new, of an authenticated datagram; `window` is the one that was found."""
        if window is None:
            window = ReplayWindow()
            if tag == self._held:
                self._windows[sender] = window
            elif tag == self._previous:
                self._previous_windows[sender] = window
            else:
                self._recent.keep((tag, sender), window)
        elif tag != self._held and tag != self._previous:  # noqa: PLR1714 (the quicker)
            self._recent.move_to_end((tag, sender))
        window.take(counter)
