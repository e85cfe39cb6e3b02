"""`ordercast view` and `ordercast audit --view`: what they print, write and return."""

import base64
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli.conftest import Command, ordercast
from tests.small_disk import fill, small_disk
from tests.viewer.traces import HOSTILE, many, one_loss, row, sent_as, write

__all__ = ["ordercast"]  # a fixture

EXAMPLES = Path(__file__).parent.parent.parent / "examples"


def data_of(page: Path) -> dict[str, Any]:
    text = re.findall(r'<script id="data" type="application/json">(.*?)</script>', page.read_text(), flags=re.DOTALL)[0]
    found: dict[str, Any] = json.loads(text)
    return found


def test_an_export_has_the_events_and_says_how_many_it_has_not(ordercast: Command, tmp_path: Path) -> None:
    trace, page = write(tmp_path / "t", many(100)), tmp_path / "page.html"
    done = ordercast("view", trace, "--export", page)
    assert (done.status, done.out) == (0, "")
    assert done.sentence == f"{page}: 400 events of 1 run"
    assert data_of(page)["embedded"][0]["left_out"] == 0
    done = ordercast("view --max-events 30 --begin 0.000001 --export", page, trace)
    assert done.sentence.startswith(f"{page}: 30 events of 1 run; 370 events of them not in the file")
    [part] = data_of(page)["embedded"]
    assert part["left_out"] == 370
    assert part["delivered_before"] == [10, 10, 10]
    header, table = sent_as(base64.b64decode(part["events"]))
    assert header["rows"] == table.num_rows == 30


def test_an_export_of_a_violation_has_its_run(ordercast: Command, tmp_path: Path) -> None:
    trace, verdict, page = tmp_path / "t", tmp_path / "verdict.json", tmp_path / "page.html"
    rows = [row(0, 0, 1, "send", 0, 0, destinations=(0, 1)), row(1, 0, 2, "deliver", 0, 0)]
    assert ordercast("audit --json", verdict, write(trace, rows, nodes=2, protocol="po")).status == 1
    assert ordercast("view", trace, "--verdict", verdict, "--export", page).status == 0
    [witness] = data_of(page)["witnesses"]
    assert (witness["breaks"], witness["messages"]) == ("complete", [[0, 0]])
    assert witness["rule"].startswith("Each destination delivers each message exactly once")


def test_bad_input_is_a_sentence(ordercast: Command, tmp_path: Path) -> None:
    trace = write(tmp_path / "t", one_loss())
    assert "does not exist; give the folder of a trace" in ordercast("view", tmp_path / "none").sentence
    assert "is not a trace: it has no folder events/" in ordercast("view", tmp_path).sentence
    assert "there is no run 'x'; the trace has: r" in ordercast("view --run x", trace).sentence
    assert "--run is for one or two runs, not 3" in ordercast("view --run r --run r --run r", trace).sentence
    assert "have no effect without --export" in ordercast("view --max-events 5", trace).sentence
    assert "--follow and --export cannot be given" in ordercast("view --follow --export x.html", trace).sentence
    done = ordercast("view --export", tmp_path / "no" / "page.html", trace)
    assert (done.status, "cannot write the page" in done.sentence) == (2, True)
    (tmp_path / "v.json").write_text("[1]")
    assert "is no verdict; write one with" in ordercast("view", trace, "--verdict", tmp_path / "v.json").sentence
    assert "--no-open has no effect without --view" in ordercast("audit --no-open", trace).sentence
    for broken in (trace / "events").iterdir():
        broken.write_bytes(b"PAR1 but not more PAR1")
    done = ordercast("view --no-open", trace)
    assert (done.status, "it is damaged or not a Parquet file" in done.sentence) == (2, True)


def test_a_trace_without_its_columns_is_refused(ordercast: Command, tmp_path: Path) -> None:
    [file] = (write(tmp_path, one_loss()) / "events").iterdir()
    pq.write_table(pq.read_table(file).drop_columns(["step"]), file)
    assert "has no column 'step', so it is not part of a trace" in ordercast("view", tmp_path).sentence


