"""The blocks without a group: random commands do what the sequential model says, at all replicas alike."""

import math
import random
from typing import Any

import pytest

from ordercast import LocalProtocolError
from ordercast.model.history import Operation
from ordercast.replicated import Assignment, Barrier, Counter, Dict, Holder, Leader, Lock, Queue, Set
from tests.replicated.alone import MAKE, Alone, draw, operation
from tests.replicated.histories import violations


class Recorded:
    """What happens to one object, as operations one after the other."""

    def __init__(self, model: str) -> None:
        self.model, self.operations, self.time = model, list[Operation](), 0
        self.assigned: dict[int, Any] = {}

    def add(self, key: str, kind: str, arguments: tuple[Any, ...], result: Any) -> None:
        self.time += 2
        self.operations.append(operation(self.model, key, kind, arguments, result, (self.time, self.time + 1)))

    def grants(self, target: Any) -> None:
        """Locks and items are given when they are free, not when they are asked for."""
        if self.model == "lock" and (holder := target.holder()) is not None and holder.token not in self.assigned:
            self.assigned[holder.token] = None
            self.add("", "acquire", (), holder.token)
        for each in target.assignments() if self.model == "queue" else ():
            if each.token not in self.assigned:
                self.assigned[each.token] = None
                self.add("", "get", (), (each.token, target.items[each.item]))


@pytest.mark.parametrize("model", MAKE)
def test_random_commands_do_what_the_model_says(model: str) -> None:
    for seed in range(30):
        rng, group, recorded = random.Random(seed), Alone(MAKE[model]), Recorded(model)
        for _ in range(25):
            kind, key, arguments = draw(model, group["A"], rng)
            held = set(recorded.assigned)
            result = group.do(rng.choice("ABC"), kind, *arguments)
            waited = (
                model in {"lock", "queue"} and kind in {"release", "done", "give_back"} and arguments[0] not in held
            )
            if kind not in {"enqueue", "ask"} and not waited:
                recorded.add(key, kind, arguments, result)
            recorded.grants(group["A"])
        if model == "register":
            for key in "ab":
                recorded.add(key, "get", (key,), group["B"].get(key))
        if model == "element":
            for key in "ab":
                recorded.add(key, "has", (key,), group["C"].has(key))
        if model == "counter":
            recorded.add("", "value", (), group["C"].value())
        assert violations(recorded.operations) == []
        assert len(group.digests()) == 1


def test_a_lock_goes_to_the_one_that_asked_first_and_tokens_grow() -> None:
    group = Alone(Lock)
    first, second, third = (group.do(name, "enqueue") for name in "BAC")
    assert (first, second, third) == (1, 2, 3)
    assert group["C"].holder() == Holder("B", 1)
    assert (group["A"].is_held(1), group["A"].is_held(2)) == (True, False)
    assert group.do("A", "release", second)
    assert not group.do("A", "release", second)
    assert group["A"].holder() == Holder("B", 1)
    group.leaves("B")
    assert group["A"].holder() == Holder("C", 3)
    assert group.do("A", "enqueue") == 4
    assert group.do("C", "release", 3)
    assert [each.token for each in group["A"].queue] == [4]
    assert len(group.digests()) == 1


def test_a_leader_is_the_first_candidate() -> None:
    group = Alone(Leader)
    assert group["A"].leader() is None
    group.do("B", "enqueue")
    group.do("A", "enqueue")
    assert group["A"].leader() == Holder("B", 1)
    group.leaves("B")
    assert group["A"].leader() == Holder("A", 2)


def test_an_item_has_one_worker_and_comes_back_first() -> None:
    group = Alone(Queue)
    for item in "xyz":
        group.do("A", "put", item)
    one, two = group.do("B", "ask"), group.do("C", "ask")
    assert group["A"].assignments() == [Assignment(1, "B", one), Assignment(2, "C", two)]
    assert len(group["A"]) == 1
    group.leaves("B")
    assert len(group["A"]) == 2
    three = group.do("A", "ask")
    assert group["A"].assignments()[-1] == Assignment(1, "A", three)
    assert (group.do("A", "done", one), group.do("A", "done", three)) == (False, True)
    assert sorted(group["C"].items) == [2, 3]
    four = group.do("A", "ask")
    five = group.do("A", "ask")  # waits
    assert group["A"].waiting == {five: "A"}
    assert group.do("A", "give_back", five)
    assert group.do("A", "give_back", four)
    assert group["A"].returned == [3]
    assert len(group.digests()) == 1


def test_what_comes_back_goes_to_a_worker_that_waits_at_once() -> None:
    group = Alone(Queue)
    group.do("A", "put", "x")
    first, second, third = (group.do(name, "ask") for name in "ABC")
    assert group.do("A", "give_back", first)
    assert group["C"].assignments() == [Assignment(1, "B", second)]
    group.leaves("B")
    assert group["C"].assignments() == [Assignment(1, "C", third)]


