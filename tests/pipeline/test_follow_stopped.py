"""`ordercast audit --follow` in a process of its own, interrupted as by a terminal, or killed, and begun again."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ordercast.model.services import Service
from ordercast.pipeline.audit.stream.follow import CHECKPOINT
from ordercast.pipeline.audit.stream.follower import Follower
from ordercast.trace.schema import EventField
from tests.pipeline.random_runs import long_enough
from tests.pipeline.sparks import environment, outcome, wait_for
from tests.pipeline.test_follow import add

pytestmark = pytest.mark.cluster


def following(folder: Path, *options: str) -> subprocess.Popen[str]:
    """In a group of processes of its own, as a shell would start it."""
    return subprocess.Popen(  # noqa: S603
        [sys.executable, "-m", "ordercast.cli", "audit", "--follow", str(folder), "--service", "to", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
        start_new_session=True,
    )


def batches_of(folder: Path) -> int:
    return Follower(folder, folder / CHECKPOINT, Service.TOTAL).state.batch


@pytest.mark.parametrize("with_what", [signal.SIGINT, signal.SIGKILL])
def test_following_goes_on_where_it_was_stopped(with_what: signal.Signals, tmp_path: Path) -> None:
    rows = long_enough("stopped").rows()
    add(tmp_path, 0, rows[:60])
    stopped = following(tmp_path)
    wait_for(lambda: batches_of(tmp_path) == 0 or stopped.poll() is not None, "the first batch")
    os.killpg(stopped.pid, with_what)
    status, out, err = outcome(stopped)
    if with_what is signal.SIGINT:  # as Ctrl-C does, which everybody in the group hears
        assert (status, out) == (0, "")
        assert "interrupted; no violation so far" in err
        assert "Traceback" not in err
    add(tmp_path, 1, rows[60:90])
    again = following(tmp_path)
    wait_for(lambda: batches_of(tmp_path) == 1 or again.poll() is not None, "the second batch")
    deliveries = [row for row in rows if row[EventField.EVENT] == "deliver"]
    repeated = [(deliveries[0][0], 10_000, *deliveries[0][2:])]
    add(tmp_path, 2, rows[90:])
    add(tmp_path, 3, repeated)
    status, out, err = outcome(again)
    assert (status, err) == (1, "")
    # If a file had been judged twice or not at all, more than this would be broken.
    node, source, seq = deliveries[0][0], deliveries[0][4], deliveries[0][5]
    assert source is not None
    name = f"E{node + 1} delivered E{source + 1}#{seq}"
    assert out.startswith("complete, run r: ")
    assert name in out
    assert len(out.splitlines()) == 1
