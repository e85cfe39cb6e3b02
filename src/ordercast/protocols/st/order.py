"""ORDER: the one order of an epoch that all nodes agree on, from what each of them heard of it.

Every node computes it from the same replies, which never change, so all get the same. What is determined by what
anybody heard is kept; what nobody heard is free, and sorted by source and number.

Why it never contradicts what a node delivered: all of these hold for the order of the channel itself.
 (a) What stands one behind the other in a log was heard in that order, and all hear one order.
 (b) A source's packets are in the order of their numbers.
 (c) Whoever has pre-acknowledged a packet has accepted everything for it that precedes that packet on the channel
     (Lemma A, see `st_normal`). So what a node lacks comes after the last packet that it has pre-acknowledged.
"""

from collections.abc import Sequence
from heapq import heappop, heappush
from itertools import pairwise

from ordercast.model.units import MessageId
from ordercast.protocols.st.units import ResetReply


def agreed_order(replies: Sequence[ResetReply], *, unheard_last: bool = False) -> list[MessageId] | None:
    """All packets of an epoch in the agreed order; None if the logs contradict each other.

    That cannot be on a channel that keeps one order (1C). Go-back-n wants what nobody heard to come last: it throws
    everything away from the first packet on that somebody lacks, and would otherwise never get on.
    """
    destinations = known_packets(replies)
    packets = sorted(destinations)
    number = {packet: at for at, packet in enumerate(packets)}  # ties go to the lowest source, then the lowest seq
    last = [unheard_last] * len(packets)
    after: list[list[int]] = [[] for _ in packets]
    before = [0] * len(packets)  # how many must come first and have not yet

    def precede(first: int, second: int) -> None:
        after[first].append(second)
        before[second] += 1

    for at in range(1, len(packets)):  # (b)
        if packets[at - 1][0] == packets[at][0]:
            precede(at - 1, at)
    for reply in replies:
        log = [number[source, seq] for source, seq, _ in reply.log]
        for at in log:
            last[at] = False
        for first, second in pairwise(log):  # (a)
            if second != first + 1 or packets[first][0] != packets[second][0]:  # which (b) has said
                precede(first, second)
        if reply.preacknowledged:  # (c)
            heard, settled, node = set(log), log[reply.preacknowledged - 1], reply.source
            for at, packet in enumerate(packets):
                if at not in heard and destinations[packet] >> node & 1:
                    precede(settled, at)

    order = _sorted(after, before, last)
    return [packets[at] for at in order] if len(order) == len(packets) else None


def _sorted(after: list[list[int]], before: list[int], last: list[bool]) -> list[int]:
    """The numbers, each behind all that must precede it; where there is a choice the lowest, but some of them last."""
    ready = sorted((last[at], at) for at, count in enumerate(before) if not count)  # and so a heap
    order = []
    while ready:
        _, at = heappop(ready)
        order.append(at)
        for follower in after[at]:
            before[follower] -= 1
            if not before[follower]:
                heappush(ready, (last[follower], follower))
    return order


def go_back_point(order: Sequence[MessageId], replies: Sequence[ResetReply]) -> int:
    """From which place on go-back-n throws an agreed order away: the first at which a destination lacks the packet.

    What somebody knows to be everywhere stays, for it may have been delivered: what a node has pre-acknowledged, and
    what its source no longer keeps.
    """
    place = {packet: at for at, packet in enumerate(order)}
    kept = {(reply.source, seq) for reply in replies for seq, _ in reply.sent}
    settled = max([at + 1 for packet, at in place.items() if packet not in kept], default=0)
    for reply in replies:
        for source, seq, _ in reply.log[: reply.preacknowledged]:
            settled = max(settled, place[source, seq] + 1)
    heard = [{(source, seq) for source, seq, _ in reply.log} for reply in replies]
    destinations = known_packets(replies)
    for at in range(settled, len(order)):
        packet = order[at]
        if any(destinations[packet] >> reply.source & 1 and packet not in heard[n] for n, reply in enumerate(replies)):
            return at
    return len(order)


def known_packets(replies: Sequence[ResetReply]) -> dict[MessageId, int]:
    """All packets of an epoch that anybody sent or heard, and their destinations."""
    known: dict[MessageId, int] = {}
    for reply in replies:
        for source, seq, mask in reply.log:
            known[source, seq] = mask
        for seq, mask in reply.sent:
            known[reply.source, seq] = mask
    return known
