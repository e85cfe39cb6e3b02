"""What one member makes of datagrams, without a network: whose they are, of which session, and by which relay."""

from collections import Counter
from typing import Any

import pytest

from ordercast.live.addresses import Address
from ordercast.live.channel import Relay
from ordercast.live.lines import Lines
from ordercast.model.runs import Channel
from ordercast.wire.codec import Codec
from ordercast.wire.control import CONTROL, Beat, Stage
from ordercast.wire.datagram import join
from ordercast.wire.sealing import seal_for

SESSION = 77
ADDRESSES = [Address("127.0.0.1", 7000 + place) for place in range(3)]
CODEC = Codec("st", CONTROL)
BEAT = join([CODEC.encode(Beat(Stage.OPEN))])


class Deaf:
    """An endpoint to which nothing comes by itself."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.not_sent: Counter[str] = Counter()

    def start(self, receive: Any, _: Any) -> None:
        self.receive = receive

    def knows(self, addresses: Any) -> None:
        pass

    def send_to_all(self, datagram: bytes) -> None:
        self.sent.append(datagram)


class Heard:
    """A listener that only counts."""

    def __init__(self) -> None:
        self.messages: list[tuple[int, object]] = []

    def opens(self, *_: int) -> bool:
        return False

    def hears(self, member: int, message: object) -> None:
        self.messages.append((member, message))

    def receives(self, member: int, unit: object) -> None:
        self.messages.append((member, unit))


def lines_of(me: int) -> tuple[Lines, Deaf, Heard]:
    endpoint, listener = Deaf(), Heard()
    lines = Lines(endpoint, ADDRESSES, me, seal_for("g", None), CODEC, datagram=1000)  # type: ignore[arg-type]
    lines.start(1, listener, lambda: None)
    return lines, endpoint, listener


def passed_on(incarnation: int, session: int, counter: int = 0) -> bytes:
    """What a relay with this incarnation sends to all, of what a member said with this counter."""
    sent: list[bytes] = []
    Relay(seal_for("g", None), incarnation, sent.append).pass_on(1, session, counter, BEAT)
    return sent[0]


def test_a_relay_of_another_session_does_not_make_us_deaf_to_ours() -> None:
    """Its clock may have been ahead of that of ours, and what it once said may come again."""
    lines, endpoint, listener = lines_of(me=2)
    lines.open(SESSION, Channel.ONE, ADDRESSES[0])
    endpoint.receive(passed_on(incarnation=10_000, session=SESSION - 1))
    endpoint.receive(passed_on(incarnation=10, session=SESSION))
    endpoint.receive(passed_on(incarnation=9, session=SESSION))
    assert [member for member, _ in listener.messages] == [1]
    assert lines.dropped == {"session": 1, "late": 1}


def test_what_a_new_relay_has_forgotten_is_still_heard_once() -> None:
    """Somebody who kept what was said to the former relay has it passed on again, in any order."""
    lines, endpoint, listener = lines_of(me=2)
    lines.open(SESSION, Channel.ONE, ADDRESSES[0])
    for incarnation, counter in ((10, 5), (11, 8), (12, 5), (13, 8), (14, 7), (15, 9)):
        endpoint.receive(passed_on(incarnation, SESSION, counter))
    assert len(listener.messages) == 3, "those with 5, 8 and 9"
    assert lines.dropped == {"late": 3}


def test_what_our_own_relay_said_is_nobody_elses() -> None:
    """A multicast brings it back to us: it is neither heard again nor counted as a stranger's."""
    lines, endpoint, listener = lines_of(me=0)
    relay = Relay(seal_for("g", None), 5, endpoint.send_to_all)
    lines.open(SESSION, Channel.ONE, relay)
    relay.pass_on(1, SESSION, 0, BEAT)
    endpoint.receive(endpoint.sent[0])
    assert not listener.messages
    assert not lines.dropped


def test_a_relay_goes_on_after_a_listener_that_fails() -> None:
    lines, endpoint, listener = lines_of(me=0)
    lines.open(SESSION, Channel.ONE, Relay(seal_for("g", None), 5, endpoint.send_to_all))
    hears, listener.hears = listener.hears, lambda *_: 1 / 0  # type: ignore[method-assign, assignment]
    seal = seal_for("g", None)
    with pytest.raises(ZeroDivisionError):
        endpoint.receive(seal.seal(4, 1, SESSION, 0, BEAT))
    listener.hears = hears  # type: ignore[method-assign]
    endpoint.receive(seal.seal(4, 1, SESSION, 1, BEAT))
    assert [member for member, _ in listener.messages] == [1]
