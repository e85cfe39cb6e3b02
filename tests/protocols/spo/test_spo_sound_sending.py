"""SPO, sound rules: UNITS, WINDOW, SELF, SENDER, batches, and what an application may ask for."""

from ordercast.model.machine import Deliver, Drained, Level, Numbered, Reached, Send, Submit
from ordercast.model.nodes import mask_of
from ordercast.protocols.spo.units import Data, Ready
from tests.protocols.spo.driver import E1, E2, E3, Node, Peer

# --- UNITS ---


def test_units_a_data_unit_is_an_identity_and_a_status() -> None:
    node = Node(E1, quota=7)
    out = node.handle(Submit(mask_of([E2, E3]), (2, 1), b"abc", 5))
    (unit,) = out.data
    packet, status = unit.packet, unit.status
    assert out.numbered == [packet]
    assert (packet.source, packet.destinations, packet.seq, packet.seq_to) == (E1, 0b110, 0, (0, 0, 0))
    assert (packet.first, packet.lengths, packet.payload, packet.priority) == (0, (2, 1), b"abc", 5)
    assert (status.stamp, status.expects, status.free) == (1, (1, 0, 0), 7)


def test_units_a_number_to_each_node_counts_what_was_sent_to_it_before() -> None:
    node = Node(E1)
    packets = [node.submits(*to).data[0].packet for to in ([E2], [E3], [E2, E3], [E1, E3])]
    assert [packet.seq for packet in packets] == [0, 1, 2, 3]
    assert [packet.seq_to for packet in packets] == [(0, 0, 0), (0, 1, 0), (0, 1, 1), (0, 2, 2)]


def test_units_everything_goes_to_everybody() -> None:
    """Whoever is no destination learns the numbers and the status from it."""
    node, e2 = Node(E1), Peer(E2)
    out = node.submits(E2)
    out += node.hears(e2.ready(missing=((E1, ((0, 1),)),)))
    out += node.fires("poll")
    sends = [output for output in out if isinstance(output, Send)]
    assert len(sends) == 3
    assert all(output.to is None for output in sends)


def test_units_a_status_tells_the_next_numbers_and_consumes_none() -> None:
    node, e2 = Node(E1), Peer(E2)
    node.submits(E2)
    node.hears(e2.ready(wants=[E1]))
    (ready,) = node.drained().statuses
    assert (ready.source, ready.next_seq, ready.next_seq_to) == (E1, 1, (0, 1, 0))
    packet = node.submits(E2).data[0].packet
    assert (packet.seq, packet.seq_to) == (ready.next_seq, ready.next_seq_to)


def test_units_a_copy_repeats_the_packet_and_carries_a_fresh_status() -> None:
    node, e2, e3 = Node(E1), Peer(E2), Peer(E3)
    (first,) = node.submits(E2).data
    node.hears(e3.sends(E1, E2))
    (copy,) = node.hears(e2.ready(missing=((E1, ((0, 1),)),))).copies
    assert copy.packet == first.packet
    assert copy.status.stamp > first.status.stamp
    assert (first.status.expects, copy.status.expects) == ((1, 0, 0), (1, 0, 1))


def test_units_stamps_count_all_transmissions() -> None:
    node, e2 = Node(E1), Peer(E2)
    out = node.submits(E2)
    out += node.hears(e2.ready(missing=((E1, ((0, 1),)),)))
    out += node.hears(e2.ready(wants=[E1]))
    out += node.drained()
    out += node.fires("poll")
    out += node.submits(E2, E3)
    kinds = [type(unit).__name__ for unit in out.units]
    assert kinds == ["Data", "Data", "Ready", "Ready", "Data"]
    stamps = [unit.status.stamp for unit in out.units if isinstance(unit, Data | Ready)]
    assert stamps == [1, 2, 3, 4, 5]


def test_units_a_status_says_what_is_preacknowledged_of_each_source() -> None:
    """PACK_j is the top of what is accepted and not yet pre-acknowledged, or all that is accepted."""
    node, e1, e3 = Node(E2), Peer(E1), Peer(E3)
    node.hears(e1.sends(E2), e1.sends(E2, E3), e1.sends(E2))
    node.hears(e3.sends(E2))
    (said,) = node.drained().statuses
    assert said.status.expects == (3, 0, 1)
    assert said.status.preacknowledged_below == (1, 0, 1), "the second packet of E1 waits for E3"
    node.hears(e3.accepts(E1, below=2).ready())
    (said,) = node.drained().statuses
    assert said.status.preacknowledged_below == (3, 0, 1)