def test_a_trace_of_another_version_is_shown_as_far_as_it_is_known(ordercast: Command, tmp_path: Path) -> None:
    """One with kinds and columns that are not known here, and without those that were added later."""
    later = [*one_loss(), row(1, 9, 950, "teleport", 0, 0), row(2, 9, 960, "view", detail="1: E1 E2 E3")]
    trace, page = write(tmp_path / "t", later), tmp_path / "page.html"
    for dataset, dropped in (("events", ["detail", "transmission"]), ("runs", ["stalled", "latency"])):
        [file] = (trace / dataset).iterdir()
        table = pq.read_table(file).drop_columns(dropped)
        pq.write_table(table.append_column("colour", pa.array(["red"] * table.num_rows)), file)
    done = ordercast("view", trace, "--export", page)
    assert (done.status, done.err) == (0, f"ordercast: {page}: 22 events of 1 run\n")
    [part] = data_of(page)["embedded"]
    assert (part["run"]["names"], part["run"]["rules"]) == (["E1", "E2", "E3"], None)
    assert {mark["kind"] for mark in part["summary"]["marks"]} == {"stop", "resume", "view"}
    header, table = sent_as(base64.b64decode(part["events"]))
    assert table["kind"].to_pylist().count(len(part["run"]["kinds"]) - 1) == 1, "one kind is unknown"
    assert header["strings"] == []


@pytest.mark.parametrize(("column", "type_"), [("time", pa.string()), ("event", pa.int64())])
def test_a_trace_with_columns_of_other_types_is_refused(
    ordercast: Command, tmp_path: Path, column: str, type_: pa.DataType
) -> None:
    [file] = (write(tmp_path, one_loss()) / "events").iterdir()
    table = pq.read_table(file)
    values = pa.array([str(number) if type_ == pa.string() else number for number in range(len(table))], type_)
    pq.write_table(table.set_column(table.schema.get_field_index(column), column, values), file)
    done = ordercast("view --no-open", tmp_path)
    assert done.status == 2
    assert column in done.sentence


def test_two_traces_are_shown_beside_each_other(ordercast: Command, tmp_path: Path) -> None:
    one, other = (write(tmp_path / name, one_loss(), run=name) for name in "ab")
    page = tmp_path / "page.html"
    assert ordercast("view --run b --run a --export", page, one, other).status == 0
    assert [data_of(page)[name] for name in ("first", "beside")] == ["b", "a"]
    assert ordercast("view --export", page, one, other).status == 0
    assert [data_of(page)[name] for name in ("first", "beside")] == ["a", "b"], "two traces of one run each: both"
    assert ordercast("view --export", page, one).status == 0
    assert "beside" not in data_of(page)
    third = write(tmp_path / "c", one_loss(), run="c")
    assert ordercast("view --export", page, one, other, third).status == 0
    assert "beside" not in data_of(page), "of three nobody knows which two are meant"


