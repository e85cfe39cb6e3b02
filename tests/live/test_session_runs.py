"""Whole groups by the thousand: whatever the network does, all open one session or nobody does, and all come out."""

from random import Random

import pytest

from ordercast.live.session.events import Aborted, Closed, Opened, Refused, SessionConfig
from ordercast.live.session.machine import Phase
from ordercast.model.config import MILLISECOND, SECOND
from tests.live.virtual_network import Network, Process, Weather

FEW, MANY = range(120), range(120, 6000)
"""Seeds that run always, and those of a long night."""


def drawn(seed: int, **choices: object) -> tuple[Random, Network]:
    """A group of some size in some weather."""
    chance = Random(f"drawn {seed}")
    loss = chance.choice([0.0, 0.05, 0.2, 0.3, 0.4])
    weather = Weather(loss=loss, doubled=chance.choice([0.0, 0.2]), very_late=chance.choice([0.0, 0.03]))
    return chance, Network(seed, chance.randint(2, 8), weather, **choices)  # type: ignore[arg-type]


def check_no_two_sessions(network: Network) -> None:
    """Two processes that each count the other among their members are in one session and agree on everything."""
    opened = [life for life in network.lives if life.opened is not None]
    for one in opened:
        for other in opened:
            if _has(one, other) and _has(other, one):
                assert one.opened == other.opened


def _has(one: Process, other: Process) -> bool:
    assert one.opened is not None
    return one.opened.incarnations[other.member] == other.incarnation


def open_and_close(seed: int) -> None:
    """Everybody comes within two seconds, sends a little, and closes when it likes."""
    chance, network = drawn(seed)

    def live(process: Process) -> None:
        process.to_send = chance.randrange(6)
        network.at(network.now + chance.randrange(3 * SECOND), process.close)

    network.on_open = live
    network.start_all(2 * SECOND)
    network.run()
    group = network.living()
    assert [type(process.ends[0]) for process in group] == [Closed] * len(group), [p.ends for p in group]
    check_no_two_sessions(network)
    assert len({process.opened for process in group}) == 1
    for one in group:
        assert one.session.phase is Phase.LEFT
        assert one.toy_at_close is not None
        assert one.toy_at_close.is_at_rest(), "it waits for something, and the others have gone"
        for other in group:
            if one is not other:
                assert other.toy_at_close is not None
                assert one.toy_at_close.got_below[other.member] == other.toy_at_close.sent
        assert not one.to_send


