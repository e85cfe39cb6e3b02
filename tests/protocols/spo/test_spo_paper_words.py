"""SPO as printed: how it counts, what it refuses, and what it says in words."""

from collections.abc import Iterable

import pytest

from ordercast.model.config import GroupConfig, PaperRules
from ordercast.model.errors import LocalProtocolError
from ordercast.model.machine import (
    Discard,
    Drained,
    Echo,
    LogSizes,
    Numbered,
    Output,
    Receive,
    Send,
    Submit,
    TimerFired,
)
from ordercast.model.nodes import mask_of
from ordercast.model.units import Data, Packet, Ready, RetransmitRequest, Status
from ordercast.protocols.spo_paper import SpoPaper
from tests.protocols.harness import E1, E2, E3, Group
from tests.protocols.spo.schedules import EVERYBODY, FIRST_SEQS_OF_FIG_4, SCHEDULES, fig_4


def machine_of(paper: PaperRules) -> SpoPaper:
    return SpoPaper(E2, GroupConfig(nodes=3, paper=paper))


def submits(machine: SpoPaper, to: Iterable[int], *lengths: int, priority: int = 0) -> list[Output]:
    return machine.handle(Submit(mask_of(to), lengths or (1,), bytes(sum(lengths or (1,))), priority))


def test_it_hears_its_own_units_by_a_safe_loop_back() -> None:
    assert SpoPaper.echo is Echo.SAFE


def test_what_the_printed_rules_do_not_know_is_a_stray() -> None:
    """There is no receive-ready unit in the papers; nor does anything follow from silence or from a strange timer."""
    machine = machine_of(PaperRules())
    before = machine.snapshot()
    ready = Ready(E1, 4, (4, 4, 4), Status(1, (4, 4, 4)))
    assert machine.handle(Receive(ready)) == [Discard(ready, "stray")]
    assert machine.handle(Drained()) == []
    assert machine.handle(TimerFired("wait-7")) == []
    assert machine.snapshot() == before


@pytest.mark.parametrize(
    ("destinations", "sentence"),
    [
        (0, "at least one node"),
        (0b1001, r"only go to the 3 nodes of the group, not to \{E1,E4\}"),
        (-1, "only go to the 3 nodes of the group, not to -1"),
    ],
)
def test_a_message_to_nobody_or_to_strangers_is_refused_in_a_sentence(destinations: int, sentence: str) -> None:
    machine = machine_of(PaperRules())
    before = machine.snapshot()
    with pytest.raises(LocalProtocolError, match=sentence):
        machine.handle(Submit(destinations, (1,), b"x"))
    assert machine.snapshot() == before


def test_a_batch_is_one_packet_and_its_messages_are_counted() -> None:
    machine = machine_of(PaperRules())
    packets = [
        output.packet
        for lengths, priority in (((3, 0, 4), 0), ((5,), 7), ((1,), 0))
        for output in submits(machine, [E1], *lengths, priority=priority)
        if isinstance(output, Numbered)
    ]
    assert [(packet.seq, packet.first, packet.lengths) for packet in packets] == [
        (0, 0, (3, 0, 4)),
        (1, 3, (5,)),
        (2, 4, (1,)),
    ]
    assert [packet.priority for packet in packets] == [0, 7, 0]


def numbered(group: Group[SpoPaper]) -> list[str]:
    """What E1 has sent."""
    return group.of(list(group.packets), E1)


def test_submissions_wait_behind_each_other_and_go_out_in_order() -> None:
    group = Group(SpoPaper, window=2)
    for name, to in (("a", [E2]), ("b", [E3]), ("c", [E1]), ("d", [E2])):
        group.submit(E1, name, to)
    assert numbered(group) == ["a", "b"]
    for node, name in ((E2, "x"), (E3, "y")):
        group.receive(node, "a")
        group.submit(node, name, [E1])
    group.receive(E1, "x")
    assert numbered(group) == ["a", "b"], "E3 has not said that it heard a"
    group.receive(E1, "y")
    assert numbered(group) == ["a", "b", "c"], "what it heard moved the window by one"
    assert group.machines[E1].log_sizes().waiting == 1


def test_transmissions_are_stamped_and_a_verbatim_copy_keeps_its_stamp() -> None:
    for verbatim, stamps in ((True, [1, 2, 1, 2]), (False, [1, 2, 3, 4])):
        machine = machine_of(PaperRules(verbatim_copies=verbatim))
        outputs = submits(machine, [E1]) + submits(machine, [E1])
        outputs += machine.handle(Receive(RetransmitRequest(E1, (0, 0, 0))))
        units = [output.unit for output in outputs if isinstance(output, Send)]
        assert [unit.status.stamp for unit in units if isinstance(unit, Data)] == stamps


