"""Runs of ST that deliver what is stable: all engines judge them alike, by what their configuration says."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from ordercast.model.config import GroupConfig
from ordercast.model.faults import Loss
from ordercast.model.runs import Channel, Network, RunConfig, Workload
from ordercast.pipeline import Engine, audit
from ordercast.simulator import simulate


def config(seed: int, *, loss: float = 0.0, log_limit: int = 400) -> RunConfig:
    return RunConfig(
        protocol="st",
        group=GroupConfig(nodes=4, delivers_stable=True, log_limit=log_limit, polls_late=True),
        network=Network(channel=Channel.ONE, drained=True),
        workload=Workload(messages=40, spread=0.6),
        faults=(Loss(rate=loss),) if loss else (),
        seed=seed,
    ).with_default_timeouts()


@pytest.mark.parametrize("engine", [Engine.REFERENCE, Engine.VECTORISED])
@pytest.mark.parametrize(("loss", "log_limit"), [(0.0, 400), (0.0, 15), (0.05, 400), (0.2, 400), (0.3, 30)])
def test_they_hold(engine: Engine, loss: float, log_limit: int, tmp_path: Path) -> None:
    for seed in range(3):
        folder = tmp_path / str(seed)
        result = simulate(config(seed, loss=loss, log_limit=log_limit), folder)
        assert result.complete
        assert result.silent
        assert not result.waits[0]
        verdict = audit([folder], engine=engine)
        assert verdict.holds, str(verdict)
        assert verdict.findings["delivered_truthfully"].runs == 1


def test_another_configuration_would_not_allow_it(tmp_path: Path) -> None:
    simulate(config(1), tmp_path)
    (path,) = (tmp_path / "runs").glob("*.parquet")
    table = pq.read_table(path)
    text = table.column("config")[0].as_py().replace('"delivers_stable":true', '"delivers_stable":false')
    column = table.schema.get_field_index("config")
    pq.write_table(table.set_column(column, table.schema.field(column), [[text]]), path)
    for engine in (Engine.REFERENCE, Engine.VECTORISED):
        found = audit([tmp_path], engine=engine).findings
        assert found["delivered_truthfully"].violations > 0
        assert {name for name, finding in found.items() if finding.violations} == {"delivered_truthfully"}
