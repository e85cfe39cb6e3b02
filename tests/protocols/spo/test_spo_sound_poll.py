"""SPO, sound rules: POLL and ABORT (departure 4)."""

from ordercast.model.config import Timing
from ordercast.model.machine import Abort, TimerFired
from ordercast.model.nodes import mask_of
from tests.protocols.spo.driver import E1, E2, E3, E4, Node, Outputs, Peer

POLL = Timing().poll


def poll_patience(out: Outputs) -> int:
    """How many times its duration the poll timer was set to, before it was spread."""
    after = out.timers["poll"]
    (found,) = [factor for factor in (1, 2, 4, 8) if factor * POLL <= after < 2 * factor * POLL]
    return found


# --- POLL ---


def test_poll_runs_while_anything_is_unfinished() -> None:
    """In the sending log, accepted, or pre-acknowledged, here or at the destinations."""
    for me, to in ((E1, (E2,)), (E1, (E1, E2))):
        node, e2 = Node(me), Peer(E2)
        assert "poll" in node.submits(*to).timers
        for said in (e2.accepts(E1, below=1), e2):
            node.hears(said.ready())
            node.fires("poll")
            assert "poll" in node.running
        node.hears(e2.preacknowledges(E1, below=1).ready())
        node.fires("poll")
        assert "poll" not in node.running
    node, e1 = Node(E2), Peer(E1)
    assert "poll" in node.hears(e1.sends(E2, E3)).timers


def test_poll_names_exactly_those_that_are_waited_for() -> None:
    node, e3, e4 = Node(E2, nodes=4), Peer(E3, 4), Peer(E4, 4)
    node.submits(E1, E3)
    assert node.fires("poll").polls == [mask_of([E1, E3])], "both lack what I sent"
    node.hears(e3.accepts(E2, below=1).ready())
    assert node.fires("poll").polls == [mask_of([E1])]
    node.hears(e4.sends(E2, E3))
    assert node.fires("poll").polls == [mask_of([E1])], "what E4 sent has only just come"
    assert node.fires("poll").polls == [mask_of([E1, E3])], "E3 has not said to have accepted what E4 sent"


def test_poll_names_all_that_one_packet_waits_for() -> None:
    node, e1, e3, e4 = Node(E2, nodes=4), Peer(E1, 4), Peer(E3, 4), Peer(E4, 4)
    node.hears(e1.sends(E2, E3, E4))
    assert node.fires("poll").polls == [mask_of([E3, E4])], "both have not accepted it"
    node.hears(e3.accepts(E1, below=1).ready(), e4.accepts(E1, below=1).ready())
    node.fires("poll")
    assert node.fires("poll").polls == [mask_of([E3, E4])], "both have not pre-acknowledged it"


def test_poll_names_those_that_have_not_preacknowledged() -> None:
    node, e1, e3 = Node(E2), Peer(E1), Peer(E3)
    node.hears(e1.sends(E2, E3))
    node.hears(e3.accepts(E1, below=1).ready())
    node.fires("poll")
    assert node.fires("poll").polls == [mask_of([E3])]


def test_poll_of_a_sender_names_those_that_have_not_preacknowledged_its_packet() -> None:
    node, e2, e3 = Node(E1), Peer(E2), Peer(E3)
    node.submits(E2, E3)
    node.hears(e2.preacknowledges(E1, below=1).ready(), e3.accepts(E1, below=1).ready())
    node.fires("poll")
    assert node.fires("poll").polls == [mask_of([E3])]


def test_poll_never_names_me() -> None:
    node = Node(E1)
    node.submits(E1, E2, E3)
    assert node.fires("poll").polls == [mask_of([E2, E3])]


def test_poll_doubles_its_patience_up_to_four_times() -> None:
    node = Node(E1)
    assert poll_patience(node.submits(E2)) == 1
    assert [poll_patience(node.fires("poll")) for _ in range(4)] == [2, 4, 4, 4]


def test_poll_is_put_off_when_something_moved_and_is_as_fast_as_at_first() -> None:
    """A release, a pre-acknowledgment, an acknowledgment."""
    for last in ("release", "preacknowledgment", "acknowledgment"):
        if last == "release":
            node, peer = Node(E1), Peer(E2)
            node.submits(E2)
            node.submits(E2)
            news = [peer.accepts(E1, below=1)]
        else:
            node, peer = Node(E2), Peer(E3)
            e1 = Peer(E1)
            node.hears(e1.sends(E2, E3), e1.sends(E2, E3))
            news = [peer.accepts(E1, below=2)]
            if last == "acknowledgment":
                node.hears(peer.ready())
                node.fires("poll")
                news = [peer.preacknowledges(E1, below=1)]
        node.fires("poll")
        node.fires("poll")
        for said in news:
            node.hears(said.ready())
        out = node.fires("poll")
        assert out.units == [], last
        assert poll_patience(out) == 1, last
        assert poll_patience(node.fires("poll")) == 2, last


