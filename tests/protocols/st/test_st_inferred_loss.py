"""4.1, second: a loss inferred from peers' acknowledgments is asked about after a waiting time."""

from ordercast.model.config import GroupConfig
from ordercast.model.machine import Output, Receive, Send, SetTimer, TimerFired
from ordercast.protocols.spo.units import Ready, Status
from ordercast.protocols.st.machine import St

E1, E2, E3 = range(3)


def ready(source: int, next_seq: int, to_e3: int, expects: tuple[int, ...]) -> Receive:
    return Receive(Ready(source, next_seq, (0, 0, to_e3), Status(1, expects, (0, 0, 0), free=300)))


def timers(outputs: list[Output]) -> set[str]:
    return {output.name for output in outputs if isinstance(output, SetTimer)}


def polls(outputs: list[Output]) -> list[int]:
    return [o.unit.wants for o in outputs if isinstance(o, Send) and isinstance(o.unit, Ready)]


def test_what_others_acknowledge_and_i_never_heard_is_asked_about_after_a_while() -> None:
    machine = St(E3, GroupConfig(nodes=3, infer_losses=True))
    assert "hearsay" in timers(machine.handle(ready(E2, 0, 0, expects=(1, 0, 0))))
    assert polls(machine.handle(TimerFired("hearsay"))) == [0b111]


def test_if_its_source_shows_meanwhile_that_it_was_not_for_me_nothing_is_asked() -> None:
    machine = St(E3, GroupConfig(nodes=3, infer_losses=True))
    machine.handle(ready(E2, 0, 0, expects=(1, 0, 0)))
    machine.handle(ready(E1, 1, 0, expects=(1, 0, 0)))
    assert machine.normal.expected[E1] == 1
    assert polls(machine.handle(TimerFired("hearsay"))) == []


def test_if_its_source_shows_that_it_was_for_me_the_group_stops() -> None:
    machine = St(E3, GroupConfig(nodes=3, infer_losses=True))
    machine.handle(ready(E2, 0, 0, expects=(1, 0, 0)))
    machine.handle(ready(E1, 1, 1, expects=(1, 0, 0)))
    assert machine.recovery.active
    assert polls(machine.handle(TimerFired("hearsay"))) == []


def test_a_sources_own_word_is_no_hearsay() -> None:
    machine = St(E3, GroupConfig(nodes=3, infer_losses=True))
    assert "hearsay" not in timers(machine.handle(ready(E1, 0, 0, expects=(1, 0, 0))))


def test_without_the_option_nobody_listens_to_hearsay() -> None:
    machine = St(E3, GroupConfig(nodes=3))
    assert "hearsay" not in timers(machine.handle(ready(E2, 0, 0, expects=(1, 0, 0))))
