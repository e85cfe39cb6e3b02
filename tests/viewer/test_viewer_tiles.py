"""Tiles: every event is in exactly one of each size, as itself or in a count, whatever row groups it is in."""

from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ordercast.trace.schema import EventKind
from ordercast.viewer import row_groups, tiles
from ordercast.viewer.encoding import encoded_tile
from ordercast.viewer.event_arrays import CODES, KINDS
from ordercast.viewer.tiles import BINS, CLASS_OF_KIND, CLASSES, MOST_EVENTS, Tile, tile_of
from ordercast.viewer.traces import Traces, ViewedRun
from tests.viewer.traces import many, one_loss, row, sent_as, write


def opened(folder: Path, key: str = "r") -> ViewedRun:
    return Traces([folder]).run(key)


def tile(run: ViewedRun, exponent: int, index: int) -> Tile:
    return tile_of(run.events, run.nodes, exponent, index, run.margin)


def test_few_events_are_sent_as_themselves_and_many_as_counts(tmp_path: Path) -> None:
    run = opened(write(tmp_path, many(2_000), batch=999))
    top = tile(run, 18, 0)
    assert top.events is None
    assert top.counts is not None
    assert top.total == top.counts.total == top.counts.counts.sum() == 8_000 > MOST_EVENTS
    send, deliver = CLASSES.index("send"), CLASSES.index("deliver")
    assert top.counts.counts[:, send].sum() == 2_000
    assert top.counts.counts[:, deliver].sum(axis=1).tolist() == [2_000] * 3
    low = tile(run, 10, 7)
    assert low.events is not None
    assert low.total == np.count_nonzero((low.events.time >= 7 * 1024) & (low.events.time < 8 * 1024)) == 40, (
        "10 messages"
    )


@pytest.mark.parametrize("exponent", [6, 9, 12, 15])
def test_all_tiles_of_a_size_have_each_event_once(tmp_path: Path, exponent: int) -> None:
    run = opened(write(tmp_path, many(700), batch=500))
    found = [tile(run, exponent, index) for index in range((run.events.times[1] >> exponent) + 1)]
    assert sum(each.total for each in found) == 2_800


def test_bins_of_a_tile_are_those_of_its_halves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiles, "MOST_EVENTS", 0)
    run = opened(write(tmp_path, many(700), batch=333))
    whole, *halves = (tile(run, exponent, index).counts for exponent, index in ((16, 0), (15, 0), (15, 1)))
    assert whole is not None
    joined = np.concatenate([half.counts for half in halves if half is not None], axis=2)
    assert (joined.reshape(3, len(CLASSES), BINS, 2).sum(axis=3) == whole.counts).all()


def test_a_tile_shorter_than_its_bins_is_counted_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiles, "MOST_EVENTS", 0)
    found = tile(opened(write(tmp_path, many(10))), 4, 0).counts
    assert found is not None
    assert found.counts[0, 0].nonzero()[0].tolist() == [0]


def test_what_flies_across_the_edge_of_a_tile_is_in_both(tmp_path: Path) -> None:
    run = opened(write(tmp_path, one_loss()))
    assert run.margin >= 200
    found = tile(run, 7, 1)  # from 128 to 256: arrivals of what was transmitted at 100
    assert found.total == 3
    assert found.events is not None
    beyond = [(int(time), KINDS[kind]) for time, kind in zip(found.events.time, found.events.kind, strict=True)]
    assert (100, "transmit") in beyond
    assert (100, "send") not in beyond


def test_long_runs_are_estimated_from_the_sizes_of_row_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = opened(write(tmp_path, many(2_000), batch=500))
    monkeypatch.setattr(tiles, "MOST_READ", 3_000)
    monkeypatch.setattr(row_groups.RunEvents, "full", lambda *_: pytest.fail("rows were read"))
    monkeypatch.setattr(row_groups.RunEvents, "narrow", lambda *_: pytest.fail("rows were read"))
    found = tile_of(run.events, run.nodes, 18, 0, 0).counts
    assert found is not None
    assert found.estimated
    assert abs(found.total - 8_000) < 400, "rounded in each bin"
    assert found.counts[:, :-1].sum() == 0


def test_a_part_of_a_long_run_reads_only_its_row_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = opened(write(tmp_path, many(2_000), batch=500))
    assert len(run.events.groups) == 16
    read = []
    whole = row_groups.RunEvents._batch

    def noted(self: row_groups.RunEvents, group: row_groups.RowGroup, columns: list[str]) -> object:
        read.append(group)
        return whole(self, group, columns)

    monkeypatch.setattr(row_groups.RunEvents, "_batch", noted)
    tile_of(run.events, run.nodes, 10, 0, 0)
    assert {group.group for group in read} == {0}


def test_what_is_kept_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = opened(write(tmp_path, many(2_000), batch=500))
    monkeypatch.setattr(row_groups, "MOST_KEPT", 1_200)
    for place in range(16):
        run.events.full(place)
    assert sum(len(events) for events in run.events._full.values()) <= 1_200
    assert len(run.events.between(0, 1 << 40)) == 8_000, "what was dropped is read again"


def test_runs_in_one_row_group_are_told_apart(tmp_path: Path) -> None:
    for run, rows in (("a", many(10)), ("b", one_loss())):
        write(tmp_path / run, rows, run=run)
    both = tmp_path / "both"
    for dataset in ("events", "runs"):
        (both / dataset).mkdir(parents=True)
        tables = [pq.read_table(tmp_path / run / dataset) for run in "ab"]
        pq.write_table(pa.concat_tables(tables), both / dataset / "all.parquet")
    traces = Traces([both])
    assert tile(traces.run("a"), 20, 0).total == 40
    assert tile(traces.run("b"), 20, 0).total == len(one_loss())


def test_every_kind_has_a_class() -> None:
    assert len(CLASS_OF_KIND) == len(KINDS)
    classes = {name: CLASSES[CLASS_OF_KIND[code]] for name, code in CODES.items()}
    assert {name for name, found in classes.items() if found == "recovery"} == {
        *("abort", "view", "leave", "exclude", "block", "unblock", "state", "renumber", "stop", "resume", "crash"),
        *("restart", "drop"),
    }
    assert set(CODES) == {kind.value for kind in EventKind} | {"unknown"}


def test_kinds_of_later_versions_are_counted_as_others(tmp_path: Path) -> None:
    run = opened(write(tmp_path, [row(0, 0, 5, "teleport"), row(0, 1, 6, "send", 0, 0, destinations=(1,))]))
    found = tile(run, 6, 0).events
    assert found is not None
    assert [KINDS[kind] for kind in found.kind] == ["unknown", "send"]


def test_what_travels_is_arrow(tmp_path: Path) -> None:
    run = opened(write(tmp_path, one_loss()))
    sent = encoded_tile(tile(run, 11, 0), run.events.texts, run.events.origin)
    header, table = sent_as(sent)
    assert header["rows"] == header["total"] == table.num_rows == len(one_loss())
    assert not any(field.nullable for field in table.schema), "the page's reader knows no null"

    def column(name: str) -> list[float]:
        found: list[float] = table[name].to_pylist()
        return found

    assert column("time") == sorted(time for _, _, time, *_ in one_loss())
    kinds = Counter(KINDS[int(code)] for code in column("kind"))
    assert kinds == Counter(event for _, _, _, event, *_ in one_loss())
    details = [header["strings"][int(code)] if code >= 0 else None for code in column("detail")]
    assert Counter(details) == Counter(each[9] for each in one_loss())
    assert header["sets"] == ["0,1,2"]
