"""SPO, sound rules: pending statuses, and their timers (departure 4)."""

from ordercast.model.config import Timing
from ordercast.model.machine import TimerFired
from ordercast.protocols.spo.units import Ready
from tests.protocols.spo.driver import E1, E2, E3, Node, Peer

STATUS = Timing().status

# --- DEBT ---


def test_status_is_owed_after_accepting_anothers_packet() -> None:
    node, e1 = Node(E2), Peer(E1)
    out = node.hears(e1.sends(E2, E3))
    assert out.units == [], "something else may go out soon"
    assert STATUS <= out.timers["status"] < 2 * STATUS
    (said,) = node.fires("status").statuses
    assert said.status.expects == (1, 0, 0)
    assert (said.wants, said.missing) == (0, ())


def test_status_is_not_owed_for_what_is_foreign_held_or_duplicate() -> None:
    """Nothing was learnt that anybody waits for: non-destinations owe nothing."""
    node, e1 = Node(E2), Peer(E1)
    unit = e1.sends(E2)
    node.hears(unit)
    node.drained()
    e1.sends(E2)
    out = node.hears(e1.sends(E3), e1.sends(E2), e1.repeats(unit))
    assert len(out.requests) == 1
    assert not node.status_due()


def test_status_is_owed_after_preacknowledging_what_has_other_destinations() -> None:
    node, e1, e3 = Node(E2), Peer(E1), Peer(E3)
    node.hears(e1.sends(E2, E3))
    node.drained()
    assert node.fires("status") == []
    assert "status" in node.hears(e3.accepts(E1, below=1).ready()).timers
    (said,) = node.fires("status").statuses
    assert said.status.preacknowledged_below == (1, 0, 0)


def test_status_is_owed_after_preacknowledging_my_own() -> None:
    node, e2 = Node(E1), Peer(E2)
    node.submits(E1, E2)
    assert "status" in node.hears(e2.accepts(E1, below=1).ready()).timers


def test_status_is_not_owed_for_what_is_for_me_alone() -> None:
    node, e2 = Node(E1), Peer(E2)
    node.submits(E1, E2)
    node.submits(E1)
    node.hears(e2.accepts(E1, below=1).ready())
    node.drained()
    node.hears(e2.preacknowledges(E1, below=1).ready())
    assert not node.status_due()
    assert "status" not in node.submits(E1).timers


def test_status_is_not_owed_for_an_acknowledgment() -> None:
    """Nobody waits for it."""
    node, e1, e3 = Node(E2), Peer(E1), Peer(E3)
    node.hears(e1.sends(E2, E3), e3.accepts(E1, below=1).ready())
    node.drained()
    assert len(node.hears(e3.preacknowledges(E1, below=1).ready()).delivered) == 1
    assert not node.status_due()


def test_status_is_paid_by_any_transmission() -> None:
    """A packet, a copy, a poll, a request: each carries the status."""
    for payment in ("data", "copy", "poll", "request"):
        node, e1, e3 = Node(E2), Peer(E1), Peer(E3)
        node.submits(E1)
        node.hears(e1.sends(E2, E3))
        assert node.status_due()
        if payment == "data":
            out = node.submits(E3)
        elif payment == "copy":
            out = node.hears(e1.ready(missing=((E2, ((0, 1),)),)))
        elif payment == "poll":
            out = node.fires("poll")
        else:
            e3.sends(E2)
            out = node.hears(e3.ready())
        (unit,) = out.units
        assert not isinstance(unit, Ready) or unit.wants or unit.missing
        assert not node.status_due(), payment
        assert node.fires("status").units == [], payment


def test_status_is_paid_on_drained() -> None:
    node, e1 = Node(E2), Peer(E1)
    node.hears(e1.sends(E2, E3))
    assert len(node.drained().statuses) == 1
    assert node.drained() == [], "once"
    assert node.fires("status") == []


