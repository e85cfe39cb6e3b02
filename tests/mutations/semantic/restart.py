"""Semantic mutants of `restart`: each rule of beginning anew switched off; what is on the disk before it is said."""

from collections.abc import Callable, Sequence
from typing import Any

from msgspec.structs import replace as changed

from ordercast.protocols.restart import assessment, machine
from ordercast.protocols.restart.assessment import Assessment, Here
from ordercast.protocols.restart.durable_node import DurableNode
from ordercast.protocols.restart.machine import NotePlan, RestartMachine
from ordercast.protocols.restart.node_log import NodeLog
from ordercast.protocols.restart.standing import Standing, encode_standing
from tests.mutations.mutation import Mutants, replace, wrap

MUTANTS = Mutants("protocols.restart.assessment")
Method = Callable[..., Any]


def _assessed(change: Callable[[Here], Here]) -> None:
    """Every assessment sees what is said changed."""

    def around(assess: Method) -> Method:
        def changed_assess(present: Sequence[Here], least: int, *, force: bool) -> Any:
            return assess([change(each) for each in present], least, force=force)

        return changed_assess

    wrap(assessment, "assess", around)


def _noting(here: Here, **fields: Any) -> Here:
    return changed(here, note=encode_standing(changed(here.standing(), **fields)))


@MUTANTS.add("no majority is needed")
def _needs_no_majority() -> None:
    replace(assessment, "_lacking", lambda *_: [])


@MUTANTS.add("half of a view is enough, whoever it is")
def _half_is_enough() -> None:
    replace(assessment, "is_quorum", lambda places, size: 2 * places.bit_count() >= size)


@MUTANTS.add("views that one has accepted are not looked at", "protocols.restart.standing")
def _forgets_accepted_views() -> None:
    replace(Standing, "possible_views", lambda _: [])


@MUTANTS.add("the first view that is known is taken for the last")
def _takes_the_first_view() -> None:
    def around(assess: Method) -> Method:
        def changed_assess(present: Sequence[Here], least: int, *, force: bool) -> Any:
            first = min((each.standing() for each in present), key=lambda each: each.view.number)
            return assess([_noting(each, view=first.view) for each in present], least, force=force)

        return changed_assess

    wrap(assessment, "assess", around)


@MUTANTS.add("who was not started again has a vote")
def _lets_survivors_vote() -> None:
    _assessed(lambda here: changed(here, is_member=False))


@MUTANTS.add("who has forgotten what it promised has a vote")
def _lets_the_forgetful_vote() -> None:
    _assessed(lambda here: _noting(here, forgot=False))


@MUTANTS.add("a log that had not caught up is taken for that of the group")
def _takes_incomplete_logs() -> None:
    _assessed(lambda here: _noting(here, complete=True))


@MUTANTS.add("the shortest log is that of the group")
def _takes_the_shortest() -> None:
    def around(assess: Method) -> Method:
        def changed_assess(present: Sequence[Here], least: int, *, force: bool) -> Any:
            negative = [changed(each, position=-each.position) for each in present]
            found = assess(negative, least, force=force)
            by_name = {each.me.name: each for each in present}
            return changed(found, holder=found.holder and by_name[found.holder.me.name])

        return changed_assess

    wrap(assessment, "assess", around)


@MUTANTS.add("the least number of members is not looked at")
def _forgets_the_least() -> None:
    def around(assess: Method) -> Method:
        return lambda present, _, *, force: assess(present, 1, force=force)

    wrap(assessment, "assess", around)


@MUTANTS.add("what was noted is not compared with the basis of a plan", "protocols.restart.machine")
def _ignores_the_basis() -> None:
    def around(plan: Method) -> Method:
        return lambda self, tag: changed(plan(self, tag), basis=tuple(b"" for _ in self.participants))

    wrap(Assessment, "plan", around)
    replace(machine, "stamp_of", lambda _: b"")


@MUTANTS.add("it is ready before its agreement is on the disk", "protocols.restart.machine")
def _is_ready_too_early() -> None:
    def around(agree: Method) -> Method:
        def changed_agree(self: RestartMachine, plan: Any, out: list[Any]) -> None:
            agree(self, plan, out)
            if any(isinstance(output, NotePlan) for output in out):
                self.ready = True

        return changed_agree

    wrap(RestartMachine, "_agree", around)


@MUTANTS.add("it begins before all are ready", "protocols.restart.machine")
def _begins_too_early() -> None:
    replace(RestartMachine, "_all_ready", lambda *_: True)


@MUTANTS.add("a plan is never given up", "protocols.restart.machine")
def _never_gives_up() -> None:
    replace(RestartMachine, "_is_void", lambda *_: False)


@MUTANTS.add("those that are missing are not waited for", "protocols.restart.machine")
def _waits_for_nobody() -> None:
    replace(RestartMachine, "_grace", lambda *_: 0)


@MUTANTS.add("any log is taken for that of the plan", "protocols.restart.machine")
def _takes_any_log() -> None:
    def changed_log_is(self: RestartMachine, position: int, hash_: bytes) -> list[Any]:
        self.place(position, hash_)
        return [NotePlan(self.plan)] if self.plan is not None and not self.ready else []

    replace(RestartMachine, "log_is", changed_log_is)


@MUTANTS.add("who is apart takes part", "protocols.restart.machine")
def _takes_part_apart() -> None:
    def around(made: Method) -> Method:
        def changed_init(self: RestartMachine, *arguments: Any, **more: Any) -> None:
            made(self, *arguments, **more)
            self.apart = False

        return changed_init

    wrap(RestartMachine, "__init__", around)


@MUTANTS.add("what is promised is said before it is on the disk", "protocols.restart.durable_node")
def _says_promises_at_once() -> None:
    def around(promise: Method) -> Method:
        def changed_promise(self: DurableNode, output: Any, view: int, out: list[Any]) -> None:
            promise(self, output, view, out)
            if output not in out:
                out.append(output)

        return changed_promise

    wrap(DurableNode, "promise", around)


@MUTANTS.add("what is promised is not noted", "protocols.restart.durable_node")
def _notes_no_promises() -> None:
    replace(DurableNode, "promise", lambda _, output, __, out: out.append(output))


@MUTANTS.add("what is written counts as on the disk", "protocols.restart.node_log")
def _counts_what_is_written() -> None:
    def around(write: Method) -> Method:
        def changed_write(self: NodeLog, packet: Any) -> Any:
            found = write(self, packet)
            self.durable = len(self.packets)
            return found

        return changed_write

    wrap(NodeLog, "write", around)


@MUTANTS.add("all that is held is done with the first sync", "protocols.restart.node_log")
def _does_all_with_one_sync() -> None:
    def around(sync: Method) -> Method:
        return lambda self, _: sync(self, self.written)

    wrap(NodeLog, "sync", around)
