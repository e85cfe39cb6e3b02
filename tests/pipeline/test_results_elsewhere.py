"""Soaks, evaluations and reports on a storage that has a URL: the files of a local folder, each put whole."""

import json
from contextlib import suppress
from pathlib import Path, PurePosixPath
from random import Random

import pytest

from ordercast.model.history import Operation
from ordercast.model.services import Service
from ordercast.pipeline.soak.soak import Soak
from ordercast.swarm.soak import EVERY_PROTOCOL
from ordercast.trace.history import write_history
from ordercast.trace.storage import files_below, is_empty, location, write_whole
from ordercast.trace.working_folder import working_folder
from tests.cli.conftest import Command
from tests.pipeline.random_runs import random_run
from tests.pipeline.runs import bytes_in
from tests.pipeline.test_soak import Stopped, open_session, small_runs
from tests.pipeline.traces import write
from tests.report.test_page import folder_with, result
from tests.trace.test_storage import Objects, objects

__all__ = ["objects", "open_session", "small_runs"]


@pytest.mark.usefixtures("open_session")
def test_a_soak_is_kept_and_resumed_there(ordercast: Command, tmp_path: Path, objects: Objects) -> None:
    del objects
    there = tmp_path / "there" / "bucket" / "soak"
    assert ordercast("soak --runs 5 --out s3://bucket/soak").status == 0
    assert ordercast("soak --runs 5 --out s3://bucket/soak").sentence.startswith(
        "s3://bucket/soak already holds a soak"
    )
    done = ordercast("soak --runs 8 --resume --out s3://bucket/soak")
    assert done.status == 1
    assert "shrunk: ordercast replay s3://bucket/soak/failures/st-6.toml --draw" in done.out
    assert sorted(bytes_in(there)) == [
        *("failures/st-6.json", "failures/st-6.toml", "failures/test_st_6.py"),
        *("rounds/000000000.json", "rounds/000000005.json", "soak.json"),
    ]
    assert Soak(location("s3://bucket/soak"), EVERY_PROTOCOL, resume=True).next_number == 8


def test_a_page_is_built_of_results_that_are_there(ordercast: Command, tmp_path: Path, objects: Objects) -> None:
    folder_with(tmp_path / "here", result())
    for path in (tmp_path / "here").iterdir():
        write_whole(location("s3://bucket/results") / path.name, path.read_bytes())
    missing = ordercast("report s3://bucket/other")
    assert (missing.status, missing.sentence.partition(":")[0]) == (2, "cannot read s3")
    objects.opened.clear()
    done = ordercast("report s3://bucket/results")
    assert (done.status, done.out.split()) == (0, ["The", "page", "is", "s3://bucket/results/report.html"])
    assert ordercast("report", tmp_path / "here").status == 0
    assert bytes_in(tmp_path / "there/bucket/results").keys() == bytes_in(tmp_path / "here").keys()
    assert not any(path.endswith(".json") for path in objects.opened), "results are read, and not written again"


def test_what_is_there_is_shown_and_histories_are_judged(ordercast: Command, tmp_path: Path, objects: Objects) -> None:
    del objects
    assert ordercast("simulate to --nodes 2 --messages 2 --out s3://bucket/trace").status == 0
    shown = ordercast("view s3://bucket/trace --export", tmp_path / "there.html")
    assert (shown.status, (tmp_path / "there.html").exists()) == (0, True)
    write_history(tmp_path / "here.parquet", [Operation("A", "register", "d", "k", "put", ("1",), "null", 0, 1)])
    write_whole(location("s3://bucket/history/A.parquet"), (tmp_path / "here.parquet").read_bytes())
    for place in ("s3://bucket/history", "s3://bucket/history/A.parquet", tmp_path / "here.parquet"):
        judged = ordercast("audit --history", place)
        assert (judged.status, judged.out) == (0, "1 key, 1 operation: linearizable\n")
    for model, kind, told in (("register", "sing", "has what no register has"), ("choir", "put", "is of a 'choir'")):
        write_history(tmp_path / "wrong.parquet", [Operation("A", model, "d", "k", kind, ("1",), "null", 0, 1)])
        wrong = ordercast("audit --history", tmp_path / "wrong.parquet")
        assert wrong.status == 2
        assert wrong.sentence.startswith(f"the history of d k {told}")
    for line in ("view s3://bucket/nothing", "audit --history s3://bucket/nothing"):
        missing = ordercast(line)
        assert (missing.status, missing.sentence) == (
            2,
            "there is no file *.parquet at s3://bucket/nothing; check the URL",
        )


