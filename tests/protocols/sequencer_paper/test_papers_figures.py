"""The printed sequencer, figure by figure, and its synchronization phase (2.2)."""

from ordercast.model.machine import (
    Abort,
    CancelTimer,
    Deliver,
    Discard,
    Numbered,
    Reached,
    Receive,
    Send,
    SetTimer,
    Submit,
    TimerFired,
)
from ordercast.protocols.sequencer.paper.units import (
    PaperBroadcast,
    PaperCommitted,
    PaperData,
    PaperDummy,
    PaperPhase,
    PaperRetransmit,
)
from tests.protocols.sequencer_paper.datagrams import E2, E3, SEQUENCER
from tests.protocols.sequencer_paper.entity import broadcast, data, message, node, sends

# --- Figure 3 ---


def test_figure_3_data_carry_what_was_received_and_the_id_and_a_timer_starts() -> None:
    machine = node(E2)
    machine.handle(broadcast(0, source=E3))
    numbered, sent, timer = machine.handle(Submit(7, (1,), b"x"))
    assert isinstance(numbered, Numbered)
    assert sent == Send(PaperData(message(E2, 1), 1, 1), to=SEQUENCER)
    assert isinstance(timer, SetTimer)
    assert machine.message_id == 2


def test_figure_3_the_sender_is_blocked_until_its_broadcast_comes() -> None:
    machine = node(E2)
    machine.handle(Submit(7, (1,), b"x"))
    assert machine.handle(Submit(7, (1,), b"x")) == []
    machine.handle(broadcast(0, source=E3))
    outputs = machine.handle(Receive(PaperBroadcast(message(E2, 1), SEQUENCER, 1, 1)))
    assert CancelTimer("data") in outputs
    (second,) = sends(outputs)
    assert isinstance(second.unit, PaperData)
    assert (second.unit.message, second.unit.last, second.again) == (2, 2, False)


def test_figure_3_if_the_broadcast_fails_to_arrive_the_same_message_is_sent_again() -> None:
    machine = node(E2)
    first = sends(machine.handle(Submit(7, (1,), b"x")))[0]
    machine.handle(broadcast(0, source=E3))
    again = sends(machine.handle(TimerFired("data")))[0]
    assert (again.unit, again.again, again.to) == (first.unit, True, SEQUENCER)


def test_ids_count_packets_and_numbers_of_messages_count_messages() -> None:
    machine = node(E2)
    machine.handle(Submit(7, (1, 2), b"xyz"))
    machine.handle(Submit(7, (1,), b"x"))
    outputs = machine.handle(Receive(PaperBroadcast(message(E2, 1), SEQUENCER, 0, 1)))
    (second,) = [output.packet for output in outputs if isinstance(output, Numbered)]
    assert (second.seq, second.first) == (2, 2)


# --- Figure 4 ---