def test_log_sizes_of_fig_4() -> None:
    """After step 9, as the figure has the logs."""
    group = Group(SpoPaper, first_seq=FIRST_SEQS_OF_FIG_4, echo_at_once=False)
    fig_4(group)
    assert [machine.log_sizes() for machine in group.machines] == [
        LogSizes(waiting=0, sent=3, held=0, accepted=3, preacknowledged=3),
        LogSizes(waiting=0, sent=2, held=0, accepted=3, preacknowledged=3),
        LogSizes(waiting=0, sent=0, held=0, accepted=2, preacknowledged=3),
    ]


def test_it_says_what_it_waits_for() -> None:
    """Fig. 4 after step 9: E3 misses h of E1 and, having discarded it, i of E2."""
    group = Group(SpoPaper, first_seq=FIRST_SEQS_OF_FIG_4, echo_at_once=False)
    assert [machine.waits_for() for machine in group.machines] == [(), (), ()]
    fig_4(group)
    assert group.machines[E3].waits_for() == (
        "misses from E1 its number 8 on",
        "misses from E2 its number 2 on",
        "holds of E1 number 7, not known to be accepted by {E3}",
        "holds of E2 number 1, not known to be accepted by {E1,E3}",
        "holds of E1 number 6, not known to be pre-acknowledged by {E1}",
        "holds of E2 number 0, not known to be pre-acknowledged by {E1,E2}",
        "holds of E3 number 3, not known to be pre-acknowledged by {E1,E2,E3}",
    )
    assert group.machines[E2].waits_for()[0] == "keeps its number 1, not known to be accepted by {E3}"


def test_it_says_that_buffers_are_scarce() -> None:
    group = Group(SpoPaper, paper=PaperRules(initial_buffers=9))
    for name in "ab":
        group.submit(E1, name, [E2])
    group.receive(E2, "a")
    group.submit(E2, "x", [E1])
    group.receive(E1, "x")
    assert group.machines[E1].free_buffers == [9, 8, 9]
    assert group.machines[E1].waits_for()[0] == "its window is closed: {E2} has only 8 buffers free for everybody"


def test_free_buffers_never_fall_below_zero() -> None:
    """The printed rules refuse nothing: with one buffer, what is held beyond it is held all the same."""
    group = Group(SpoPaper, paper=PaperRules(initial_buffers=1))
    for node in EVERYBODY:
        group.submit(node, f"p{node}", [E1])
    group.receive(E1, "p1", "p2")
    assert group.machines[E1].log_sizes().accepted == 3
    assert group.machines[E1]._status().free == 0


def test_free_buffers_count_what_is_preacknowledged_too() -> None:
    """Fig. 4 after step 6: E2 holds f in RPL, and b, d and e in PPL; a, which is acknowledged, is gone."""
    group = Group(SpoPaper, first_seq=FIRST_SEQS_OF_FIG_4, echo_at_once=False, paper=PaperRules(initial_buffers=500))
    fig_4(group)
    assert group.units["i"].status.free == 500 - 4  # sent in step 7, in which E2 has heard h, not for it


def test_it_says_what_it_knows_by_hearsay_only() -> None:
    group = SCHEDULES["C2"].run(SpoPaper)
    assert group.machines[E3].waits_for() == (
        "misses from E1 its number 0 on",
        "misses from E2 its number 0 on",
    )


def data(seq: int, number: int, expects: tuple[int, ...] = (0, 0, 0)) -> Data:
    """A unit of E1 to E2 with this number to E2."""
    return Data(Packet(E1, mask_of([E2]), seq, (0, number, 0), 0, (1,), b"x"), Status(1, expects))


def test_a_duplicate_that_is_not_acceptable_is_one_even_if_duplicates_are_told_last() -> None:
    machine = machine_of(PaperRules(duplicates_first=False))
    for seq in (0, 1):
        machine.handle(Receive(data(seq, seq)))
    assert machine.handle(Receive(data(0, 0))) == [Discard(data(0, 0), "duplicate")]
    assert machine.expected[E1] == 2


def test_4_2_accept_action_3_takes_the_number_of_the_unit() -> None:
    """PREQ_j := p.PSEQ_k + 1, though by (1-1) alone no honest source has it accepted with another than the next."""
    machine = machine_of(PaperRules())
    machine.handle(Receive(data(0, 4)))
    assert machine.expected_to_me[E1] == 5
