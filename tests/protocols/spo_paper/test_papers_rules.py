"""SPO as printed, EN 4.1 to 4.4 (JP 3.1 to 3.4): each condition and action by its number.

One machine on the table, E2 of three where nothing else is said: its state is set, a unit is handed over, and what it
does and then knows is compared with what the paper says.
"""

import pytest

from ordercast.model.config import LossInference
from ordercast.model.machine import Deliver, Discard, Level, Numbered, Output, Reached, Submit
from ordercast.protocols.spo.paper import SpoPaper
from ordercast.protocols.spo.units import Data
from tests.protocols.spo_paper.entity import BUFFERS, entity, hears, is_accepted, risen, sends, submits, unit, units
from tests.protocols.spo_paper.group import E1, E2, E3


def test_4_1_initial_values() -> None:
    """JP 3.1, with Example 3.1: TSEQ and all of PSEQ start at one's own ISS, what is of E_j at that of E_j."""
    machine = entity(E2, first_seq=(5, 7, 3))
    assert (machine.next_seq, machine.next_seq_to) == (7, [7, 7, 7])
    assert machine.expected == machine.expected_to_me == [5, 7, 3]
    assert machine.accepted_below == machine.preacknowledged_below == [[5, 5, 5], [7, 7, 7], [3, 3, 3]]
    assert machine.free_buffers == [BUFFERS] * 3


# --- 4.2 A: acceptance (JP 3.2) ---


@pytest.mark.parametrize(
    ("seq", "number", "accepted"),
    [
        (4, 2, True),  # both
        (4, 3, True),  # (1-1) alone
        (6, 2, True),  # (1-2) alone: 4 and 5 were not for me
        (6, 3, False),  # neither
    ],
)
def test_4_2_accept_condition_1(seq: int, number: int, accepted: bool) -> None:
    """(1-1) p.TSEQ = TREQ_j, or (1-2) p.PSEQ_k = PREQ_j."""
    machine = entity()
    machine.expected[E1], machine.expected_to_me[E1] = 4, 2
    assert is_accepted(hears(machine, unit(E1, "23", seq, (0, number, 0), (0, 0, 0)))) is accepted


@pytest.mark.parametrize("h", [E1, E2, E3])
def test_4_2_accept_condition_2(h: int) -> None:
    """p.ACK_h <= TREQ_h, for h = 1, …, n: the source and the receiver too."""
    for says, accepted in ((6, True), (7, True), (8, False)):
        machine = entity()
        machine.expected[:] = [7, 7, 7]
        expects = tuple(says if node == h else 0 for node in range(3))
        assert is_accepted(hears(machine, unit(E1, "2", 7, (0, 0, 0), expects))) is accepted


@pytest.mark.parametrize(
    ("rule", "accepted"),
    [
        (LossInference.ALL, [False, False, False]),
        (LossInference.OTHERS, [True, False, False]),
        (LossInference.NONE, [True, True, True]),
    ],
)
def test_4_2_accept_condition_2_may_be_read_in_three_ways(rule: LossInference, accepted: list[bool]) -> None:
    """Of which h it is asked: all, all but the source, none."""
    for h in range(3):
        expects = tuple(int(node == h) for node in range(3))
        assert is_accepted(hears(entity(E2, rule), unit(E1, "2", 0, (0, 0, 0), expects))) is accepted[h]


def test_4_2_accept_action_1() -> None:
    """TREQ_j := p.TSEQ + 1 (so JP; EN lacks the + 1), and not TREQ_j + 1: what was not for me is passed over."""
    machine = entity(first_seq=(4, 0, 3))
    hears(machine, unit(E1, "3", 6, (4, 4, 4), (4, 0, 3)))
    assert machine.expected == [7, 0, 3]


def test_4_2_accept_action_2() -> None:
    """AL_hj := p.ACK_h for all h; F_j := p.BUF. They are what E_j said: the columns of others stay."""
    machine = entity()
    machine.expected[:] = [4, 5, 6]
    hears(machine, unit(E3, "1", 6, (0, 0, 0), (2, 5, 6), free=17))
    assert machine.accepted_below == [[0, 0, 2], [0, 0, 5], [0, 0, 6]]
    assert machine.free_buffers == [BUFFERS, BUFFERS, 17]


