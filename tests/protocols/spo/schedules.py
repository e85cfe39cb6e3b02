"""The schedules that bring the printed SPO down, as functions that any machine can be taken through.

Each names only what the world does: who sends what to whom, who hears it, what is lost, which timers fire. What must
come of it under which rules is said by the tests. They are called as in the documentation (docs/protocols/spo.md).
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ordercast.model.config import HearsayRule, PaperRules
from tests.protocols.harness import E1, E2, E3, Group, M

EVERYBODY = (E1, E2, E3)
OTHERS = PaperRules(condition_2=HearsayRule.OTHERS)
FIRST_SEQS_OF_FIG_4 = (5, 0, 3)


@dataclass(frozen=True)
class Schedule:
    """What happens to a group of three, and under which settings."""

    play: Callable[[Group[Any]], None]
    config: dict[str, Any] = field(default_factory=dict)

    def run(self, machine: Callable[..., M]) -> Group[M]:
        """A group of such machines, after all of it."""
        group = Group(machine, **self.config)
        self.play(group)
        return group


def a1(group: Group[Any]) -> None:
    """x goes to E2 and E3, but what tells E2 about it goes to E2 alone. Nothing is lost that anybody would miss."""
    group.submit(E1, "x", to=[E2, E3])
    group.receive(E2, "x")
    group.submit(E2, "q2", to=[E2])
    group.receive(E3, "x")
    group.submit(E3, "q3", to=[E2])
    group.receive(E2, "q3")
    group.submit(E2, "r2", to=[E2])


def a2(group: Group[Any]) -> None:
    """a goes to E2; then everybody hears everybody, but E2 sends nothing to itself."""
    group.submit(E1, "a", to=[E2])
    group.everybody_receives("a")
    for turn in range(10):
        for node, to in ((E2, (E1, E3)), (E3, EVERYBODY), (E1, EVERYBODY)):
            name = f"{'xyz'[node]}{turn}"
            group.submit(node, name, to)
            group.everybody_receives(name)


def c0(group: Group[Any]) -> None:
    """b, sent after a was heard, overtakes a on its way to E3."""
    group.submit(E1, "a", to=[E2, E3])
    group.receive(E2, "a")
    group.submit(E2, "b", to=[E3])
    group.receive(E3, "b", "a")


def c1(group: Group[Any]) -> None:
    """E3 misses a, which was not for it; b is, and says that its own source has heard a."""
    group.submit(E1, "a", to=[E2])
    group.submit(E1, "b", to=[E3])
    group.lose(E3, "a")
    group.receive(E3, "b")


def c2(group: Group[Any]) -> None:
    """E3 misses a, which was not for it, and hears of it by b; E3 asks, and is answered."""
    group.submit(E1, "a", to=[E1, E2])
    group.lose(E3, "a")
    group.receive(E2, "a")
    group.submit(E2, "b", to=[E3])
    group.receive(E3, "b")
    group.fire_all(E3)
    for node in (E1, E2):
        group.receive_all(node, E3)
        group.receive_all(E3, node)


def c3(group: Group[Any]) -> None:
    """The last unit of all is lost."""
    group.submit(E1, "a", to=[E2])
    group.lose(E2, "a")


def c4(group: Group[Any]) -> None:
    """A unit is lost, and the request for it too."""
    group.submit(E1, "a", to=[E2])
    group.submit(E1, "b", to=[E2])
    group.lose(E2, "a")
    group.receive(E2, "b")
    group.lose_all(E1, E2)


def c5(group: Group[Any]) -> None:
    """A window of two, and E3, which is no destination, has nothing to send."""
    for name in "abc":
        group.submit(E1, name, to=[E2])
    for node in (E2, E3):
        group.receive(node, "a", "b")
    group.submit(E2, "x", to=[E1])
    group.receive(E1, "x")


def fig_4(group: Group[Any], after_step: Callable[[int], None] = lambda _: None) -> None:
    """The papers' worked example (JP Fig. 4, examples 3.1 to 3.4): h is lost at E3, and E3 finds out.

    The numbers are those of the papers if the group starts from <5 0 3> and own units are heard with the others.
    """
    group.submit(E1, "a", to=[E2, E3])
    after_step(1)
    group.everybody_receives("a")
    group.submit(E2, "b", EVERYBODY)
    group.submit(E1, "c", to=[E1, E3])
    after_step(2)
    group.everybody_receives("b", "c")
    group.submit(E3, "d", EVERYBODY)
    after_step(3)
    group.everybody_receives("d")
    group.submit(E3, "e", to=[E2])
    group.submit(E1, "f", to=[E2, E3])
    after_step(4)
    group.everybody_receives("e", "f")
    group.submit(E2, "g", to=[E1, E3])
    after_step(5)
    group.everybody_receives("g")
    group.submit(E1, "h", to=[E1, E3])
    after_step(6)
    group.receive(E1, "h")
    group.receive(E2, "h")
    group.lose(E3, "h")
    group.submit(E2, "i", EVERYBODY)
    after_step(7)
    group.everybody_receives("i")
    group.submit(E1, "j", to=[E2, E3])
    after_step(8)
    group.everybody_receives("j")
    after_step(9)


def c6(group: Group[Any]) -> None:
    """Fig. 4, and of the answers to E3's request those of E1 come first."""
    fig_4(group)
    group.receive_all(E1, E3)
    group.receive_all(E2, E3)
    group.receive_all(E3, E1)
    group.receive_all(E3, E2)


