"""`ordercast audit`: what it says of traces, and its exit status."""

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from ordercast.audit.names import merged_names
from ordercast.audit.verdict import Finding, Verdict
from ordercast.cli.audit import print_verdict
from ordercast.trace.run_writer import TraceWriter
from ordercast.trace.schema import EventField, EventRow
from tests.cli.conftest import Command, Outcome

PROMISES_OF_SPO = {
    "sender_order_kept",
    "complete",
    "accepted_truthfully",
    "preacknowledged_truthfully",
    "acknowledged_truthfully",
    "delivered_truthfully",
}


def send(node: int, step: int, seq: int, *destinations: int) -> EventRow:
    return (node, step, 10 * seq, "send", node, seq, destinations, None, 8, None, None)


def deliver(node: int, step: int, source: int, seq: int) -> EventRow:
    return (node, step, 1_000 + step, "deliver", source, seq, None, None, None, None, None)


def write(folder: Path, rows: list[EventRow], run: str = "r", protocol: str = "spo", sent: int = 2, **row: Any) -> Path:
    with TraceWriter(folder, run) as trace:
        trace.write(rows)
        trace.finish({"protocol": protocol, "nodes": 3, "complete": True, "sent": sent, **row})
    return folder


SENT = [send(0, 0, 0, 1, 2), send(0, 1, 1, 1, 2)]
GOOD = [*SENT, deliver(1, 0, 0, 0), deliver(1, 1, 0, 1), deliver(2, 0, 0, 0), deliver(2, 1, 0, 1)]
SWAPPED = [*SENT, deliver(1, 0, 0, 0), deliver(1, 1, 0, 1), deliver(2, 0, 0, 1), deliver(2, 1, 0, 0)]
LACKING = [*SENT, deliver(1, 0, 0, 0), deliver(1, 1, 0, 1), deliver(2, 0, 0, 0)]


def audited(ordercast: Command, tmp_path: Path, *arguments: object) -> tuple[Outcome, dict[str, Any]]:
    """What the command said, and the document that it wrote."""
    done = ordercast("audit", *arguments, "--json", tmp_path / "verdict.json")
    document = json.loads((tmp_path / "verdict.json").read_text())
    assert isinstance(document, dict)
    return done, document


def violated(document: dict[str, Any]) -> set[str]:
    return {name for name, finding in document["properties"].items() if not finding["holds"]}


# --- exit 0 ---


@pytest.mark.parametrize(
    "options", ["", "--loss 0.2 --spread 0.5", "--channel one --batch 4 --fault 'bursts well=3ms bad=1ms'"]
)
def test_a_simulated_run_holds(ordercast: Command, tmp_path: Path, options: str) -> None:
    line = f"simulate spo --nodes 4 --messages 40 {options} --json"
    delivered = json.loads(ordercast(line, "--out", tmp_path / "t").out)["counters"]["delivered"]
    done, document = audited(ordercast, tmp_path, tmp_path / "t")
    assert (done.status, done.err) == (0, "")
    assert f"{delivered:,} deliveries" in done.out
    assert document["holds"] is True
    assert (document["runs"], document["deliveries"]) == (1, delivered)
    assert set(document["properties"]) == PROMISES_OF_SPO
    for finding in document["properties"].values():
        assert (finding["holds"], finding["violations"], finding["witnesses"]) == (True, 0, [])
    for name in PROMISES_OF_SPO:
        assert any(line.split()[:2] == [name, "holds"] for line in done.out.splitlines())


def test_a_group_that_was_given_up_holds_what_it_still_promises(ordercast: Command, tmp_path: Path) -> None:
    crash = "simulate spo --no-views --nodes 4 --messages 60 --fault 'crash node=E2 at=4ms' --out"
    assert ordercast(crash, tmp_path / "t").status == 1
    assert ordercast("audit", tmp_path / "t").status == 0


def test_what_was_not_recorded_is_said(ordercast: Command, tmp_path: Path) -> None:
    ordercast("simulate spo --messages 20 --record deliveries --out", tmp_path / "t")
    done, document = audited(ordercast, tmp_path, tmp_path / "t")
    assert done.status == 0
    assert set(document["properties"]) == {"sender_order_kept", "complete"}
    assert done.out.count("not recorded") == 4


# --- exit 1 ---


