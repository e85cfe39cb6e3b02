"""The search for a linearization: histories with a known answer, and all small ones against a plain definition."""

import random
from itertools import permutations

import pytest

from ordercast.audit.linearizability import MODELS, audit_history, linearize
from ordercast.model.history import Operation


def did(
    kind: str, *arguments: str, at: tuple[int, int | None], result: str = "null", model: str = "register"
) -> Operation:
    called, returned = at
    return Operation("p", model, "", "k", kind, arguments, "" if returned is None else result, called, returned)


def holds(*operations: Operation) -> bool:
    return not linearize(operations, MODELS[operations[0].model])[1]


def test_a_read_of_what_was_written_before() -> None:
    assert holds(did("put", "1", at=(0, 1)), did("get", at=(2, 3), result="1"))


def test_a_read_of_an_old_value_after_the_write_returned() -> None:
    assert not holds(did("put", "1", at=(0, 1)), did("get", at=(2, 3), result="null"))


def test_a_read_at_the_same_time_may_see_either() -> None:
    for result in ("1", "null"):
        assert holds(did("put", "1", at=(0, 5)), did("get", at=(2, 3), result=result))
    assert holds(did("put", "1", at=(0, 2)), did("get", at=(2, 3), result="null"))  # at one moment


def test_two_reads_do_not_go_back() -> None:
    put = did("put", "1", at=(0, 9))
    assert not holds(put, did("get", at=(1, 2), result="1"), did("get", at=(3, 4), result="null"))


def test_what_did_not_return_may_have_been_done_at_any_time_or_never() -> None:
    put = did("put", "1", at=(0, None))
    assert holds(put, did("get", at=(5, 6), result="1"))
    assert holds(put, did("get", at=(5, 6), result="null"))
    assert not holds(put, did("get", at=(5, 6), result="1"), did("get", at=(7, 8), result="null"))


@pytest.mark.parametrize(
    ("model", "operations", "expected"),
    [
        ("register", [("delete", (), "true")], False),
        ("register", [("put", ("1",), "null"), ("delete", (), "true"), ("delete", (), "false")], True),
        ("register", [("put", ("1",), "null"), ("pop", (), "1"), ("pop", (), "null"), ("get", (), "null")], True),
        ("register", [("compare_and_set", ("null", "1"), "true"), ("get", (), "1")], True),
        ("register", [("compare_and_set", ("2", "1"), "true")], False),
        ("register", [("compare_and_set", ("2", "1"), "false"), ("get", (), "1")], False),
        (
            "register",
            [("put", ("1",), "null"), ("compare_and_set", ("1", "null"), "true"), ("delete", (), "true")],
            False,
        ),
        ("counter", [("add", ("2",), "2"), ("set", ("5",), "2"), ("value", (), "5")], True),
        ("counter", [("add", ("1",), "1"), ("add", ("1",), "1")], False),
        ("counter", [("compare_and_set", ("0", "3"), "true"), ("compare_and_set", ("0", "4"), "true")], False),
        ("counter", [("compare_and_set", ("0", "3"), "true"), ("compare_and_set", ("1", "4"), "false")], True),
        ("element", [("add", (), "true"), ("add", (), "false"), ("has", (), "true"), ("discard", (), "true")], True),
        ("element", [("add", (), "true"), ("add", (), "true")], False),
        ("element", [("discard", (), "true")], False),
        ("lock", [("acquire", (), "1"), ("release", ("1",), "true"), ("acquire", (), "2")], True),
        ("lock", [("acquire", (), "1"), ("acquire", (), "2")], False),
        ("lock", [("acquire", (), "2"), ("release", ("2",), "true"), ("acquire", (), "1")], False),
        ("lock", [("acquire", (), "1"), ("release", ("1",), "false")], False),
        ("queue", [("put", ("7",), "1"), ("put", ("8",), "2"), ("get", (), "1 7"), ("done", ("1",), "true")], True),
        ("queue", [("put", ("7",), "1"), ("put", ("8",), "2"), ("get", (), "1 8")], False),
        ("queue", [("put", ("7",), "1"), ("get", (), "1 7"), ("get", (), "2 7")], False),
        ("queue", [("put", ("7",), "1"), ("get", (), "1 7"), ("give_back", ("1",), "true"), ("get", (), "2 7")], True),
        (
            "queue",
            [("put", ("7",), "1"), ("get", (), "1 7"), ("done", ("1",), "true"), ("done", ("1",), "true")],
            False,
        ),
        ("queue", [("put", ("7",), "2")], False),
    ],
)
def test_what_one_process_alone_may_see(
    model: str, operations: list[tuple[str, tuple[str, ...], str]], expected: bool
) -> None:
    history = [
        did(kind, *arguments, at=(2 * place, 2 * place + 1), result=result, model=model)
        for place, (kind, arguments, result) in enumerate(operations)
    ]
    assert holds(*history) is expected


