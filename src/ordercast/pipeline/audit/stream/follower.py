"""Audits the batches of a growing trace, and keeps the state between them."""

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from ordercast.audit.logs import ALL_COLUMNS
from ordercast.audit.profiles import Asked
from ordercast.audit.records import has_one_clock
from ordercast.audit.run_rows import delivers_stable, is_uniform, runs_by_name, service_of
from ordercast.audit.verdict import Witness
from ordercast.model.config import require
from ordercast.model.errors import ConfigError, TraceError, reason_of
from ordercast.model.services import Service
from ordercast.pipeline.audit.stream.prefix import Prefix
from ordercast.trace.reader import RunRow, read_runs
from ordercast.trace.schema import NODES, RUN, RUNS_FOLDER, SUFFIX
from ordercast.trace.small_files import write_atomically

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


LAG = 100_000
"""Messages: a node that has lacked one for longer is told of."""
MOST_LAGS = 100
"""Sentences about lags that are kept."""
_NO_PROFILES = "a growing trace is followed by a service, not by a profile; audit the complete trace by the profile"
_STATE = "state.msgpack"  # in a checkpoint


class FollowerState(msgspec.Struct):
    """The result of all batches through one."""

    batch: int = -1
    service: str | None = None
    """The service that replaces the runs' own, if any."""
    runs: dict[str, Prefix] = {}
    witnesses: list[Witness] = []
    lags: list[str] = []
    """Sentences about nodes that lack something for long, in the order in which they were noticed."""
    told: dict[str, dict[int, int]] = {}
    """By run and node: for how many messages it had lacked something when that was said last."""


class Follower:
    """Audits the batches of one growing trace, and stores the state in a folder."""

    def __init__(self, folder: Path, checkpoint: Path, service: Asked | None) -> None:
        self.folder = folder
        require(service is None or isinstance(service, Service), _NO_PROFILES)
        assert service is None or isinstance(service, Service)
        self.service = service
        self.file = checkpoint / _STATE
        """The file with the state; it is replaced atomically."""
        self.state = self._load()

    def take(self, batch: "DataFrame", number: int) -> None:
        """Audits a batch, unless the state contains it."""
        if number > self.state.batch:
            self.take_events(batch.select(RUN, *ALL_COLUMNS).toArrow(), number)

    def take_events(self, events: pa.Table, number: int) -> None:
        """Audits some events, given the number of their batch."""
        rows = _rows_of(self.folder)
        for run in sorted(pc.unique(events.column(RUN)).to_pylist()):
            service = self._service(run, rows)
            row = rows.get(run)
            uniform = row is not None and is_uniform(row)
            one_clock = row is not None and has_one_clock(row)
            known = self.state.runs.setdefault(run, Prefix(run, nodes=row[NODES] if row is not None else 0))
            mine = events.filter(pc.equal(events.column(RUN), run)).combine_chunks()
            for part in mine.to_batches():
                found = known.grow(
                    part,
                    service,
                    uniform=uniform,
                    one_clock=one_clock,
                    delivers_stable=row is not None and delivers_stable(row),
                )
                self.state.witnesses += [Witness(run, violation) for violation in found]
            self._note_lags(known)
        self.state.batch = number
        self._store()

    def _note_lags(self, run: Prefix) -> None:
        """Says of a node once that it lags, and again whenever that has become ten times as much."""
        told = self.state.told.setdefault(run.run, {})
        lags = run.lags()
        for node in set(told) - lags.keys():
            del told[node]  # it has caught up
        for node, (age, sentence) in lags.items():
            if age >= 10 * told.get(node, LAG // 10):
                told[node] = age
                self.state.lags = [*self.state.lags, f"run {run.run}: {sentence}"][-MOST_LAGS:]

    def _service(self, run: str, rows: dict[str, RunRow]) -> Service:
        row = rows.get(run)
        if self.service is None and row is None:
            raise TraceError(
                f"run {run} has no row in {RUNS_FOLDER}/ yet, which names its service; give it by --service"
            )
        if self.service is not None:
            return self.service
        assert row is not None
        found = service_of(row)
        if not isinstance(found, Service):
            raise TraceError(f"run {run}: {_NO_PROFILES}")
        return found

    def _load(self) -> FollowerState:
        asked = self.service.value if self.service else None
        try:
            state = msgspec.msgpack.decode(self.file.read_bytes(), type=FollowerState)
        except FileNotFoundError:
            return FollowerState(service=asked)
        except (OSError, msgspec.DecodeError) as error:
            raise TraceError(f"cannot read {self.file}: {error}; remove {self.file.parent} to start again") from error
        if state.service != asked:
            raise ConfigError(
                f"{self.file.parent} is the checkpoint of an audit by {state.service or 'the service of each run'}; "
                "use the same service, or remove it to start again"
            )
        return state

    def _store(self) -> None:
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(self.file, msgspec.msgpack.encode(self.state))
        except OSError as error:
            raise TraceError(
                f"cannot write {self.file}: {reason_of(error)}; use --checkpoint for another place"
            ) from error


def _rows_of(folder: Path) -> dict[str, RunRow]:
    """The rows of `runs` that have been written."""
    if not any((folder / RUNS_FOLDER).rglob(f"*{SUFFIX}")):
        return {}
    return runs_by_name(read_runs([folder]))