def test_status_is_paid_at_once_when_half_a_window_of_one_source_is_unsaid() -> None:
    node, e1, e3 = Node(E2, window=6), Peer(E1), Peer(E3)
    assert node.hears(e1.sends(E2, E3), e3.sends(E2), e1.sends(E2, E3), e3.sends(E2)).units == [], "two of each"
    (said,) = node.hears(e1.sends(E2, E3)).statuses
    assert said.status.expects == (3, 0, 2)
    assert node.hears(e1.sends(E2, E3), e1.sends(E2, E3)).units == [], "counted anew from there"
    assert len(node.hears(e1.sends(E2, E3)).statuses) == 1


def test_status_what_any_transmission_said_is_not_unsaid() -> None:
    node, e1 = Node(E2, window=6), Peer(E1)
    node.hears(e1.sends(E2, E3), e1.sends(E2, E3))
    node.submits(E1)
    assert node.hears(e1.sends(E2, E3)).units == []


def test_status_with_the_smallest_windows_is_paid_at_once() -> None:
    for window in (1, 2, 3):
        node, e1 = Node(E2, window=window), Peer(E1)
        assert node.hears(e1.sends(E3)).units == [], "but not for nothing"
        assert len(node.hears(e1.sends(E2, E3)).statuses) == 1


def test_status_that_grew_after_a_payment_gets_its_own_time() -> None:
    """The timer of an older debt that was paid meanwhile does not press the new one."""
    node, e1 = Node(E2), Peer(E1)
    node.hears(e1.sends(E2, E3))
    node.submits(E3)
    assert "status" not in node.hears(e1.sends(E2, E3)).timers, "one timer at a time"
    out = node.fires("status")
    assert out.units == []
    assert STATUS <= out.timers["status"] < 2 * STATUS
    assert len(node.fires("status").statuses) == 1
    assert "status" not in node.running


def test_status_that_was_not_paid_is_paid_when_its_time_has_come() -> None:
    node, e1 = Node(E2), Peer(E1)
    node.hears(e1.sends(E2, E3), e1.sends(E2, E3))
    assert len(node.fires("status").statuses) == 1


def test_status_is_paid_by_what_the_window_lets_go() -> None:
    """The unit that opens the window wants an answer: the packet that goes out is one."""
    node, e2 = Node(E1, window=1), Peer(E2)
    node.submits(E2)
    node.submits(E2)
    out = node.hears(e2.accepts(E1, below=1).ready(wants=[E1]))
    assert len(out.data) == 1
    assert "status" not in out.timers


# --- TIMERS ---


def test_timers_are_spread_and_no_two_nodes_run_in_step() -> None:
    """Two nodes that hear the same at the same moment answer at different ones."""
    unit = Peer(E1).sends(E2, E3)
    e2, e3 = Node(E2).hears(unit).timers, Node(E3).hears(unit).timers
    assert e2.keys() == e3.keys() == {"status", "poll"}
    assert e2["status"] != e3["status"]
    assert e2["poll"] != e3["poll"]


def test_timers_are_drawn_anew_after_a_transmission() -> None:
    node, e1 = Node(E2), Peer(E1)
    drawn = set()
    for _ in range(8):
        drawn.add(node.hears(e1.sends(E2, E3)).timers["status"])
        node.fires("status")
    assert len(drawn) > 6


def test_timers_with_unknown_names_are_ignored() -> None:
    node, e2 = Node(E1, infer_losses=True), Peer(E2)
    node.submits(E2)
    node.hears(e2.accepts(E3, below=1).ready())
    before = node.machine.snapshot()
    for name in ("", "polls", "Status", "retransmit"):
        assert node.handle(TimerFired(name)) == []
    assert node.machine.snapshot() == before


def test_timers_that_fire_with_nothing_to_do_say_nothing() -> None:
    node = Node(E1)
    for name in ("status", "poll", "cooldown", "repeat", "guard", "hearsay"):
        assert node.handle(TimerFired(name)) == []
