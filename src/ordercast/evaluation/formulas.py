"""The formulas of the papers: as printed, and corrected. Symbols are the papers'.

Each is a function of plain numbers; nothing is simulated here.
"""

from math import ceil

# --- SPO: "Selective Broadcast Service for Distributed Systems", 5.2, and Table 1 of the journal version ---


def table_1(n: int, m: int) -> dict[str, float]:
    """Units sent again for one loss, relative to TO, as printed: 1, 1/n and m/n²."""
    return {"to": 1.0, "po": 1 / n, "spo": m / n / n}


def resent_after_loss(n: int, m: int, round_trip: float, d: float) -> dict[str, float]:
    """N_TO, N_PO and N_SPO for receivers that discard what follows a loss, with what the paper's ratios leave out.

    The lost unit is sent again, and the one that showed the loss; besides, what was on the way until the request was
    received: from all n sources, from one source, and from one source to one destination.
    """
    on_the_way = round_trip / d
    return {"to": 2 + n * on_the_way, "po": 2 + on_the_way, "spo": 2 + on_the_way * m / n}


def preacknowledgment_time_printed(r: float, d: float) -> float:
    """From acceptance to pre-acknowledgment: r + d/2, as if one destination had to answer."""
    return r + d / 2


def preacknowledgment_time(r: float, d: float, m: float) -> float:
    """All m destinations must have sent something: r and the mean of the largest of m draws from (0, d)."""
    return r + d * m / (m + 1)


def preacknowledgment_time_poisson(r: float, d: float, m: int) -> float:
    """The same where sources send at random: the largest of m exponential times is d (1 + 1/2 + ... + 1/m)."""
    return r + d * sum(1 / k for k in range(1, m + 1))


def log_length(waiting: float, n: int, d: float) -> float:
    """Units that arrive while one waits."""
    return waiting * n / d


# --- ST: "Selective Total-Ordering Group Communication on Single High-Speed Channel", section 5 ---


def received_by_all_printed(f: float, d: float, n: int) -> float:
    """F with the printed exponent d."""
    return float((1 - f * d / n) ** d)


def received_by_all(f: float, d: float, n: int) -> float:
    """F: each of n nodes is a destination with probability d/n, and then loses the message with probability f."""
    return float((1 - f * d / n) ** n)


def received_by_all_others(f: float, d: float, n: int) -> float:
    """F where nothing is sent again for the source alone, which has what it sent."""
    return float((1 - f * d / n) ** (n - 1))


def selective_ratio(received: float) -> float:
    """R_S / L, equation (1), from F."""
    return 1 - received


def go_back_ratio(received: float, messages: int) -> float:
    """R_G / L, equation (2), summed up: everything from the first loss on is sent again."""
    if received == 1:
        return 0.0
    return 1 - received * (1 - received**messages) / (1 - received) / messages


def recovery_ratio(received: float, f: float, d: float, n: int, messages: int, *, all_places: bool) -> float:
    """C / D; F_0 as printed lacks the number of places where the only loss may be, which is n L."""
    single = f * d / n * (1 - f * d / n) ** (n * messages - 1) * (n * messages if all_places else 1)
    several = 1 - single - received**messages
    return single / n / messages + several * go_back_ratio(received, messages)


def recovery_ratio_of_printed_rules(received: float, d: float, n: int, messages: int) -> float:
    """C / D of the printed rules: no loss stays single, as what reveals it is discarded too; d/n are for a node."""
    return (1 - received**messages) * go_back_ratio(received, messages) * d / n


# --- PriTO: "Run Synchronization in the Priority-Based Broadcast Protocol" ---


def waiting_bound(run: float, access: float, status: float) -> float:
    """The longest time from a transmission to its delivery everywhere when nothing is lost: T + 5 d + 3 δ."""
    return run + 5 * access + 3 * status


# --- The sequencer: "An Efficient Reliable Broadcast Protocol", sections 3 and 4 ---


def packets_per_broadcast(n: int, history: int) -> float:
    """One to the sequencer, one from it, and a message from each node for each history that is filled."""
    return n / history + 2


def packets_with_dummies(n: int, dummy_after: int) -> float:
    """The same, counted: all but the sender and the sequencer send a dummy after so many broadcasts."""
    return 2 + (n - 2) / dummy_after


def interrupts(n: int) -> dict[str, int]:
    """For each broadcast, of this protocol and of those that the paper compares with."""
    return {"sequencer": n, "chang_maxemchuk": 2 * (n - 1), "rpc": 3 * (n - 1)}


def broadcast_delay(n: int) -> float:
    """The straight line through Figure 6, in milliseconds: 25 µs for each node more than two."""
    return 1.32 + 0.025 * (n - 2)


# --- headers ---


def header_bytes(n: int, vectors: int, numbers: int) -> int:
    """16 bytes, 4 for each number, alone or in a vector with one for each node, and a bit for each node."""
    return 16 + 4 * (numbers + vectors * n) + ceil(n / 8)
