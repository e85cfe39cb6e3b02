"""SPO and PO, sound rules: the retransmission policies alone, without a machine around them."""

from collections.abc import Callable

import pytest

from ordercast.model.config import GroupConfig
from ordercast.model.machine import Output
from ordercast.model.units import Packet
from ordercast.protocols.po.go_back_n import GoBackN
from ordercast.protocols.shared.backoff import MAX_FACTOR
from ordercast.protocols.shared.sending_log import SendingLog
from ordercast.protocols.spo.retransmission import Node, Retransmission, SelectiveRepeat
from ordercast.protocols.spo.units import Data, Missing, Status
from tests.protocols.driver import E1, E2, E3

POLICIES: list[Callable[[Node], Retransmission]] = [SelectiveRepeat, GoBackN]
OTHER_NODES = 3


class Machine:
    """What a policy needs of its machine: it notes what it is told to do."""

    def __init__(self, quota: int = 8) -> None:
        self.me, self.config = E1, GroupConfig(nodes=OTHER_NODES, quota=quota)
        self.expected_to_me, self.seen_to_me, self.buffered = [0, 0, 0], [0, 0, 0], [0, 0, 0]
        self.sent = SendingLog(E1, OTHER_NODES)
        self.requests: list[Missing] = []
        self.copies: list[int] = []
        self.timers: list[tuple[str, int]] = []

    def send_status(self, out: list[Output], wants: int = 0, missing: Missing = ()) -> None:
        del out, wants
        self.requests.append(missing)

    def retransmit(self, packet: Packet, out: list[Output]) -> None:
        del out
        self.copies.append(packet.seq)

    def set_timer(self, name: str, duration: int, out: list[Output]) -> None:
        del out
        self.timers.append((name, duration))

    def sends(self, count: int) -> None:
        for seq in range(count):
            self.sent.append(packet(E1, seq))


def packet(source: int, number: int) -> Packet:
    return Packet(source, 0b111, number, (number,) * OTHER_NODES, number, (1,), b"x")


def ahead(machine: Machine, retransmission: Retransmission, number: int, source: int = E2) -> list[Output]:
    """A packet comes ahead of a gap."""
    out: list[Output] = []
    machine.seen_to_me[source] = max(machine.seen_to_me[source], number + 1)
    retransmission.receive_ahead(Data(packet(source, number), Status(1, (0,) * OTHER_NODES)), number, out)
    retransmission.request_gap(source, out)
    if not retransmission.repeat_timer:
        retransmission.start_repeating(out)
    return out


@pytest.mark.parametrize(
    ("policy", "requests"),
    [
        (SelectiveRepeat, [((E2, ((0, 2),)),), ((E2, ((0, 2), (3, 5))),)]),
        (GoBackN, [((E2, ((0, 3),)),), ((E2, ((0, 6),)),)]),
    ],
)
def test_what_is_missing_is_requested_at_once_and_then_again(
    policy: Callable[[Node], Retransmission], requests: list[Missing]
) -> None:
    machine = Machine()
    retransmission = policy(machine)
    ahead(machine, retransmission, 2)
    assert machine.requests == requests[:1]
    ahead(machine, retransmission, 5)
    retransmission.fire("repeat", [])
    assert machine.requests == requests


def test_selective_repeat_keeps_what_is_ahead_and_go_back_n_does_not() -> None:
    for policy, kept in ((SelectiveRepeat, [2]), (GoBackN, [])):
        machine = Machine()
        retransmission = policy(machine)
        ahead(machine, retransmission, 2)
        assert list(retransmission.out_of_order[E2]) == kept


@pytest.mark.parametrize("policy", POLICIES)
def test_nothing_is_requested_that_there_is_no_buffer_for(policy: Callable[[Node], Retransmission]) -> None:
    machine = Machine(quota=1)
    retransmission = policy(machine)
    machine.buffered[E2] = 1
    ahead(machine, retransmission, 2)
    assert (machine.requests, retransmission.missing([0, 0, 0])) == ([], ())
    machine.buffered[E2] = 0
    retransmission.fire("repeat", [])
    assert len(machine.requests) == 1


@pytest.mark.parametrize("policy", POLICIES)
def test_repeated_requests_back_off_until_something_comes(policy: Callable[[Node], Retransmission]) -> None:
    machine = Machine()
    retransmission, repeat = policy(machine), machine.config.timing.repeat
    ahead(machine, retransmission, 2)
    machine.timers.clear()
    for factor in (2, MAX_FACTOR, MAX_FACTOR):
        retransmission.fire("repeat", [])
        assert machine.timers.pop() == ("repeat", factor * repeat)
    retransmission.progress = True
    retransmission.fire("repeat", [])
    assert machine.timers.pop() == ("repeat", repeat)


@pytest.mark.parametrize(("policy", "copies"), [(SelectiveRepeat, [1, 3]), (GoBackN, [1, 2, 3])])
def test_a_source_sends_again_what_is_requested_or_everything_from_there_on(
    policy: Callable[[Node], Retransmission], copies: list[int]
) -> None:
    machine = Machine()
    retransmission = policy(machine)
    machine.sends(4)
    machine.sent.acknowledge(E3, 1)
    for _ in range(2):
        retransmission.answer_request(E3, ((1, 2), (3, 4)), [])
        assert machine.copies == copies, "and not twice in a short time"
    retransmission.fire("guard", [])
    retransmission.answer_request(E3, ((1, 2), (3, 4)), [])
    assert machine.copies == 2 * copies


@pytest.mark.parametrize("policy", POLICIES)
def test_its_state_is_its_own(policy: Callable[[Node], Retransmission]) -> None:
    machine = Machine()
    retransmission, other = policy(machine), policy(Machine())
    ahead(machine, retransmission, 2)
    assert other != retransmission
    other.restore(retransmission.snapshot())
    assert other == retransmission
    assert other.node is not machine