def test_4_2_accept_action_3() -> None:
    """If E_k is in p.DST: PREQ_j := p.PSEQ_k + 1, and p goes to the end of RPL_kj. Otherwise it is discarded."""
    machine = entity()
    first, foreign, second = (
        unit(E1, "12", 0, (0, 0, 0), (0, 0, 0)),
        unit(E1, "13", 1, (1, 1, 0), (0, 0, 0)),
        unit(E1, "2", 2, (2, 1, 1), (0, 0, 0)),
    )
    assert hears(machine, first) == [Reached(Level.ACCEPTED, first.packet)]
    assert hears(machine, foreign) == [Discard(foreign, "foreign")]
    assert (machine.expected[E1], machine.expected_to_me[E1]) == (2, 1)
    assert hears(machine, second) == [Reached(Level.ACCEPTED, second.packet)]
    assert (machine.expected[E1], machine.expected_to_me[E1]) == (3, 2)
    assert list(machine.accepted[E1]) == [first, second]


# --- 4.2 B: transmission (JP 3.2) ---


@pytest.mark.parametrize(
    ("window", "lowest", "seq", "may_send"),
    [(2, 3, 3, True), (2, 3, 4, True), (2, 3, 5, False), (3, 3, 5, True), (2, 3, 2, False)],
)
def test_4_2_flow_condition_window(window: int, lowest: int, seq: int, may_send: bool) -> None:
    """MinAL_k <= TSEQ < minAL_k + W, the lowest over all entities, destinations or not."""
    machine = entity(window=window)
    machine.accepted_below[E2][:] = [9, 9, lowest]
    machine.next_seq = seq
    out = submits(machine, "1")
    assert bool(units(out)) is may_send
    assert machine.log_sizes().waiting == (not may_send)


@pytest.mark.parametrize(
    ("free", "divisor", "may_send"),
    [
        ((90, 90, 9), 1, [True, False]),  # 9 / (1 * 9) = 1
        ((10, 90, 90), 1, [True, True, False]),  # 10 / 9 > 1: real numbers
        ((1, 90, 90), 1, [True, False]),  # TSEQ = minAL, and 1/9 > 0
        ((0, 90, 90), 1, [False]),
        ((36, 90, 36), 2, [True, True, False]),  # 36 / (2 * 9) = 2
    ],
)
def test_4_2_flow_condition_buffers(free: tuple[int, ...], divisor: int, may_send: list[bool]) -> None:
    """TSEQ < minAL_k + minF / (H n²)."""
    machine = entity(paper={"buffer_divisor": divisor})
    machine.free_buffers[:] = free
    assert [bool(units(submits(machine, "1"))) for _ in may_send] == may_send


def test_4_2_what_waits_is_sent_when_the_flow_condition_holds_again() -> None:
    machine = entity(window=1)
    hears(machine, sends(machine, "1"))
    assert submits(machine, "3") == []
    machine.accepted_below[E2][:] = [1, 1, 0]
    assert units(hears(machine, unit(E3, "1", 0, (0, 0, 0), (0, 0, 0), free=99))) == []
    [sent] = units(hears(machine, unit(E3, "1", 1, (1, 0, 0), (0, 1, 0), free=99)))
    assert isinstance(sent, Data)
    assert (sent.packet.seq, machine.log_sizes().waiting) == (1, 0)


def test_4_2_transmission_action() -> None:
    """(1) TSEQ; (2), (3) PSEQ and DST; (4) ACK := TREQ; (5) into SL and onto the channel. EN has (2) and (3) as one."""
    machine = entity(E1, first_seq=(5, 0, 3))
    machine.expected[:] = [5, 2, 4]
    first, second = sends(machine, "23"), sends(machine, "13")
    assert (first.packet.source, first.packet.destinations) == (E1, 0b110)
    assert [first.packet.seq, second.packet.seq, machine.next_seq] == [5, 6, 7]
    assert [first.packet.seq_to, second.packet.seq_to] == [(5, 5, 5), (5, 6, 6)]
    assert machine.next_seq_to == [6, 6, 7]
    assert first.status.expects == second.status.expects == (5, 2, 4)
    assert list(machine.sent) == [first, second]


def test_4_2_a_batch_is_one_unit_and_each_message_in_it_has_a_number() -> None:
    machine = entity()
    packets = [
        output.packet
        for lengths in ((1, 1), (2,))
        for output in machine.handle(Submit(0b101, lengths, b"xy", priority=3))
        if isinstance(output, Numbered)
    ]
    assert [(packet.seq, packet.first, packet.lengths, packet.payload, packet.priority) for packet in packets] == [
        (0, 0, (1, 1), b"xy", 3),
        (1, 2, (2,), b"xy", 3),
    ]