def c7(group: Group[Any]) -> None:
    """A window of two, and everybody sends it all before hearing anything; everybody has one more to send."""
    for node in EVERYBODY:
        for name in "abc":
            group.submit(node, f"{name}{node + 1}", EVERYBODY)
    for name in "ab":
        group.everybody_receives(*(f"{name}{node + 1}" for node in EVERYBODY))


def d1(group: Group[Any]) -> None:
    """E3 has heard a and b, neither of them for it; E2 has missed a, so that a comes to E3 once more."""
    group.submit(E1, "a", to=[E1, E2])
    group.submit(E1, "b", to=[E2])
    group.receive(E3, "a", "b")
    group.lose(E2, "a")
    group.receive(E2, "b")
    group.receive_all(E1, E2)
    group.receive(E3, "a")


def r1(group: Group[Any]) -> None:
    """Everything goes to everybody. E2 misses c and gets a copy of it; E3 has heard the first transmission.

    The first c said that E1 has not yet heard a, a copy with fresh acknowledgments says that it has. E2 concludes from
    the copy what E3 would know if it had heard the same.
    """
    group.submit(E2, "a", EVERYBODY)
    group.receive(E3, "a")
    group.submit(E3, "b", EVERYBODY)
    group.submit(E1, "c", EVERYBODY)
    group.lose(E2, "c")
    group.submit(E2, "d", EVERYBODY)
    group.receive(E1, "a")
    group.receive(E2, "b")
    group.receive(E1, "d")
    group.receive(E3, "d", "c")
    group.receive(E1, "b")
    group.submit(E1, "e", EVERYBODY)
    group.submit(E3, "f", EVERYBODY)
    group.receive(E2, "e")
    group.receive_all(E1, E2)
    group.receive(E2, "c", "f")
    group.submit(E2, "g", EVERYBODY)


SCHEDULES = {
    "A1": Schedule(a1),
    "A2": Schedule(a2),
    "C0": Schedule(c0),
    "C1": Schedule(c1),
    "C2": Schedule(c2, {"paper": OTHERS}),
    "C3": Schedule(c3),
    "C4": Schedule(c4),
    "C5": Schedule(c5, {"window": 2}),
    "C6": Schedule(c6, {"first_seq": FIRST_SEQS_OF_FIG_4, "echo_at_once": False}),
    "C7": Schedule(c7, {"window": 2, "echo_at_once": False}),
    "D1": Schedule(d1, {"paper": PaperRules(duplicates_first=False)}),
    "R1": Schedule(r1, {"paper": PaperRules(condition_2=HearsayRule.OTHERS, verbatim_copies=False)}),
}
