"""The same configuration gives the same bytes, whatever the process, its hash seed or what ran before it."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ordercast.model.config import GroupConfig
from ordercast.model.faults import Bursts, Duplicates, Loss
from ordercast.model.runs import Channel, Network, RunConfig, Workload
from ordercast.simulator import simulate
from ordercast.swarm.draw import draw_config
from ordercast.trace.schema import EventRow

ARGUMENTS = [
    "simulate",
    "spo",
    "--nodes=5",
    "--messages=60",
    "--spread=0.5",
    "--loss=0.1",
    "--seed=7",
    "--infer-losses",
]
ARGUMENTS += ["--pattern=bursty", "--receive-time=5us", "--receive-buffer=8"]
FAULTS = ["--fault", "bursts well=5ms bad=1ms", "--fault", "duplicates rate=0.05"]
DATAGRAMS = ["simulate", "sequencer", "--nodes=5", "--messages=60", "--loss=0.05", "--seed=7", "--history=8"]
DATAGRAMS += ["--channel=any", "--jitter=1ms", "--send-time=3us", "--receive-time=5us", "--senders=E1,E3,E4"]


def digest(folder: Path) -> str:
    """Of all files of a trace, names and bytes."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    assert len(files) == 2
    whole = hashlib.sha256()
    for path in files:
        whole.update(str(path.relative_to(folder)).encode())
        whole.update(path.read_bytes())
    return whole.hexdigest()


@pytest.mark.parametrize("arguments", [[*ARGUMENTS, *FAULTS], DATAGRAMS], ids=["spo", "datagrams"])
def test_traces_of_two_processes_with_different_hash_seeds_are_the_same_bytes(
    tmp_path: Path, arguments: list[str]
) -> None:
    digests = set()
    for hash_seed in ("1", "4242"):
        out = tmp_path / hash_seed
        command = [sys.executable, "-m", "ordercast.cli", *arguments, "--out", str(out)]
        subprocess.run(command, check=True, env={**os.environ, "PYTHONHASHSEED": hash_seed}, stdout=subprocess.DEVNULL)  # noqa: S603
        digests.add(digest(out))
    assert len(digests) == 1


def test_a_run_does_not_depend_on_what_ran_before_it_in_the_process() -> None:
    first: list[EventRow] = []
    simulate(draw_config(5), rows=first)
    simulate(draw_config(6))
    again: list[EventRow] = []
    simulate(draw_config(5), rows=again)
    assert first == again
    assert len(first) > 100


def test_another_seed_gives_another_run() -> None:
    rows = []
    for seed in (1, 2):
        kept: list[EventRow] = []
        simulate(RunConfig(protocol="spo", group=GroupConfig(nodes=3), seed=seed), rows=kept)
        rows.append(kept)
    assert rows[0] != rows[1]


def test_the_configuration_in_a_trace_is_enough_to_run_it_again() -> None:
    config = RunConfig(
        protocol="spo",
        group=GroupConfig(nodes=4, window=3, quota=9, first_seq=(5, 0, 3, 1)),
        network=Network(channel=Channel.ONE),
        workload=Workload(messages=20, spread=0.4),
        faults=(Loss(rate=0.2), Bursts(well=1_000_000, bad=100_000), Duplicates(rate=0.1)),
        seed=11,
    )
    rows: list[EventRow] = []
    simulate(config, rows=rows)
    again: list[EventRow] = []
    simulate(RunConfig.from_json(config.to_json()), rows=again)
    assert rows == again
    assert RunConfig.from_json(config.to_json()).name() == config.name()


def test_narrower_recordings_tell_the_same_story() -> None:
    """What is recorded must not change what happens."""
    whole: list[EventRow] = []
    result = simulate(draw_config(12), rows=whole)
    assert simulate(draw_config(12)).counters == result.counters
