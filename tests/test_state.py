"""State that is declared once: what follows from the annotations of a class."""

from collections import deque
from typing import ClassVar, Final

import pytest

from ordercast.model.declared_state import DeclaredState, Derived, Unordered, declared_names


class Part(DeclaredState):
    count: int

    def __init__(self) -> None:
        self.count = 0


class Whole(DeclaredState):
    kind: ClassVar[str] = "whole"
    me: Final[int]
    number: int
    maybe: tuple[int, int] | None
    waiting: deque[int]
    rows: list[list[int]]
    by_name: dict[str, int]
    members: set[int]
    heap: Unordered[list[int]]
    queues: dict[int, deque[int]]
    tables: list[dict[int, list[int]]]
    part: Part
    parts: list[Part]
    twice: Derived[int]

    def __init__(self, me: int) -> None:
        self.me, self.number, self.maybe = me, 1, None
        self.waiting, self.rows, self.by_name = deque([1]), [[1], [2]], {"b": 1, "a": 2}
        self.members, self.heap, self.queues = {2, 1}, [1, 3, 2], {2: deque([5])}
        self.tables = [{2: [1], 1: []}]
        self.part, self.parts = Part(), [Part(), Part()]
        self.derive()

    def derive(self) -> None:
        self.twice = 2 * self.number


def changed(whole: Whole) -> None:
    whole.number, whole.maybe = 5, (1, 2)
    whole.waiting.append(2)
    whole.rows[0].append(7)
    whole.by_name["c"] = 3
    whole.members.add(9)
    whole.heap.append(0)
    whole.queues[1] = deque()
    whole.tables[0][1].append(3)
    whole.part.count = whole.parts[1].count = 4
    whole.derive()


def test_a_snapshot_is_hashable_and_stays_what_it_was() -> None:
    whole = Whole(0)
    before = whole.snapshot()
    again = hash(before)
    changed(whole)
    assert whole.snapshot() != before
    assert hash(before) == again


def test_restoring_brings_everything_back_in_containers_that_are_not_shared() -> None:
    whole, other = Whole(0), Whole(0)
    changed(whole)
    other.restore(whole.snapshot())
    assert other == whole
    assert other.twice == 10
    assert isinstance(other.waiting, deque)
    changed(other)
    assert list(whole.waiting) == [1, 2]
    assert whole.rows == [[1, 7], [2]]
    assert whole.tables == [{2: [1], 1: [3]}]


@pytest.mark.parametrize(
    "name", ["number", "maybe", "waiting", "rows", "by_name", "members", "heap", "queues", "tables"]
)
def test_every_variable_is_part_of_the_state(name: str) -> None:
    whole, other = Whole(0), Whole(0)
    changed(other)
    setattr(whole, name, getattr(other, name))
    assert whole != Whole(0)
    assert hash(whole) != hash(Whole(0))


def test_parts_are_part_of_the_state_and_stay_the_same_objects() -> None:
    whole = Whole(0)
    before, part, parts = whole.snapshot(), whole.part, list(whole.parts)
    whole.parts[1].count = 1
    assert whole.snapshot() != before
    whole.restore(before)
    assert whole.part is part
    assert all(now is then for now, then in zip(whole.parts, parts, strict=True))
    assert whole.parts[1].count == 0


def test_arrangement_counts_in_lists_and_not_where_it_means_nothing() -> None:
    whole, other = Whole(0), Whole(0)
    other.heap, other.by_name = [2, 1, 3], {"a": 2, "b": 1}
    assert whole == other
    other.rows = [[2], [1]]
    assert whole != other


def test_what_never_changes_is_declared_and_no_part_of_the_state() -> None:
    assert Whole(0) == Whole(1)
    assert "me" in declared_names(Whole)
    assert "kind" not in declared_names(Whole)
    assert set(vars(Whole(0))) == declared_names(Whole)


def test_states_of_different_classes_differ() -> None:
    class Other(Part):
        """Declares no more."""

    assert Part() != Other()


def test_a_container_that_may_be_absent_is_refused() -> None:
    class Wrong(DeclaredState):
        rows: list[int] | None

    with pytest.raises(TypeError, match=r"Wrong\.rows"):
        Wrong().snapshot()