def served(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What the page of each server has, which then is interrupted at once."""
    found: list[dict[str, Any]] = []

    def serve(server: Any, **_: object) -> None:
        [text] = re.findall(r'id="data" type="application/json">(.*?)</script>', server.document().decode())
        found.append(json.loads(text))
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr("ordercast.viewer.server.ViewerServer.serve_forever", serve)
    return found


def test_schedules_that_are_searched_or_replayed_are_served(
    ordercast: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("webbrowser.open", lambda _: True)
    found = served(monkeypatch)
    assert ordercast("replay --view", EXAMPLES / "counterexamples/spo-c3.toml").status == 1
    line = "check spo --rules paper --script a{2,3};b{3} --losses 0 --liveness-goal accepted --jobs 1 --no-draw --view"
    assert ordercast(line).status == 1
    assert [page["title"] for page in found] == [["spo-c3"], ["counterexample"]]
    assert all(page["mode"] == "server" for page in found)


def test_the_browser_is_opened_unless_it_is_not_to_be(
    ordercast: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace, opened = write(tmp_path, one_loss()), list[str]()

    def note(address: str) -> bool:
        opened.append(address)
        return True

    monkeypatch.setattr("webbrowser.open", note)
    served(monkeypatch)
    done = ordercast("view --no-open", trace)
    assert (done.status, opened) == (0, [])
    done = ordercast("view", trace)
    assert (done.status, opened) == (0, [done.out.strip()])


@pytest.mark.parametrize(("command", "status"), [("view", 0), ("audit", 1)])
def test_it_serves_until_interrupted(tmp_path: Path, command: str, status: int) -> None:
    rows = [row(0, 0, 1, "send", 0, 0, destinations=(0, 1)), row(1, 0, 2, "deliver", 0, 0)]
    config = json.dumps({"live": {"members": [HOSTILE, "b"]}})
    trace = write(tmp_path, rows, nodes=2, protocol="po", config=config)
    more = ["--view"] if command == "audit" else []
    program = [sys.executable, "-u", "-m", "ordercast.cli", command, str(trace), "--no-open", *more]
    with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:  # noqa: S603
        assert process.stdout is not None
        address = next(line for line in process.stdout if line.startswith("http://")).strip()
        with urllib.request.urlopen(address, timeout=60) as answer:  # noqa: S310
            page = answer.read().decode()
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert process.returncode == status
    assert "on this machine only, until interrupted" in said
    assert "Traceback" not in said
    assert "<img" not in page
    assert ('"breaks":"complete"' in page) == (command == "audit")


def test_following_a_trace_that_is_deleted_ends_with_a_sentence(tmp_path: Path) -> None:
    trace = write(tmp_path / "t", one_loss())
    program = [sys.executable, "-u", "-m", "ordercast.cli", "view", str(trace), "--no-open", "--follow"]
    with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:  # noqa: S603
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        asked = f"{address}grown?run=r"
        with urllib.request.urlopen(asked, timeout=60) as answer:  # noqa: S310
            assert json.load(answer)["since"] is None
        shutil.rmtree(trace)
        with pytest.raises(urllib.error.HTTPError, match="410"):
            urllib.request.urlopen(asked, timeout=60)  # noqa: S310
        _, said = process.communicate(timeout=60)
    assert process.returncode == 2
    assert f"{trace} is gone: it was deleted or moved; say where it is, and follow it anew" in said
    assert "Traceback" not in said


@pytest.mark.parametrize("what", ["sweep", "evaluation", "a file", "nothing", "no rights"])
def test_what_is_no_trace_of_one_run_is_shown_or_refused(ordercast: Command, tmp_path: Path, what: str) -> None:
    """A sweep is a trace of many runs; an evaluation has results and no events."""
    folder = tmp_path / "f"
    folder.mkdir()
    if what == "sweep":
        rows = [write(tmp_path / name, one_loss(), run=name) for name in "ab"]
        for dataset in ("events", "runs"):
            (folder / dataset).mkdir()
            for place, trace in enumerate(rows):
                [file] = (trace / dataset).iterdir()
                file.rename(folder / dataset / f"{place}.parquet")
        page = tmp_path / "page.html"
        done = ordercast("view --run b", folder, "--export", page)
        assert (done.status, "1 other run not in the file: --run" in done.err) == (0, True)
        assert [run["key"] for run in data_of(page)["runs"]] == ["b"]
        return
    if what == "evaluation":
        (folder / "evaluation.json").write_text("{}")
    if what == "a file":
        folder.rmdir()
        folder.write_text("")
    if what == "no rights":
        if os.geteuid() == 0:
            pytest.skip("nothing is forbidden to this user")
        (write(folder, one_loss()) / "events").chmod(0)
    done = ordercast("view --no-open", folder)
    assert done.status == 2
    assert str(folder) in done.sentence


def test_a_port_in_use_and_a_page_that_cannot_be_written_are_sentences(ordercast: Command, tmp_path: Path) -> None:
    trace = write(tmp_path / "t", one_loss())
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = ordercast("view --no-open --port", port, trace)
    assert done.status == 2
    assert done.sentence.startswith(f"cannot serve at 127.0.0.1:{port}: Address already in use; choose another --port")
    with small_disk(tmp_path / "disk") as disk:
        fill(disk)
        done = ordercast("view", trace, "--export", disk / "page.html")
        assert done.status == 2
        assert "cannot write the page" in done.sentence
        assert "No space left on device; choose another path" in done.sentence
        assert [file.name for file in disk.iterdir()] == ["filler"], "nothing half written stays"


def test_no_browser_is_said(ordercast: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = write(tmp_path, one_loss())
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)  # which returns nothing, as for no browser
    monkeypatch.setattr(
        "ordercast.viewer.server.ViewerServer.serve_forever", lambda *_, **__: os.kill(os.getpid(), signal.SIGINT)
    )
    done = ordercast("view", trace)
    assert done.status == 0
    assert opened == [done.out.strip()]
    assert "no browser was found; open the address yourself" in done.err
