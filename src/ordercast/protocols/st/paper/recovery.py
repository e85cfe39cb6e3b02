"""What the printed recovery of ST computes: sort points, the agreed numbers, who lacks what, the sorting rule.

From: Tachikawa and Takizawa, "Selective Total-Ordering Group Communication on Single High-Speed Channel", section 4.4.
When each is used, and the misprints that were corrected, are in `machine`. Of two vectors, only numbers of the same
source are ever compared.
"""

from collections.abc import Sequence

from ordercast.model.units import Packet
from ordercast.protocols.spo.units import Data
from ordercast.protocols.st.units import ResetOrder

Numbers = Sequence[int]
"""One for each node."""


def sort_point(log: Sequence[Data], numbers: Numbers) -> int:
    """Steps (2) and (4), f: the place of the first in RRL that is not below the numbers; the end if there is none."""
    for place, unit in enumerate(log):
        if unit.packet.seq >= numbers[unit.source]:
            return place
    return len(log)


def lowered(expected: Numbers, log: Sequence[Data], place: int) -> tuple[int, ...]:
    """Step (2), TREQ_h: the lowest number of each source from f on, f included, or what is expected of it."""
    numbers = list(expected)
    for unit in log[place:]:
        numbers[unit.source] = min(numbers[unit.source], unit.packet.seq)
    return tuple(numbers)


def lacking_pairs(orders: Sequence[ResetOrder]) -> int:
    """FAIL: of how many pairs the first lacks something that the second sent to it (PR_ij < PS_ij).

    It counts pairs, and not what they lack (S8).
    """
    return sum(
        receiver.expected_to_me[sender.source] < sender.next_seq_to[receiver.source]
        for receiver in orders
        for sender in orders
    )


def is_lacking(packet: Packet, orders: Sequence[ResetOrder]) -> bool:
    """RET procedure (1): some destination has not accepted it (p.PSEQ_i >= PR_ij)."""
    return any(
        packet.destinations >> receiver.source & 1
        and packet.seq_to[receiver.source] >= receiver.expected_to_me[packet.source]
        for receiver in orders
    )


def sorted_log(log: Sequence[Data], me: int, order: Numbers, sent_below: Numbers) -> list[Data]:
    """Sorting rule: by the place of the source in ORDR, then by PSEQ; packets sent after the agreement stay last.

    The order of the log is lost, though others may have delivered in it (S4, S5).
    """
    rank = {source: place for place, source in enumerate(order)}

    def key(unit: Data) -> tuple[int, int]:
        number = unit.packet.seq_to[me]
        return (rank[unit.source], number) if number < sent_below[unit.source] else (len(order), 0)

    return sorted(log, key=key)
