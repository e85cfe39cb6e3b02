"""Semantic mutants of `replicated`: each rule of commands, sessions, comparisons and of each block switched off."""

from typing import Any

import msgspec

from ordercast.audit import linearizability
from ordercast.model.errors import Diverged
from ordercast.model.history import Operation
from ordercast.replicated import checks, locks, queues
from ordercast.replicated.barriers import Barrier
from ordercast.replicated.collections import Counter, Set
from ordercast.replicated.dictionary import Dict
from ordercast.replicated.locks import Lock
from ordercast.replicated.objects import CommandSpec
from ordercast.replicated.queues import Queue
from ordercast.replicated.replica import Hosted, Replica
from ordercast.replicated.sessions import Sessions, Stream
from tests.mutations.mutation import Mutants, replace, wrap

MUTANTS = Mutants("replicated.replica")


def command(owner: type, name: str, body: Any) -> None:
    """Another body for a command."""
    spec: CommandSpec = getattr(owner, name).spec
    spec.method = body


@MUTANTS.add("a command that comes again is applied again")
def _applies_again() -> None:
    def around(apply: Any) -> Any:
        def changed(self: Hosted, frame: Any, sent: Any, sender: str, stream: Stream) -> Any:
            stream.last = sent.sequence - 1
            return apply(self, frame, sent, sender, stream)

        return changed

    wrap(Hosted, "apply", around)


@MUTANTS.add("a command after a missing one is applied")
def _skips_holes() -> None:
    def around(apply: Any) -> Any:
        def changed(self: Hosted, frame: Any, sent: Any, sender: str, stream: Stream) -> Any:
            stream.last = max(stream.last, sent.sequence - 1)
            return apply(self, frame, sent, sender, stream)

        return changed

    wrap(Hosted, "apply", around)


@MUTANTS.add("results are forgotten before the caller has them", "replicated.sessions")
def _forgets_results() -> None:
    def changed(self: Stream, through: int) -> None:
        self.results.clear()
        self.kept_from = through + 1

    replace(Stream, "acknowledge", changed)


@MUTANTS.add("a new process goes on with the numbers of the old one", "replicated.sessions")
def _one_session() -> None:
    replace(Sessions, "current", lambda self, member: next(iter(self.numbers.get(member, [])), None))


@MUTANTS.add("sessions are never forgotten", "replicated.sessions")
def _remembers_all() -> None:
    def changed(self: Sessions, member: str, session: int) -> None:
        numbers = self.numbers.setdefault(member, [])
        if session not in numbers:
            numbers.append(session)

    replace(Sessions, "begin", changed)


@MUTANTS.add("the streams of the old process stay current")
def _stale_streams() -> None:
    replace(Replica, "hello", lambda self, sender, session: self.sessions.begin(sender, session))


@MUTANTS.add("the state is not compared")
def _compares_nothing() -> None:
    replace(Hosted, "digest", lambda _: b"")


@MUTANTS.add("which commands were applied is not part of the state")
def _saves_no_streams() -> None:
    def around(state: Any) -> Any:
        def changed(self: Hosted) -> Any:
            found = state(self)
            found.streams = {}
            return found

        return changed

    wrap(Hosted, "state", around)


@MUTANTS.add("nobody is told who left")
def _ignores_views() -> None:
    replace(Hosted, "member_left", lambda *_: None)


@MUTANTS.add("time goes back with the clock of the caller")
def _time_goes_back() -> None:
    def around(apply: Any) -> Any:
        def changed(self: Hosted, frame: Any, sent: Any, sender: str, stream: Stream) -> Any:
            self.context.time = sent.time
            return apply(self, frame, sent, sender, stream)

        return changed

    wrap(Hosted, "apply", around)


@MUTANTS.add("the first of two that differ is always right", "replicated.checks")
def _first_is_right() -> None:
    def changed(found: Any, members: Any) -> Any:
        for name in next(iter(found.values())):
            right = found[members[0]][name]
            wrong = tuple(each for each in members if found[each].get(name, right) != right)
            if wrong:
                return Diverged(wrong[0], name, wrong)
        return None

    replace(checks, "verdict", changed)


@MUTANTS.add("a comparison goes on over a view", "replicated.checks")
def _compares_over_views() -> None:
    replace(checks.Checks, "view_changed", lambda _: None)


@MUTANTS.add("dictionary: compare_and_set does not compare", "replicated.dictionary")
def _sets_always() -> None:
    def changed(self: Dict[Any], key: str, expected: Any, value: Any, ttl: Any = None) -> bool:
        del expected
        if value is None:
            self._remove(key, expired=False)
        else:
            self._put(key, value, ttl)
        return True

    command(Dict, "compare_and_set", changed)