@pytest.mark.parametrize(
    ("rows", "broken", "sentence"),
    [(SWAPPED, "sender_order_kept", "E3"), (LACKING, "complete", "E1#1")],
)
def test_a_broken_promise_comes_with_its_witness(
    ordercast: Command, tmp_path: Path, rows: list[EventRow], broken: str, sentence: str
) -> None:
    done, document = audited(ordercast, tmp_path, write(tmp_path / "t", rows))
    assert (done.status, done.err) == (1, "")
    assert document["holds"] is False
    assert violated(document) == {broken}
    finding = document["properties"][broken]
    assert finding["violations"] == len(finding["witnesses"]) == 1
    [witness] = finding["witnesses"]
    assert witness["run"] == "r"
    assert sentence in witness["sentence"]
    assert any(line.split()[:2] == [broken, "violated"] for line in done.out.splitlines())
    assert witness["sentence"] in done.out


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        (SWAPPED, "cy delivered E2#1 before E2#0, but E2 sent E2#0 first"),
        (LACKING, "cy lacks E2#1, sent to {[b]ob,cy}"),
    ],
)
def test_witnesses_have_the_names_of_the_members(
    ordercast: Command, tmp_path: Path, rows: list[EventRow], sentence: str
) -> None:
    """Each name is put in place once, also that of a first member called E2; the JSON keeps its sentences."""
    names = ["E2", "[b]ob", "cy"]
    trace = write(tmp_path / "t", rows, config=json.dumps({"live": {"members": names}}))
    done, document = audited(ordercast, tmp_path, trace)
    assert done.status == 1
    assert f", run r: {sentence}\n" in done.out
    assert document["members"] == {"r": names}
    [broken] = violated(document)
    assert document["properties"][broken]["witnesses"][0]["sentence"].startswith("E3 ")


@pytest.mark.parametrize("config", ["{}", '{"live": {"members": ["ada"]}}', '{"live": {"members": 3}}', "no JSON"])
def test_without_a_name_for_each_node_they_are_numbered(ordercast: Command, tmp_path: Path, config: str) -> None:
    done, document = audited(ordercast, tmp_path, write(tmp_path / "t", LACKING, config=config))
    assert "E3 lacks E1#1, sent to {E2,E3}" in done.out
    assert "members" not in document


def test_who_joined_after_a_record_began_is_numbered_unless_another_record_names_it(
    ordercast: Command, tmp_path: Path
) -> None:
    """A record has the names of those that were there when it began."""
    early = write(tmp_path / "a", LACKING, config=json.dumps({"live": {"members": ["ada", "bob"]}}))
    done, document = audited(ordercast, tmp_path, early)
    assert "E3 lacks ada#1, sent to {bob,E3}" in done.out
    assert document["members"] == {"r": ["ada", "bob", "E3"]}
    assert merged_names(("ada", "bob", "E3"), ("ada", "E2", "cy")) == ("ada", "bob", "cy")
    assert merged_names((), ("ada", "bob")) == merged_names(("ada", "bob"), ("ada",)) == ("ada", "bob")


def test_a_run_may_be_called_as_it_likes(ordercast: Command, tmp_path: Path) -> None:
    done = ordercast("audit", write(tmp_path / "t", SWAPPED, run="[b]r"))
    assert done.status == 1
    assert "  sender_order_kept, run [b]r: " in done.out


def test_the_screen_shows_a_few_witnesses_and_counts_all(ordercast: Command, tmp_path: Path) -> None:
    rows = [send(0, seq, seq, 1) for seq in range(40)]
    done, document = audited(ordercast, tmp_path, write(tmp_path / "t", rows, sent=40))
    finding = document["properties"]["complete"]
    assert finding["violations"] == 40
    assert 3 <= len(finding["witnesses"]) <= 40
    assert sum(line.startswith("  complete, run r:") for line in done.out.splitlines()) == 3


@pytest.mark.parametrize(
    ("service", "broken"),
    [("spo", set()), ("st", {"same_order", "no_cycle"}), ("to", {"same_order", "no_cycle", "complete"})],
)
def test_another_service_may_be_asked_for(ordercast: Command, tmp_path: Path, service: str, broken: set[str]) -> None:
    """Over many channels SPO gives no order between senders; nor does it bring everything to everybody."""
    ordercast("simulate spo --nodes 4 --messages 60 --spread 0.7 --gap 20us --record deliveries --out", tmp_path / "t")
    done, document = audited(ordercast, tmp_path, tmp_path / "t", "--service", service)
    assert done.status == (1 if broken else 0)
    assert violated(document) == broken


# --- several folders ---


def test_members_of_one_group_are_judged_together(ordercast: Command, tmp_path: Path) -> None:
    """Each recorded itself, under one run name: alone, a member seems to lack its peers."""
    members = [
        write(
            tmp_path / f"member-{node}",
            [row for row in GOOD if row[EventField.NODE] == node],
            sent=2 if node == 0 else 0,
        )
        for node in range(3)
    ]
    done, document = audited(ordercast, tmp_path, *members)
    assert done.status == 0
    assert (document["runs"], document["deliveries"]) == (1, 4)
    done, document = audited(ordercast, tmp_path, members[0])
    assert done.status == 1
    assert violated(document) == {"complete"}


def test_folders_of_different_runs_are_all_judged(ordercast: Command, tmp_path: Path) -> None:
    folders = [
        write(tmp_path / "good", GOOD, run="good"),
        write(tmp_path / "bad", SWAPPED, run="bad"),
        write(tmp_path / "other", GOOD, run="other"),
    ]
    done, document = audited(ordercast, tmp_path, *folders)
    assert done.status == 1
    assert (document["runs"], document["deliveries"]) == (3, 12)
    assert [witness["run"] for witness in document["properties"]["sender_order_kept"]["witnesses"]] == ["bad"]


# --- exit 2 ---