def test_workers_are_served_in_the_order_in_which_they_asked() -> None:
    group = Alone(Queue)
    tokens = [group.do(name, "ask") for name in "CAB"]
    group.leaves("A")
    group.do("C", "put", "x")
    group.do("C", "put", "y")
    assert [(each.worker, each.token) for each in group["C"].assignments()] == [("C", tokens[0]), ("B", tokens[2])]


def test_a_barrier_opens_when_a_caller_of_each_member_has_arrived() -> None:
    group = Alone(Barrier)
    assert group.do("A", "arrive") == (0, 1)
    assert group.do("A", "arrive") == (0, 2)
    assert group["A"].round == 0
    assert group.do("B", "arrive")[0] == 0
    assert group["C"].waiting().count("A") == 2
    group.leaves("C")
    assert (group["A"].round, group["A"].waiting()) == (1, ())
    number, ticket = group.do("B", "arrive")
    assert (number, group["A"].waiting()) == (1, ("B",))
    assert (group.do("B", "give_up", ticket), group.do("B", "give_up", ticket)) == (True, False)
    group.do("A", "arrive")
    group.leaves("A")
    assert (group["B"].round, group["B"].waiting()) == (1, ())  # A does not wait any longer, and B has not arrived


def test_a_barrier_for_a_number_of_callers_counts_callers() -> None:
    group = Alone(lambda: Barrier(parties=2))
    group.do("A", "arrive")
    assert group["B"].round == 0
    group.do("A", "arrive")
    assert group["B"].round == 1


def test_keys_expire_when_their_time_has_passed_and_not_before() -> None:
    group = Alone(Dict)
    group.do("A", "put", "k", 1, 5.0)
    group.do("B", "put", "l", 2, 9.0)
    assert group["C"].deadline() == 6.0
    group.tick(5.9)
    assert group["C"].items() == {"k": 1, "l": 2}
    group.tick(6.0)
    assert (group["C"].items(), group["C"].deadline()) == ({"l": 2}, 10.0)
    group.time = 10.0
    assert not group.do("A", "delete", "l")  # expired before the command
    assert group["C"].deadline() is None
    group.do("A", "put", "m", 1, 1.0)
    group.do("A", "compare_and_set", "m", 1, 2)
    group.tick(99.0)
    assert group["C"].items() == {"m": 2}  # it was set again, without a time to live
    group.time = 3.0  # of a member whose clock is behind
    group.do("A", "put", "n", 1, 1.0)
    assert group["C"].expiries == {"n": 100.0}
    assert len(group.digests()) == 1


@pytest.mark.parametrize(("command", "result"), [("delete", False), ("pop", None), ("compare_and_set", False)])
def test_no_command_sees_what_has_expired(command: str, result: object) -> None:
    group = Alone(Dict)
    group.do("A", "put", "k", 1, 5.0)
    group.time = 6.0
    arguments = ("k", 1, 2) if command == "compare_and_set" else ("k",)
    assert group.do("B", command, *arguments) is result
    assert group["C"].values == {}


def test_a_command_removes_all_that_has_expired() -> None:
    group = Alone(Dict)
    for key in "kl":
        group.do("A", "put", key, 1, 5.0)
    group.time = 6.0
    group.do("B", "put", "k", 2)
    assert group["C"].values == {"k": 2}


def test_values_and_times_to_live_that_make_no_sense_are_refused() -> None:
    group = Alone(Dict)
    group.do("A", "put", "k", 1)
    for value, ttl in ((None, None), (2, 0.0), (2, math.inf), (2, -math.inf), (2, math.nan)):
        with pytest.raises(LocalProtocolError):
            group.do("B", "put", "k", value, ttl)
        assert group["C"].values == {"k": 1}
    assert group["C"].deadline() is None


def test_a_counter_has_64_bits_at_both_ends() -> None:
    group = Alone(Counter)
    least, most = -(1 << 63), (1 << 63) - 1
    for number, beyond in ((least, -1), (most, 1)):
        group.do("A", "set", number)
        with pytest.raises(OverflowError, match=f"a counter has 64 bits: {number + beyond} is too large"):
            group.do("B", "add", beyond)
        with pytest.raises(OverflowError):
            group.do("B", "compare_and_set", number, 1 << 63)
        assert group["C"].number == number
    assert group.do("A", "add", -most) == 0


def test_what_is_in_a_set_or_a_dictionary() -> None:
    values, store = Alone(Set), Alone(Dict)
    values.do("A", "add", "x")
    store.do("A", "put", "x", 1)
    for found in (values["B"], store["B"]):
        assert ("x" in found, "y" in found, len(found)) == (True, False, 1)