def test_units_a_status_tells_nothing_of_the_places_that_my_own_packets_take() -> None:
    """They are gated here; others must not be held up by them."""
    node = Node(E1, quota=4)
    said = [node.submits(E1, E2).data[0].status.free for _ in range(3)]
    assert said == [4, 4, 4]


def test_units_a_status_tells_the_free_places_of_the_fullest_source() -> None:
    node, e1, e3 = Node(E2, quota=8), Peer(E1), Peer(E3)
    node.hears(*[e1.sends(E2, E3) for _ in range(3)])
    node.hears(*[e3.sends(E1, E2) for _ in range(5)])
    (said,) = node.drained().statuses
    assert said.status.free == 3


# --- WINDOW (departure 5) ---


def test_window_counts_packets_that_some_destination_has_not_accepted() -> None:
    node, e2, e3 = Node(E1, window=2), Peer(E2), Peer(E3)
    node.submits(E2, E3)
    node.submits(E2)
    assert node.submits(E3).data == []
    assert node.hears(e3.accepts(E1, below=1).ready()).data == [], "E2 has not accepted it"
    (sent,) = node.hears(e2.accepts(E1, below=1).ready()).data
    assert sent.packet.destinations == mask_of([E3])


def test_window_opens_for_as_many_as_it_has_room_for_in_order() -> None:
    node, e2 = Node(E1, window=3), Peer(E2)
    for _ in range(8):
        node.submits(E2)
    assert [unit.packet.seq for unit in node.hears(e2.accepts(E1, below=2).ready()).data] == [3, 4]
    assert node.machine.log_sizes().waiting == 3


def test_window_is_never_closed_by_a_node_that_is_no_destination() -> None:
    """C5: E3 says nothing at all, and has no place free."""
    node, e2, e3 = Node(E1, window=1), Peer(E2), Peer(E3)
    node.hears(e3.has_free(0).ready())
    for seq in range(10):
        assert len(node.submits(E2).data) == 1
        node.hears(e2.accepts(E1, below=seq + 1).ready())


def test_window_is_closed_further_by_the_destination_with_the_fewest_free_places() -> None:
    node, e2, e3 = Node(E1, window=8), Peer(E2), Peer(E3)
    node.hears(e2.has_free(2).ready(), e3.has_free(5).ready())
    assert [len(node.submits(E2, E3).data) for _ in range(3)] == [1, 1, 0]
    assert len(node.hears(e2.has_free(3).ready()).data) == 1


def test_window_lets_free_places_of_others_than_the_destinations_alone() -> None:
    node, e2 = Node(E1, window=8), Peer(E2)
    node.hears(e2.has_free(0).ready())
    assert [len(node.submits(E3).data) for _ in range(3)] == [1, 1, 1]


def test_window_takes_one_packet_even_if_no_place_is_free() -> None:
    node, e2 = Node(E1, window=8), Peer(E2)
    node.hears(e2.has_free(0).ready())
    assert [len(node.submits(E2).data) for _ in range(2)] == [1, 0]


def test_window_never_changes_the_order_of_what_was_submitted() -> None:
    """What would pass the window by itself waits behind what does not."""
    node, e2 = Node(E1, window=8), Peer(E2)
    node.hears(e2.has_free(1).ready())
    node.submits(E2)
    assert node.submits(E2).data == []
    assert node.submits(E3).data == []
    assert node.submits(E1).numbered == []
    out = node.hears(e2.accepts(E1, below=1).ready())
    assert [packet.destinations for packet in out.numbered] == [0b010, 0b100, 0b001]


def test_window_own_places_close_it_only_for_what_is_for_me_too() -> None:
    node, e2 = Node(E1, window=8, quota=2), Peer(E2)
    assert [len(node.submits(E1, E2).data) for _ in range(2)] == [1, 1]
    node.hears(e2.accepts(E1, below=2).ready())
    assert node.submits(E2).data, "no place of mine is needed"
    assert node.submits(E1, E2).numbered == []
    assert node.submits(E1).numbered == []
    out = node.hears(e2.preacknowledges(E1, below=1).ready())
    assert [packet.destinations for packet in out.numbered] == [0b011], "one place came free"


def test_window_an_own_place_is_taken_until_the_packet_is_acknowledged() -> None:
    node, e2 = Node(E1, window=8, quota=1), Peer(E2)
    node.submits(E1, E2)
    assert node.submits(E1).numbered == []
    assert node.hears(e2.accepts(E1, below=1).ready()).numbered == []
    assert node.hears(e2.preacknowledges(E1, below=1).ready()).numbered != []


