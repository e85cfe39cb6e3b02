"""Audits the batches of a growing trace, and keeps the state between them.

Each run has a state of its own, in a file of its own, and is audited by whoever has its events: this process, if Spark
is embedded in it, or a task of a cluster, so that no event comes to the driver. The driver keeps what was found.
"""

from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import quote

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
from ordercast.pipeline.jobs import collected
from ordercast.pipeline.schema import spark_schema
from ordercast.trace.reader import RunRow, read_runs
from ordercast.trace.schema import NODES, RUN, RUNS_FOLDER, SUFFIX
from ordercast.trace.small_files import write_atomically

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


LAG = 100_000
"""Messages: a node that has lacked one for longer is told of."""
MOST_LAGS = 100
"""Sentences about lags that are kept."""
_NO_PROFILES = "a growing trace is followed by a service, not by a profile; audit the complete trace by the profile"
_STATE = "state.msgpack"  # in a checkpoint
_RUNS = "runs"  # in a checkpoint: the states of the runs
_VERSION = 2  # of checkpoints
_FOUND = pa.schema([pa.field("found", pa.binary())])


class RunState(msgspec.Struct):
    """What is known of one run after all batches through one."""

    prefix: Prefix
    batch: int = -1
    witnesses: list[Witness] = []
    """All so far."""
    lags: list[str] = []
    """Sentences of the last batch about nodes that lack something for long."""
    told: dict[int, int] = {}
    """By node: for how many messages it had lacked something when that was said last."""


class FollowerState(msgspec.Struct):
    """The result of all batches through one."""

    batch: int = -1
    service: str | None = None
    """The service that replaces the runs' own, if any."""
    witnesses: list[Witness] = []
    lags: list[str] = []
    """Sentences about nodes that lack something for long, in the order in which they were noticed."""
    version: int = 1


_State = TypeVar("_State", RunState, FollowerState)


class _Found(msgspec.Struct, frozen=True):
    """What a batch showed of one run."""

    run: str
    witnesses: list[Witness]
    lags: list[str]


class Follower:
    """Audits the batches of one growing trace, and stores the state in a folder."""

    def __init__(self, folder: Path, checkpoint: Path, service: Asked | None) -> None:
        self.folder = folder
        require(service is None or isinstance(service, Service), _NO_PROFILES)
        assert service is None or isinstance(service, Service)
        self.service = service
        self.checkpoint = checkpoint
        self.file = checkpoint / _STATE
        """The file with the state; it is replaced atomically."""
        self.state = self._load()

    def take(self, batch: "DataFrame", number: int) -> None:
        """Audits a batch, unless the state contains it."""
        if number <= self.state.batch:
            return
        events = batch.select(RUN, *ALL_COLUMNS)
        if is_embedded(batch.sparkSession):
            self.take_events(events.toArrow(), number)
            return
        done = events.groupBy(RUN).applyInArrow(self._taking(number), spark_schema(_FOUND))
        self._note(collected(done), number)

    def take_events(self, events: pa.Table, number: int) -> None:
        """Audits some events in this process, given the number of their batch."""
        take = self._taking(number)
        names = sorted(pc.unique(events.column(RUN)).to_pylist())
        found = [take(events.filter(pc.equal(events.column(RUN), name))) for name in names]
        self._note(pa.concat_tables([_FOUND.empty_table(), *found]), number)

    def prefix(self, run: str) -> Prefix:
        """The state of a run."""
        return _read(_file_of(self.checkpoint, run), RunState).prefix

    def _taking(self, number: int) -> Callable[[pa.Table], pa.Table]:
        """What is done with the events of one run of a batch, by any process that sees the checkpoint."""
        rows, service, checkpoint = _rows_of(self.folder), self.service, self.checkpoint

        def take(events: pa.Table) -> pa.Table:
            name: str = events.column(RUN)[0].as_py()
            found = _grown(name, events, number, (rows.get(name), service), checkpoint)
            return pa.Table.from_pylist([{"found": msgspec.msgpack.encode(found)}], schema=_FOUND)

        return take

    def _note(self, table: pa.Table, number: int) -> None:
        """Adds what a batch showed to the state, and stores it."""
        found = [msgspec.msgpack.decode(one, type=_Found) for one in table.column("found").to_pylist()]
        found.sort(key=lambda one: one.run)
        named = {one.run for one in found}
        self.state.witnesses = [witness for witness in self.state.witnesses if witness.run not in named]
        self.state.witnesses += [witness for one in found for witness in one.witnesses]
        self.state.lags = [*self.state.lags, *(lag for one in found for lag in one.lags)][-MOST_LAGS:]
        self.state.batch = number
        _write(self.file, self.state)

    def _load(self) -> FollowerState:
        asked = self.service.value if self.service else None
        if not self.file.exists():
            return FollowerState(service=asked, version=_VERSION)
        state = _read(self.file, FollowerState)
        if state.version != _VERSION:
            raise ConfigError(f"{self.file.parent} was written by another version; remove it to start again")
        if state.service != asked:
            raise ConfigError(
                f"{self.file.parent} is the checkpoint of an audit by {state.service or 'the service of each run'}; "
                "use the same service, or remove it to start again"
            )
        return state


