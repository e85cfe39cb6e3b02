"""What a member counts of its units and messages: longer than any one machine runs."""

from collections import Counter


class UnitCounts:
    """Counters from the opening of the group on; they only grow."""

    __slots__ = (
        "discarded",
        "numbered",
        "overrun",
        "recoveries",
        "requests",
        "retransmitted",
        "sent",
        "transmitted",
    )

    def __init__(self) -> None:
        self.sent = self.numbered = 0
        """Messages that have a number; the same counting each fragment of a large message, as a trace does."""
        self.transmitted = self.retransmitted = self.requests = 0
        """Units that were sent, the retransmissions among them, those that request some."""
        self.recoveries = 0
        """Recoveries of the order."""
        self.overrun = 0
        """Units that were dropped since the application does not read, or the recording is behind."""
        self.discarded: Counter[str] = Counter()
        """Units that the machine discarded, by reason."""
