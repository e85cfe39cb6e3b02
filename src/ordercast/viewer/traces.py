"""Traces as the viewer shows them: the runs of some folders, each with its names and its events."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import zip_longest
from pathlib import Path
from threading import Lock
from typing import Any

from ordercast.audit.names import member_names
from ordercast.audit.records import has_one_clock
from ordercast.model.errors import TraceError
from ordercast.model.nodes import name_of
from ordercast.trace.reader import RunRow, event_file, event_files, read_runs
from ordercast.trace.schema import (
    ABORTED,
    COMPLETE,
    CONFIG,
    EVENTS_FOLDER,
    NODE,
    NODES,
    PROTOCOL,
    RUN,
    SEED,
    STALLED,
    SUFFIX,
    is_hidden,
)
from ordercast.viewer.event_arrays import FULL
from ordercast.viewer.questions import Summary
from ordercast.viewer.row_groups import RowGroup, RunEvents, groups_by_run, require_run
from ordercast.viewer.tiles import flight_margin


class TraceGoneError(TraceError):
    """A trace that is followed was deleted or moved: nothing will be written to it any more."""


MOST_LISTED = 1_000
"""Runs that the page lists; others are opened by their names."""
MOST_NODES = 30_000
_RELAYED = {"st", "to", "prito", "prio"}
"""Live groups of these have one channel: a member passes on what the others send."""


@dataclass(frozen=True)
class ViewedRun:
    """One run: several rows of `runs`, if its members kept records of their own."""

    key: str
    """Its name; with the folder in front if another folder has a run of this name."""
    name: str
    rows: tuple[RunRow, ...]
    events: RunEvents
    story: Mapping[str, Any] | None = None
    """Of a run that a schedule made: see `Traces.tell`."""

    @cached_property
    def summary(self) -> Summary:
        """What needs all events."""
        return Summary(self.events, self.nodes)

    @cached_property
    def margin(self) -> int:
        """How long units fly."""
        return flight_margin(self.events, recorded=bool(self.recorded))

    @property
    def recorded(self) -> list[int]:
        """The members that kept records of their own; none: one observer wrote all of it."""
        return sorted(int(row[NODE]) for row in self.rows if row.get(NODE) is not None)

    @property
    def nodes(self) -> int:
        """How many lanes it has: as the rows say, or as the events show."""
        seen = [group.nodes[1] + 1 for group in self.events.groups if group.nodes is not None]
        return max([1, *(int(row[NODES]) for row in self.rows), *seen])

    @property
    def names(self) -> list[str]:
        """The names of the nodes. Who comes back under its name is another one, and has its number behind the name."""
        names: list[str] = []
        for row in self.rows:
            for node, (one, other) in enumerate(zip_longest(names[:], member_names(row))):
                names[node : node + 1] = [str(other if one in {None, name_of(node)} and other else one)]
        names = [f"{name}({name_of(node)})" if name in names[:node] else name for node, name in enumerate(names)]
        return [*names, *map(name_of, range(len(names), self.nodes))]

    @property
    def ended(self) -> str:
        """How it ended, in a word."""
        return _ended(self.rows)

    def forget(self) -> None:
        """The summary is made anew when it is asked for: there are more events."""
        self.__dict__.pop("summary", None)

    def described(self) -> dict[str, Any]:
        """For the page."""
        row = self.rows[0]
        begin, end = self.events.origin, self.events.times[1]
        return {
            "key": self.key,
            "name": self.name,
            "protocol": row[PROTOCOL],
            "rules": _rules(row),
            "seed": row.get(SEED),
            "nodes": self.nodes,
            "names": self.names,
            "rows": self.events.rows,
            "duration": end - begin,
            "margin": self.margin,
            "ended": self.ended,
            "recorded": self.recorded or None,
            "one_clock": all(has_one_clock(each) for each in self.rows),
            "summarised": self.summary.possible,
            "role": _role(row),
            **(self.story or {}),
        }


class Traces:
    """The runs of some folders. Raises `TraceError` if they cannot be read."""

    def __init__(self, folders: Sequence[Path], title: str | None = None) -> None:
        """`title`: what the page is called, if its reader cannot know the folders; else it is called by them."""
        self.folders: tuple[Path, ...] = tuple(folders)
        self._title = title
        self.runs: dict[str, ViewedRun] = {}
        self._known: set[Path] = set()
        self._lock = Lock()
        found: dict[str, tuple[str, list[RunRow], list[RowGroup]]] = {}
        for folder in self.folders:
            files = event_files([folder], [*FULL, RUN])
            self._known |= {Path(str(file.path)) for file in files}
            groups = groups_by_run(files)
            for row in read_runs([folder]):
                name = str(row[RUN])
                key = name
                if name in found and row.get(NODE) is None:
                    key = f"{folder}: {name}"
                entry = found.setdefault(key, (name, [], []))
                entry[1].append(row)
                if entry[2] is not groups.get(name):
                    entry[2].extend(groups.pop(name, []))
        for key, (name, rows, parts) in found.items():
            if rows[0][NODES] > MOST_NODES:
                raise TraceError(f"run {name} has {rows[0][NODES]:,} nodes; the viewer shows up to {MOST_NODES:,}")
            self.runs[key] = ViewedRun(key, name, tuple(rows), RunEvents(name, parts))

    def refresh(self, key: str) -> tuple[ViewedRun, int | None]:
        """Reads what was written since: a run, and the earliest time of its new events; None if it has none.

        Files appear complete in a trace that grows, and are not changed any more. Raises `TraceGoneError`.
        """
        with self._lock:
            found = self.run(key)
            new: list[RowGroup] = []
            for folder in self.folders:
                if not (folder / EVENTS_FOLDER).exists():
                    raise TraceGoneError(
                        f"{folder} is gone: it was deleted or moved; say where it is, and follow it anew"
                    )
                paths = [path for path in (folder / EVENTS_FOLDER).glob(f"*{SUFFIX}") if not is_hidden(path.name)]
                for path in sorted(set(paths) - self._known):
                    part = event_file(path, {}, [*FULL, RUN], with_runs=True)
                    self._known.add(path)
                    for name, groups in groups_by_run([part]).items():
                        for run in self.runs.values():
                            if run.name == name:
                                run.events.add(groups)
                                run.forget()
                                new += groups if run is found else []
            self._read_rows()
            return self.run(key), min((group.times[0] for group in new), default=None)

    def _read_rows(self) -> None:
        """What the rows of runs say now: members that have come in, and how runs ended."""
        rows: dict[str, list[RunRow]] = {}
        for row in read_runs(self.folders):
            rows.setdefault(str(row[RUN]), []).append(row)
        for key, run in self.runs.items():
            if key == run.name and key in rows and tuple(rows[key]) != run.rows:
                self.runs[key] = replace(run, rows=tuple(rows[key]))

    def tell(self, key: str, story: Mapping[str, Any]) -> None:
        """Gives a run its story: `story` for the panel, `step`, the nanoseconds of one, and `labels` of messages."""
        self.runs[key] = replace(self.run(key), story=story)

    def run(self, key: str) -> ViewedRun:
        """A run by its key."""
        require_run(self.runs, key)
        return self.runs[key]

    def described(self, *wanted: str | None) -> dict[str, Any]:
        """All runs in short, for the list of the page; `wanted` are listed in any case."""
        keys = list(self.runs)
        listed = list(dict.fromkeys([*(key for key in wanted if key is not None), *keys]))[:MOST_LISTED]
        return {
            "title": [str(folder) for folder in self.folders] if self._title is None else [self._title],
            "runs": [{"key": key, **_in_short(self.runs[key])} for key in listed],
            "unlisted": len(keys) - len(listed),
        }


def _in_short(run: ViewedRun) -> Mapping[str, Any]:
    return {"name": run.name, "rows": run.events.rows, "ended": run.ended}


def _ended(rows: Sequence[RunRow]) -> str:
    if any(row.get(ABORTED) for row in rows):
        return "aborted"
    if all(row.get(COMPLETE) for row in rows):
        return "complete"
    return "stalled" if any(row.get(STALLED) for row in rows) else "incomplete"


def _role(row: RunRow) -> dict[str, Any] | None:
    """What one member does for all others: at first this node, and in each view the first member."""
    try:
        config = json.loads(row.get(CONFIG) or "{}")
        if row[PROTOCOL] == "sequencer":
            return {"what": "sequencer", "node": int(config["group"]["sequencer"]["node"])}
        if "live" in config and row[PROTOCOL] in _RELAYED and not config["live"].get("relay"):
            return {"what": "relay", "node": 0}
    except (KeyError, TypeError, ValueError, AttributeError):
        pass
    return None


def _rules(row: RunRow) -> str | None:
    try:
        return str(json.loads(row.get(CONFIG) or "{}")["group"]["rules"])
    except (KeyError, TypeError, ValueError):
        return None