def test_window_a_node_whose_free_places_have_doubled_owes_a_status() -> None:
    node, e1, e3 = Node(E2, window=8, quota=4), Peer(E1), Peer(E3)
    node.hears(*[e1.sends(E2, E3) for _ in range(3)])
    assert node.drained().statuses[0].status.free == 1
    node.hears(e3.accepts(E1, below=3).ready())
    assert len(node.drained().statuses) == 1, "it pre-acknowledged"
    assert not node.status_due()
    node.hears(e3.preacknowledges(E1, below=1).ready())
    assert node.drained().statuses[0].status.free == 2, "doubled"
    node.hears(e3.preacknowledges(E1, below=2).ready())
    assert node.drained().statuses == [], "three are not twice two"


def test_window_a_node_without_any_free_place_owes_nothing_for_one() -> None:
    """Whoever waits for it has one packet under way in any case."""
    node, e1, e3 = Node(E2, window=8, quota=3), Peer(E1), Peer(E3)
    node.hears(*[e1.sends(E2, E3) for _ in range(3)])
    node.hears(e3.accepts(E1, below=3).ready())
    assert node.drained().statuses[0].status.free == 0
    node.hears(e3.preacknowledges(E1, below=1).ready())
    assert node.drained().statuses == []
    node.hears(e3.preacknowledges(E1, below=2).ready())
    assert node.drained().statuses[0].status.free == 2


def test_window_a_node_with_more_free_places_than_any_window_owes_nothing_for_them() -> None:
    node, e1, e3 = Node(E2, window=2, quota=6), Peer(E1), Peer(E3)
    node.hears(*[e1.sends(E2, E3) for _ in range(4)])
    node.hears(e3.accepts(E1, below=4).ready())
    assert node.drained().statuses[0].status.free == 2
    node.hears(e3.preacknowledges(E1, below=4).ready())
    assert node.drained().statuses == []


# --- SELF (departure 8) ---


def test_self_what_is_for_me_alone_is_numbered_and_delivered_at_once_and_not_transmitted() -> None:
    node = Node(E1)
    out = node.submits(E1)
    (packet,) = out.numbered
    assert out == [
        Numbered(packet),
        Reached(Level.ACCEPTED, packet),
        Reached(Level.PREACKNOWLEDGED, packet),
        Reached(Level.ACKNOWLEDGED, packet),
        Deliver(packet),
    ]
    assert node.drained() == []


def test_self_others_skip_the_number_of_what_was_for_me_alone() -> None:
    node = Node(E1)
    node.submits(E1)
    packet = node.submits(E1, E2).data[0].packet
    assert (packet.seq, packet.seq_to) == (1, (1, 0, 0))


def test_self_what_is_for_me_alone_waits_behind_what_i_sent_to_me_before() -> None:
    node, e2 = Node(E1), Peer(E2)
    shared = node.submits(E1, E2).numbered[0]
    out = node.submits(E1)
    alone = out.numbered[0]
    assert out.accepted == [alone]
    assert out.delivered == []
    assert node.hears(e2.accepts(E1, below=1).ready()).preacknowledged == [shared, alone]
    assert node.hears(e2.preacknowledges(E1, below=1).ready()).delivered == [shared, alone]


def test_self_what_is_for_me_alone_needs_no_window() -> None:
    node = Node(E1, window=1)
    node.submits(E2)
    assert len(node.submits(E1).delivered) == 1


def test_self_i_count_my_own_packet_as_heard_when_i_send_it() -> None:
    """Departure 8: without any echo, what I sent to myself and E2 waits for E2 alone."""
    node, e2 = Node(E1), Peer(E2)
    out = node.submits(E1, E2)
    packet = out.numbered[0]
    assert out.accepted == [packet]
    assert out.data[0].status.expects == (1, 0, 0), "the unit itself says that its source has it"
    assert out.data[0].status.preacknowledged_below == (0, 0, 0)
    assert node.hears(e2.accepts(E1, below=1).ready()).preacknowledged == [packet]


# --- SENDER ---


def test_sender_that_is_no_destination_reports_preacknowledged_when_all_have_accepted() -> None:
    node, e2, e3 = Node(E1), Peer(E2), Peer(E3)
    out = node.submits(E2, E3)
    packet = out.numbered[0]
    assert out.accepted == []
    assert node.hears(e2.accepts(E1, below=1).ready()).preacknowledged == []
    assert node.hears(e3.accepts(E1, below=1).ready()).preacknowledged == [packet]