@pytest.mark.parametrize("line", ["view --follow s3://b/t", "audit --history --spark s3://b/t"])
def test_what_is_read_here_only_is_said(ordercast: Command, line: str) -> None:
    refused = ordercast(line)
    assert refused.status == 2
    assert "takes folders of this machine, not s3://b/t; copy it here" in refused.sentence


def test_a_trace_that_grows_there_is_followed(ordercast: Command, tmp_path: Path, objects: Objects) -> None:
    """Of files in folders by run; the checkpoint is there, too, and the whole is audited at the end."""
    del objects
    runs = {name: random_run(Random(name), Service(name)) for name in ("st", "to", "po")}
    for number, (name, run) in enumerate(runs.items()):
        here = write(tmp_path / f"{number}", {name: run})
        for inside in files_below(here, ".parquet"):
            folder = f"events/run={name}" if inside.parent.name == "events" else "runs"
            write_whole(location(f"s3://bucket/t/{folder}/{number}.parquet"), (here / inside).read_bytes())
    line = "audit --follow s3a://bucket/t --until-idle 0.1 --checkpoint s3://bucket/state"
    followed = ordercast(line, "--json", tmp_path / "followed.json")
    assert followed.status == 0, followed.err
    assert ordercast("audit s3://bucket/t --json", tmp_path / "whole.json").status == 0
    assert (tmp_path / "followed.json").read_text() == (tmp_path / "whole.json").read_text()
    assert len(files_below(location("s3://bucket/state/runs"), ".msgpack")) == 3
    assert files_below(location("s3://bucket/state/batches"), "") == [PurePosixPath("000000000.msgpack")]


def test_an_evaluation_is_stored_there(ordercast: Command, objects: Objects) -> None:
    """Of a size that differs from the one that is there, so that nothing has to be measured."""
    del objects
    write_whole(
        location("s3://bucket/results/evaluation.json"),
        json.dumps({"command": "", "size": "full", "versions": {}, "experiments": [], "date": ""}).encode(),
    )
    refused = ordercast("evaluate --quick --out s3://bucket/results")
    assert refused.status == 2
    assert refused.sentence.startswith("s3://bucket/results holds full results, and these would be quick")


def test_a_working_folder_gives_back_what_was_written_and_nothing_if_it_fails(tmp_path: Path, objects: Objects) -> None:
    del objects
    there, place = location("s3://bucket/work"), tmp_path / "there/bucket/work"
    for name in ("kept", "changed"):
        write_whole(there / name, b"before")
    with working_folder(there) as folder:
        (folder / "changed").write_bytes(b"after")
        (folder / "inner").mkdir()
        (folder / "inner" / "new").write_bytes(b"new")
    assert bytes_in(place) == {"kept": b"before", "changed": b"after", "inner/new": b"new"}
    with suppress(Stopped), working_folder(there) as folder:
        (folder / "changed").write_bytes(b"failed")
        raise Stopped
    assert (place / "changed").read_bytes() == b"after"
    with working_folder(tmp_path / "here") as folder:
        assert folder == tmp_path / "here"


def test_whether_a_folder_is_empty(tmp_path: Path, objects: Objects) -> None:
    del objects
    assert is_empty(tmp_path / "nothing")
    assert is_empty(location("s3://bucket/nothing"))
    write_whole(tmp_path / "some" / "inner" / "file", b"")
    write_whole(location("s3://bucket/some/inner/file"), b"")
    assert not is_empty(tmp_path / "some")
    assert not is_empty(location("s3://bucket/some"))


def test_where_there_are_files_they_get_their_name_when_they_are_complete(tmp_path: Path, objects: Objects) -> None:
    """As on hdfs, where a file can be read while it is written."""
    objects.type_name = "hdfs"
    path, place = location("hdfs://name/folder/file"), tmp_path / "there/name/folder"
    path.write_bytes(b"first")
    with suppress(Stopped), path._replaced() as file:  # type: ignore[union-attr]
        file.write(b"second")
        (hidden,) = [path for path in place.iterdir() if path.name != "file"]
        assert hidden.name.startswith("_file.")
        assert (place / "file").read_bytes() == b"first"
        raise Stopped
    assert bytes_in(place) == {"file": b"first"}
    path.write_bytes(b"second")
    assert bytes_in(place) == {"file": b"second"}
