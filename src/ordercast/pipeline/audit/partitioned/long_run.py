"""A long run, and what is known of its row groups before any of it is judged. There is no Spark in here."""

from collections.abc import Callable, Sequence
from functools import lru_cache

import msgspec
import numpy as np

from ordercast.audit.completeness import complete
from ordercast.audit.judge import MOST_WITNESSES, Finding, Verdict, Witness, add_uncounted, is_uniform
from ordercast.audit.services import TRUTHS, promised
from ordercast.model.services import Service
from ordercast.pipeline.audit.kernel.columns import Numbers, endings_of
from ordercast.pipeline.audit.partitioned.cut_points import CUT_COLUMNS, Survey
from ordercast.pipeline.audit.partitioned.explain import Found, Interval, LookTask, told_by_parts
from ordercast.pipeline.audit.partitioned.log_comparison import StretchTask
from ordercast.pipeline.audit.partitioned.partition import BoxTask, GroupsOfFile, Range, Surveyed, SurveyTask
from ordercast.pipeline.audit.plan import Docket
from ordercast.trace.schema import NODES, RUN

_GROUPS_OF_A_SURVEY = 24

Each = Callable[[str, Sequence[bytes]], list[bytes]]
"""Does work of the kind named, for each of some tasks."""


class WholeError(Exception):
    """A run has to be judged whole."""


class LongRun:
    """A run, and what is known of its row groups, which are in the order of time."""

    def __init__(
        self, docket: Docket, service: Service, each: Each, found: Sequence[Surveyed], files: Sequence[GroupsOfFile]
    ) -> None:
        self.row = docket.row
        self.nodes: int = docket.row[NODES]
        self.service = service
        self.uniform = service is Service.SEQUENCED and is_uniform(docket.row)
        self.each = each
        self.files = files
        self.levels = any(one.levels for one in found)
        self.receipts = any(one.receipts for one in found)
        self.endings = tuple(ending for one in found for ending in one.endings)
        self.stopped, _, _ = endings_of(self.nodes, [ending.as_row() for ending in self.endings])
        self.rows = sum(one.rows for one in found)
        self.sends = sum(one.sends for one in found)
        self.survey = Survey(
            self.nodes, [one.numbers.tables() for one in found], [one.delivered.tables() for one in found]
        )
        counts = np.array([np.frombuffer(one.deliveries, np.int64) for one in found])
        self.deliveries = int(counts.sum())
        self.before = np.cumsum(counts, axis=0) - counts
        self.through = np.cumsum(counts, axis=0)
        self.read = lru_cache(maxsize=32)(lambda group: self.files[group].read(CUT_COLUMNS))

    @classmethod
    def surveyed(cls, docket: Docket, service: Service, each: Each) -> "LongRun":
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
            raise WholeError("it names nodes that there are not")
        if not all(one.in_order for one in found) or not _in_order([one.steps for one in found]):
            raise WholeError("the events of a node are not in the order of its steps in the files")
        return cls(docket, service, each, found, [files[one.number] for one in found])

    def task(self, number: int, start: Numbers, end: Numbers) -> bytes:
        """The task of judging a box."""
        return msgspec.msgpack.encode(
            BoxTask(
                number=number,
                nodes=self.nodes,
                service=self.service.value,
                levels=self.levels,
                receipts=self.receipts,
                uniform=self.uniform,
                endings=self.endings,
                start=tuple(start.tolist()),
                end=tuple(end.tolist()),
                files=_together([self.files[group] for group in self.survey.groups_of(start, end)]),
            )
        )

    def stretch(self, start: int, end: int) -> bytes:
        """The task of laying the logs side by side, from one place to below another."""
        groups = np.flatnonzero(((self.before < end) & (self.through > start)).any(axis=1)).tolist()
        return msgspec.msgpack.encode(StretchTask(self.nodes, start, end, *self._groups(groups)))

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
            self.endings,
            tuple(boxes),
            *self._groups(groups),
        )
        (answer,) = self.each("look", [msgspec.msgpack.encode(task)])
        return msgspec.msgpack.decode(answer, type=list[Found])

    def _groups(self, groups: Sequence[int]) -> tuple[tuple[GroupsOfFile, ...], tuple[tuple[int, ...], ...]]:
        """Row groups, and how many deliveries at each node come before those in them."""
        before = tuple(tuple(self.before[group].tolist()) for group in groups)
        return tuple(self.files[group] for group in groups), before

    def verdict(self, looked: Sequence[Sequence[Found]], exact: Callable[[str], bool]) -> Verdict:
        """What was found, in the form of the reference; `exact` says of which properties everything was found."""
        verdict = Verdict(runs=1, deliveries=self.deliveries)
        told = {promise.__name__ for promise in told_by_parts(self.service, stops=bool(self.stopped))}
        for promise in promised(self.service, uniform=self.uniform):
            name = promise.__name__
            if promise in TRUTHS and not self.levels:
                verdict.not_recorded[name] += 1
                continue
            finding = verdict.findings[name] = Finding(runs=1)
            finding.at_least = bool(looked) and not (exact(name) and name in told)
            for one in (one for found in looked for one in found if one.breaks == name):
                finding.violations += one.violations
                room = MOST_WITNESSES - len(finding.witnesses)
                finding.witnesses += [Witness(self.row[RUN], violation) for violation in one.witnesses[:room]]
        if verdict.findings[complete.__name__].holds:
            add_uncounted(self.row, self.sends, self.deliveries, verdict)
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