def test_4_2_free_buffers_are_those_that_the_logs_have_left() -> None:
    """BUF, which transmission has to say and no action sets."""
    machine = entity()
    hears(machine, unit(E1, "2", 0, (0, 0, 0), (0, 0, 0), free=BUFFERS))
    assert sends(machine, "1").status.free == BUFFERS - 1


# --- 4.3 and 4.4: pre-acknowledgment and acknowledgment (JP 3.3, 3.4) ---


def three_of_e1(machine: SpoPaper) -> None:
    """E2 accepts 0 to {E2, E3}, 1 to E2, 2 to {E1, E2, E3}; E1 had heard nothing of E3, then 4, then 5."""
    machine.expected[E3] = 9
    for seq, to, said in ((0, "23", 0), (1, "2", 4), (2, "123", 5)):
        hears(machine, unit(E1, to, seq, (0, seq, seq), (0, 0, said), free=99))


def hears_e3_accepted(machine: SpoPaper, below: int) -> list[Output]:
    """E3 says what it expects of E1."""
    number = machine.expected[E3]
    return hears(machine, unit(E3, "1", number, (0, 0, 0), (below, 0, 0), free=99))


@pytest.mark.parametrize(("columns", "risen_so_far"), [((0, 0, 9), []), ((0, 1, 0), []), ((0, 1, 1), [0])])
def test_4_3_pack_condition(columns: tuple[int, ...], risen_so_far: list[int]) -> None:
    """p.TSEQ < minAL_j(p): below what every destination expects; others than destinations do not count."""
    machine = entity()
    three_of_e1(machine)
    machine.accepted_below[E1][:] = columns
    out = hears_e3_accepted(machine, below=columns[E3])
    assert risen(out, Level.PREACKNOWLEDGED) == risen_so_far


@pytest.mark.parametrize(("own", "risen_so_far"), [(0, []), (1, [0]), (2, [0, 1]), (3, [0, 1])])
def test_4_3_pack_action(own: int, risen_so_far: list[int]) -> None:
    """While the top of RPL_kj satisfies the condition it moves to PPL_kj, and PAL_hj := p.ACK_h. 2 waits for E1."""
    machine = entity()
    three_of_e1(machine)
    machine.accepted_below[E1][E2] = own
    assert risen(hears_e3_accepted(machine, below=3), Level.PREACKNOWLEDGED) == risen_so_far
    assert [waiting.packet.seq for waiting in machine.accepted[E1]] == [0, 1, 2][len(risen_so_far) :]
    assert [waiting.packet.seq for waiting in machine.preacknowledged[E1]] == risen_so_far
    said = [0, 0, 4][len(risen_so_far)] if len(risen_so_far) < 3 else 5
    assert machine.preacknowledged_below == [[0, 0, 0], [0, 0, 0], [said, 0, 0]]


def test_4_3_what_its_destinations_accepted_leaves_sl() -> None:
    """JP Example 3.2 (4): it need not be sent again; other entities than its destinations do not count."""
    machine = entity()
    for to in ("13", "3"):
        hears(machine, sends(machine, to))
    hears(machine, unit(E3, "1", 0, (0, 0, 0), (0, 2, 0)))
    assert [kept.packet.seq for kept in machine.sent] == [0], "E1 has not said that it has it"
    hears(machine, unit(E1, "1", 0, (0, 0, 0), (0, 1, 0)))
    assert list(machine.sent) == []


@pytest.mark.parametrize(
    ("columns", "delivered"),
    [
        ((9, 0, 0), []),
        ((9, 1, 0), []),
        ((0, 1, 1), [0]),
        ((0, 2, 1), [0, 1]),
        ((9, 9, 9), [0, 1]),  # 2 itself says that E1 has not got it
    ],
)
def test_4_4_ack_condition_and_action(columns: tuple[int, ...], delivered: list[int]) -> None:
    """While the top of PPL_kj has p.TSEQ < minPAL_j(p), the lowest over its destinations, it moves to APL_kj."""
    machine = entity()
    three_of_e1(machine)
    machine.accepted_below[E1][:] = [3, 3, 3]
    machine.preacknowledged_below[E1][:] = columns
    out = hears_e3_accepted(machine, below=3)
    assert risen(out, Level.PREACKNOWLEDGED) == [0, 1, 2]
    assert risen(out, Level.ACKNOWLEDGED) == delivered
    assert [output.packet.seq for output in out if isinstance(output, Deliver)] == delivered
    assert [waiting.packet.seq for waiting in machine.preacknowledged[E1]] == [0, 1, 2][len(delivered) :]
