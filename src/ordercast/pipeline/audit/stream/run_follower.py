"""Adds the new events of one run to what is known of it: in this process, or in a task of a cluster.

Each run has a state of its own, in a file of its own, with the number of the last batch that is part of it. So a batch
that is taken again after it was interrupted is added to the runs that have not had it, and to no other.
"""

from collections.abc import Iterator, Sequence
from hashlib import sha256
from urllib.parse import quote

import msgspec
import pyarrow as pa

from ordercast.audit.logs import ALL_COLUMNS
from ordercast.audit.verdict import Witness
from ordercast.model.services import Service
from ordercast.pipeline.audit.partitioned.row_groups import RowGroups
from ordercast.pipeline.audit.stream.checkpoint import read_state, write_state
from ordercast.pipeline.audit.stream.kept_rows import CARRIED
from ordercast.pipeline.audit.stream.prefix import Prefix
from ordercast.trace.storage import Location, location

LAG = 100_000
"""Messages: a node that has lacked one for longer is told of."""
_AT_ONCE = 500_000  # events that are read before they are audited
_RUNS = "runs"  # in a checkpoint: the states of the runs


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


class NewEvents(msgspec.Struct, frozen=True):
    """The events of one run in a batch: what a task needs to audit them."""

    run: str
    nodes: int
    """0: not known yet."""
    batch: int
    places: list[RowGroups]
    """Where they are, in the order in which they are to be read."""
    service: Service
    uniform: bool
    one_clock: bool
    delivers_stable: bool
    checkpoint: str


class Found(msgspec.Struct, frozen=True):
    """What is known of a run after a batch."""

    run: str
    witnesses: list[Witness]
    lags: list[str]


def take_events(task: NewEvents) -> Found:
    """Audits the new events of a run, up to the first that violate something, unless its state contains them."""
    file = state_file(location(task.checkpoint), task.run)
    state = read_state(file, RunState) or RunState(Prefix(task.run, nodes=task.nodes))
    if state.batch < task.batch:
        for events in _read(task.places):
            found = state.prefix.grow(
                events,
                task.service,
                uniform=task.uniform,
                one_clock=task.one_clock,
                delivers_stable=task.delivers_stable,
            )
            state.witnesses = [*state.witnesses, *(Witness(task.run, violation) for violation in found)]
            if found:
                break
        state.lags = _new_lags(state, task.run)
        state.batch = task.batch
        write_state(file, state)
    return Found(task.run, state.witnesses, state.lags)


def state_file(checkpoint: Location, run: str) -> Location:
    """Where the state of a run is."""
    digest = sha256(run.encode()).hexdigest()[:16]  # of long names a file has but the beginning
    return checkpoint / _RUNS / f"{quote(run, safe='')[:80]}-{digest}.msgpack"


def _read(places: Sequence[RowGroups]) -> Iterator[pa.RecordBatch]:
    """The events, many at once: to audit few costs hardly less."""
    held = CARRIED.empty_table()
    for place in places:
        for group in place.groups:
            events = msgspec.structs.replace(place, groups=(group,)).read(ALL_COLUMNS)
            held = pa.concat_tables([held, pa.Table.from_batches([events]).select(ALL_COLUMNS).cast(CARRIED)])
            if held.num_rows >= _AT_ONCE:
                yield from held.combine_chunks().to_batches()
                held = CARRIED.empty_table()
    yield from held.combine_chunks().to_batches()


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
