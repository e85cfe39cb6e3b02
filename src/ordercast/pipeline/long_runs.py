"""Judges a run that is too long for one task, box by box (see `boxes` and `cuts`). There is no Spark in here.

The run is acquitted if each box is, if together they have every event of the run, and if they come one after the
other: at each node what was delivered of one box before what was delivered of the next. Then a cycle could
not leave a box, and the numbers of each source rise from box to box as within them. None of this trusts the cuts.

A box that is not acquitted is looked into by the reference audit, with its neighbours where they overlap. What that
finds is broken; how often is counted in what was looked into only.

Left to be judged whole, in one task, are runs whose events are not in order in their files, in which nodes stop or
views change, or whose service has priorities; and orders for which no closed cuts are found.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import msgspec
import numpy as np

from ordercast.audit.judge import MOST_WITNESSES, Finding, Verdict, Witness, is_uniform
from ordercast.audit.order import no_cycle, sender_order_kept
from ordercast.audit.priorities import same_runs
from ordercast.audit.services import PROMISES, TRUTHS, promised
from ordercast.model.services import Service
from ordercast.pipeline.boxes import (
    LEAST,
    MOST,
    BoxJudged,
    BoxTask,
    GroupsOfFile,
    Range,
    Surveyed,
    SurveyTask,
    judge_box,
    survey,
)
from ordercast.pipeline.columns import Numbers
from ordercast.pipeline.cuts import CUT_COLUMNS, Survey, cuts
from ordercast.pipeline.dockets import Docket
from ordercast.pipeline.witnesses import Found, Interval, LookTask, look
from ordercast.trace.schema import ABORTED, NODES, RUN

LONG = 3_000_000
"""Runs of more events are judged in boxes."""
_ROWS_OF_A_BOX = 600_000
_MOST_ROWS_TOGETHER = 6_000_000  # of boxes that overlap and are judged as one
_MOST_LOOKED_INTO = 6  # boxes
_GROUPS_OF_A_SURVEY = 24

Each = Callable[[str, Sequence[bytes]], list[bytes]]
"""Does work of the kind named, for each of some tasks; see `do`."""
Note = Callable[[str], None]
"""Is told how a run was judged, where that is not as usual."""

_KINDS: dict[str, tuple[Any, Callable[[Any], Any]]] = {
    "survey": (SurveyTask, survey),
    "judge": (BoxTask, judge_box),
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
        return _judged_in_boxes(docket, service, each, note)
    except _WholeError as reason:
        note(f"run {docket.row[RUN]} is judged whole, in one task: {reason}")
        return None


class _WholeError(Exception):
    """A run has to be judged whole."""


def _judged_in_boxes(docket: Docket, service: Service, each: Each, note: Note) -> Verdict:
    run = docket.row[RUN]
    promises = PROMISES[service]
    if same_runs in promises:
        raise _WholeError("its service has priorities")
    if docket.row[ABORTED]:
        raise _WholeError("the group was given up")
    long_run = _LongRun.surveyed(docket, service, each)
    boxes = _Boxes(long_run, cuts(long_run.survey, long_run.wanted, long_run.read, closed=no_cycle in promises))
    while (overlap := boxes.judge()) is not None and boxes.all_acquitted():
        if not boxes.merge(overlap):
            found = long_run.look([boxes.interval(overlap[0]), boxes.interval(overlap[-1])])
            if not any(one.violations for one in found):
                raise _WholeError("there are no closed cuts in its order")
            note(f"run {run}: looked into 2 of {len(boxes.ends)} parts; violations are counted in these")
            return long_run.verdict([found])
    if not boxes.cover_everything():
        raise _WholeError("its messages are not numbered in the order in which they were sent")
    guilty = boxes.guilty()
    if len(guilty) > _MOST_LOOKED_INTO:
        note(f"run {run}: looked into {_MOST_LOOKED_INTO} of {len(guilty)} bad parts; violations are counted in these")
    looked = [long_run.look([boxes.interval(box) for box in group]) for group in guilty[:_MOST_LOOKED_INTO]]
    if guilty and not any(one.violations for found in looked for one in found):
        raise _WholeError("no part of it shows by itself what is wrong")
    return long_run.verdict(looked)


class _LongRun:
    """A run, and what is known of its row groups, which are in the order of time."""

    def __init__(
        self, docket: Docket, service: Service, each: Each, found: Sequence[Surveyed], files: Sequence[GroupsOfFile]
    ) -> None:
        self.row = docket.row
        self.nodes: int = docket.row[NODES]
        self.service = service
        self.each = each
        self.files = files
        self.levels = any(one.levels for one in found)
        self.receipts = any(one.receipts for one in found)
        self.rows = sum(one.rows for one in found)
        self.survey = Survey(
            self.nodes, [one.numbers.tables() for one in found], [one.delivered.tables() for one in found]
        )
        counts = np.array([np.frombuffer(one.deliveries, np.int64) for one in found])
        self.deliveries = int(counts.sum())
        self.before = np.cumsum(counts, axis=0) - counts
        self.wanted = max(1, self.rows // _ROWS_OF_A_BOX)
        self.read = lru_cache(maxsize=32)(lambda group: self.files[group].read(CUT_COLUMNS))

    @classmethod
    def surveyed(cls, docket: Docket, service: Service, each: Each) -> "_LongRun":
        """Surveys a run."""
        nodes = docket.row[NODES]
        files = [
            GroupsOfFile(place.path, place.in_path, (group,), docket.row[RUN] if place.shared else None)
            for place in docket.places
            for group in place.groups
        ]
        starts = range(0, len(files), _GROUPS_OF_A_SURVEY)
        tasks = [SurveyTask(nodes, start, tuple(files[start : start + _GROUPS_OF_A_SURVEY])) for start in starts]
        found: list[Surveyed] = []
        for answer in each("survey", [msgspec.msgpack.encode(task) for task in tasks]):
            found += msgspec.msgpack.decode(answer, type=list[Surveyed])
        found.sort(key=lambda one: (one.begins, one.number))
        if any(one.strange for one in found):
            raise _WholeError("nodes stop in it, views change, or it names nodes that there are not")
        if not all(one.in_order for one in found) or not _in_order([one.steps for one in found]):
            raise _WholeError("the events of a node are not in the order of its steps in the files")
        return cls(docket, service, each, found, [files[one.number] for one in found])

    def task(self, number: int, start: Numbers, end: Numbers) -> bytes:
        """The task of judging a box."""
        files = _together([self.files[group] for group in self.survey.groups_of(start, end)])
        interval = tuple(start.tolist()), tuple(end.tolist())
        return msgspec.msgpack.encode(
            BoxTask(number, self.nodes, self.service.value, self.levels, self.receipts, *interval, files)
        )

    def look(self, boxes: Sequence[Interval]) -> list[Found]:
        """What the reference audit finds in some boxes together."""
        groups = sorted(
            {group for box in boxes for group in self.survey.groups_of(np.array(box.start), np.array(box.end))}
        )
        task = LookTask(
            self.row[RUN],
            self.nodes,
            self.service.value,
            self.levels,
            tuple(boxes),
            tuple(self.files[group] for group in groups),
            tuple(tuple(self.before[group].tolist()) for group in groups),
        )
        (answer,) = self.each("look", [msgspec.msgpack.encode(task)])
        return msgspec.msgpack.decode(answer, type=list[Found])

    def verdict(self, looked: Sequence[Sequence[Found]]) -> Verdict:
        """What was found, in the form of the reference."""
        verdict = Verdict(runs=1, deliveries=self.deliveries)
        for promise in promised(self.service, uniform=is_uniform(self.row)):
            if promise in TRUTHS and not self.levels:
                verdict.not_recorded[promise.__name__] += 1
                continue
            finding = verdict.findings[promise.__name__] = Finding(runs=1)
            for found in looked:
                for one in found:
                    if one.breaks == promise.__name__:
                        finding.violations += one.violations
                        room = MOST_WITNESSES - len(finding.witnesses)
                        finding.witnesses += [Witness(self.row[RUN], violation) for violation in one.witnesses[:room]]
        return verdict


def _in_order(steps: Sequence[Range]) -> bool:
    """Whether at each node steps rise from one row group to the next."""
    latest: Numbers | None = None
    for one in steps:
        lowest, highest = one.tables()
        if latest is not None and np.any(lowest <= latest):
            return False
        latest = highest if latest is None else np.maximum(latest, highest)
    return True


def _together(files: Sequence[GroupsOfFile]) -> tuple[GroupsOfFile, ...]:
    """The same row groups, with those of one file together."""
    found: dict[tuple[str, str | None], list[GroupsOfFile]] = {}
    for file in files:
        found.setdefault((file.path, file.run), []).append(file)
    return tuple(
        msgspec.structs.replace(parts[0], groups=tuple(group for part in parts for group in part.groups))
        for parts in found.values()
    )


class _Boxes:
    """The boxes of a run, and what was found of them."""

    def __init__(self, run: _LongRun, ends: list[Numbers]) -> None:
        self.run = run
        self.ends = ends
        self.judged: list[BoxJudged | None] = [None] * len(ends)

    def start(self, box: int) -> Numbers:
        return self.ends[box - 1] if box else np.full(self.run.nodes, LEAST)

    def interval(self, box: int) -> Interval:
        return Interval(tuple(self.start(box).tolist()), tuple(self.ends[box].tolist()))

    def judge(self) -> range | None:
        """Judges all boxes that were not yet; the first overlap that keeps the order from being known, if any."""
        missing = [box for box, judged in enumerate(self.judged) if judged is None]
        tasks = [self.run.task(box, self.start(box), self.ends[box]) for box in missing]
        for answer in self.run.each("judge", tasks):
            judged = msgspec.msgpack.decode(answer, type=BoxJudged)
            self.judged[judged.number] = judged
        if no_cycle not in PROMISES[self.run.service]:
            return None
        return self._order_overlap()

    def all_acquitted(self) -> bool:
        """Whether no box breaks anything by itself. Else there is no need to know more of what they are together."""
        return all(judged is not None and judged.acquitted for judged in self.judged)

    def merge(self, overlap: range) -> bool:
        """Makes one box of some; False if it would be too large."""
        rows = sum(judged.rows for judged in self.judged[overlap[0] : overlap[-1] + 1] if judged is not None)
        if rows > _MOST_ROWS_TOGETHER:
            return False
        self.ends[overlap[0] : overlap[-1]] = []
        self.judged[overlap[0] : overlap[-1] + 1] = [None]
        self.judged = [
            None if judged is None else msgspec.structs.replace(judged, number=box)
            for box, judged in enumerate(self.judged)
        ]
        return True

    def cover_everything(self) -> bool:
        """Whether each event is in a box, and each source's messages were sent box by box."""
        rows = sum(judged.rows for judged in self.judged if judged is not None)
        return rows == self.run.rows and _first_overlap(self._tables("sent")) is None

    def guilty(self) -> list[list[int]]:
        """The boxes to look into: those that were not acquitted, and those that overlap where they must not."""
        found = [
            [box]
            for box, judged in enumerate(self.judged)
            if judged is None or not judged.acquitted or (self.run.levels and not judged.all_accepted)
        ]
        overlaps = []
        if no_cycle in PROMISES[self.run.service]:
            overlaps.append(self._order_overlap())
        if sender_order_kept in PROMISES[self.run.service]:
            overlaps.append(_first_overlap(self._tables("delivered")))
        if self.run.levels:
            overlaps.append(_first_overlap(self._tables("accepted")))
        for overlap in overlaps:
            if overlap is not None:
                both = {overlap[0], overlap[-1]}
                for group in [group for group in found if both & set(group)]:  # nothing is to be counted twice
                    both |= set(group)
                    found.remove(group)
                found.insert(0, sorted(both))
        return found

    def _order_overlap(self) -> range | None:
        return _first_overlap([_by_node(self.run.nodes, judged) for judged in self.judged])

    def _tables(self, what: str) -> list[tuple[Numbers, Numbers] | None]:
        """By box: between which steps something happened; None if a box could not be read."""
        ranges: list[Range | None] = [getattr(judged, what) for judged in self.judged]
        return [None if one is None else one.tables() for one in ranges]


def _by_node(nodes: int, judged: BoxJudged | None) -> tuple[Numbers, Numbers] | None:
    """Between which steps each node was given messages of a box."""
    if judged is None or judged.delivered is None:
        return None
    lowest, highest = (table.reshape(nodes, nodes) for table in judged.delivered.tables())
    return lowest.min(axis=1, initial=MOST), highest.max(axis=1, initial=LEAST)


def _first_overlap(tables: Sequence[tuple[Numbers, Numbers] | None]) -> range | None:
    """From the first box that has a higher step than some box after it, to that box; None if there are none such."""
    latest: Numbers | None = None
    for box, table in enumerate(tables):
        if not table:
            continue
        lowest, highest = table
        if latest is not None and np.any(lowest <= latest):
            earlier = (one for one in range(box) if (known := tables[one]) and np.any(known[1] >= lowest))
            return range(next(earlier), box + 1)
        latest = highest if latest is None else np.maximum(latest, highest)
    return None
