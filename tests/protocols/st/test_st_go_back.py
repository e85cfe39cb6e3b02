"""ST with go-back-n: what is kept, what is thrown away by all, and how that comes again."""

from ordercast.model.config import Recovery
from ordercast.model.units import PacketId
from ordercast.protocols.spo.units import Data, Ready
from ordercast.protocols.st.agreed_order import go_back_point
from ordercast.protocols.st.units import ResetDone, ResetNeed, ResetReply
from tests.protocols.st.driver import E1, E2, E3, Node, Outputs, Peer
from tests.protocols.st.test_st_order import A, B, C, reply

# --- from where on it is thrown away ---

ORDER: list[PacketId] = [A, B, C]


def point(*replies: ResetReply) -> int:
    return go_back_point(ORDER, replies)


def test_what_every_destination_has_stays() -> None:
    logs = [reply(node, ORDER, sent=[0]) for node in range(3)]
    assert point(*logs) == 3


def test_it_is_thrown_away_from_the_first_on_that_a_destination_lacks() -> None:
    whole = [reply(node, ORDER, sent=[0]) for node in range(3)]
    assert point(reply(0, [A, C], sent=[0]), *whole[1:]) == 1
    assert point(reply(0, [B, C], sent=[0]), reply(1, [A], sent=[0]), whole[2]) == 0
    assert point(*whole[:2], reply(2, [A, B], sent=[0])) == 2


def test_who_is_no_destination_lacks_nothing() -> None:
    to_e1_and_e2 = [reply(node, ORDER, sent=[0], to=0b011) for node in range(2)]
    assert point(*to_e1_and_e2, reply(2, sent=[0], to=0b011)) == 3


def test_what_a_node_has_preacknowledged_stays_though_others_seem_to_lack_it() -> None:
    lacks_all = [reply(node, sent=[0]) for node in range(3)]
    assert point(*lacks_all) == 0
    assert point(reply(0, ORDER, sent=[0], preacknowledged=1), *lacks_all[1:]) == 1
    assert point(reply(0, ORDER, sent=[0], preacknowledged=2), *lacks_all[1:]) == 2
    more = reply(0, ORDER, sent=[0], preacknowledged=2)
    assert point(more, reply(1, ORDER, sent=[0], preacknowledged=1), lacks_all[2]) == 2


def test_what_its_source_no_longer_keeps_stays() -> None:
    lacks_all = [reply(node, sent=[0]) for node in range(3)]
    assert point(reply(0, ORDER), *lacks_all[1:]) == 1
    assert point(reply(0, ORDER, sent=[0]), reply(1), lacks_all[2]) == 2


# --- a machine that goes back ---


class GoingBack:
    """E2 lacks `b` of E3: E1, which has it, throws it away with its own `c` behind it, and goes into the next epoch."""

    def __init__(self, free: int = 768) -> None:
        self.e1, self.e2, self.e3 = Node(E1, recovery=Recovery.GO_BACK_N), Peer(E2), Peer(E3)
        self.a, self.b = self.e3.sends("a", E1, E2, E3), self.e3.sends("b", E1, E2, E3)
        self.c = self.e1.submits("c", E1, E2).of(Data)[0]
        self.e2.free = free
        self.e1.hears(self.a, self.b, self.c, self.e2.ready())
        self.out = self.e1.hears(self.e2.reply(self.a), self.e3.reply(self.a, self.b, sent=[self.a, self.b]))

    def finish(self) -> Outputs:
        out = self.e1.hears(self.e2.done(), self.e3.done())
        self.e2.epoch = self.e3.epoch = 1
        return out


def test_what_was_thrown_away_is_asked_of_nobody() -> None:
    change = GoingBack()
    assert (change.e1.machine.recovery.order, change.e1.machine.recovery.removed) == (((E3, 0),), {(E3, 1), (E1, 0)})
    assert (change.out.of(ResetNeed), change.out.of(ResetDone)) == ([], [ResetDone(E1, 0)])


def test_what_one_lacks_does_not_throw_away_what_all_have_if_nobody_saw_it_before() -> None:
    """E1 stops because its log is long, before it receives what E2 receives. No node received both: any order is right.

    All nodes agreed on the order in which E2's is first, discarded everything, sent the same again, and so for ever.
    """
    e1, e2, e3 = Node(E1, recovery=Recovery.GO_BACK_N, log_limit=1), Peer(E2), Peer(E3)
    x = e2.sends("x", E1, E2)
    a, b = e3.sends("a", E1), e3.sends("b", E1)
    assert e1.hears(a, b).of(ResetReply)
    e1.hears(e2.reply(x, sent=[x]), e3.reply(sent=[a, b]))
    assert (e1.machine.recovery.order, e1.machine.recovery.removed) == (((E3, 0), (E3, 1)), {(E2, 0)})


