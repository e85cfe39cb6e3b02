"""A failing run as a TOML file, and as a test that fails until the fault is fixed.

    version = 1
    kind = "simulation"
    about = "spo, number 17 of the swarm: shrunk from 8 nodes, 400 messages, 1 fault"

    [expected]
    kind = "acknowledged_truthfully"       # the violated property, or: incomplete, not_quiescent, raises …
    sentence = "E1 acknowledged E1#1 before {E2} had pre-acknowledged it"

    [run]
    protocol = "st"
    sends = ["node=E1 to=E2 at=379109ns", "node=E1 to=E1,E2"]
    faults = ["miss node=E2 source=E1 nth=3"]

    [group]                                # what differs from the defaults, here and below
    nodes = 2

    [network]
    channel = "one"

Faults are written as `ordercast simulate --fault` takes them, and scripted sends likewise.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from ordercast.model.config import SECOND, ConfigValue, GroupConfig
from ordercast.model.errors import ConfigError, reason_of
from ordercast.model.option_parsing import format_option, parse_fault, parse_scripted_send
from ordercast.model.runs import Network, RunConfig, TraceDetail, Workload
from ordercast.model.toml import converted, flat, list_lines, table_lines, value_text
from ordercast.protocols.registry import machine_class
from ordercast.swarm.run_audit import Failure
from ordercast.trace.small_files import read_toml

VERSION, KIND = 1, "simulation"

_PAGE = "docs/swarm.md"
_SCALARS = {"seed": "seed", "record": "record", "patience": "stall_timeout"}  # keys of [run], and their fields


@dataclass(frozen=True)
class FailingRun:
    """A failing run, and its failure."""

    config: RunConfig
    failure: Failure
    about: str = ""


# --- reading ---


class _Expected(ConfigValue, frozen=True, kw_only=True):
    kind: str = ""
    sentence: str = ""


class _Run(ConfigValue, frozen=True, kw_only=True):
    protocol: str
    sends: tuple[str, ...] | None = None
    faults: tuple[str, ...] = ()
    seed: int = 0
    stall_timeout: int = msgspec.field(default=SECOND, name="patience")
    record: TraceDetail = TraceDetail.ALL


class _File(ConfigValue, frozen=True, kw_only=True):
    version: int
    kind: str
    run: _Run
    about: str = ""
    expected: _Expected = _Expected()
    group: dict[str, Any] = msgspec.field(default_factory=dict)
    network: Network = Network()
    workload: Workload = Workload()


def read_failing_run(path: Path) -> FailingRun:
    """Reads a file; raises `ConfigError` if something in it is wrong."""
    document = read_toml(path)
    try:
        return failing_run_of(document)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from error


def failing_run_of(document: Mapping[str, Any]) -> FailingRun:
    """The run that a document describes."""
    if document.get("version") != VERSION or document.get("kind") != KIND:
        raise ConfigError(f'a simulation begins with version = {VERSION} and kind = "{KIND}"')
    content = converted(document, _File, _PAGE)
    run, workload = content.run, content.workload
    if run.sends is not None:
        workload = msgspec.structs.replace(workload, script=tuple(map(parse_scripted_send, run.sends)))
    config = RunConfig(
        protocol=run.protocol,
        group=converted(content.group, GroupConfig, _PAGE, "group"),
        network=content.network,
        workload=workload,
        faults=tuple(map(parse_fault, run.faults)),
        seed=run.seed,
        record=run.record,
        stall_timeout=run.stall_timeout,
    )
    machine_class(config.protocol, config.group.rules)  # raises if there is none
    return FailingRun(config, Failure(content.expected.kind, content.expected.sentence), content.about)


# --- writing ---


def failing_run_text(failing: FailingRun) -> str:
    """The text of the file; reading it gives the same run."""
    config = failing.config
    lines = [f"version = {VERSION}", f"kind = {value_text(KIND)}"]
    lines += [f"about = {value_text(failing.about)}"] if failing.about else []
    lines += table_lines("expected", {"kind": failing.failure.kind, "sentence": failing.failure.sentence}, {})
    usual = RunConfig(protocol=config.protocol, group=GroupConfig(nodes=config.group.nodes))
    given, defaults = ({key: getattr(run, name) for key, name in _SCALARS.items()} for run in (config, usual))
    lines += table_lines("run", {"protocol": config.protocol, **given}, defaults)
    script = config.workload.scripted_sends()
    if script is not None:
        lines += list_lines("sends", map(format_option, script))
    lines += list_lines("faults", map(format_option, config.faults)) if config.faults else []
    for name in ("group", "network", "workload"):
        given, default = (dict(flat(msgspec.to_builtins(getattr(run, name)))) for run in (config, usual))
        given.pop("script", None)
        default.pop("nodes", None)  # always written
        lines += table_lines(name, given, default)
    return "\n".join(lines) + "\n"


def pytest_text(failing: FailingRun) -> str:
    """A self-contained test that fails as long as the run does."""
    name = _identifier(f"{failing.config.protocol}_{failing.failure.kind}").lower()
    head = f'"""{failing.about}\n\n{failing.failure}\n"""' if failing.about else f'"""{failing.failure}"""'
    run = msgspec.json.format(failing.config.to_json(), indent=2)
    return f"""{_escaped(head)}

from ordercast.model.runs import RunConfig
from ordercast.swarm import failures_of

RUN = r'''
{run}
'''


def test_{name}() -> None:
    broken = [str(failure) for failure in failures_of(RunConfig.from_json(RUN))]
    assert broken == []
"""


def _identifier(text: str) -> str:
    return re.sub(r"\W+", "_", text).strip("_")


def _escaped(head: str) -> str:
    return head.replace("\\", "\\\\")


def write_failing_run(folder: Path, name: str, failing: FailingRun) -> tuple[Path, Path]:
    """Writes the file and the test into a folder; returns their paths."""
    scenario, test = folder / f"{name}.toml", folder / f"test_{_identifier(name)}.py"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        scenario.write_text(failing_run_text(failing), encoding="utf-8")
        test.write_text(pytest_text(failing), encoding="utf-8")
    except OSError as error:
        raise ConfigError(
            f"cannot write the shrunk run to {folder}: {reason_of(error)}; choose another place"
        ) from error
    return scenario, test
