"""Whatever is wrong: exit 2, one sentence that says what to do, no stack trace, and nothing half-written."""

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ordercast.model.progress import Progress
from ordercast.simulator import RunResult
from ordercast.simulator import simulate as simulate_module
from ordercast.simulator.simulation import Simulation
from tests.cli.conftest import Command
from tests.small_disk import fill, small_disk

SMALL = "simulate spo --nodes 3 --messages 4"
LONG = "simulate spo --nodes 16 --messages 5000 --record deliveries"


def bytes_in(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# --- other storage ---


@pytest.mark.parametrize(
    "line",
    [
        "log show",
        "replay",
        "sweep --out results",
        "key --out",
        "simulate spo --svg",
        "check spo --write",
        "shrink 17 --out",
        "audit trace --json",
        "view trace --export",
    ],
)
def test_a_url_does_not_become_a_folder(
    ordercast: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    """Traces, histories and results may be elsewhere; all other files are local ones."""
    monkeypatch.chdir(tmp_path)
    found = ordercast(f"{line} s3a://there/file")
    assert (found.status, found.out) == (2, "")
    assert found.sentence.startswith("s3a:// is no local folder, and files elsewhere are not read or written; ")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "line",
    [
        "soak --runs 1 --out",
        "evaluate --out",
        "sweep examples/demo.toml --out",
        "simulate spo --out",
        "report",
        "audit",
        "view",
    ],
)
def test_a_storage_that_cannot_be_reached_is_told_as_such(
    ordercast: Command, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    """And not as a problem of standard output; nor does the URL become a folder."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    found = ordercast(f"{line} s3a://there/trace")
    assert found.status == 2
    assert "s3://there/trace" in found.sentence
    assert "127.0.0.1" in found.sentence or "onnect" in found.sentence
    assert "standard output" not in found.sentence
    assert not Path("s3a:").exists()


# --- bad values ---

OURS = [
    ("simulate xyz", "unknown protocol 'xyz'; choose one of: "),
    ("simulate total", "'total' is an order of live groups; the name of its protocol is st"),
    ("soak --runs 1 --protocols spo,priority", "'priority' is an order of live groups"),
    ("shrink 17 --protocol partial", "'partial' is an order of live groups; the name of its protocol is spo"),
    ("shrink 17 --kind nope", "unknown failure 'nope'; choose one of: accepted_truthfully, "),
    ("simulate spo --nodes 1", "a group has 2 to 1024 nodes, not 1"),
    ("simulate spo --nodes 0", "a group has 2 to 1024 nodes, not 0"),
    ("simulate spo --nodes -4", "a group has 2 to 1024 nodes, not -4"),
    ("simulate spo --nodes 1025", "a group has 2 to 1024 nodes, not 1025"),
    ("simulate spo --spread 0", "the spread must be above 0 and at most 1, not 0"),
    ("simulate spo --spread 1.5", "the spread must be above 0 and at most 1, not 1.5"),
    ("simulate spo --spread nan", "the spread must be above 0 and at most 1, not nan"),
    ("simulate spo --loss 1", "the loss rate must be at least 0 and below 1, not 1"),
    ("simulate spo --loss -0.1", "the loss rate must be at least 0 and below 1, not -0.1"),
    ("simulate spo --loss nan", "the loss rate must be at least 0 and below 1, not nan"),
    ("simulate spo --messages -1", "the number of messages must not be negative"),
    ("simulate spo --window 0", "the window must be at least 1, not 0"),
    ("simulate spo --quota 0", "the quota must be at least 1, not 0"),
    ("simulate spo --burst 0", "burst must be at least 1"),
    ("simulate spo --batch 0", "a packet carries 1 to 1024 messages"),
    ("simulate spo --batch 1025", "a packet carries 1 to 1024 messages"),
    ("simulate spo --size -1", "a message has 0 to 65000 bytes"),
    ("simulate spo --size 65001", "a message has 0 to 65000 bytes"),
    ("simulate spo --receive-buffer -1", "receive_buffer must not be negative"),
    ("simulate spo --gap soon", "--gap: 'soon' is not a duration such as 50us, 1.5ms or 2s"),
    ("simulate spo --gap -5us", "--gap: '-5us' is not a duration such as"),
    ("simulate spo --propagation 5parsecs", "--propagation: '5parsecs' is not a duration such as"),
    ("simulate spo --jitter ''", "--jitter: '' is not a duration such as"),
    ("simulate spo --receive-time 1e3", "--receive-time: '1e3' is not a duration such as"),
    ("simulate spo --bandwidth fast", "--bandwidth: 'fast' is not a speed such as 10Mbit or 1Gbit"),
    ("simulate spo --fault ''", "--fault: unknown fault ''; choose one of: loss, bursts, "),
    ("simulate spo --fault 'flood at=1ms'", "--fault: unknown fault 'flood at=1ms'; choose one of: loss, "),
    ("simulate spo --fault 'crash node=E2'", "--fault: the fault 'crash node=E2' is invalid: "),
    (
        "simulate spo --fault 'crash node=E2 when=1ms'",
        "'when' is not a field of the fault 'crash'; write: crash node=…",
    ),
    ("simulate spo --fault 'crash node=E5 at=1ms'", "a fault names E5, but the group's nodes are E1 to E4"),
    (
        "simulate spo --fault 'split side=E1,E9 at=0 lasting=1ns'",
        "a fault names E9, but the group's nodes are E1 to E4",
    ),
    ("simulate spo --nodes -4 --fault 'join node=E3 at=1ms'", "a group has 1 to 1024 nodes, not -4"),
    ("simulate st --channel many", "st needs the channel `one`"),
    ("simulate spo --channel any", "spo needs the channel `many`"),
    ("simulate spo --send-time soon", "--send-time: 'soon' is not a duration such as 50us"),
    ("simulate spo --senders E9", "the workload names E9, but the group's nodes are E1 to E4"),
    ("simulate spo --senders E1,,E2", "--senders: '' is not a node"),
    ("simulate sequencer --history 0", "the history must hold at least 1 broadcast"),
    ("simulate sequencer --resilience 4", "the resilience is at most 3, all nodes besides the sequencer, not 4"),
    ("simulate sequencer --direct-from -1", "sequencer.direct_from must not be negative"),
    ("simulate sequencer --rules paper --reading first=1", "--reading: 'first=1' is not a reading"),
    ("simulate spo --json --draw", "use --svg FILE"),
    ("simulate spo --seed 99999999999999999999", "exceeds 64 bits"),
    ("simulate spo --gap 99999999999s", "exceeds 64 bits"),
]


WITHOUT_OUTPUT = [
    ("check sequenced", "'sequenced' is an order of live groups; the name of its protocol is sequencer"),
    ("check spo --fires status", "--fires has no effect without --firings"),
    (
        "node orders --size 3",
        "--size needs the name of this member, its address, and where members discover each other",
    ),
]


@pytest.mark.parametrize(("line", "words"), WITHOUT_OUTPUT)
def test_a_bad_value_is_refused_where_nothing_is_written(ordercast: Command, line: str, words: str) -> None:
    done = ordercast(line)
    assert (done.status, done.out) == (2, "")
    assert words in done.sentence


@pytest.mark.parametrize(("line", "words"), OURS, ids=lambda text: text if text.startswith("simulate") else "")
def test_a_bad_value_is_refused_with_what_would_be_right(
    ordercast: Command, tmp_path: Path, line: str, words: str
) -> None:
    done = ordercast(line, "--out", tmp_path / "t")
    assert (done.status, done.out) == (2, "")
    assert words in done.sentence
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("simulate", "Missing argument"),
        ("simulate spo --nodes many", "--nodes"),
        ("simulate spo --spread wide", "--spread"),
        ("simulate spo --seed x", "--seed"),
        ("simulate spo --channel both", "'both' is not one of 'one', 'many'"),
        ("simulate spo --pattern random", "'random' is not one of"),
        ("simulate spo --record most", "'most' is not one of"),
        ("simulate spo --rules printed", "'printed' is not one of 'sound', 'paper'"),
        ("simulate spo --knots 4", "No such option: --knots"),
        ("simulate spo st", "unexpected extra argument"),
        ("simulate spo --nodes", "--nodes"),
        ("simulat spo", "No such command 'simulat'. Did you mean 'simulate'?"),
        ("xyzzy spo", "No such command 'xyzzy'. "),
    ],
)
def test_what_the_command_does_not_know_is_refused(ordercast: Command, line: str, words: str) -> None:
    done = ordercast(line)
    assert (done.status, done.out) == (2, "")
    assert words.lower() in done.err.lower()
    assert "Traceback" not in done.err


# --- places that cannot be written ---


def test_a_folder_that_holds_a_trace_is_left_as_it_is(ordercast: Command, tmp_path: Path) -> None:
    assert ordercast(SMALL, "--out", tmp_path / "t").status == 0
    before = bytes_in(tmp_path)
    assert len(before) == 2
    for seed in (0, 1):  # the same run, and another
        done = ordercast(SMALL, "--seed", seed, "--out", tmp_path / "t")
        assert (done.status, done.out) == (2, "")
        assert done.sentence == f"{tmp_path / 't'} already holds a trace; choose another folder or remove this one"
    assert bytes_in(tmp_path) == before


@pytest.mark.parametrize("place", ["file", "file/below", "file/far/below"])
def test_a_path_through_a_file_is_refused(ordercast: Command, tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_bytes(b"mine")
    done = ordercast(SMALL, "--out", tmp_path / place)
    assert (done.status, done.out) == (2, "")
    assert str(tmp_path / place) in done.sentence
    assert "choose" in done.sentence
    assert bytes_in(tmp_path) == {"file": b"mine"}


def test_a_folder_that_cannot_be_made_is_refused(ordercast: Command) -> None:
    done = ordercast(SMALL, "--out", "/proc/ordercast")
    assert (done.status, done.out) == (2, "")
    assert "cannot write the trace /proc/ordercast" in done.sentence
    assert "choose another" in done.sentence


@pytest.mark.parametrize("place", ["nowhere/run.svg", "folder", "/dev/full"])
def test_a_picture_that_cannot_be_written_is_refused(ordercast: Command, tmp_path: Path, place: str) -> None:
    (tmp_path / "folder").mkdir()
    done = ordercast(SMALL, "--svg", tmp_path / place)
    assert (done.status, done.out) == (2, "")
    assert done.sentence.startswith(f"cannot write the picture {tmp_path / place}: ")
    assert done.sentence.endswith("; choose another path")


@pytest.mark.parametrize("options", ["--messages 300 --draw", "--messages 1 --nodes 17 --svg SVG"])
def test_a_run_too_large_to_be_drawn_is_refused(ordercast: Command, tmp_path: Path, options: str) -> None:
    options = options.replace("SVG", str(tmp_path / "run.svg"))
    done = ordercast(f"simulate spo {options} --out", tmp_path / "t")
    assert (done.status, done.out) == (2, "")
    assert "fewer messages" in done.sentence or "draw a smaller group" in done.sentence
    assert list(tmp_path.iterdir()) == []


def test_a_run_too_large_to_be_drawn_ends_as_soon_as_that_is_known(
    ordercast: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its rows are kept in memory, and it might go on for hours."""
    monkeypatch.setattr("ordercast.trace.recorder.BATCH", 1_000)
    ended: list[Simulation] = []
    monkeypatch.setattr(Simulation, "_result", lambda run, **_: ended.append(run))
    assert ordercast("simulate spo --messages 300 --draw").status == 2
    assert not ended


@pytest.mark.parametrize("line", ["shrink", "evaluate --out", "soak --runs 1 --out", "sweep grid.toml --out"])
def test_a_path_that_no_file_can_have_is_named(ordercast: Command, tmp_path: Path, line: str) -> None:
    """A configuration given in place of its file, for one."""
    (tmp_path / "grid.toml").write_text('protocol = "spo"')
    place = tmp_path / ("n" * 300)
    done = ordercast(line.replace("grid.toml", str(tmp_path / "grid.toml")), place)
    assert done.status == 2
    assert "n" * 300 in done.sentence
    assert "standard output" not in done.sentence


# --- in processes of their own ---


def run_limited(file_size: int, *arguments: object) -> subprocess.CompletedProcess[str]:
    """The command where no file may grow larger: the kernel refuses to write on, as it does on a full disk."""
    program = (
        "import resource, sys; from ordercast.cli import main; "
        "resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv.pop(1)),) * 2); main()"
    )
    command = [sys.executable, "-c", program, str(file_size), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603


@pytest.mark.parametrize("file_size", [0, 3_000, 60_000])  # no room for a header, for the first rows, for the last
def test_a_full_disk_leaves_nothing(tmp_path: Path, file_size: int) -> None:
    line = "simulate spo --nodes 4 --messages 2500 --loss 0.1 --out"
    done = run_limited(file_size, *line.split(), tmp_path / "t")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"ordercast: cannot write the trace {tmp_path / 't'}: ")
    assert done.stderr.count("\n") == 1
    assert "its disk has room" in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("more", ["", "--json"])
def test_standard_output_without_room_is_told(more: str) -> None:
    command = [sys.executable, "-m", "ordercast.cli", *SMALL.split(), *more.split()]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)  # noqa: S603
    assert done.returncode == 2
    assert done.stderr.startswith("ordercast: cannot write to standard output: ")
    assert done.stderr.count("\n") == 1


# --- interrupts ---


def test_an_interrupt_leaves_nothing_half_written(
    ordercast: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It comes when a batch of rows is written already."""
    seen: list[str] = []

    class Interrupted(Simulation):
        def run(self, progress: Progress | None = None) -> RunResult:
            super().run(progress)
            seen.extend(path.name for path in (tmp_path / "t" / "events").iterdir())
            raise KeyboardInterrupt

    monkeypatch.setattr(sys.modules[simulate_module.__module__], "Simulation", Interrupted)
    done = ordercast(SMALL, "--out", tmp_path / "t")
    assert (done.status, done.out) == (130, "")
    assert done.sentence == "interrupted; no partial output was kept"
    assert [name.startswith("_") for name in seen] == [True]
    assert list(tmp_path.iterdir()) == []


def unfinished(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*.unfinished") if path.stat().st_size > 10_000)


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_from_outside_leaves_nothing_half_written(tmp_path: Path, by: signal.Signals) -> None:
    """Whoever runs the tests in the background hands down that interrupts be ignored: the process heeds them again."""
    heed = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    program = f"{heed}; from ordercast.cli import main; main()"
    command = [sys.executable, "-c", program, *LONG.split(), "--out", str(tmp_path / "new" / "t")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:  # noqa: S603
        try:
            deadline = time.monotonic() + 120
            while not any(unfinished(tmp_path)) and process.poll() is None and time.monotonic() < deadline:
                time.sleep(0.05)
            process.send_signal(by)
            out, err = process.communicate(timeout=120)
        finally:
            process.kill()
    assert (process.returncode, out) == (130, "")
    assert err == "ordercast: interrupted; no partial output was kept\n"
    assert list(tmp_path.iterdir()) == []


def test_our_own_mistakes_are_not_hidden_and_are_no_verdict(
    ordercast: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stack trace is right where nobody but us is wrong; the status is none that means something else."""

    def broken(*_: object, **__: object) -> RunResult:
        raise AssertionError("our own mistake")

    monkeypatch.setattr("ordercast.simulator.simulate", broken)
    done = ordercast(SMALL)
    assert done.status == 70
    assert "Traceback" in done.err
    assert "our own mistake" in done.err


@pytest.mark.parametrize("line", [f"{SMALL} --svg", "key --out"])
def test_a_full_disk_keeps_no_half_written_file(ordercast: Command, tmp_path: Path, line: str) -> None:
    """A key file without a key would be in the way of the next attempt."""
    with small_disk(tmp_path / "disk") as disk:
        fill(disk)
        done = ordercast(line, disk / "file")
        assert done.status == 2
        assert "No space left on device; choose another" in done.err
        assert [path.name for path in disk.iterdir()] == ["filler"]
