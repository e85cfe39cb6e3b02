"""Traces on a storage that has a URL: the same files, put whole, and read from there."""

import os
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from pyarrow.fs import LocalFileSystem, SubTreeFileSystem
from tests.pipeline.runs import bytes_in

from ordercast.audit import reference
from ordercast.model.config import GroupConfig
from ordercast.model.errors import ConfigError, TraceError
from ordercast.model.runs import RunConfig, Workload
from ordercast.pipeline.audit import vectorised
from ordercast.pipeline.audit.partitioned import audit as partitioned
from ordercast.pipeline.audit.partitioned import audit as partitioned_audit
from ordercast.simulator.simulate import simulate
from ordercast.trace import storage
from ordercast.trace.reader import read_runs
from ordercast.trace.storage import RemotePath, files_below, location, names_in

CONFIG = RunConfig(protocol="spo", group=GroupConfig(nodes=3), workload=Workload(messages=20), seed=1)


class Objects:
    """Arrow's file system of a folder, as a storage without real folders sees it."""

    type_name = "s3"

    def __init__(self, folder: Path) -> None:
        self.inside = SubTreeFileSystem(str(folder), LocalFileSystem())
        self.opened: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inside, name)

    def open_output_stream(self, path: str) -> Any:
        self.opened.append(path)
        self.inside.create_dir(str(PurePosixPath(path).parent), recursive=True)
        return self.inside.open_output_stream(path)


@pytest.fixture
def objects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Objects:
    (tmp_path / "there").mkdir()
    found = Objects(tmp_path / "there")
    monkeypatch.setattr(storage, "_filesystem", lambda *_: (found, False))
    return found


def test_a_trace_is_the_same_there_and_here(tmp_path: Path, objects: Objects, monkeypatch: pytest.MonkeyPatch) -> None:
    url = location("s3://bucket/runs/one")
    simulate(CONFIG, tmp_path / "here")
    simulate(CONFIG, url)
    assert bytes_in(tmp_path / "there/bucket/runs/one") == bytes_in(tmp_path / "here")
    name = CONFIG.name()
    assert objects.opened == [f"bucket/runs/one/{part}/{name}.parquet" for part in ("events", "runs")], "runs last"
    assert read_runs([url]) == read_runs([tmp_path / "here"])
    here = reference.audit([tmp_path / "here"]).as_document()
    assert reference.audit([url]).as_document() == here
    assert vectorised.audit_vectorised([url]).as_document() == here
    monkeypatch.setattr(partitioned_audit, "PARTITIONED_ABOVE", 0)
    monkeypatch.setattr(partitioned, "ROWS_OF_A_PARTITION", 40)
    assert vectorised.audit_vectorised([url]).as_document() == here
    with pytest.raises(TraceError, match=r"s3://bucket/runs/one already holds a trace"):
        simulate(CONFIG, url)


@pytest.mark.usefixtures("objects")
def test_what_failed_leaves_nothing_there(tmp_path: Path) -> None:
    def fail(*_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        simulate(CONFIG, location("s3://bucket/runs"), progress=fail, sink=fail)
    assert not list((tmp_path / "there").iterdir())


@pytest.mark.usefixtures("objects")
def test_a_file_that_was_put_in_part_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_: Any, there: Any, *more: object) -> None:
        there.write(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr("shutil.copyfileobj", interrupted)
    with pytest.raises(KeyboardInterrupt):
        simulate(CONFIG, location("s3://bucket/runs"))
    assert not files_below(location("s3://bucket/runs"), ".parquet")


@pytest.mark.usefixtures("objects")
def test_what_is_not_there_is_said() -> None:
    with pytest.raises(TraceError, match=r"^s3://bucket/nothing does not exist; give the folder of a trace"):
        reference.audit([location("s3://bucket/nothing")])


@pytest.mark.usefixtures("objects")
def test_a_path_there_is_like_one_here() -> None:
    path = location("s3://bucket/a") / "b" / "c.parquet"
    assert isinstance(path, RemotePath)
    assert (str(path), path.name, str(path.parent)) == ("s3://bucket/a/b/c.parquet", "c.parquet", "s3://bucket/a/b")
    path.write_text("some")
    assert (path.read_text(), path.read_bytes(), path.is_file(), path.exists()) == ("some", b"some", True, True)
    assert path.parent.is_dir()
    assert files_below(location("s3://bucket"), ".parquet") == [PurePosixPath("a/b/c.parquet")]
    assert names_in(path.parent) == {"c.parquet"}
    path.unlink()
    assert not path.is_file()
    path.unlink(missing_ok=True)
    with pytest.raises(FileNotFoundError):
        path.unlink()
    assert names_in(location("s3://bucket/none")) == set()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("some/where", Path("some/where")),
        ("file:///some/wh%20ere", Path("/some/wh ere")),
        ("s3://bucket/a/", RemotePath("s3", "bucket/a")),
        ("s3a://bucket/a", RemotePath("s3", "bucket/a")),
        ("s3://bucket/a?region=x", RemotePath("s3", "bucket/a", "region=x")),
        ("hdfs://host:9000/a", RemotePath("hdfs", "host:9000/a")),
    ],
)
def test_what_a_url_names(text: str, found: object) -> None:
    assert location(text) == found


def test_a_folder_that_looks_like_a_url_is_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s3:/bucket").mkdir(parents=True)
    assert location("s3://bucket") == Path("s3:/bucket")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("s3:///a", "s3:///a names no bucket or host; a URL is like s3://BUCKET/FOLDER"),
        ("s3://bucket/a?colour=red", "invalid options of an S3 URL: "),
        ("nothing://host/a", "nothing:// cannot be opened: "),
    ],
)
def test_a_url_that_cannot_be_is_said(text: str, sentence: str) -> None:
    with pytest.raises(ConfigError) as raised:
        location(text).exists()
    assert str(raised.value).startswith(sentence)


def test_another_endpoint_in_the_environment_is_another_file_system(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str | None] = []
    monkeypatch.setattr(storage, "_s3", lambda _: opened.append(os.environ.get("AWS_ENDPOINT_URL")))
    path = RemotePath("s3", "of-this-test/trace")
    for endpoint in ("http://127.0.0.1:1", "http://127.0.0.1:2", "http://127.0.0.1:2"):
        monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
        path._opened()
    assert opened == ["http://127.0.0.1:1", "http://127.0.0.1:2"]
