"""ST with `delivers_stable`: what is pre-acknowledged is delivered, and nobody hurries with the second round."""

from collections import deque
from collections.abc import Callable
from typing import Any

import pytest

from ordercast.model.config import GroupConfig, Rules, Timing
from ordercast.model.errors import ConfigError
from ordercast.model.machine import Abort, Deliver, Drained, GiveUp, SetTimer
from ordercast.model.runs import Channel, Network, RunConfig
from ordercast.protocols.spo.units import Ready
from ordercast.protocols.st.channel_logs import OWN, RECEIVED
from ordercast.protocols.st.machine import St
from tests.protocols.st.driver import E1, E2, E3, Group, Node, Outputs, Peer

STATUS = Timing().status
ALL = (E1, E2, E3)


def delivered(out: Outputs) -> list[bytes]:
    return [each.packet.payload for each in out if isinstance(each, Deliver)]


def stable_at_e1() -> tuple[Node, Peer, Peer, Outputs]:
    """E1 hears from all that they have accepted the packet of E2; what followed from the last word."""
    e1, e2, e3 = Node(E1, delivers_stable=True, polls_late=True), Peer(E2), Peer(E3)
    first = e1.hears(e2.sends("a", *ALL))
    own = e1.handle(Drained())
    assert delivered(first) == []
    e1.hears(*own.units, e2.expecting(0, 1, 0).ready())
    return e1, e2, e3, e1.hears(e3.expecting(0, 1, 0).ready())


def test_what_all_have_is_delivered_once() -> None:
    e1, e2, e3, out = stable_at_e1()
    assert delivered(out) == [b"a"]
    assert e1.machine.normal.buffered == 0, "its place is free"
    assert delivered(e1.hears(e2.preacknowledging(0, 1, 0).ready(), e3.preacknowledging(0, 1, 0).ready())) == []
    assert e1.machine.normal.acknowledged_count == 1


def test_without_it_the_second_round_is_waited_for() -> None:
    e1, e2, e3 = Node(E1), Peer(E2), Peer(E3)
    e1.hears(e2.sends("a", *ALL))
    own = e1.handle(Drained())
    out = e1.hears(*own.units, e2.expecting(0, 1, 0).ready(), e3.expecting(0, 1, 0).ready())
    assert delivered(out) == []
    assert e1.handle(Drained()).units, "and hurried to"
    assert delivered(e1.hears(e2.preacknowledging(0, 1, 0).ready(), e3.preacknowledging(0, 1, 0).ready())) == [b"a"]


def test_nobody_hurries_to_say_what_is_delivered_anyway() -> None:
    e1, e2, e3, _ = stable_at_e1()
    assert not e1.handle(Drained()).units, "the second round waits for something that carries it"
    (timer,) = [each for each in e1.fires("status") if isinstance(each, SetTimer)]
    assert timer.after >= 16 * STATUS, "for a while"
    (timer,) = [each for each in e1.hears(e3.ready(wants=True)) if isinstance(each, SetTimer)]
    assert timer.after < 2 * STATUS, "unless somebody asks"
    del e2


def test_who_is_asked_answers_and_does_not_ask_in_turn() -> None:
    e1, _, e3, _ = stable_at_e1()
    e1.fires("status")
    e1.hears(e3.ready(wants=True))
    (unit,) = [each for each in e1.fires("status").units if isinstance(each, Ready)]
    assert not unit.wants
    (unit,) = [each for each in e1.fires("status").units if isinstance(each, Ready)]
    assert unit.wants, "who was not answered by then asks"


def test_new_data_are_acknowledged_as_soon_as_ever() -> None:
    e1, e2, _, _ = stable_at_e1()
    e1.fires("status")
    out = e1.hears(e2.sends("b", *ALL))
    (timer,) = [each for each in out if isinstance(each, SetTimer)]
    assert timer.after < 2 * STATUS
    assert e1.handle(Drained()).units


def test_a_recovery_delivers_nothing_twice_and_forgets_what_it_knew_of_that() -> None:
    e1, e2, e3 = Node(E1, delivers_stable=True, polls_late=True), Peer(E2), Peer(E3)
    a = e2.sends("a", *ALL)
    e1.hears(a)
    own = e1.handle(Drained())
    e1.hears(*own.units, e2.expecting(0, 1, 0).ready())
    assert e1.hears(e3.expecting(0, 1, 0).ready()).delivered == ["a"]
    out = e1.hears(e3.reply(a), e2.reply(a, sent=[a]), e2.done(), e3.done())
    for peer in e2, e3:
        peer.epoch = 1
        out += e1.hears(peer.ready())
    assert (out.delivered, out.acknowledged) == ([], ["a"])
    assert (e1.machine.normal.buffered, e1.machine.finished.delivered) == (0, set())


@pytest.mark.parametrize(
    "log",
    [
        lambda machine: machine.normal.waiting,
        lambda machine: machine.normal.to_resend,
        lambda machine: machine.finished.packets,
        lambda machine: machine.normal.accepted.logs[RECEIVED],
        lambda machine: machine.normal.accepted.logs[OWN],
    ],
    ids=["submitted", "sent again", "of finished epochs", "received", "sent"],
)
def test_who_has_anything_that_is_not_delivered_is_in_a_hurry(log: Callable[[St], deque[Any]]) -> None:
    """Whatever it is: each of these alone."""
    machine = Node(E1, delivers_stable=True).machine
    assert machine.normal.is_in_no_hurry()
    log(machine).append((0, Peer(E2).sends("a", *ALL).packet))
    assert not machine.normal.is_in_no_hurry()


def test_a_group_that_is_given_up_delivers_nothing_twice() -> None:
    e1, e2, e3, _ = stable_at_e1()
    out = e1.handle(GiveUp("enough"))
    assert delivered(out) == []
    assert [type(each) for each in out] == [Abort]
    del e2, e3


@pytest.mark.parametrize("stable", [False, True])
def test_a_group_comes_to_rest_with_all_acknowledged(stable: bool) -> None:
    group = Group(3, delivers_stable=stable)
    for place in ALL:
        group.submit(place, f"m{place}", *ALL)
    group.settle()
    for node in group.nodes:
        assert node.machine.waits_for() == ()
        assert node.machine.log_sizes().total() == 0


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        (
            {"protocol": "to", "group": {"nodes": 3, "delivers_stable": True}},
            "delivers_stable is for spo and st, not to",
        ),
        ({"protocol": "st", "group": {"nodes": 3, "delivers_stable": True, "rules": Rules.PAPER}}, "sound rules"),
    ],
)
def test_it_is_refused_where_it_means_nothing(config: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        RunConfig(
            protocol=config["protocol"], group=GroupConfig(**config["group"]), network=Network(channel=Channel.ONE)
        )