def test_figure_4_a_new_message_gets_the_next_number_is_kept_passed_on_and_broadcast() -> None:
    machine = node(SEQUENCER)
    for number, source in enumerate((E2, E3, E2)):
        accepted, delivered, sent = machine.handle(data(source, number // 2 + 1, last=number))
        assert isinstance(accepted, Reached)
        assert isinstance(delivered, Deliver)
        assert isinstance(sent, Send)
        assert isinstance(sent.unit, PaperBroadcast)
        assert (sent.unit.number, sent.to, sent.again) == (number, None, False)
        assert sent.unit in machine.history
    assert machine.acknowledged == [0, 2, 1]
    assert machine.last_message == [0, 2, 1]


def test_figure_4_a_duplicate_is_not_broadcast_a_second_time() -> None:
    machine = node(SEQUENCER)
    machine.handle(data(E2, 1))
    outputs = machine.handle(data(E2, 1))
    assert [type(output) for output in outputs] == [Discard, Send]
    assert sends(outputs)[0].to == E2
    assert machine.next_number == 1


def test_figure_4_a_full_history_is_purged_of_what_the_table_says_and_else_synchronised() -> None:
    machine = node(SEQUENCER, history=2, acknowledges_last=True, advances_own_row=True)
    for number in (1, 2):
        machine.handle(data(E2, number, last=number - 2))
    assert [type(output) for output in machine.handle(data(E2, 3, last=1))] == [Discard, Send]
    assert machine.phase == 1
    machine.phase, machine.sync_through = 0, None
    machine.handle(Receive(PaperDummy(E3, 0)))
    assert sends(machine.handle(data(E2, 3, last=1)))[0].unit == PaperBroadcast(message(E2, 3), SEQUENCER, 2, 3)
    assert [stored.number for stored in machine.history] == [1, 2]


def test_a_request_is_answered_from_its_number_on() -> None:
    machine = node(SEQUENCER)
    for number in (1, 2, 3):
        machine.handle(data(E2, number))
    answers = sends(machine.handle(Receive(PaperRetransmit(E3, 1))))
    assert [getattr(answer.unit, "number", None) for answer in answers] == [1, 2]
    assert {(answer.to, answer.again) for answer in answers} == {(E3, True)}
    assert machine.acknowledged[E3] == 1


# --- Figure 5 ---


def test_figure_5_the_number_expected_is_passed_on_and_any_other_asks_for_the_missing_ones() -> None:
    machine = node(E2)
    assert Deliver(message(E3, 1)) in machine.handle(broadcast(0, source=E3))
    for wrong in (2, 0, 2):
        outputs = machine.handle(broadcast(wrong))
        assert sends(outputs) == [Send(PaperRetransmit(E2, 1), to=SEQUENCER)]
        assert any(isinstance(output, SetTimer) for output in outputs)
    assert machine.expected == 1


def test_what_is_ahead_and_what_is_old_are_discarded_under_their_names() -> None:
    machine = node(E2)
    machine.handle(broadcast(0))
    discards = [
        output.why for number in (2, 0) for output in machine.handle(broadcast(number)) if type(output) is Discard
    ]
    assert discards == ["gap", "duplicate"]


def test_the_last_message_is_a_duplicate_by_either_reading() -> None:
    for older in (False, True):
        machine = node(SEQUENCER, older_are_duplicates=older)
        machine.handle(data(E2, 1))
        assert [output.why for output in machine.handle(data(E2, 1)) if type(output) is Discard] == ["duplicate"]
        assert machine.next_number == 1


def test_the_request_timer_runs_until_nothing_is_missing() -> None:
    machine = node(E2)
    stops = [CancelTimer("request") in machine.handle(broadcast(number)) for number in (0, 3, 1, 2, 3)]
    assert stops == [True, False, False, False, True]


def test_figure_5_what_is_missing_is_asked_for_again_and_what_is_not_is_not() -> None:
    machine = node(E2)
    machine.handle(broadcast(1))
    assert sends(machine.handle(TimerFired("request"))) == [Send(PaperRetransmit(E2, 0), to=SEQUENCER)]
    machine.handle(broadcast(0))
    machine.handle(broadcast(1))
    assert machine.handle(TimerFired("request")) == []


def test_tries_are_counted_for_each_missing_message_anew() -> None:
    machine = node(E2)
    for number in range(3):
        for _ in range(machine.config.polls_to_abort):
            machine.handle(broadcast(number + 1))
        machine.handle(broadcast(number))
    assert not machine.aborted
    for _ in range(machine.config.polls_to_abort + 1):
        machine.handle(broadcast(9))
    assert machine.aborted


def test_who_gives_up_says_so_and_nothing_else() -> None:
    receiver, sender = node(E2), node(E3)
    sender.handle(Submit(7, (1,), b"x"))
    for _ in range(receiver.config.polls_to_abort):
        receiver.handle(broadcast(1))
        sender.handle(TimerFired("data"))
    given_up = receiver.handle(broadcast(1))
    assert [type(output) for output in given_up] == [Discard, Abort]
    assert [type(output) for output in sender.handle(TimerFired("data"))] == [Abort]


def test_who_calls_an_election_goes_on_asking() -> None:
    machine = node(E2, advances_own_row=True, elects=True)
    for _ in range(machine.config.polls_to_abort):
        machine.handle(broadcast(1))
    timers = [output.name for output in machine.handle(broadcast(1)) if isinstance(output, SetTimer)]
    assert timers == ["request", "election"]


def test_when_nothing_is_missing_any_more_the_timer_is_stopped() -> None:
    machine = node(E2, asks_once=True)
    machine.handle(broadcast(1))
    assert CancelTimer("request") in machine.handle(broadcast(0))


def test_with_asks_once_what_comes_ahead_is_kept() -> None:
    machine = node(E2, asks_once=True)
    assert len(sends(machine.handle(broadcast(2)))) == 1
    assert sends(machine.handle(broadcast(1))) == []
    assert machine.log_sizes().held == 2
    outputs = machine.handle(broadcast(0))
    assert [output.packet.seq for output in outputs if isinstance(output, Deliver)] == [1, 2, 3]
    assert [type(output) for output in machine.handle(broadcast(1))] == [Discard]


def test_a_dummy_comes_after_so_many_messages_received_and_none_sent() -> None:
    machine = node(E2, dummy_after=2)
    assert sends(machine.handle(broadcast(0, source=E3))) == []
    assert sends(machine.handle(broadcast(1, source=E3))) == [Send(PaperDummy(E2, 2), to=SEQUENCER)]
    machine.handle(broadcast(2, source=E3))
    machine.handle(Submit(7, (1,), b"x"))
    assert sends(machine.handle(broadcast(3, source=E3))) == [], "it has just said what it has"


# --- the synchronization phase ---


def test_2_2_both_phases() -> None:
    machine = node(SEQUENCER, history=1, acknowledges_last=True)
    machine.handle(data(E2, 1, last=-1))
    assert sends(machine.handle(data(E2, 2, last=0))) == [Send(PaperPhase(SEQUENCER, 0, 1))]
    assert [type(output) for output in machine.handle(data(E2, 2, last=0))] == [Discard], "it accepts none"
    assert machine.handle(Receive(PaperCommitted(E2, 0))) == []
    assert sends(machine.handle(Receive(PaperCommitted(E3, 0)))) == [Send(PaperPhase(SEQUENCER, 0, 2))]
    assert machine.history == []
    machine.handle(Receive(PaperCommitted(E2, 0)))
    machine.handle(Receive(PaperCommitted(E3, 0)))
    assert machine.phase == 0
    assert len(sends(machine.handle(data(E2, 2, last=0)))) == 1


def test_2_2_a_node_that_missed_something_asks_for_it_and_then_says_so() -> None:
    machine = node(E2)
    assert sends(machine.handle(Receive(PaperPhase(SEQUENCER, 1, 1)))) == [Send(PaperRetransmit(E2, 0), to=SEQUENCER)]
    assert machine.handle(Submit(7, (1,), b"x")) == [], "it has stopped sending"
    assert sends(machine.handle(broadcast(0, source=E3))) == []
    assert sends(machine.handle(broadcast(1, source=E3))) == [Send(PaperCommitted(E2, 2), to=SEQUENCER)]
    committed, offered = sends(machine.handle(Receive(PaperPhase(SEQUENCER, 1, 2))))
    assert committed == Send(PaperCommitted(E2, 2), to=SEQUENCER)
    assert isinstance(offered.unit, PaperData)


def test_2_2_an_ack_commit_says_what_its_node_has_and_outside_of_a_phase_no_more() -> None:
    machine = node(SEQUENCER, acknowledges_last=True)
    machine.handle(data(E2, 1, last=-1))
    assert machine.handle(Receive(PaperCommitted(E3, 0))) == []
    assert (machine.acknowledged[E3], machine.replied, machine.phase) == (0, 0, 0)


def test_2_2_what_is_missing_at_phase_1_is_asked_for_until_it_comes() -> None:
    machine = node(E2)
    machine.handle(Receive(PaperPhase(SEQUENCER, 0, 1)))
    assert sends(machine.handle(TimerFired("request"))) == [Send(PaperRetransmit(E2, 0), to=SEQUENCER)]


def test_2_2_the_application_at_the_sequencer_stops_too() -> None:
    machine = node(SEQUENCER, history=1, acknowledges_last=True)
    machine.handle(data(E2, 1, last=-1))
    machine.handle(data(E2, 2, last=0))
    assert machine.handle(Submit(7, (1,), b"x")) == []
    for _ in range(2):
        machine.handle(Receive(PaperCommitted(E2, 0)))
        outputs = machine.handle(Receive(PaperCommitted(E3, 0)))
    (offered,) = sends(outputs)
    assert isinstance(offered.unit, PaperData)
    assert offered.to == SEQUENCER


def test_2_2_who_has_just_said_what_it_has_owes_no_dummy() -> None:
    machine = node(E2, dummy_after=2)
    machine.handle(broadcast(0, source=E3))
    machine.handle(Receive(PaperPhase(SEQUENCER, 0, 1)))
    machine.handle(Receive(PaperPhase(SEQUENCER, 0, 2)))
    assert sends(machine.handle(broadcast(1, source=E3))) == []


def test_2_2_timers_of_senders_run_on_without_sending() -> None:
    machine = node(E2)
    machine.handle(broadcast(0, source=E3))
    machine.handle(Submit(7, (1,), b"x"))
    machine.handle(Receive(PaperPhase(SEQUENCER, 0, 1)))
    (timer,) = machine.handle(TimerFired("data"))
    assert isinstance(timer, SetTimer)
    assert machine.data_tries == 0