def test_a_lock_that_the_group_took_away() -> None:
    first = did("acquire", at=(0, 1), result="1", model="lock")
    second = did("acquire", at=(5, 6), result="2", model="lock")
    assert not holds(first, second)
    assert holds(first, did("lost", "1", at=(3, None), model="lock"), second)
    assert not holds(first, did("lost", "1", at=(7, None), model="lock"), second)
    assert holds(first, did("release", "1", at=(2, None), model="lock"), second)


@pytest.mark.parametrize("model", ["register", "counter", "lock", "queue"])
def test_unknown_operations_are_refused(model: str) -> None:
    with pytest.raises(ValueError, match=f"a {model} has no operation 'fly'"):
        holds(did("fly", at=(0, 1), model=model))


def test_the_witness_is_what_cannot_come_next() -> None:
    put, old, good = did("put", "1", at=(0, 1)), did("get", at=(4, 5), result="null"), did("get", at=(2, 3), result="1")
    ordered, witness = linearize([put, old, good], MODELS["register"])
    assert (ordered, witness) == (2, (old,))


def test_keys_objects_and_runs_are_judged_alone() -> None:
    wrong = did("get", at=(0, 1), result="5")
    right = Operation("p", "register", "", "other", "get", (), "null", 0, 1, "r")
    first, second = audit_history([wrong, right])
    assert (first.key, first.linearizable, first.witness, first.operations) == ("k", False, (wrong,), 1)
    assert (second.run, second.key, second.linearizable) == ("r", "other", True)


def plainly(operations: list[Operation]) -> bool:
    """The definition: some order of all that returned, and of some that did not, fits the times and the results."""
    must = [each for each in operations if each.returned is not None]
    may = [each for each in operations if each.returned is None]
    for chosen in range(1 << len(may)):
        some = must + [each for place, each in enumerate(may) if chosen >> place & 1]
        for order in permutations(some):
            state = MODELS[operations[0].model].initial
            for place, each in enumerate(order):
                if any(later.returned is not None and later.returned < each.called for later in order[place:]):
                    break
                new = MODELS[each.model].step(state, each)
                if new is None:
                    break
                state = new
            else:
                return True
    return False


def drawn(rng: random.Random) -> list[Operation]:
    found = []
    for _ in range(rng.randrange(1, 6)):
        called = rng.randrange(8)
        returned = called + rng.randrange(4) if rng.random() < 0.8 else None
        kind = rng.choice(["get", "put", "compare_and_set"])
        value = rng.choice(["1", "2"])
        arguments = {"get": (), "put": (value,), "compare_and_set": (rng.choice(["null", "1"]), value)}[kind]
        result = {"get": rng.choice(["null", "1", "2"]), "put": "null"}.get(kind, rng.choice(["true", "false"]))
        found.append(did(kind, *arguments, at=(called, returned), result=result))
    return found


def test_small_histories_are_judged_as_the_definition_says() -> None:
    rng = random.Random(7)
    answers = set()
    for _ in range(1500):
        history = drawn(rng)
        assert holds(*history) == plainly(history), history
        answers.add(plainly(history))
    assert answers == {True, False}
