"""What is wrong with a run."""

from asyncio import all_tasks
from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

from ordercast.live.events import View
from ordercast.model.errors import TraceError
from tests.live_harness.application import Life, Segment
from tests.live_harness.records import Records
from tests.live_harness.standing import view_of


class Failure(NamedTuple):
    """One thing that is wrong."""

    kind: str
    sentence: str


def of_settling(lives: Sequence[Life]) -> list[Failure]:
    """Not all are in one view."""
    return [Failure("stuck", "; ".join(_standing(life) for life in lives if life.alive))]


def _standing(life: Life) -> str:
    member, view = life.member, view_of(life)
    if member is None or view is None:
        return f"{life.name} is no member ({life.refusals[-1] if life.refusals else 'it joins'})"
    names = ",".join(each.name for each in view.members)
    blocked = " blocked" if member.reachability.is_blocked else ""
    returns = " returning" if member.arrivals.returning is not None else ""
    leaves = " leaving" if life.wants_to_leave else ""
    return f"{life.name} in view {view.number} of {names}{blocked}{returns}{leaves}"


def of_ends(lives: Sequence[Life]) -> list[Failure]:
    """Processes that were told to end have ended, with nothing left."""
    found = []
    for life in lives:
        if not life.process.alive:
            continue
        if not life.ended:
            found.append(Failure("not ended", _standing(life)))
            continue
        loop = life.process.loop
        tasks = [getattr(task.get_coro(), "__qualname__", "?") for task in all_tasks(loop) if not task.done()]
        if tasks:
            found.append(Failure("not ended", f"{life.name} ended, and still runs {', '.join(sorted(tasks))}"))
        elif loop.left():
            found.append(Failure("not ended", f"{life.name} ended, and this is left: {loop.left()[0]}"))
    return found


def of_groups(lives: Sequence[Life]) -> list[Failure]:
    """What applications were handed, and told by receipts."""
    found = [Failure("exception", f"{life.name}: {error}") for life in lives for error in life.process.errors]
    found += of_views(lives) + of_orders(lives) + of_receipts(lives)
    aborts = any(life.asked_to_abort for life in lives)
    for life in lives:
        if life.end is not None and not life.wants_to_leave and not aborts:
            found.append(Failure("gave up", f"{life.name}: {life.end}"))
        payloads = _handed(life, None)
        if len(set(payloads)) < len(payloads):
            found.append(Failure("twice", f"{life.name} was handed a message twice"))
        found += _invented(life, lives)
        if life.ended and life.process.alive:
            found += [
                Failure("receipt", f"{life.name} was never told what became of {sent.payload[:12]!r}")
                for sent in life.sent
                if not sent.done
            ]
        for before, after in zip(life.views, life.views[1:], strict=False):
            if after.number <= before.number:
                found.append(Failure("views", f"{life.name} was handed view {after.number} after {before.number}"))
    return found


def of_views(lives: Sequence[Life]) -> list[Failure]:
    """Members that go together from one view to the next were handed the same messages, of those for both."""
    found = []
    went: dict[tuple[int, int, int], list[tuple[Life, Segment, View]]] = {}
    for life in lives:
        member = life.member
        for before, after in zip(life.segments, life.segments[1:], strict=False):
            if member is not None and life.name in after.view.together:
                key = member.terms.session, before.view.number, after.view.number
                went.setdefault(key, []).append((life, before, after.view))
    for (_, number, _), together in went.items():
        for (one, mine, view), (other, theirs, _) in combinations(together, 2):
            if other.name in view.together and _for_both(mine, one, other) != _for_both(theirs, one, other):
                found.append(Failure("lost", f"{one.name} and {other.name} were handed others in view {number}"))
    return found


def _for_both(segment: Segment, one: Life, other: Life) -> set[bytes]:
    return {message.payload for message in segment.messages if {one.name, other.name} <= set(message.destinations)}


def of_orders(lives: Sequence[Life]) -> list[Failure]:
    """Any two were handed what both were handed of one sender in the same order; and of all, in a total order."""
    found = []
    for one, other in combinations(lives, 2):
        total = one.plan.setup.order not in {"partial", "po"}
        for sender in {None} if total else {message.sender for message in one.received}:
            mine, theirs = (_handed(life, sender) for life in (one, other))
            common = set(mine) & set(theirs)
            if [each for each in mine if each in common] != [each for each in theirs if each in common]:
                found.append(Failure("order", f"{one.name} and {other.name} were handed messages in different orders"))
    return found


def of_receipts(lives: Sequence[Life]) -> list[Failure]:
    """What a receipt calls stable is handed to all destinations that were in its view to the end."""
    found = []
    ended_well = [life for life in lives if life.process.alive and life.end is None]
    for life in lives:
        stable = {sent.payload for sent in life.sent if sent.reached in {"stable", "known_stable"}}
        for segment, message in ((each, message) for each in life.segments for message in each.messages):
            if message.payload not in stable:
                continue
            found += [
                Failure("receipt", f"{message.payload[:12]!r} is stable, and {other.name} was never handed it")
                for other in ended_well
                if other.name in message.destinations
                and _ended(other, segment.view)
                and message.payload not in other.heard
            ]
    return found


def _ended(life: Life, view: View) -> bool:
    """Whether it was in this view to its end."""
    within = [each for each in life.segments if each.view == view]
    return bool(within) and not within[-1].excluded


def _handed(life: Life, sender: str | None) -> list[bytes]:
    """What it was handed of one sender, or of all.

    A sequencer without resilience delivers at once: if the others go on without it, it alone was handed its last
    messages, and is handed them again in the order of the others.
    """
    setup = life.plan.setup
    alone = setup.order == "sequenced" and not setup.resilience
    counted = [segment for segment in life.segments if not (alone and segment.excluded)]
    found = [message for segment in counted for message in segment.messages]
    return [message.payload for message in found if sender in {None, message.sender}]


def _invented(life: Life, lives: Sequence[Life]) -> list[Failure]:
    said = {sent.payload for each in lives for sent in each.sent}
    return [
        Failure("invented", f"{life.name} was handed {message.payload[:20]!r}, which nobody sent")
        for message in life.received
        if message.payload not in said
    ]


def of_records(records: Records) -> list[Failure]:
    """What the reference audit says of the records."""
    try:
        verdict = records.audit()
    except TraceError as error:
        return [Failure("record", str(error))]
    return [
        Failure(f"audit: {name}", finding.witnesses[0].violation.sentence)
        for name, finding in verdict.findings.items()
        if not finding.holds
    ]
