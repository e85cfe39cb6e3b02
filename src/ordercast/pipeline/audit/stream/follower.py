"""Takes the new files of a growing trace, batch by batch, and keeps what was found in a checkpoint.

The events of each run are audited by a task (`run_follower`), which reads them itself. Here are only the names of
files, the rows of `runs`, and what the tasks found.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePosixPath

import msgspec

from ordercast.audit.logs import ALL_COLUMNS
from ordercast.audit.profiles import Asked
from ordercast.audit.records import has_one_clock
from ordercast.audit.run_rows import delivers_stable, is_uniform, runs_by_name, service_of
from ordercast.audit.verdict import Witness
from ordercast.model.config import require
from ordercast.model.errors import ConfigError, TraceError
from ordercast.model.services import Service
from ordercast.pipeline.audit.partitioned.row_groups import RowGroups
from ordercast.pipeline.audit.stream.checkpoint import read_state, write_state
from ordercast.pipeline.audit.stream.new_files import NewFiles
from ordercast.pipeline.audit.stream.prefix import Prefix
from ordercast.pipeline.audit.stream.run_follower import Found, NewEvents, RunState, state_file, take_events
from ordercast.trace.reader import RunRow, event_file, hive_values, read_runs
from ordercast.trace.schema import EVENTS_FOLDER, NODES, RUN, RUNS_FOLDER, SUFFIX
from ordercast.trace.storage import Location, files_below

_NO_PROFILES = "a growing trace is followed by a service, not by a profile; audit the complete trace by the profile"
_STATE = "state.msgpack"  # in a checkpoint
_BATCHES = "batches"  # in a checkpoint: which files were taken
_VERSION = 3  # of checkpoints

TakeEvents = Callable[[Sequence[NewEvents]], list[Found]]
"""Audits new events, a task for each run, in any processes that see the files and the checkpoint."""


class FollowerState(msgspec.Struct):
    """The result of all batches through one."""

    batch: int = -1
    service: str | None = None
    """The service that replaces the runs' own, if any."""
    witnesses: list[Witness] = []
    version: int = 1


class Follower:
    """What is known of one growing trace, in a checkpoint."""

    def __init__(self, folder: Location, checkpoint: Location, service: Asked | None) -> None:
        require(service is None or isinstance(service, Service), _NO_PROFILES)
        assert service is None or isinstance(service, Service)
        self.service = service
        self._folder, self._checkpoint = folder, checkpoint
        self._events = folder / EVENTS_FOLDER
        self.state = self._load()
        self._files = NewFiles(self._events, checkpoint / _BATCHES)

    def take(self, take_events: TakeEvents) -> list[str] | None:
        """Audits a batch of new files; returns what is to be said of nodes that lag. None: there are no new files."""
        number = self.state.batch + 1
        files = self._files.next_batch(number)
        if files is None:
            return None
        found = take_events(self._tasks(number, files)) if files else []
        found.sort(key=lambda one: one.run)
        named = {one.run for one in found}
        self.state.witnesses = [witness for witness in self.state.witnesses if witness.run not in named]
        self.state.witnesses += [witness for one in found for witness in one.witnesses]
        self.state.batch = number
        write_state(self._checkpoint / _STATE, self.state)
        return [lag for one in found for lag in one.lags]

    def prefix(self, run: str) -> Prefix:
        """What is known of a run."""
        state = read_state(state_file(self._checkpoint, run), RunState)
        return state.prefix if state is not None else Prefix(run)

    def _tasks(self, number: int, files: Sequence[PurePosixPath]) -> list[NewEvents]:
        """A task for each run that has events in some files."""
        places: dict[str, list[RowGroups]] = {}
        for inside in files:
            path, in_path = self._events / inside, hive_values(inside)
            part = event_file(path, in_path, [*ALL_COLUMNS, RUN], with_runs=True)
            for group, runs in enumerate(part.runs_by_group()):
                for run in runs:
                    place = RowGroups(str(path), in_path, (group,), run if len(runs) > 1 else None)
                    places.setdefault(run, []).append(place)
        rows = self._rows()
        return [self._task(number, run, places[run], rows.get(run)) for run in sorted(places)]

    def _task(self, number: int, run: str, places: list[RowGroups], row: RunRow | None) -> NewEvents:
        return NewEvents(
            run,
            row[NODES] if row else 0,
            number,
            places,
            self.service or _service_of(run, row),
            # As little as possible, while the run says nothing of itself.
            uniform=row is not None and is_uniform(row),
            one_clock=row is not None and has_one_clock(row),
            delivers_stable=row is not None and delivers_stable(row),
            checkpoint=str(self._checkpoint),
        )

    def _rows(self) -> Mapping[str, RunRow]:
        """The rows of `runs` that have been written."""
        if not files_below(self._folder / RUNS_FOLDER, SUFFIX):
            return {}
        return runs_by_name(read_runs([self._folder]))

    def _load(self) -> FollowerState:
        asked = self.service.value if self.service else None
        state = read_state(self._checkpoint / _STATE, FollowerState)
        if state is None:
            return FollowerState(service=asked, version=_VERSION)
        if state.version != _VERSION:
            raise ConfigError(f"{self._checkpoint} was written by another version; remove it to start again")
        if state.service != asked:
            raise ConfigError(
                f"{self._checkpoint} is the checkpoint of an audit by {state.service or 'the service of each run'}; "
                "use the same service, or remove it to start again"
            )
        return state


def take_here(tasks: Sequence[NewEvents]) -> list[Found]:
    """Audits new events in this process, one run after the other."""
    return [take_events(task) for task in tasks]


def _service_of(name: str, row: RunRow | None) -> Service:
    if row is None:
        raise TraceError(f"run {name} has no row in {RUNS_FOLDER}/ yet, which names its service; give it by --service")
    found = service_of(row)
    if not isinstance(found, Service):
        raise TraceError(f"run {name}: {_NO_PROFILES}")
    return found
