"""ORDER: the one order that all nodes of ST agree on, from what each of them heard."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from ordercast.model.nodes import mask_of, members
from ordercast.model.units import PacketId
from ordercast.protocols.st.agreed_order import agreed_order, known_packets
from ordercast.protocols.st.units import ResetReply

A, B, C = (0, 0), (1, 0), (2, 0)
"""The first packets of E1, E2 and E3."""
ALL = 0b111


def reply(
    source: int, log: Sequence[PacketId] = (), sent: Sequence[int] = (), preacknowledged: int = 0, to: int = ALL
) -> ResetReply:
    entries = tuple((of, seq, to) for of, seq in log)
    return ResetReply(source, 0, 9, (9, 9, 9), tuple((seq, to) for seq in sent), entries, preacknowledged)


# --- the rules, one by one ---


def test_nobody_heard_anything() -> None:
    assert agreed_order([reply(0), reply(1), reply(2)]) == []


def test_a_what_stands_in_a_log_is_kept_in_its_order() -> None:
    assert agreed_order([reply(0, [C, A, B]), reply(1), reply(2)]) == [C, A, B]


def test_a_logs_are_chained() -> None:
    """E1 heard C before A, E2 heard B before C: nobody heard both A and B, and yet B comes first."""
    assert agreed_order([reply(0, [C, A]), reply(1, [B, C]), reply(2)]) == [B, C, A]


def test_b_a_source_is_kept_in_the_order_of_its_numbers() -> None:
    """The second packet of E1 is nailed down behind C, the third is behind it though nobody heard it."""
    assert agreed_order([reply(0, sent=[0, 1, 2]), reply(1, [C, (0, 1)]), reply(2)]) == [A, C, (0, 1), (0, 2)]


def test_c_what_a_node_lacks_comes_after_what_it_has_preacknowledged() -> None:
    without = [reply(0, sent=[0]), reply(1, [B, C]), reply(2)]
    assert agreed_order(without) == [A, B, C]
    for count, order in (1, [B, A, C]), (2, [B, C, A]):
        assert agreed_order([without[0], reply(1, [B, C], preacknowledged=count), reply(2)]) == order


def test_c_asks_only_those_who_are_destinations() -> None:
    not_for_e2 = ResetReply(0, 0, 1, (1, 0, 1), ((0, 0b101),), (), 0)
    assert agreed_order([not_for_e2, reply(1, [B, C], preacknowledged=2), reply(2)]) == [A, B, C]


def test_ties_are_broken_by_source_then_number() -> None:
    free = [reply(0, sent=[0, 1]), reply(1, sent=[0]), reply(2, sent=[0])]
    assert agreed_order(free) == [A, (0, 1), B, C]
    assert agreed_order([*free[:2], reply(2, [B, C], sent=[0])]) == [A, (0, 1), B, C]
    assert agreed_order([reply(0, [C, A], sent=[0, 1]), *free[1:]]) == [B, C, A, (0, 1)]


def test_two_logs_that_contradict_each_other_have_no_order() -> None:
    assert agreed_order([reply(0, [A, B]), reply(1, [B, A]), reply(2)]) is None


def test_a_longer_cycle_has_no_order_either() -> None:
    assert agreed_order([reply(0, [A, B]), reply(1, [B, C]), reply(2, [C, A])]) is None


def test_a_cycle_through_a_sources_numbers_or_a_prefix_has_no_order() -> None:
    assert agreed_order([reply(0, [(0, 1), A]), reply(1), reply(2)]) is None
    assert agreed_order([reply(0, [A, B]), reply(1, [B], preacknowledged=1), reply(2)]) is None


def test_a_packet_that_is_heard_twice_has_no_place() -> None:
    assert agreed_order([reply(0, [A, B, A]), reply(1), reply(2)]) is None


def test_known_is_whatever_anybody_sent_or_heard() -> None:
    replies = [reply(0, [B], sent=[4], to=0b11), reply(1, sent=[0], to=0b11), reply(2, [C], to=0b100)]
    assert known_packets(replies) == {B: 0b11, (0, 4): 0b11, C: 0b100}


# --- for any channel ---


@dataclass(frozen=True)
class Heard:
    """What was on a channel, and what the nodes say of it."""

    channel: list[tuple[PacketId, int]]
    replies: list[ResetReply]

    def lacks(self, node: int) -> list[PacketId]:
        log = heard(self.replies[node])
        return [packet for packet, mask in self.channel if mask >> node & 1 and packet not in log]


def heard(said: ResetReply) -> list[PacketId]:
    return [(source, seq) for source, seq, _ in said.log]


@st.composite
def channels(draw: st.DrawFn) -> Heard:
    """Packets in the order of a channel, losses at any node, and any prefixes that Lemma A allows."""
    nodes = draw(st.integers(2, 4))
    nexts = draw(st.lists(st.integers(0, 5), min_size=nodes, max_size=nodes))
    channel: list[tuple[PacketId, int]] = []
    for source, mask in draw(
        st.lists(st.tuples(st.integers(0, nodes - 1), st.integers(1, (1 << nodes) - 1)), max_size=9)
    ):
        channel.append(((source, nexts[source]), mask))
        nexts[source] += 1
    said = []
    for node in range(nodes):
        mine = [entry for entry in channel if entry[1] >> node & 1]
        lost = draw(st.sets(st.sampled_from(mine))) if mine else set()
        log = [entry for entry in mine if entry not in lost]
        legal = next((place for place, entry in enumerate(mine) if entry in lost), len(mine))
        sent = [(seq, mask) for (source, seq), mask in channel if source == node]
        said.append(
            ResetReply(
                node,
                0,
                nexts[node],
                (0,) * nodes,
                tuple(sent[draw(st.integers(0, len(sent))) :]),
                tuple((*packet, mask) for packet, mask in log),
                draw(st.integers(0, legal)),
            )
        )
    return Heard(channel, _with_all_sent(channel, said))


def _with_all_sent(channel: list[tuple[PacketId, int]], said: list[ResetReply]) -> list[ResetReply]:
    """A source keeps what some destination lacks, and all that it sent after that."""
    kept = []
    for own in said:
        mine = [(packet[1], mask) for packet, mask in channel if packet[0] == own.source]
        needed = [
            place
            for place, (seq, mask) in enumerate(mine)
            if any((own.source, seq) not in heard(said[node]) for node in members(mask))
        ]
        first = min([*needed, len(mine) - len(own.sent)])
        kept.append(
            ResetReply(own.source, 0, own.next_seq, own.next_seq_to, tuple(mine[first:]), own.log, own.preacknowledged)
        )
    return kept


def naive_order(replies: Sequence[ResetReply]) -> list[PacketId] | None:
    """All pairs that the rules speak of; then the smallest that nothing left must precede, again and again."""
    left = known_packets(replies)
    pairs = {(one, other) for one in left for other in left if one[0] == other[0] and one[1] < other[1]}
    for said in replies:
        log = heard(said)
        pairs |= {(first, second) for place, first in enumerate(log) for second in log[place + 1 :]}
        lacking = [packet for packet, mask in left.items() if mask >> said.source & 1 and packet not in log]
        pairs |= {(first, second) for first in log[: said.preacknowledged] for second in lacking}
    order: list[PacketId] = []
    while left:
        candidates = [packet for packet in left if not any((other, packet) in pairs for other in left)]
        if not candidates:
            return None
        order.append(min(candidates))
        del left[order[-1]]
    return order


@settings(deadline=None)
@given(channels(), st.randoms(use_true_random=False))
def test_the_agreed_order_is_one_that_everybody_can_live_with(told: Heard, chance: Random) -> None:
    order = agreed_order(told.replies)
    assert order is not None
    assert sorted(order) == sorted(known_packets(told.replies))
    place = {packet: number for number, packet in enumerate(order)}
    for said in told.replies:
        log = heard(said)
        assert [packet for packet in order if packet in log] == log
        prefix = log[: said.preacknowledged]
        lacks = [packet for packet in told.lacks(said.source) if packet in place]
        assert all(place[packet] > place[prefix[-1]] for packet in lacks) if prefix else True
        mine = [packet for packet in order if packet in log or packet in lacks]
        assert mine[: len(prefix)] == prefix, "the agreed order extends what was delivered"
    for source in range(len(told.replies)):
        assert [seq for of, seq in order if of == source] == sorted(seq for of, seq in order if of == source)
    shuffled = list(told.replies)
    chance.shuffle(shuffled)
    assert agreed_order(shuffled) == order
    assert naive_order(told.replies) == order


@settings(deadline=None)
@given(channels())
def test_whatever_is_lacking_is_in_the_agreed_order(told: Heard) -> None:
    order = agreed_order(told.replies) or []
    for node in range(len(told.replies)):
        assert set(told.lacks(node)) <= set(order)


@settings(deadline=None)
@given(st.lists(st.tuples(st.permutations([A, B, C, (0, 1), (1, 1)]), st.integers(0, 5)), min_size=3, max_size=3))
def test_where_the_rules_contradict_each_other_there_is_none(said: list[tuple[list[PacketId], int]]) -> None:
    replies = [
        reply(node, packets[:count], sent=[0, 1] if node < 2 else [0], preacknowledged=count // 2)
        for node, (packets, count) in enumerate(said)
    ]
    assert agreed_order(replies) == naive_order(replies)


def test_the_losses_of_example_1_leave_any_order_and_all_choose_one() -> None:
    """a{1,2} b{2,3} c{1,3}: each node lost one of its two, and nobody heard a pair."""
    said = [
        ResetReply(0, 0, 1, (1, 1, 0), ((0, mask_of([0, 1])),), ((*A, 0b011),), 0),
        ResetReply(1, 0, 1, (0, 1, 1), ((0, mask_of([1, 2])),), ((*B, 0b110),), 0),
        ResetReply(2, 0, 1, (1, 0, 1), ((0, mask_of([0, 2])),), ((*C, 0b101),), 0),
    ]
    assert agreed_order(said) == [A, B, C]