def test_sender_that_is_no_destination_reports_acknowledged_when_all_have_preacknowledged() -> None:
    node, e2, e3 = Node(E1), Peer(E2), Peer(E3)
    packet = node.submits(E2, E3).numbered[0]
    node.hears(e2.accepts(E1, below=1).ready(), e3.accepts(E1, below=1).ready())
    assert node.hears(e2.preacknowledges(E1, below=1).ready()).acknowledged == []
    out = node.hears(e3.preacknowledges(E1, below=1).ready())
    assert out.acknowledged == [packet]
    assert out.delivered == [], "it is not for me"
    assert node.machine.waits_for() == ()


def test_sender_that_is_no_destination_owes_nothing_for_its_own_levels() -> None:
    node, e2 = Node(E1), Peer(E2)
    node.submits(E2)
    out = node.hears(e2.preacknowledges(E1, below=1).ready())
    assert len(out.preacknowledged) == len(out.acknowledged) == 1
    assert node.drained() == []


def test_sender_that_is_a_destination_reports_each_level_once() -> None:
    node, e2 = Node(E1), Peer(E2)
    out = node.submits(E1, E2)
    out += node.hears(e2.preacknowledges(E1, below=1).ready())
    levels = [output.level for output in out if isinstance(output, Reached)]
    assert levels == [Level.ACCEPTED, Level.PREACKNOWLEDGED, Level.ACKNOWLEDGED]
    assert len(out.delivered) == 1


def test_sender_keeps_waiting_for_what_was_released_later() -> None:
    """Two packets to different nodes, accepted in the other order."""
    node, e2, e3 = Node(E1), Peer(E2), Peer(E3)
    to_e2, to_e3 = node.submits(E2).numbered[0], node.submits(E3).numbered[0]
    out = node.hears(e3.accepts(E1, below=2).ready(), e2.accepts(E1, below=1).ready())
    assert out.preacknowledged == [to_e3, to_e2]
    out = node.hears(e2.preacknowledges(E1, below=1).ready(), e3.preacknowledges(E1, below=2).ready())
    assert out.acknowledged == [to_e3, to_e2]


# --- batches ---


def test_batch_numbers_count_packets_and_first_and_lengths_name_messages() -> None:
    node = Node(E1)
    batch = node.submits(E2, E3, lengths=(5, 0, 7)).data[0].packet
    single = node.submits(E2).data[0].packet
    assert (batch.seq, batch.first, batch.lengths, len(batch.payload)) == (0, 0, (5, 0, 7), 12)
    assert (single.seq, single.seq_to, single.first) == (1, (0, 1, 1), 3)


def test_batch_takes_one_place_in_the_window() -> None:
    node = Node(E1, window=2)
    assert [len(node.submits(E2, lengths=(1,) * 9).data) for _ in range(3)] == [1, 1, 0]


def test_batch_is_accepted_and_delivered_as_a_whole() -> None:
    node, e1 = Node(E2), Peer(E1)
    batch = e1.sends(E2, lengths=(1, 2, 3))
    assert node.hears(batch).delivered == [batch.packet]


# --- first numbers ---


def test_first_seq_all_numbers_of_a_source_start_at_its_own() -> None:
    node = Node(E2, first_seq=(5, 1, 3))
    packet = node.submits(E1, E3).data[0].packet
    assert (packet.seq, packet.seq_to, packet.first) == (1, (1, 1, 1), 0)


def test_first_seq_is_what_is_expected_first_of_each_source() -> None:
    first = (5, 1, 3)
    node, e1, e3 = Node(E2, first_seq=first), Peer(E1, first_seq=first), Peer(E3, first_seq=first)
    unit = e1.sends(E2, E3)
    assert node.hears(unit).accepted == [unit.packet]
    (said,) = node.drained().statuses
    assert said.status.expects == (6, 1, 3)
    assert said.status.preacknowledged_below == (5, 1, 3)
    assert node.hears(e3.accepts(E1, below=6).ready()).preacknowledged == [unit.packet]
    assert node.hears(e3.preacknowledges(E1, below=6).ready()).delivered == [unit.packet]


# --- what an application may ask for ---


def test_submit_gives_nothing_to_drain() -> None:
    node = Node(E1)
    node.submits(E2)
    assert node.handle(Drained()) == []