def spoil(folder: Path) -> None:
    [events] = (folder / "events").iterdir()
    events.write_bytes(events.read_bytes()[: events.stat().st_size // 2])


def test_a_folder_without_a_trace_is_refused(ordercast: Command, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no trace")
    (tmp_path / "empty").mkdir()
    for name in ("nowhere", "empty", "file"):
        done = ordercast("audit", tmp_path / name)
        assert (done.status, done.out) == (2, "")
        assert str(tmp_path / name) in done.sentence


def test_a_damaged_trace_is_refused_with_the_file(ordercast: Command, tmp_path: Path) -> None:
    good, bad = write(tmp_path / "good", GOOD, run="good"), write(tmp_path / "bad", GOOD, run="bad")
    spoil(bad)
    for folders in ([bad], [good, bad], [bad, good]):
        done = ordercast("audit", *folders, "--json", tmp_path / "verdict.json")
        assert (done.status, done.out) == (2, "")
        assert str(bad / "events" / "bad.parquet") in done.sentence
    assert not (tmp_path / "verdict.json").exists()


def test_a_trace_that_is_not_whole_is_refused(ordercast: Command, tmp_path: Path) -> None:
    folder = write(tmp_path / "t", GOOD)
    (folder / "runs" / "r.parquet").unlink()
    done = ordercast("audit", folder)
    assert (done.status, done.out) == (2, "")
    assert "repeat the run" in done.sentence


def test_the_same_folder_twice_is_refused(ordercast: Command, tmp_path: Path) -> None:
    folder = write(tmp_path / "t", GOOD)
    done = ordercast("audit", folder, folder)
    assert (done.status, done.out) == (2, "")
    assert "no two folders" in done.sentence


def test_a_run_without_its_events_is_refused(ordercast: Command, tmp_path: Path) -> None:
    ordercast("simulate spo --messages 5 --record none --out", tmp_path / "t")
    done = ordercast("audit", tmp_path / "t")
    assert (done.status, done.out) == (2, "")
    assert "record deliveries" in done.sentence


def test_an_unknown_protocol_needs_a_service(ordercast: Command, tmp_path: Path) -> None:
    folder = write(tmp_path / "t", GOOD, protocol="morse")
    done = ordercast("audit", folder)
    assert (done.status, done.out) == (2, "")
    assert "say which service" in done.sentence
    assert ordercast("audit", folder, "--service", "spo").status == 0


@pytest.mark.parametrize("place", ["nowhere/verdict.json", "folder", "/dev/full", "/"])
def test_a_verdict_that_cannot_be_written_is_refused(ordercast: Command, tmp_path: Path, place: str) -> None:
    (tmp_path / "folder").mkdir()
    done = ordercast("audit", write(tmp_path / "t", GOOD), "--json", tmp_path / place)
    assert (done.status, done.out) == (2, "")
    assert done.sentence.startswith(f"cannot write the verdict {tmp_path / place}: ")
    assert done.sentence.endswith("; choose another path")


@pytest.mark.parametrize("line", ["audit", "audit t --service best", "audit t --speed"])
def test_bad_arguments_are_refused(ordercast: Command, line: str) -> None:
    done = ordercast(line)
    assert (done.status, done.out) == (2, "")
    assert done.err
    assert "Traceback" not in done.err


def test_what_was_counted_in_parts_only_is_said() -> None:
    verdict = Verdict(runs=1, deliveries=1)
    verdict.findings["complete"] = Finding(runs=1, violations=4, at_least=True)
    verdict.findings["no_cycle"] = Finding(runs=1, at_least=True)
    verdict.findings["same_order"] = Finding(runs=1)
    console = Console(record=True, width=100, file=StringIO())
    print_verdict(verdict, console)
    lines = [" ".join(line.split()) for line in console.export_text().splitlines()]
    assert lines[0] == "1 run, 1 delivery"
    assert "complete violated 1 at least 4" in lines
    assert "no_cycle none seen 1 at least 0" in lines
    assert "same_order holds 1 0" in lines
    document: Any = verdict.as_document()
    counts = {name: told["counts"] for name, told in document["properties"].items()}
    assert counts == {"complete": "at least", "no_cycle": "at least", "same_order": "exact"}


def test_a_profile_is_a_service(ordercast: Command, tmp_path: Path) -> None:
    trace = write(tmp_path / "trace", [send(0, 0, 0, 1), deliver(1, 0, 0, 0), deliver(1, 1, 0, 0)], sent=1)
    file = tmp_path / "mine.toml"
    file.write_text("[properties]\nall_delivered = true\ndelivered_once = false\n")
    done = ordercast("audit", trace, "--service", file)
    assert done.status == 0
    assert "all_delivered" in done.out
    assert "delivered_once" not in done.out, "what is off is not judged"
    assert ordercast("audit", trace, "--service", "exactly-once").status == 1


def test_a_profile_that_cannot_be_read_is_told(ordercast: Command, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text("[properties]\nall_delivred = true\n")
    for given, sentence in ((file, "did you mean 'all_delivered'?"), ("kafka", "there is no service 'kafka'")):
        done = ordercast("audit", tmp_path, "--service", given)
        assert done.status == 2
        assert sentence in done.sentence