def test_what_was_thrown_away_is_expected_again_under_its_old_number() -> None:
    change = GoingBack()
    out = change.finish()
    assert (change.e1.machine.normal.expected, change.e1.machine.normal.expected_to_me) == ([0, 0, 1], [0, 0, 1])
    assert change.e1.machine.recovery.removed == set()
    assert [(packet.seq, packet.payload) for unit in out.of(Data) for packet in [unit.packet]] == [(0, b"c")]
    assert out.copies == ["c"]


def test_what_was_accepted_before_is_not_accepted_again() -> None:
    change = GoingBack()
    [again] = change.finish().of(Data)
    b = Data(change.b.packet, change.e3.status())
    assert change.e1.hears(b, again).accepted == []
    assert change.e1.machine.normal.accepted_before == set()
    assert [packet.payload for packet in change.e1.machine.normal.log] == [b"b", b"c"]


def test_what_was_accepted_before_and_comes_in_an_agreement_is_not_accepted_again() -> None:
    """E2 and E1 are its destinations; E3 is not, and has pre-acknowledged what E2 received behind it."""
    e1, e2, e3 = Node(E1, recovery=Recovery.GO_BACK_N), Peer(E2), Peer(E3)
    g = e2.sends("g", E1, E2)
    assert e1.hears(g).accepted == ["g"]
    e1.hears(e2.reply(sent=[g]), e3.reply(), e2.done(), e3.done())
    assert e1.machine.normal.accepted_before == {(E2, 0)}
    e2.epoch = e3.epoch = 1
    p = e3.sends("p", E2, E3)
    e1.hears(p, e2.reply(g, p, sent=[g]), e3.reply(p, sent=[p], preacknowledged=1))
    assert e1.machine.recovery.missing == {(E2, 0)}
    out = e1.hears(Data(g.packet, e2.status()))
    assert (out.accepted, out.of(ResetDone)) == ([], [ResetDone(E1, 1)])
    assert e1.machine.normal.accepted_before == set()


def test_what_comes_again_tells_its_destinations_from_the_rest() -> None:
    """Numbers to a node go back only by what was for that node."""
    e1, e2, e3 = Node(E1, recovery=Recovery.GO_BACK_N), Peer(E2), Peer(E3)
    a, b = e3.sends("a", E2), e3.sends("b", E1, E2)
    e1.hears(a, b, e2.reply(), e3.reply(sent=[a, b]))
    assert e1.machine.recovery.removed == {(E3, 0), (E3, 1)}
    e1.hears(e2.done(), e3.done())
    assert (e1.machine.normal.expected, e1.machine.normal.expected_to_me) == ([0, 0, 0], [0, 0, 0])


def test_what_comes_again_waits_for_the_window_and_goes_before_anything_new() -> None:
    change = GoingBack(free=0)
    e1, e2 = change.e1, change.e2
    e1.submits("new", E2)
    [ready] = change.finish().of(Ready)
    assert (ready.next_seq, ready.next_seq_to) == (0, (0, 0, 0)), "what is sent next is what comes again"
    assert e1.machine.log_sizes().sent == 1
    assert e1.machine.waits_for() == (
        "1 submissions wait for the window",
        "1 packets wait to be sent again",
        "1 packets of finished epochs wait until {E2,E3} is known to have finished",
    )
    e2.free = 3
    assert [unit.packet.payload for unit in e1.hears(e2.ready()).of(Data)] == [b"c"]
    e2.free = 6
    assert [unit.packet.payload for unit in e1.hears(e2.ready()).of(Data)] == [b"new"]


def test_what_still_waits_to_be_sent_again_outlives_another_epoch() -> None:
    change = GoingBack(free=0)
    change.finish()
    out = change.e1.hears(change.e2.reply(), change.e3.reply())
    assert out.of(ResetReply)[0].next_seq == 0
    assert change.e1.hears(change.e2.done(), change.e3.done()).of(Data) == []
    assert [packet.payload for packet in change.e1.machine.normal.to_resend] == [b"c"]