def restart_while_opening(seed: int) -> str:
    """Members die and come again while the group opens, and what they had said comes late."""
    chance, network = drawn(seed, config=SessionConfig(handshake_timeout=15 * SECOND))
    network.start_all(SECOND)
    for _ in range(chance.randint(1, 4)):
        member, when = chance.randrange(len(network.names)), chance.randrange(SECOND // 3, SECOND + 50 * MILLISECOND)

        def restart(member: int = member) -> None:
            if member in network.processes:
                network.processes[member].kill()
                network.at(network.now + chance.randrange(1, 200 * MILLISECOND), network.start, member)

        network.at(when, restart)
    for seconds in range(3, 25, 3):
        network.run(seconds * SECOND)
        check_no_two_sessions(network)
        group = network.living()
        if len({process.opened for process in group}) == 1 and group[0].opened:
            return "open"
    assert any(life.opened for life in network.lives), "as long as nobody is open, everybody may come again"
    for process in group:
        if process.opened is None:
            assert process.session.phase is Phase.LEFT, process.session.waits_for()
            (end,) = process.ends
            assert isinstance(end, Refused)
            assert end.why
        else:
            assert not process.ends, "it goes on: a view without those that are gone is the membership protocol's"
    return "failed"


def give_up_sometime(seed: int) -> int:
    """One member gives up, at any time: the others learn it, and stop. How many do not: they are left alone."""
    chance, network = drawn(seed)
    network.start_all(SECOND)
    victim = chance.randrange(len(network.names))
    reached: list[Process] = []

    def fail(process: Process) -> None:
        reached.append(process)
        if len(reached) == len(network.names):
            network.at(network.now + chance.randrange(1, SECOND), network.give_up, victim, "the disk is full")

    network.on_open = fail
    network.run(120 * SECOND)
    learned = [process for process in network.living() if process.ends]
    for process in learned:
        assert process.session.phase is Phase.LEFT
        assert process.ends == [Aborted("the disk is full")]
    return len(network.names) - len(learned)


@pytest.mark.parametrize("seed", FEW)
def test_all_open_and_all_close(seed: int) -> None:
    open_and_close(seed)


def test_members_that_come_again_while_the_group_opens() -> None:
    results = [restart_while_opening(seed) for seed in FEW]
    assert {"open", "failed"} == set(results), "some came again when the others were open"


@pytest.mark.parametrize("seed", FEW[:60])
def test_one_that_gives_up_ends_the_group(seed: int) -> None:
    assert give_up_sometime(seed) == 0


@pytest.mark.soak
def test_thousands_of_groups() -> None:
    for seed in MANY:
        open_and_close(seed)
        restart_while_opening(seed)
    assert sum(give_up_sometime(seed) for seed in MANY) < 10, "where 40 % are lost, all notices to one may be"


def test_all_hear_of_an_abort_at_once_when_nothing_is_lost() -> None:
    network = Network(1, 5)
    network.start_all()
    network.run(SECOND)
    given_up = network.now
    network.give_up(2, "enough")
    network.run()
    for process in network.living():
        assert process.ends == [Aborted("enough")]
        assert process.closed_at is not None
        assert process.closed_at - given_up <= network.weather.slowest
        assert process.left_at is not None
        assert process.left_at - given_up < network.config.notice_period, "all know that all know"


def test_one_that_missed_the_abort_gets_it_as_an_answer() -> None:
    network = Network(1, 2)
    network.start_all()
    network.run(SECOND)
    network.cut = lambda source, _target, _message: source == 0 and network.now < SECOND + 400 * MILLISECOND
    network.give_up(0, "enough")
    network.run()
    late = network.processes[1]
    assert late.ends == [Aborted("enough")]
    assert late.closed_at is not None
    assert late.closed_at < 3 * SECOND, "nobody sent it unasked any more"


@pytest.mark.parametrize("nodes", [2, 3, 5])
@pytest.mark.parametrize("loss", [0.0, 0.3])
def test_terms_that_differ_are_told_to_all(nodes: int, loss: float) -> None:
    network = Network(3, nodes, Weather(loss=loss))
    for member in range(nodes):
        network.start(member, **({"window": 64} if member == 1 else {}))
    network.run()
    for process in network.living():
        (end,) = process.ends
        assert isinstance(end, Refused)
        assert "window=64" in end.why
        assert "window=32" in end.why
        assert "B has window=64" in end.why


def test_who_does_not_come_is_named() -> None:
    network = Network(4, 4)
    for member in (0, 1, 3):
        network.start(member)
    network.run()
    assert {str(end.why) for process in network.living() for end in process.ends if isinstance(end, Refused)} == {
        "the group did not open within 60 s: nothing received from C"
    }
    assert all(process.session.phase is Phase.LEFT for process in network.living())


def test_one_that_comes_again_when_the_group_is_open_gets_no_answer() -> None:
    """It finds the open group meanwhile, and joins that, which is no part of a session."""
    network = Network(5, 3)
    network.start_all()
    network.run(SECOND)
    network.processes[1].kill()
    second = network.start(1)
    network.run(80 * SECOND)
    assert second.ends == [Refused("the group did not open within 60 s: nothing received from A, C")]
    assert not network.processes[0].ends
    assert not network.processes[2].ends


def test_a_close_that_takes_too_long_says_why() -> None:
    network = Network(9, 3)
    network.start_all()
    network.run(SECOND)
    network.processes[0].close(within=2 * SECOND)
    network.processes[1].close()
    network.run()
    whys = {end.why for process in network.living() for end in process.ends if isinstance(end, Aborted)}
    assert whys == {"A could not close within 2 s: C has not closed, or still has messages in flight"}


def test_who_has_closed_waits_for_one_that_still_sends() -> None:
    network = Network(10, 3, Weather(loss=0.2))
    network.start_all()
    network.run(SECOND)
    network.processes[0].close()
    network.processes[1].close()
    network.run(60 * SECOND)
    assert [process.ends for process in network.living()] == [[], [], []]
    network.processes[2].to_send = 3
    network.processes[2].close()
    network.run()
    assert [process.ends for process in network.living()] == [[Closed()]] * 3
    assert network.processes[0].toy_at_close is not None
    assert network.processes[0].toy_at_close.got_below[2] == 3


def test_one_that_dies_when_it_is_done_is_no_error() -> None:
    network = Network(11, 3)
    network.start_all()
    network.run(SECOND)
    for process in network.living():
        process.close()
    while not network.processes[2].ends:
        network.run(network.heap[0][0])
    network.processes[2].kill()
    network.run()
    assert [process.ends for process in network.living()] == [[Closed()]] * 3


def test_a_group_of_one() -> None:
    network = Network(12, 1)
    alone = network.start(0)
    assert isinstance(alone.opened, Opened)
    network.run(SECOND)
    alone.close()
    network.run()
    assert alone.ends == [Closed()]
    assert alone.session.phase is Phase.LEFT
