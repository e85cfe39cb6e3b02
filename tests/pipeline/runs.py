"""Small runs for the tests of the pipeline, and what a trace of them holds."""

from pathlib import Path

from ordercast.model.config import GroupConfig
from ordercast.model.faults import Loss
from ordercast.model.runs import Channel, Network, RunConfig, Workload


def some_runs(count: int, first_seed: int = 0, messages: int = 8) -> list[RunConfig]:
    """Small runs of several kinds."""
    return [
        RunConfig(
            protocol="st" if seed % 2 else "spo",
            group=GroupConfig(nodes=3 + seed % 3),
            network=Network(channel=Channel.ONE),
            workload=Workload(messages=messages, spread=0.7),
            faults=(Loss(rate=0.1),) if seed % 4 == 0 else (),
            seed=seed,
        )
        for seed in range(first_seed, first_seed + count)
    ]


def bytes_in(folder: Path) -> dict[str, bytes]:
    """All files below a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