@MUTANTS.add("dictionary: a key that is set again still expires", "replicated.dictionary")
def _keeps_expiries() -> None:
    def changed(self: Dict[Any], key: str, value: Any, ttl: float | None) -> None:
        self.values[key] = value
        if ttl is not None:
            self.expiries[key] = expiry = self.context.time + ttl
            self.next_expiry = min(self.next_expiry or expiry, expiry)

    replace(Dict, "_put", changed)


@MUTANTS.add("dictionary: commands see what has expired", "replicated.dictionary")
def _sees_expired() -> None:
    command(Dict, "delete", lambda self, key: self._remove(key, expired=False))


@MUTANTS.add("dictionary: pop leaves the key", "replicated.dictionary")
def _pops_nothing() -> None:
    command(Dict, "pop", lambda self, key: self.values.get(key))


@MUTANTS.add("counter: compare_and_set does not compare", "replicated.collections")
def _counter_sets_always() -> None:
    def changed(self: Counter, expected: int, number: int) -> bool:
        del expected
        self.number = number
        return True

    command(Counter, "compare_and_set", changed)


@MUTANTS.add("set: every value is new", "replicated.collections")
def _always_new() -> None:
    def changed(self: Set[Any], value: Any) -> bool:
        self.values.add(value)
        return True

    command(Set, "add", changed)


@MUTANTS.add("lock: it is not freed when its holder leaves", "replicated.locks")
def _never_freed() -> None:
    replace(Lock, "left", lambda *_: None)


@MUTANTS.add("lock: the last who asked gets it", "replicated.locks")
def _unfair() -> None:
    def changed(self: Lock) -> int:
        self.last_token += 1
        self.queue.insert(1 if self.queue else 0, locks.Holder(self.context.caller, self.last_token))
        return self.last_token

    command(Lock, "enqueue", changed)


@MUTANTS.add("lock: tokens do not grow", "replicated.locks")
def _same_token() -> None:
    def changed(self: Lock) -> int:
        self.queue.append(locks.Holder(self.context.caller, 1))
        return 1

    command(Lock, "enqueue", changed)


@MUTANTS.add("lock: any token frees it", "replicated.locks")
def _frees_with_any_token() -> None:
    def changed(self: Lock, token: int) -> bool:
        del token
        del self.queue[:1]
        return True

    command(Lock, "release", changed)


@MUTANTS.add("queue: items of a worker that leaves are lost", "replicated.queues")
def _loses_items() -> None:
    def changed(self: Queue[Any], member: str) -> None:
        self.assigned = {token: each for token, each in self.assigned.items() if each.worker != member}

    replace(Queue, "left", changed)


@MUTANTS.add("queue: items that come back are last", "replicated.queues")
def _returns_last() -> None:
    def changed(self: Queue[Any]) -> None:
        while self.waiting and (self.returned or self.next_item <= self.last_item):
            token = next(iter(self.waiting))
            if self.next_item <= self.last_item:
                item, self.next_item = self.next_item, self.next_item + 1
            else:
                item = self.returned.pop(0)
            self.assigned[token] = queues.Assignment(item, self.waiting.pop(token), token)

    replace(Queue, "_assign", changed)


@MUTANTS.add("queue: one that is done may be done again", "replicated.queues")
def _done_twice() -> None:
    def changed(self: Queue[Any], token: int) -> bool:
        if token in self.assigned:
            self.items.pop(self.assigned[token].item, None)
        return token in self.assigned

    command(Queue, "done", changed)


@MUTANTS.add("barrier: it opens for the first", "replicated.barriers")
def _opens_at_once() -> None:
    def changed(self: Barrier) -> None:
        if self.arrived:
            self.round += 1
            self.arrived = {}

    replace(Barrier, "_open_if_complete", changed)


@MUTANTS.add("barrier: it waits for those that left", "replicated.barriers")
def _waits_for_the_dead() -> None:
    replace(Barrier, "left", lambda *_: None)


@MUTANTS.add("linearizability: returns do not limit the order", "audit.linearizability")
def _any_order() -> None:
    def around(linearize: Any) -> Any:
        def changed(operations: list[Operation], model: Any) -> Any:
            same = [msgspec.structs.replace(each, called=0, returned=each.returned and 1) for each in operations]
            return linearize(same, model)

        return changed

    wrap(linearizability, "linearize", around)


@MUTANTS.add("linearizability: what did not return was not done", "audit.linearizability")
def _drops_open_operations() -> None:
    def around(linearize: Any) -> Any:
        return lambda operations, model: linearize([each for each in operations if each.returned is not None], model)

    wrap(linearizability, "linearize", around)


@MUTANTS.add("linearizability: the last operation is not looked at", "audit.linearizability")
def _drops_the_last() -> None:
    def around(linked: Any) -> Any:
        def changed(operations: list[Operation]) -> Any:
            return linked(operations[:-1] if len(operations) > 2 else operations)

        return changed

    wrap(linearizability, "_linked", around)
