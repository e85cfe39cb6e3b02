"""`ordercast simulate`: what it prints, writes and returns."""

import json
import shlex
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree as ET

import pyarrow.parquet as pq
import pytest
from rich.progress import Progress as ProgressBar

from ordercast.cli.shared.run_summary import _time
from ordercast.model.config import GroupConfig, Rules
from ordercast.model.faults import Crash, Loss, Miss
from ordercast.model.runs import Channel, Network, Pattern, RunConfig, TraceDetail, Workload
from ordercast.simulator import simulate
from ordercast.simulator.counters import Counters
from ordercast.trace.schema import COUNTERS
from tests.cli.conftest import Command

SMALL = "simulate spo --nodes 3 --messages 4 --loss 0.1 --seed 2"
CRASHED = f"{SMALL} --no-views --fault 'crash node=E3 at=400us'"


def files_in(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def document_of(text: str) -> dict[str, Any]:
    document = json.loads(text)
    assert isinstance(document, dict)
    return document


# --- exit status ---


def test_exit_0_when_every_message_was_acknowledged_everywhere(ordercast: Command, tmp_path: Path) -> None:
    """The very command that scripts rely on."""
    line = "simulate spo --nodes 4 --messages 20 --spread 0.5 --loss 0.1 --seed 3 --out"
    done = ordercast(line, tmp_path / "t")
    assert (done.status, done.err) == (0, "")
    assert "every message acknowledged everywhere" in done.out


def test_exit_1_when_not(ordercast: Command) -> None:
    done = ordercast(CRASHED)
    assert (done.status, done.err) == (1, "")
    assert "incomplete, a node aborted" in done.out


@pytest.mark.parametrize(("line", "status"), [(SMALL, 0), (CRASHED, 1), (f"{SMALL} --spread 0", 2), ("simulate", 2)])
def test_the_process_ends_with_that_status(line: str, status: int) -> None:
    command = [sys.executable, "-m", "ordercast.cli", *shlex.split(line)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    assert done.returncode == status
    assert bool(done.stderr) == (status == 2)
    assert bool(done.stdout) == (status != 2)
    assert "Traceback" not in done.stderr


# --- groups whose members change ---


@pytest.mark.parametrize("protocol", ["spo", "po", "st", "to", "prito", "prio", "sequencer"])
def test_members_crash_join_leave_and_return_in_every_order(ordercast: Command, tmp_path: Path, protocol: str) -> None:
    line = (
        f"simulate {protocol} --messages 10 --loss 0.05 --fault 'crash node=E2 at=3ms' --fault 'join node=E5 at=2ms' "
        "--fault 'leave node=E3 at=6ms' --fault 'return node=E2 at=60ms' --fault 'suspect node=E4 by=E1 at=80ms' --out"
    )
    done = ordercast(line, tmp_path / "t")
    assert (done.status, done.err) == (0, "")
    assert "E2 crashed at 3 ms; E2 started again at 60 ms, as E6; joined: E5; left: E3; view " in done.out
    assert ": E1, E4, E5, E6\n" in done.out
    audit = ordercast("audit", tmp_path / "t", "--json", tmp_path / "verdict.json")
    assert audit.status == 0
    verdict = document_of((tmp_path / "verdict.json").read_text())
    assert verdict["holds"]
    assert verdict["properties"]["same_set"]["holds"]


def test_a_crash_alone_brings_views_and_only_without_them_ends_the_group(ordercast: Command) -> None:
    crash = "--fault 'crash node=E3 at=400us' --json"
    with_views = document_of(ordercast(f"{SMALL} {crash}").out)
    assert (with_views["complete"], with_views["config"]["group"]["views"], with_views["view"]["number"]) == (
        *(True, True),
        1,
    )
    assert document_of(ordercast(f"{SMALL} --no-views {crash}").out)["aborted"]
    assert document_of(ordercast(f"{SMALL} --views --json").out)["config"]["group"]["views"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--no-views --fault 'join node=E5 at=1ms'", "--no-views has no meaning where nodes join"),
        ("--rules paper --fault 'leave node=E1 at=1ms'", "only the sound rules run with views"),
        ("--rules paper --views", "only the sound rules run with views"),
        ("--fault 'join node=E5 at=1ms' --fault 'crash node=E5 at=0'", "E5 starts at 1,000,000 ns"),
        ("--fault 'suspect node=E1 by=E1 at=0'", "a node does not suspect itself"),
        ("--fault 'split nodes=E1 from=3ms until=2ms'", "'until=2ms' must be later than the beginning, 3ms"),
        ("--fault 'leave node=E9 at=1ms'", "a fault names E9"),
    ],
)
def test_changes_that_make_no_sense_are_refused_with_a_sentence(ordercast: Command, options: str, words: str) -> None:
    done = ordercast(f"{SMALL} {options}")
    assert done.status == 2
    assert words in " ".join(done.err.split())


# --- what is run ---


def test_every_option_reaches_the_configuration(ordercast: Command) -> None:
    done = ordercast(
        "simulate spo --nodes 5 --rules sound --window 7 --quota 33 --infer-losses --messages 12 --spread 0.4 "
        "--pattern bursty --gap 1.5ms --burst 6 --batch 2 --size 10 --loss 0.05 --channel one --propagation 70us "
        "--jitter 3us --bandwidth 10Mbit --receive-time 2us --receive-buffer 90 --drained --seed 77 "
        "--record deliveries --json --fault 'miss node=E2 source=E1 nth=3' --fault 'crash node=4 at=2s' --no-views"
    )
    network = Network(
        channel=Channel.ONE,
        propagation=70_000,
        jitter=3_000,
        bits_per_second=10_000_000,
        receive_time=2_000,
        receive_buffer=90,
        drained=True,
    )
    workload = Workload(messages=12, spread=0.4, pattern=Pattern.BURSTY, gap=1_500_000, burst=6, batch=2, size=10)
    expected = RunConfig(
        protocol="spo",
        group=GroupConfig(
            nodes=5, rules=Rules.SOUND, window=7, quota=33, infer_losses=True, timing=workload.timing(network, 5)
        ),
        network=network,
        workload=workload,
        faults=(Loss(rate=0.05), Miss(node=1, source=0, nth=3), Crash(node=4, at=2_000_000_000)),
        seed=77,
        record=TraceDetail.DELIVERIES,
        stall_timeout=1024 * workload.timing(network, 5).poll,
    )
    config = document_of(done.out)["config"]
    assert RunConfig.from_json(json.dumps(config)) == expected
    assert done.status == 0


def test_without_options_a_run_is_as_the_model_says(ordercast: Command) -> None:
    config = RunConfig.from_json(json.dumps(document_of(ordercast("simulate spo --json").out)["config"]))
    assert config == RunConfig(protocol="spo", group=GroupConfig(nodes=4, timing=config.group.timing))
    assert config.group.timing == Workload().timing(Network(), 4)


@pytest.mark.parametrize(("protocol", "channel"), [("spo", "many"), ("st", "one"), ("sequencer", "any")])
def test_the_channel_is_what_the_protocol_needs(ordercast: Command, protocol: str, channel: str) -> None:
    done = ordercast(f"simulate {protocol} --nodes 3 --messages 5 --loss 0.1 --json")
    assert (done.status, document_of(done.out)["config"]["network"]["channel"]) == (0, channel)


def test_where_units_take_seconds_patience_is_longer(ordercast: Command) -> None:
    """Of two nodes that are half a minute apart, none is called stalled while a unit is on its way."""
    slow = "--propagation 30s --jitter 1s --gap 10s --loss 0.2 --seed 1"
    done = ordercast(f"simulate spo --nodes 3 --messages 6 {slow} --json")
    assert (done.status, document_of(done.out)["stalled"]) == (0, False)


# --- JSON ---


def test_json_is_one_object_with_everything(ordercast: Command) -> None:
    document = document_of(ordercast(SMALL, "--json").out)
    result = simulate(RunConfig.from_json(json.dumps(document["config"])))
    assert document["run"] == result.config.name()
    assert document["counters"] == dict(result.counters.columns())
    assert set(document["counters"]) == dict(Counters().columns()).keys()
    assert document["counters"]["sent"] == 12
    assert (document["complete"], document["stalled"], document["aborted"]) == (True, False, False)
    assert document["virtual_time"] == result.virtual_time
    assert document["waits_for"] == {}
    assert set(document["latency"]) == {"accepted", "pre-acknowledged", "acknowledged"}
    for level, measured in zip(document["latency"].values(), result.counters.latency.values(), strict=True):
        assert level == {"count": 36, "p50": measured.percentile(50), "p99": measured.percentile(99)}


def test_json_of_an_incomplete_run_says_what_is_waited_for(ordercast: Command) -> None:
    done = ordercast(CRASHED, "--json")
    document = document_of(done.out)
    assert (done.status, document["complete"], document["aborted"]) == (1, False, True)
    assert set(document["waits_for"]) == {"E1", "E2"}  # E3 waits for nothing any more
    assert all("E3" in " ".join(lines) for lines in document["waits_for"].values())


# --- the summary ---


def test_the_summary_counts_one_as_one(ordercast: Command) -> None:
    done = ordercast("simulate spo --nodes 3 --messages 1 --fault 'miss source=E1 nth=1 node=E2'")
    lines = [" ".join(line.split()) for line in done.out.splitlines()]
    assert "losses 1 unit that did not reach a node; 1 of them data for it" in lines
    assert "repairs 1 retransmission for 1 request; 1.00 for each such loss" in lines
    assert "discarded 1 received data unit; 0 duplicated by the network" in lines
    assert "messages 3 sent by 3 nodes; 9 deliveries" in lines


def test_the_summary_tells_what_happened(ordercast: Command) -> None:
    many = "simulate spo --nodes 5 --messages 300 --loss 0.1 --fault 'duplicates rate=0.02'"
    done, document = ordercast(many), document_of(ordercast(many, "--json").out)
    counts = document["counters"]
    lines = [" ".join(line.split()) for line in done.out.splitlines()]
    assert lines[0].startswith("spo (sound rules), 5 nodes, seed 0: every message acknowledged everywhere after ")
    for line in (
        "messages 1,500 sent by 5 nodes; 7,500 deliveries",
        f"data units {counts['transmitted']:,} put on the channel; {counts['received']:,} reached a node",
        f"losses {counts['lost']:,} units that did not reach a node; {counts['lost_data']:,} of them data for it",
    ):
        assert line in lines
    for start in (
        f"control units {counts['control']:,} {counts['control'] / counts['transmitted']:.2f} for each data unit",
        f"repairs {counts['retransmitted']:,} retransmissions for {counts['requests']:,} requests",
        f"discarded {counts['discarded']:,} received data units; {counts['duplicated']:,} duplicated by the network",
        "reached p50 p99 most longest log",
    ):
        assert any(line.startswith(start) for line in lines)
    levels = {line.split()[0]: line for line in lines if line.startswith(("accepted", "pre-ack", "acknowledged"))}
    assert levels["accepted"].endswith(f" {counts['longest_accepted']}")
    assert levels["pre-acknowledged"].endswith(f" {counts['longest_preacknowledged']}")
    for name, times in document["latency"].items():
        shown = levels[name].removeprefix(f"{name} ")
        assert shown.startswith(f"{_time(times['p50'])} {_time(times['p99'])} ")


@pytest.mark.parametrize(
    ("nanoseconds", "shown"),
    [
        (0, "0 ns"),
        (999, "999 ns"),
        (1_000, "1 µs"),
        (63_488, "63.5 µs"),
        (999_499, "999 µs"),
        (999_999, "1 ms"),
        (1_234_567, "1.23 ms"),
        (999_999_999, "1 s"),
        (12_345_000_000, "12.3 s"),
        (999_600_000_000, "1,000 s"),
        (1_234_567_000_000_000, "1,234,567 s"),
    ],
)
def test_times_have_three_digits(nanoseconds: int, shown: str) -> None:
    assert _time(nanoseconds) == shown


def test_the_summary_of_an_incomplete_run_says_what_each_node_waits_for(ordercast: Command) -> None:
    lines = ordercast(CRASHED).out.splitlines()
    for name in ("E1", "E2"):
        assert any(line.startswith(f"  {name}: ") and "not known to be accepted by {E3}" in line for line in lines)


def test_the_summary_of_nothing_divides_by_nothing(ordercast: Command) -> None:
    done = ordercast("simulate spo --messages 0")
    assert done.status == 0
    assert "– for each" in done.out


def test_printed_rules_stop_and_say_why(ordercast: Command) -> None:
    """As printed, nobody speaks without data, so that the last messages are never acknowledged."""
    printed = "simulate spo --nodes 3 --messages 20 --rules paper --loss 0.1"
    done = ordercast(printed)
    assert (done.status, done.err) == (1, "")
    assert "spo (paper rules)" in done.out
    assert "incomplete" in done.out
    for name in ("E1", "E2", "E3"):
        assert any(line.startswith(f"  {name}: ") for line in done.out.splitlines())
    document = document_of(ordercast(printed, "--json").out)
    assert set(document["waits_for"]) == {"E1", "E2", "E3"}
    assert document["complete"] is False


# --- pictures ---


def test_draw_prints_lanes(ordercast: Command) -> None:
    done = ordercast(SMALL, "--draw")
    assert done.status == 0
    header = done.out.splitlines()[0].split()
    assert header[1:] == ["E1", "E2", "E3"]
    assert "►" in done.out
    assert "1.0→" in done.out  # the first message of E1 and to whom
    assert "every message acknowledged" in done.out


def test_svg_is_a_picture_with_all_nodes(ordercast: Command, tmp_path: Path) -> None:
    done = ordercast(SMALL, "--svg", tmp_path / "run.svg")
    assert done.status == 0
    root = ET.fromstring((tmp_path / "run.svg").read_text(encoding="utf-8"))  # noqa: S314 - our own output
    assert root.tag.endswith("svg")
    words = "".join(root.itertext())
    assert all(name in words for name in ("E1", "E2", "E3"))


def test_a_picture_comes_with_an_incomplete_run_too(ordercast: Command, tmp_path: Path) -> None:
    assert ordercast(CRASHED, "--svg", tmp_path / "run.svg").status == 1
    assert ET.parse(tmp_path / "run.svg").getroot().tag.endswith("svg")  # noqa: S314 - our own output


# --- the trace ---


def test_the_trace_is_where_it_was_wanted(ordercast: Command, tmp_path: Path) -> None:
    out = tmp_path / "deep" / "er"
    done = ordercast(SMALL, "--out", out)
    counts = document_of(ordercast(SMALL, "--json").out)
    assert files_in(out) == [f"events/{counts['run']}.parquet", f"runs/{counts['run']}.parquet"]
    assert f"ordercast audit {out}" in done.out
    [row] = pq.read_table(out / "runs", partitioning=None).to_pylist()
    assert {name: row[name] for name in ("run", "protocol", "nodes", "channel", "seed", "complete")} == {
        "run": counts["run"],
        "protocol": "spo",
        "nodes": 3,
        "channel": "many",
        "seed": 2,
        "complete": True,
    }
    assert {name: row[name] for name in COUNTERS} == {name: counts["counters"][name] for name in COUNTERS}
    assert json.loads(row["config"]) == counts["config"]
    events = pq.read_table(out / "events", partitioning=None).to_pylist()
    assert {event["run"] for event in events} == {counts["run"]}
    assert sum(event["event"] == "deliver" for event in events) == counts["counters"]["delivered"]


def test_an_incomplete_run_leaves_its_trace_too(ordercast: Command, tmp_path: Path) -> None:
    assert ordercast(CRASHED, "--out", tmp_path / "t").status == 1
    [row] = pq.read_table(tmp_path / "t" / "runs", partitioning=None).to_pylist()
    assert (row["complete"], row["aborted"]) == (False, True)


@pytest.mark.parametrize(("record", "kinds"), [("deliveries", {"send", "deliver"}), ("none", set())])
def test_the_trace_can_be_narrowed(ordercast: Command, tmp_path: Path, record: str, kinds: set[str]) -> None:
    assert ordercast(SMALL, "--record", record, "--out", tmp_path / "t").status == 0
    events = pq.read_table(tmp_path / "t" / "events", partitioning=None).to_pylist()
    assert {event["event"] for event in events} == kinds


@pytest.mark.parametrize("name", ["with space", "[/b]", "[red]x", "ümläut"])
def test_the_command_to_judge_it_can_be_copied(ordercast: Command, tmp_path: Path, name: str) -> None:
    """A folder may be called as it likes."""
    done = ordercast(SMALL, "--out", tmp_path / name)
    assert done.status == 0
    line = done.out.splitlines()[-1]
    assert line.startswith(f"The trace is in {tmp_path / name}; audit it with: ordercast audit ")
    assert shlex.split(line.partition("audit it with: ")[2]) == ["ordercast", "audit", str(tmp_path / name)]


# --- besides ---


def test_the_version_needs_no_command(ordercast: Command) -> None:
    done = ordercast("--version")
    assert done.status == 0
    assert done.out.split()[0] == "ordercast"
    assert done.out.split()[1][0].isdigit()


@pytest.mark.parametrize("option", ["-h", "--help"])
def test_help_names_all_options(ordercast: Command, option: str) -> None:
    done = ordercast("simulate", option)
    assert done.status == 0
    for name in ("--nodes", "--messages", "--spread", "--loss", "--seed", "--out", "--fault", "--json", "--svg"):
        assert name in done.out


def test_without_a_command_there_is_help(ordercast: Command) -> None:
    done = ordercast("")
    assert "simulate" in done.out
    assert "audit" in done.out


def test_a_bar_is_shown_where_somebody_looks(ordercast: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """On standard error alone: what is printed stays the same."""
    unwatched = ordercast(SMALL)
    monkeypatch.setattr("ordercast.simulator.simulation._PROGRESS_MASK", 31)
    told: list[dict[str, float]] = []
    monkeypatch.setattr(ProgressBar, "update", lambda *_, **fields: told.append(fields))
    monkeypatch.setattr(
        "ordercast.cli.shared.progress.sys", SimpleNamespace(stderr=SimpleNamespace(isatty=lambda: True))
    )
    watched = ordercast(SMALL)
    assert (watched.status, watched.out) == (0, unwatched.out)
    assert {fields["total"] for fields in told} == {12}
    assert 0 < told[-1]["completed"] <= 12


def test_standard_output_is_not_painted_when_nobody_looks(ordercast: Command) -> None:
    for line in (SMALL, f"{SMALL} --draw", CRASHED):
        assert "\x1b" not in ordercast(line).out


@pytest.mark.parametrize("line", [SMALL, f"{SMALL} --draw", f"{SMALL} --json", "--help"])
def test_a_reader_that_leaves_early_gets_no_false_verdict(line: str) -> None:
    """`ordercast simulate … | head -1` under `pipefail`: 1 would mean that something was not acknowledged."""
    command = f"{shlex.quote(sys.executable)} -m ordercast.cli {line} | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)  # noqa: S603, S607
    assert (done.returncode, done.stderr) == (141, "")


# --- options that a protocol does not heed ---


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("to --infer-losses", "--infer-losses has no effect for to, only for po, spo and st"),
        ("spo --resilience 1", "--resilience has no effect for spo, only for sequencer"),
        ("po --urgent 0.1", "--urgent has no effect for po, only for prio and prito"),
        ("spo --burst 3", "--burst has no effect for --pattern poisson, only for bursty"),
    ],
)
def test_an_option_without_effect_is_refused(ordercast: Command, arguments: str, sentence: str) -> None:
    done = ordercast(f"simulate {arguments} --nodes 3 --messages 2")
    assert (done.status, done.out) == (2, "")
    assert done.sentence == f"{sentence}: omit it"


def test_a_share_of_the_group_without_effect_is_told(ordercast: Command) -> None:
    done = ordercast("simulate to --spread 0.5 --nodes 3 --messages 2")
    assert done.status == 0
    assert done.sentence == "--spread has no effect for to, only for spo and st"


@pytest.mark.parametrize(
    "protocol",
    [
        "spo --spread 0.5 --infer-losses",
        "st --recovery go-back-n --infer-losses",
        "po --infer-losses",
        "prito --urgent 0.1",
    ],
)
def test_an_option_that_is_heeded_is_not(ordercast: Command, protocol: str) -> None:
    assert ordercast(f"simulate {protocol} --nodes 3 --messages 2").err == ""
