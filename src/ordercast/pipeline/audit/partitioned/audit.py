"""Judges a run that is too long for one task, box by box (see `boxes` and `cuts`). There is no Spark in here.

The run is acquitted if each box is, if together they have every event of the run, and if they come one after the
other: at each node what was delivered of one box before what was delivered of the next. Then a cycle could
not leave a box, and the numbers of each source rise from box to box as within them. None of this trusts the cuts.

**Nodes that stop, and views.** Each box is judged with all that the run says of them. Whether something is lacking is
asked of each message by itself, and what a node knew at a step depends on its views alone; so both may be judged box by
box. A sequencer's nodes that go on have, if their boxes are acquitted, one log; what a node that stopped was given is
held against it up to where it departs, which adds nothing to the order. If the run is uniform it must not depart at
all: in each box its log is a beginning of the others', and after a box of which it lacks something it has nothing.

**Priorities.** Under PriTO a message may wait while any number of later ones pass, so that there are hardly any closed
cuts. There boxes need not be closed: they tell whether everything came once to everybody, and whether each sender's
messages of one priority come in order, which is compared from box to box by steps. That there is one order is seen by
laying the logs side by side, place by place: equal logs have equal priority runs.

A box that is not acquitted is looked into by the reference audit, with its neighbours where they overlap. What that
finds is broken; how often is counted in what was looked into only, and the verdict says so.

Left to be judged whole, in one task, are runs whose events are not in order in their files; that were given up by
nobody knows whom; sequencers of which nobody goes on; PriTO in which nodes stop, and PriO; and orders for which no
closed cuts are found.
"""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from ordercast.audit.completeness import complete
from ordercast.audit.judge import Verdict
from ordercast.audit.order import no_cycle
from ordercast.audit.records import UNSEEN, has_one_clock
from ordercast.audit.services import PROMISES
from ordercast.audit.violations import Message
from ordercast.model.services import Service
from ordercast.pipeline.audit.partitioned.cut_points import cuts
from ordercast.pipeline.audit.partitioned.explain import Interval, LookTask, look
from ordercast.pipeline.audit.partitioned.log_comparison import Stretch, StretchTask, compare
from ordercast.pipeline.audit.partitioned.long_run import Each, LongRun, WholeError
from ordercast.pipeline.audit.partitioned.partition import BoxTask, SurveyTask, judge_box, survey
from ordercast.pipeline.audit.partitioned.partitions import Boxes
from ordercast.pipeline.audit.plan import Docket
from ordercast.trace.schema import ABORTED, RUN

LONG = 3_000_000
"""Runs of more events are judged in boxes."""
_ROWS_OF_A_BOX = 600_000
_MOST_LOOKED_INTO = 6  # boxes

Note = Callable[[str], None]
"""Is told how a run was judged, where that is not as usual."""

_KINDS: dict[str, tuple[Any, Callable[[Any], Any]]] = {
    "survey": (SurveyTask, survey),
    "judge": (BoxTask, judge_box),
    "compare": (StretchTask, compare),
    "look": (LookTask, look),
}


def do(kind: str, task: bytes) -> bytes:
    """Does one task, wherever that is."""
    type_, work = _KINDS[kind]
    return msgspec.msgpack.encode(work(msgspec.msgpack.decode(task, type=type_)))


def here(kind: str, tasks: Sequence[bytes]) -> list[bytes]:
    """Does tasks in this process."""
    return [do(kind, task) for task in tasks]


def judge_long(docket: Docket, service: Service, each: Each, note: Note) -> Verdict | None:
    """What is found of a long run; None if it has to be judged whole, and why is noted."""
    try:
        run = LongRun.surveyed(docket, service, each)
        _require_parts(run)
        return _judged_in_boxes(run, note)
    except WholeError as reason:
        note(f"run {docket.row[RUN]} is judged whole, in one task: {reason}")
        return None


def _require_parts(run: LongRun) -> None:
    """A run in which parts tell nothing of the whole has to be judged whole."""
    if run.row.get(UNSEEN) or not has_one_clock(run.row):
        raise WholeError("some of its members left no whole record, or their clocks differ")
    if run.row[ABORTED] and not run.stopped:
        raise WholeError("the group was given up, but it does not say by whom")
    if run.service is Service.PRIORITY:
        raise WholeError("its priority runs are compared as wholes")
    if run.stopped and run.service is Service.PRIORITY_TOTAL:
        raise WholeError("nodes stop in it, and may have done so in the middle of a priority run")
    if len(run.stopped) == run.nodes and run.service is Service.SEQUENCED:
        raise WholeError("nobody goes on in it")


def _judged_in_boxes(run: LongRun, note: Note) -> Verdict:
    by_place = run.service is Service.PRIORITY_TOTAL
    closed = no_cycle in PROMISES[run.service] and not by_place
    boxes = Boxes(run, cuts(run.survey, max(1, run.rows // _ROWS_OF_A_BOX), run.read, closed=closed), closed=closed)
    while (overlap := boxes.judge()) is not None and boxes.all_acquitted():
        if not boxes.merge(overlap):
            found = run.look([boxes.interval(overlap[0]), boxes.interval(overlap[-1])])
            if not any(one.violations for one in found):
                raise WholeError("there are no closed cuts in its order")
            _note_parts(run, note, 2, len(boxes.ends), "parts")
            return run.verdict([found], lambda _: False)
    if not boxes.cover_everything():
        raise WholeError("its messages are not numbered in the order in which they were sent")
    guilty, overlap_found = boxes.guilty()
    looked = [run.look([boxes.interval(box) for box in group]) for group in guilty[:_MOST_LOOKED_INTO]]
    if not guilty and by_place and (differing := _first_difference(run)):
        looked = [run.look([_around(run, message) for message in differing])]
        guilty = [[0]]
        overlap_found = True
    if guilty and not any(one.violations for found in looked for one in found):
        raise WholeError("no part of it shows by itself what is wrong")
    if not guilty and run.uniform and run.stopped and boxes.go_on_after_a_stop():
        raise WholeError("a node that stopped was given something after what it lacks")
    if len(guilty) > _MOST_LOOKED_INTO:
        _note_parts(run, note, _MOST_LOOKED_INTO, len(guilty), "bad parts")
        return run.verdict(looked, lambda _: False)
    # What is lacking or too much is seen in its own box; orders only where boxes come one after the other.
    return run.verdict(looked, lambda name: not (overlap_found or by_place) or name == complete.__name__)


def _note_parts(run: LongRun, note: Note, looked: int, of: int, what: str) -> None:
    note(f"run {run.row[RUN]}: looked into {looked} of {of} {what}; violations are counted in these")


def _first_difference(run: LongRun) -> tuple[Message, ...]:
    """The messages that nodes were given at the first place where these differ; all logs are of one length."""
    length = run.deliveries // run.nodes
    size = max(1, _ROWS_OF_A_BOX // run.nodes)
    tasks = [run.stretch(start, min(start + size, length)) for start in range(0, length, size)]
    for answer in run.each("compare", tasks):
        stretch = msgspec.msgpack.decode(answer, type=Stretch)
        if stretch.differing:
            return stretch.differing
    return ()


def _around(run: LongRun, message: Message) -> Interval:
    """The box of one message alone."""
    source, seq = message
    numbers = [seq if node == source else 0 for node in range(run.nodes)]
    return Interval(tuple(numbers), tuple(number + (node == source) for node, number in enumerate(numbers)))