def is_embedded(spark: "SparkSession") -> bool:
    """True if tasks run in the process of the driver's Java, so that nothing is gained by giving them the events."""
    return (spark.conf.get("spark.master", "") or "").startswith("local")


def _grown(
    name: str, events: pa.Table, number: int, about: tuple[RunRow | None, Service | None], place: Path
) -> _Found:
    """Adds the events of a batch to the state of their run, unless they are part of it."""
    row, service = about
    file = _file_of(place, name)
    state = _read(file, RunState) if file.exists() else RunState(Prefix(name, nodes=row[NODES] if row else 0))
    if state.batch < number:
        asked = service or _service_of(name, row)
        settings = _settings_of(row)
        state.witnesses = [*state.witnesses]
        for part in events.combine_chunks().to_batches():
            found = state.prefix.grow(part, asked, **settings)
            state.witnesses += [Witness(name, violation) for violation in found]
        state.lags = _new_lags(state, name)
        state.batch = number
        _write(file, state)
    return _Found(name, state.witnesses, state.lags)


def _settings_of(row: RunRow | None) -> dict[str, bool]:
    """What a run says of itself; as little as possible, while it says nothing."""
    if row is None:
        return {"uniform": False, "one_clock": False, "delivers_stable": False}
    return {"uniform": is_uniform(row), "one_clock": has_one_clock(row), "delivers_stable": delivers_stable(row)}


def _new_lags(state: RunState, name: str) -> list[str]:
    """Says of a node once that it lags, and again whenever that has become ten times as much."""
    lags = state.prefix.lags()
    state.told = {node: age for node, age in state.told.items() if node in lags}  # others have caught up
    found = []
    for node, (age, sentence) in lags.items():
        if age >= 10 * state.told.get(node, LAG // 10):
            state.told[node] = age
            found.append(f"run {name}: {sentence}")
    return found


def _service_of(name: str, row: RunRow | None) -> Service:
    if row is None:
        raise TraceError(f"run {name} has no row in {RUNS_FOLDER}/ yet, which names its service; give it by --service")
    found = service_of(row)
    if not isinstance(found, Service):
        raise TraceError(f"run {name}: {_NO_PROFILES}")
    return found


def _file_of(checkpoint: Path, run: str) -> Path:
    digest = sha256(run.encode()).hexdigest()[:16]  # of long names a file has but the beginning
    return checkpoint / _RUNS / f"{quote(run, safe='')[:80]}-{digest}.msgpack"


def _read(file: Path, kind: type[_State]) -> _State:
    try:
        return msgspec.msgpack.decode(file.read_bytes(), type=kind)
    except (OSError, msgspec.DecodeError) as error:
        raise TraceError(f"cannot read {file}: {error}; remove the checkpoint that it is in to start again") from error


def _write(file: Path, state: msgspec.Struct) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(file, msgspec.msgpack.encode(state))
    except OSError as error:
        raise TraceError(f"cannot write {file}: {reason_of(error)}; use --checkpoint for another place") from error


def _rows_of(folder: Path) -> Mapping[str, RunRow]:
    """The rows of `runs` that have been written."""
    if not any((folder / RUNS_FOLDER).rglob(f"*{SUFFIX}")):
        return {}
    return runs_by_name(read_runs([folder]))
