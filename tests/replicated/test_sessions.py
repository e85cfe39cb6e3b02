"""Each command is applied once or not at all, whatever comes again; without a group."""

from typing import Any

from ordercast.replicated import Replicated, command
from ordercast.replicated.frames import encode
from ordercast.replicated.replica import Replica
from ordercast.replicated.sessions import REMEMBERED_SESSIONS, Sessions, Stream
from tests.replicated.alone import Alone


class Store(Replicated):
    """A dictionary."""

    values: dict[str, str] = {}

    @command
    def put(self, key: str, value: str) -> str | None:
        old = self.values.get(key)
        self.values[key] = value
        return old


def test_streams_apply_each_command_once_and_forget_results_that_the_caller_has() -> None:
    stream = Stream(last=3)
    for sequence in (1, 2, 3):
        stream.keep(sequence, "", b"x")
    stream.acknowledge(2)
    assert list(stream.results) == [3]
    stream.acknowledge(1)
    assert (list(stream.results), stream.kept_from) == ([3], 3)
    stream.acknowledge(3)
    assert (stream.results, stream.kept_from) == ({}, 4)


def test_sessions_of_the_last_processes_are_remembered() -> None:
    sessions = Sessions()
    assert sessions.current("A") is None
    for number in range(REMEMBERED_SESSIONS):
        assert sessions.begin("A", number) is None
    assert sessions.begin("A", 3) is None
    assert sessions.begin("A", 99) == 0
    assert sessions.current("A") == 99


def test_commands_that_come_again_or_after_a_hole_are_not_applied() -> None:
    store = Store()
    replica = Replica({"": store}, {}, None)  # type: ignore[arg-type]
    hosted = replica.hosted[""]
    frame = hosted.frames["put"]
    replica.hello("A", 7)

    def apply(sequence: int, value: str) -> Any:
        stream = replica.stream(hosted, "A", 0)
        assert stream is not None
        sent = replica.decode(encode(frame.kind(sequence, 0, 1.0, "k", value)))
        return hosted.apply(frame, sent, "A", stream)

    assert apply(1, "one").value is None
    assert apply(1, "again") is None
    assert apply(3, "too early") is None
    assert apply(2, "two").value == "one"
    replica.hello("A", 8)  # another process: it counts anew
    assert apply(1, "three").value == "two"
    copy = Replica({"": Store()}, {}, None)  # type: ignore[arg-type]
    copy.load(replica.save())
    assert copy.hosted[""].digest() == hosted.digest()
    assert copy.hosted[""].result_of(copy.hosted[""].streams[7][0], 2, frame).value == "one"


class Drawing(Replicated):
    """Random numbers in commands and in hooks."""

    drawn: list[float] = []
    keys: dict[tuple[int, str] | int, set[str | int]] = {}

    @command
    def draw(self) -> None:
        self.drawn.append(self.context.random.random())

    def left(self, member: str) -> None:
        del member
        self.draw.__wrapped__(self)  # type: ignore[attr-defined]


def test_chance_in_hooks_is_the_same_for_one_that_joined_just_before() -> None:
    group = Alone(Drawing)
    group.do("A", "draw")
    joined = Replica({"": Drawing()}, {}, None)  # type: ignore[arg-type]
    joined.load(group.replicas["A"].save())
    group.replicas["D"] = joined
    group.leaves("C")
    assert len(group["A"].drawn) == 2
    assert len(set(group["A"].drawn)) == 2
    assert joined.hosted[""].target.drawn == group["A"].drawn  # type: ignore[attr-defined]
    assert len(group.digests()) == 1


def test_states_with_keys_that_have_no_order_are_compared_too() -> None:
    group = Alone(Drawing)
    for name in "ABC":
        group[name].keys = {1: set(["x", 9, "y"][:: -1 if name == "B" else 1]), (1, "a"): {"z"}}
    assert len(group.digests()) == 1
    group["B"].keys[2] = set()
    assert len(group.digests()) == 2