def test_poll_is_not_put_off_by_other_traffic() -> None:
    """E2 lacks the last word of E3 on what E1 sent, and E3 has no reason to speak again; E4 never stops sending."""
    node, e1, e4 = Node(E2, nodes=4), Peer(E1, 4), Peer(E4, 4)
    node.hears(e1.sends(E2, E3))
    polls = []
    for _ in range(50):
        node.hears(e4.sends(E2))
        polls += node.fires("poll").polls
    assert mask_of([E3]) in polls


def test_poll_is_not_put_off_by_news_that_move_nothing() -> None:
    node, e2 = Node(E1), Peer(E2)
    node.submits(E2, E3)
    node.hears(e2.accepts(E1, below=1).ready())
    assert node.fires("poll").polls == [mask_of([E3])]


def test_poll_when_everything_is_at_rest_nothing_runs_and_nothing_is_said() -> None:
    node, e2 = Node(E1), Peer(E2)
    node.submits(E1, E2)
    node.hears(e2.preacknowledges(E1, below=1).ready())
    node.drained()
    for name in sorted(node.running):
        assert node.fires(name) == [], name
    assert not node.running
    assert node.machine.waits_for() == ()


def test_poll_starts_anew_with_the_next_packet() -> None:
    node, e2 = Node(E1), Peer(E2)
    node.submits(E2)
    node.fires("poll")
    node.fires("poll")
    node.hears(e2.preacknowledges(E1, below=1).ready())
    assert node.fires("poll") == []
    assert poll_patience(node.submits(E2)) == 1
    out = node.fires("poll")
    assert out.polls == [mask_of([E2])], "what moved before it is forgotten"
    assert poll_patience(out) == 2


def test_poll_does_not_start_for_what_waits_for_nobody() -> None:
    node, e1 = Node(E2), Peer(E1)
    assert "poll" not in node.hears(e1.sends(E2)).timers
    assert "poll" not in node.submits(E2).timers
    assert "poll" not in node.hears(e1.sends(E3)).timers


# --- ABORT ---


def test_abort_after_so_many_polls_left_unanswered_by_one_node() -> None:
    node = Node(E1, polls_to_abort=3)
    node.submits(E2, E3)
    for _ in range(3):
        out = node.fires("poll")
        assert out.polls == [mask_of([E2, E3])]
        assert out.aborts == []
    out = node.fires("poll")
    assert out.aborts == ["E2 left 3 polls in a row unanswered"]
    assert out.units == []


def test_abort_any_unit_from_a_node_counts_as_its_answer() -> None:
    """A status, a packet for me, a foreign one, a duplicate."""
    node, e2 = Node(E1, polls_to_abort=2), Peer(E2)
    node.submits(E2)
    unit = e2.sends(E1)
    for answer in (e2.ready(), unit, e2.sends(E3), e2.repeats(unit)):
        node.fires("poll")
        node.fires("poll")
        node.hears(answer)
        assert node.machine.backoff.unanswered[E2] == 0
    node.fires("poll")
    node.fires("poll")
    assert node.fires("poll").aborts != []


def test_abort_the_answer_of_one_node_does_not_excuse_another() -> None:
    node, e2 = Node(E1, polls_to_abort=2), Peer(E2)
    node.submits(E2, E3)
    for _ in range(2):
        node.fires("poll")
        node.hears(e2.ready())
    assert node.fires("poll").aborts == ["E3 left 2 polls in a row unanswered"]


def test_abort_silence_of_those_that_are_not_waited_for_means_nothing() -> None:
    node, e2 = Node(E1, polls_to_abort=2), Peer(E2)
    node.submits(E2)
    for _ in range(9):
        assert node.fires("poll").aborts == []
        node.hears(e2.ready())


def test_abort_delivers_what_is_preacknowledged_and_nothing_else() -> None:
    node, e1, e3 = Node(E2, polls_to_abort=1), Peer(E1), Peer(E3)
    first, second, third = (e1.sends(E2, E3) for _ in range(3))
    own = node.submits(E2, E3).numbered[0]
    sent = node.submits(E3).numbered[0]
    node.hears(first, second, third)
    node.hears(e3.accepts(E1, below=2).accepts(E2, below=2).ready())
    assert [packet for row in node.machine.preacknowledged.logs for packet in row] == [
        first.packet,
        second.packet,
        own,
        sent,
    ]
    node.fires("poll")
    node.fires("poll")
    out = node.fires("poll")
    assert out.delivered == [first.packet, second.packet, own]
    assert len(out.aborts) == 1


def test_abort_is_followed_by_silence() -> None:
    node, e2 = Node(E1, polls_to_abort=1), Peer(E2)
    node.submits(E2)
    node.fires("poll")
    assert node.fires("poll").aborts
    before = node.machine.snapshot()
    out = node.hears(e2.accepts(E1, below=1).ready(wants=[E1], missing=((E1, ((0, 1),)),)), e2.sends(E1))
    out += node.submits(E2)
    out += node.drained()
    for name in ("status", "poll", "cooldown", "repeat", "guard", "hearsay"):
        out += node.handle(TimerFired(name))
    assert out == []
    assert node.machine.snapshot() == before


def test_abort_is_the_last_output() -> None:
    node = Node(E1, polls_to_abort=1)
    node.submits(E2)
    node.fires("poll")
    assert isinstance(node.fires("poll")[-1], Abort)
