"""Which member differs, decided by all alike."""

from ordercast.replicated import Dict
from ordercast.replicated.checks import Checks, verdict
from ordercast.replicated.frames import Digests
from ordercast.replicated.replica import Replica
from tests.replicated.alone import Alone


def told(**digests: bytes) -> tuple[str, tuple[str, ...]] | None:
    found = verdict({name: {"x": value} for name, value in digests.items()}, list(digests))
    return None if found is None else (found.member, found.members)


def test_who_differs_from_most_is_wrong() -> None:
    assert told(A=b"1", B=b"1", C=b"1") is None
    assert told(A=b"1", B=b"2", C=b"2") == ("A", ("A",))
    assert told(A=b"1", B=b"2", C=b"1", D=b"3") == ("B", ("B", "D"))


def test_of_two_halves_that_of_the_oldest_is_right() -> None:
    assert told(A=b"1", B=b"2") == ("B", ("B",))
    assert told(A=b"1", B=b"2", C=b"2", D=b"1") == ("B", ("B", "C"))


def test_objects_are_compared_among_those_that_hold_them() -> None:
    found = verdict({"A": {"x": b"1"}, "B": {"x": b"1", "y": b"3"}, "C": {"y": b"4"}}, ["A", "B", "C"])
    assert found is not None
    assert (found.object_name, found.members) == ("y", ("C",))
    assert "the state of 'y' differs at C from" in str(found)


def test_a_comparison_is_complete_when_all_have_told_and_ends_with_the_view() -> None:
    checks = Checks()
    checks.begin("A", 1)
    assert checks.add("A", Digests("A", 1, {"x": b"1"}), ["A", "B"]) is None
    complete = checks.add("B", Digests("A", 1, {"x": b"1"}), ["A", "B"])
    assert complete is not None
    assert (complete.number, complete.checker, complete.diverged) == (1, "A", None)
    checks.begin("A", 2)
    checks.view_changed()
    assert checks.add("A", Digests("A", 2, {}), ["A"]) is None


def test_a_state_that_differs_has_another_digest_and_a_loaded_one_the_same() -> None:
    group = Alone(Dict)
    group.do("A", "put", "k", 1)
    assert group.do("B", "pop", "k") == 1
    group.do("A", "put", "l", 1)
    assert len(group.digests()) == 1
    group["B"].values["l"] = 2
    assert len(group.digests()) == 2
    copy = Replica({"": Dict()}, {}, None)  # type: ignore[arg-type]
    copy.load(group.replicas["A"].save())
    hosted = copy.hosted[""]
    assert hosted.digest() == group.replicas["A"].hosted[""].digest()
    assert hosted.result_of(hosted.streams[2][0], 1, hosted.frames["pop"]).value == 1
