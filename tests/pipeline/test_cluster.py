"""The same sweep on a cluster, through Spark Connect, on the wheel's Java, or killed and resumed: equal bytes."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest

from ordercast.pipeline import read_grid
from ordercast.pipeline.sweep import sweep as sweeping
from ordercast.trace.reader import read_runs
from tests.pipeline.runs import bytes_in
from tests.pipeline.sparks import Cluster, connect_server, ordercast, outcome, standalone_cluster, wait_for
from tests.pipeline.test_worker import swept

pytestmark = pytest.mark.cluster

GRID = 'protocol = ["spo", "st"]\nnodes = [3, 6]\nmessages = {messages}\nloss = [0.0, 0.1]\nseeds = 4\n'
SMALL, LONG = 20, 600


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with standalone_cluster(tmp_path_factory.mktemp("cluster")) as running:
        yield running


def grid_of(folder: Path, messages: int) -> tuple[Path, dict[str, bytes]]:
    """A grid, and the bytes that one process writes for it."""
    grid = folder / "grid.toml"
    grid.write_text(GRID.format(messages=messages))
    swept(read_grid(grid), folder / "reference")
    return grid, bytes_in(folder / "reference")


def trace_in(out: Path) -> dict[str, bytes]:
    return {name: content for name, content in bytes_in(out).items() if name != sweeping.MANIFEST}


def begun(out: Path) -> bool:
    return (out / "runs").is_dir() and any(not path.name.startswith("_") for path in (out / "runs").iterdir())


def require_done(command: subprocess.Popen[str]) -> str:
    status, out, err = outcome(command)
    assert (status, err) == (0, ""), out + err
    return out


def test_a_cluster_writes_the_same_bytes(cluster: Cluster, tmp_path: Path) -> None:
    grid, reference = grid_of(tmp_path, SMALL)
    said = require_done(ordercast("sweep", grid, "--out", tmp_path / "out", "--master", cluster.master))
    assert said.startswith("32 runs: 32 complete")
    assert trace_in(tmp_path / "out") == reference
    verdicts = [tmp_path / "there.json", tmp_path / "here.json"]
    require_done(ordercast("audit", tmp_path / "out", "--master", cluster.master, "--json", verdicts[0]))
    require_done(ordercast("audit", tmp_path / "out", "--no-spark", "--json", verdicts[1]))
    there, here = (json.loads(path.read_text()) for path in verdicts)
    assert there == here
    assert there["runs"] == 32


def test_connect_writes_the_same_bytes(tmp_path: Path) -> None:
    grid, reference = grid_of(tmp_path, SMALL)
    with connect_server(tmp_path) as address:
        require_done(ordercast("sweep", grid, "--out", tmp_path / "out", "--master", address))
        command = [sys.executable, "-c", dedent(MEASURE), address, str(grid)]
        measured = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    assert trace_in(tmp_path / "out") == reference
    assert measured.returncode == 0, measured.stderr
    *told, rows = measured.stdout.splitlines()
    assert told[0] == "0 of 16"
    assert told[-1] == "16 of 16"
    by_name = {row["run"]: row for row in read_runs([tmp_path / "out"])}
    assert {row["run"]: row for row in json.loads(rows)} == by_name


MEASURE = """
    import json, sys
    from pathlib import Path
    from ordercast.pipeline import measure, read_grid
    from ordercast.pipeline.session import session

    with session(sys.argv[1]) as spark:
        rows = measure(spark, read_grid(Path(sys.argv[2])), progress=lambda done, all: print(f"{done} of {all}"))
    print(json.dumps(rows))
"""


def test_the_wheels_java_is_enough(tmp_path: Path) -> None:
    """The path has everything that it has here, but no Java."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for folder in os.environ["PATH"].split(os.pathsep):
        for program in Path(folder).iterdir() if Path(folder).is_dir() else ():
            if not program.name.startswith("java") and not (programs / program.name).exists():
                (programs / program.name).symlink_to(program)
    grid, reference = grid_of(tmp_path, SMALL)
    require_done(ordercast("sweep", grid, "--out", tmp_path / "out", PATH=str(programs), JAVA_HOME=""))
    assert trace_in(tmp_path / "out") == reference


@pytest.mark.parametrize("with_what", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_sweep_that_is_stopped_is_gone_on_with(with_what: signal.Signals, tmp_path: Path) -> None:
    grid, reference = grid_of(tmp_path, LONG)
    out = tmp_path / "out"
    stopped = ordercast("sweep", grid, "--out", out, "--master", "local[1]")
    wait_for(lambda: begun(out) or stopped.poll() is not None, "the first chunk")
    stopped.send_signal(with_what)
    status, _, said = outcome(stopped)
    if with_what is not signal.SIGKILL:
        assert status == 130
        assert "continue with --resume" in said
        assert "Traceback" not in said
    done = trace_in(out)
    landed = {name for name in done if not Path(name).name.startswith("_")}
    assert 0 < len(landed) < len(reference)
    said = require_done(ordercast("sweep", grid, "--out", out, "--master", "local[2]", "--resume"))
    assert "of them from before" in said
    assert trace_in(out) == reference


def test_a_worker_that_is_killed_in_mid_job_costs_nothing_but_time(cluster: Cluster, tmp_path: Path) -> None:
    """The last test of the cluster, which has one worker less from now on."""
    grid, reference = grid_of(tmp_path, LONG)
    out = tmp_path / "out"
    command = ordercast("sweep", grid, "--out", out, "--master", cluster.master)
    wait_for(lambda: begun(out) or command.poll() is not None, "the first chunk")
    cluster.workers[0].kill()
    assert len(trace_in(out)) < len(reference)
    said = require_done(command)
    assert said.startswith("32 runs: 32 complete, 0 incomplete, 0 failed")
    assert trace_in(out) == reference
