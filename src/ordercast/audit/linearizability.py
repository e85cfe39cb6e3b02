"""Whether a history of concurrent operations is linearizable.

The search is that of Wing and Gong with Lowe's improvements: operations are taken one after the other, as their calls
and returns allow, and a set of taken operations with the state that they lead to is never tried twice. Linearizability
is local (Herlihy and Wing), so each key is searched alone.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ordercast.model.errors import TraceError
from ordercast.model.history import Operation

Step = Callable[[Hashable, Operation], Hashable | None]
"""The state after an operation that has this result; None: it cannot have this result in that state.

For an operation without a result, which may have had any, the state after it.
"""


class Model(NamedTuple):
    """What a sequential object does."""

    initial: Hashable
    step: Step


class KeyVerdict(NamedTuple):
    """Whether the history of one key is linearizable."""

    run: str
    model: str
    object_name: str
    key: str
    operations: int
    linearizable: bool
    witness: tuple[Operation, ...] = ()
    """Operations of which none can come next, after the longest order that was found."""
    ordered: int = 0
    """How many operations that order has."""


def audit_history(operations: Iterable[Operation]) -> list[KeyVerdict]:
    """The verdict for each key of each object of each run."""
    by_key: dict[tuple[str, str, str, str], list[Operation]] = defaultdict(list)
    for operation in operations:
        by_key[operation.run, operation.model, operation.object_name, operation.key].append(operation)
    return [_verdict(key, sorted(found, key=_in_time)) for key, found in sorted(by_key.items())]


def _in_time(operation: Operation) -> tuple[object, ...]:
    """The verdict has one witness, however the history is stored."""
    returned = (operation.returned is None, operation.returned or 0)
    return operation.called, returned, operation.process, operation.kind, operation.arguments, operation.result


def _verdict(key: tuple[str, str, str, str], operations: list[Operation]) -> KeyVerdict:
    _, kind, name, which = key
    if kind not in MODELS:
        raise TraceError(f"the history of {name} {which} is of a {kind!r}; an object is one of {', '.join(MODELS)}")
    try:
        ordered, witness = linearize(operations, MODELS[kind])
    except (ValueError, LookupError) as error:  # of another operation, or of arguments that it does not have
        raise TraceError(f"the history of {name} {which} has what no {kind} has: {error}; see its rows") from error
    return KeyVerdict(*key, len(operations), not witness, witness, ordered)


class _Entry:
    """A call or a return in a doubly linked list, in the order of time."""

    __slots__ = ("after", "before", "number", "returning")

    def __init__(self, number: int, returning: "_Entry | None") -> None:
        """`returning`: of a call, its return; None: this is a return."""
        self.number, self.returning = number, returning
        self.before: _Entry
        self.after: _Entry | None = None


def _linked(operations: Sequence[Operation]) -> _Entry:
    """The head of the list. At one time calls come before returns: then the operations overlap."""
    times: list[tuple[float, int, int, _Entry]] = []
    for number, operation in enumerate(operations):
        returning = _Entry(number, None)
        times.append((operation.called, 0, number, _Entry(number, returning)))
        times.append((float("inf") if operation.returned is None else operation.returned, 1, number, returning))
    head = last = _Entry(-1, None)
    for *_, entry in sorted(times, key=lambda each: each[:3]):
        last.after, entry.before, last = entry, last, entry
    return head


def _lift(entry: _Entry) -> None:
    """Takes a call and its return out of the list."""
    assert entry.returning is not None, "it is a call"
    for each in (entry, entry.returning):
        each.before.after = each.after
        if each.after is not None:
            each.after.before = each.before


def _unlift(entry: _Entry) -> None:
    assert entry.returning is not None, "it is a call"
    for each in (entry.returning, entry):
        each.before.after = each
        if each.after is not None:
            each.after.before = each


def linearize(operations: Sequence[Operation], model: Model) -> tuple[int, tuple[Operation, ...]]:
    """How many operations the longest order has that was found, and what cannot follow it; nothing: it is whole.

    Operations that never returned may be left out.
    """
    head = _linked(operations)
    state, taken = model.initial, 0
    needed = sum(1 << number for number, each in enumerate(operations) if each.returned is not None)
    seen: set[tuple[int, Hashable]] = set()
    stack: list[tuple[_Entry, Hashable]] = []
    longest, witness = -1, tuple[Operation, ...]()
    entry = head.after
    while taken & needed != needed:
        if entry is not None and entry.returning is not None:
            new = model.step(state, operations[entry.number])
            key = taken | 1 << entry.number, new
            if new is None or key in seen:
                entry = entry.after
                continue
            seen.add(key)
            stack.append((entry, state))
            state, taken = new, key[0]
            _lift(entry)
            entry = head.after
            continue
        if len(stack) > longest:  # at the return of an operation that was not taken: too much was tried before it
            longest, witness = len(stack), _open_calls(head, operations)
        if not stack:
            return longest, witness
        entry, state = stack.pop()
        taken &= ~(1 << entry.number)
        _unlift(entry)
        entry = entry.after
    return len(stack), ()


def _open_calls(head: _Entry, operations: Sequence[Operation]) -> tuple[Operation, ...]:
    """The operations that could have come next."""
    found, entry = [], head.after
    while entry is not None and entry.returning is not None:
        found.append(operations[entry.number])
        entry = entry.after
    return tuple(found)


# --- the objects ---


def _register(state: Hashable, done: Operation) -> Hashable | None:
    """A key of a dictionary: `state` is (value,), or () if it is not there. Values are compared as JSON."""
    known, result, arguments = done.returned is not None, done.result, done.arguments
    value = state[0] if isinstance(state, tuple) and state else "null"
    new: tuple[str, ...]
    match done.kind:
        case "get":
            return state if not known or result == value else None
        case "put":
            new, expected = (arguments[0],), "null"
        case "delete":
            new, expected = (), "true" if _tuple(state) else "false"
        case "pop":
            new, expected = (), value
        case "compare_and_set":
            equal = arguments[0] == value
            expected = "true" if equal else "false"
            new = (() if arguments[1] == "null" else (arguments[1],)) if equal else _tuple(state)
        case _:
            raise ValueError(f"a register has no operation {done.kind!r}")
    return new if not known or result == expected else None


def _counter(state: Hashable, done: Operation) -> Hashable | None:
    number = _number(state)
    arguments = [int(each) for each in done.arguments]
    match done.kind:
        case "value":
            new, expected = number, str(number)
        case "add":
            new = number + arguments[0]
            expected = str(new)
        case "set":
            new, expected = arguments[0], str(number)
        case "compare_and_set":
            new = arguments[1] if arguments[0] == number else number
            expected = "true" if arguments[0] == number else "false"
        case _:
            raise ValueError(f"a counter has no operation {done.kind!r}")
    return new if done.returned is None or done.result == expected else None


def _element(state: Hashable, done: Operation) -> Hashable | None:
    """Whether one value is in a set: 0 or 1."""
    there = _number(state)
    new = {"add": 1, "discard": 0, "has": there}[done.kind]
    expected = {"add": not there, "discard": bool(there), "has": bool(there)}[done.kind]
    return new if done.returned is None or done.result == ("true" if expected else "false") else None


def _lock(state: Hashable, done: Operation) -> Hashable | None:
    """The token with which a lock is held, or 0, and the largest that there was.

    Who leaves the group loses it: that is an operation `lost` without a return, from the first moment at which it may
    have been excluded.
    """
    held, last = _pair(state)
    match done.kind:
        case "acquire":
            if done.returned is None:
                return None if held else (0, last)  # it holds a token that nobody knows, or was never given one
            token = int(done.result)
            return (token, token) if not held and token > last else None
        case "release":
            token = int(done.arguments[0])
            if done.returned is not None and done.result != ("true" if held == token else "false"):
                return None
            return (0, last) if held == token else state
        case "lost":
            return (0, last) if held == int(done.arguments[0]) else None
        case _:
            raise ValueError(f"a lock has no operation {done.kind!r}")


def _queue(state: Hashable, done: Operation) -> Hashable | None:
    """The number of the last item, the items that wait, and those that workers have, by token.

    One that did not return may have an item, with a token that nobody knows: the negative time of its call.
    """
    last, waiting, assigned = _triple(state)
    match done.kind:
        case "put":
            number = last + 1
            if done.returned is not None and int(done.result) != number:
                return None
            return number, (*waiting, (number, done.arguments[0])), assigned
        case "get":
            token, _, item = done.result.partition(" ")
            if not waiting or (done.returned is not None and waiting[0][1] != item):
                return None
            return last, waiting[1:], (*assigned, (int(token or -done.called), *waiting[0]))
        case "done" | "give_back" | "lost":
            token_number = int(done.arguments[0])
            had = [each for each in assigned if each[0] == token_number]
            if done.returned is not None and done.result != ("true" if had else "false"):
                return None
            rest = tuple(each for each in assigned if each[0] != token_number)
            back = () if done.kind == "done" else tuple(each[1:] for each in had)
            return last, tuple(sorted((*waiting, *back))), rest
        case _:
            raise ValueError(f"a queue has no operation {done.kind!r}")


def _barrier(state: Hashable, done: Operation) -> Hashable | None:
    """The round, the number of the last ticket, and who waits, by ticket; an arrival says how many open it.

    A ticket that nobody knows is the negative time of its call.
    """
    assert isinstance(state, tuple), "the state of a barrier"
    number, last, arrived = state
    match done.kind:
        case "arrive":
            if done.returned is not None and done.result != f"{number} {last + 1}":
                return None
            waiting = (*arrived, last + 1 if done.returned is not None else -done.called)
            is_open = len(waiting) >= int(done.arguments[0])
            return (number + 1, last + 1, ()) if is_open else (number, last + 1, waiting)
        case "give_up" | "lost":
            ticket = int(done.arguments[0])
            if done.returned is not None and done.result != ("true" if ticket in arrived else "false"):
                return None
            return number, last, tuple(each for each in arrived if each != ticket)
        case _:
            raise ValueError(f"a barrier has no operation {done.kind!r}")


def _tuple(state: Hashable) -> tuple[str, ...]:
    assert isinstance(state, tuple), "the state of a register"
    return state


def _number(state: Hashable) -> int:
    assert isinstance(state, int), "the state of a counter"
    return state


def _pair(state: Hashable) -> tuple[int, int]:
    assert isinstance(state, tuple), "the state of a lock"
    return state[0], state[1]


def _triple(state: Hashable) -> tuple[int, tuple[Any, ...], tuple[Any, ...]]:
    assert isinstance(state, tuple), "the state of a queue"
    return state[0], state[1], state[2]


MODELS: Mapping[str, Model] = {
    "register": Model((), _register),
    "counter": Model(0, _counter),
    "element": Model(0, _element),
    "lock": Model((0, 0), _lock),
    "queue": Model((0, (), ()), _queue),
    "barrier": Model((0, 0, ()), _barrier),
}
"""By name: "register" is a key of a dictionary, "element" a value of a set."""
