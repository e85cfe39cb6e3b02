"""What a node remembers of its polls: since when it waits, for whom, and how often they left it unanswered."""

from ordercast.model.state import DeclaredState

MAX_BACKOFF = 4
"""Polls and repeated requests back off by doubling, up to this many times their duration."""


class Polling(DeclaredState):
    """Polls of one node. Whom it polls and when is up to `Spo.poll` and `Spo.ask_unseen_sources`."""

    timer: bool
    heads: tuple[int, ...]  # the head of each log when the timer was set
    backoff: int
    unanswered: list[int]  # polls in a row, by node
    inferred_loss_timer: bool

    def __init__(self, nodes: int) -> None:
        self.timer, self.heads, self.backoff, self.unanswered = False, (), 1, [0] * nodes
        self.inferred_loss_timer = False

    def start(self, heads: tuple[int, ...]) -> None:
        """Something is outstanding: the poll timer runs from now on."""
        self.timer, self.heads, self.backoff = True, heads, 1

    def next_round(self, heads: tuple[int, ...], *, polled: bool) -> None:
        """The poll timer runs again, for longer if somebody had to be polled."""
        self.timer, self.heads = True, heads
        self.backoff = min(MAX_BACKOFF, 2 * self.backoff) if polled else 1
