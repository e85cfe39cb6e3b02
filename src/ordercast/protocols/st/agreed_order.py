"""The agreed order: one total order of an epoch's packets, merged from the logs of all nodes.

Every node computes it from the same replies, which never change, so all get the same result. What some log determines
is kept; what none determines is free, and sorted by source and number.

Why it never contradicts what a node delivered: all of these hold for the order of the channel itself.
 (a) Packets that follow each other in a log were received in that order, and all nodes receive one order.
 (b) A source's packets are in the order of their numbers.
 (c) A node that has pre-acknowledged a packet has accepted everything to it that precedes that packet on the channel
     (Lemma A, see `normal_operation`). So what a node lacks comes after the last packet that it has pre-acknowledged.
"""

from collections.abc import Sequence
from heapq import heappop, heappush
from itertools import pairwise

from ordercast.model.units import PacketId
from ordercast.protocols.st.units import ResetReply


def agreed_order(replies: Sequence[ResetReply], *, incomplete_last: bool = False) -> list[PacketId] | None:
    """All packets of an epoch in the agreed order; None if the logs contradict each other.

    That is impossible on a channel that keeps one order (1C). Go-back-n needs packets that a destination lacks to come
    as late as they can: it discards everything from the first of them on. If all destinations have received the first
    packet on the channel, it stays: nothing precedes it. Otherwise an epoch could end without progress, and all after
    it: a node that stops because its log is long lacks what others receive later, at any place in the order.
    """
    destinations = known_packets(replies)
    packets = sorted(destinations)
    number = {packet: at for at, packet in enumerate(packets)}  # ties go to the lowest source, then the lowest seq
    incomplete = incomplete_packets(replies) if incomplete_last else set()
    last = [packet in incomplete for packet in packets]
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
        for first, second in pairwise(log):  # (a)
            if second != first + 1 or packets[first][0] != packets[second][0]:  # (b) has added that one
                precede(first, second)
        if reply.preacknowledged:  # (c)
            received, prefix_end, node = set(log), log[reply.preacknowledged - 1], reply.source
            for at, packet in enumerate(packets):
                if at not in received and destinations[packet] >> node & 1:
                    precede(prefix_end, at)

    order = _sorted(after, before, last)
    return [packets[at] for at in order] if len(order) == len(packets) else None


def _sorted(after: list[list[int]], before: list[int], last: list[bool]) -> list[int]:
    """Topological order: of those that nothing more must precede the lowest comes first, but those in `last` later."""
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


def go_back_point(order: Sequence[PacketId], replies: Sequence[ResetReply]) -> int:
    """The index from which go-back-n discards an agreed order: the first packet that one of its destinations lacks.

    Packets that some node knows to be everywhere stay, because they may have been delivered: those that a node has
    pre-acknowledged, and those that their source no longer keeps.
    """
    place = {packet: at for at, packet in enumerate(order)}
    kept = {(reply.source, seq) for reply in replies for seq, _ in reply.sent}
    stays = max([at + 1 for packet, at in place.items() if packet not in kept], default=0)
    for reply in replies:
        for source, seq, _ in reply.log[: reply.preacknowledged]:
            stays = max(stays, place[source, seq] + 1)
    incomplete = incomplete_packets(replies)
    return next((at for at in range(stays, len(order)) if order[at] in incomplete), len(order))


def incomplete_packets(replies: Sequence[ResetReply]) -> set[PacketId]:
    """Those that one of their destinations has not received."""
    received = [{(source, seq) for source, seq, _ in reply.log} for reply in replies]
    return {
        packet
        for packet, destinations in known_packets(replies).items()
        if any(
            destinations >> reply.source & 1 and packet not in log for reply, log in zip(replies, received, strict=True)
        )
    }


def known_packets(replies: Sequence[ResetReply]) -> dict[PacketId, int]:
    """All packets of an epoch that any node sent or received, and their destinations."""
    known: dict[PacketId, int] = {}
    for reply in replies:
        for source, seq, mask in reply.log:
            known[source, seq] = mask
        for seq, mask in reply.sent:
            known[reply.source, seq] = mask
    return known
