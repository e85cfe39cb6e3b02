"""A run that fails, as a file that people read and keep, and as a test that fails until the mistake is gone.

    version = 1
    kind = "simulation"
    about = "spo, number 17 of the swarm: made small from 8 nodes, 400 messages, 1 fault"

    [expected]
    kind = "acknowledged_truthfully"       # the property that is broken, or: incomplete, restless, raises …
    sentence = "E1 acknowledged E1#1 before {E2} had pre-acknowledged it"

    [run]
    protocol = "st"
    sends = ["node=E1 to=E2 at=379109ns", "node=E1 to=E1,E2"]
    faults = ["miss node=E2 source=E1 nth=3"]

    [group]                                # what differs from the defaults, here and below
    nodes = 2

    [network]
    channel = "one"

Faults are written as `ordercast simulate --fault` takes them, and sendings likewise.
"""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from ordercast.model import values
from ordercast.model.config import GroupConfig
from ordercast.model.errors import ConfigError
from ordercast.model.runs import Network, RunConfig, Workload
from ordercast.protocols import machine_class
from ordercast.swarm.judging import Failure

VERSION, KIND = 1, "simulation"

_TABLES = {"group": GroupConfig, "network": Network, "workload": Workload}
_WHOLE = {"seed", "patience", "record"}  # of a run, besides its tables


@dataclass(frozen=True)
class Story:
    """A run that failed, and how."""

    config: RunConfig
    failure: Failure
    about: str = ""


# --- reading ---


def read_story(path: Path) -> Story:
    """Reads a file; `ConfigError` says what is wrong with it."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"cannot read {path}: {error}") from error
    try:
        return story_of(document)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}; docs/swarm.md shows such a file") from error


def story_of(document: Mapping[str, Any]) -> Story:
    """What a document says."""
    if document.get("version") != VERSION or document.get("kind") != KIND:
        raise ConfigError(f'a simulation begins with version = {VERSION} and kind = "{KIND}"')
    unknown = set(document) - {"version", "kind", "about", "expected", "run", *_TABLES}
    if unknown:
        raise ConfigError(f"there is no {min(unknown)!r} in a simulation")
    run, expected = dict(document.get("run", {})), document.get("expected", {})
    sends, faults = run.pop("sends", None), run.pop("faults", [])
    workload = dict(document.get("workload", {}))
    if sends is not None:
        workload["script"] = [msgspec.to_builtins(values.sending(text)) for text in sends]
    whole = {
        **run,
        "group": document.get("group", {}),
        "network": document.get("network", {}),
        "workload": workload,
        "faults": [msgspec.to_builtins(values.fault(text)) for text in faults],
    }
    try:
        config = msgspec.convert(whole, RunConfig)
    except msgspec.ValidationError as error:
        raise ConfigError(f"not a run: {error}") from error
    machine_class(config.protocol, config.group.rules)  # or says that there is none
    return Story(config, Failure(expected.get("kind", ""), expected.get("sentence", "")), document.get("about", ""))


# --- writing ---


def story_text(story: Story) -> str:
    """The file; reading it gives the same back."""
    config = story.config
    lines = [f"version = {VERSION}", f"kind = {_value(KIND)}"]
    lines += [f"about = {_value(story.about)}"] if story.about else []
    lines += ["", "[expected]", f"kind = {_value(story.failure.kind)}", f"sentence = {_value(story.failure.sentence)}"]
    usual = RunConfig(protocol=config.protocol, group=GroupConfig(nodes=config.group.nodes))
    lines += ["", "[run]", f"protocol = {_value(config.protocol)}"]
    lines += _different(msgspec.to_builtins(config), msgspec.to_builtins(usual), _WHOLE)
    script = config.workload.sendings()
    if script is not None:
        lines += _list("sends", [values.in_words(sending) for sending in script])
    lines += _list("faults", [values.in_words(fault) for fault in config.faults]) if config.faults else []
    for name in _TABLES:
        told, default = (msgspec.to_builtins(getattr(run, name)) for run in (config, usual))
        told.pop("script", None)
        said = _different(dict(_flat(told)), dict(_flat(default)))
        if name == "group":
            said.insert(0, f"nodes = {config.group.nodes}")
        lines += ["", f"[{name}]", *said] if said else []
    return "\n".join(lines) + "\n"


def pytest_text(story: Story) -> str:
    """A test, whole in itself, that fails as long as the run does."""
    name = re.sub(r"\W+", "_", f"{story.config.protocol}_{story.failure.kind}").strip("_").lower()
    head = f'"""{story.about}\n\n{story.failure}\n"""' if story.about else f'"""{story.failure}"""'
    run = msgspec.json.format(story.config.to_json(), indent=2)
    return f"""{_escaped(head)}

from ordercast.model.runs import RunConfig
from ordercast.swarm import failures_of

RUN = r'''
{run}
'''


def test_{name}() -> None:
    assert not failures_of(RunConfig.from_json(RUN))
"""


def _escaped(head: str) -> str:
    return head.replace("\\", "\\\\")


def write_story(folder: Path, name: str, story: Story) -> tuple[Path, Path]:
    """Writes both into a folder; gives their places."""
    scenario, test = folder / f"{name}.toml", folder / f"test_{name.replace('-', '_')}.py"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        scenario.write_text(story_text(story), encoding="utf-8")
        test.write_text(pytest_text(story), encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot write what was made small to {folder}: {error}; choose another place") from error
    return scenario, test


def _list(name: str, texts: list[str]) -> list[str]:
    return [f"{name} = [", *(f"    {_value(text)}," for text in texts), "]"]


def _different(told: Mapping[str, Any], usual: Mapping[str, Any], names: set[str] | None = None) -> list[str]:
    return [
        f"{name} = {_value(value)}"
        for name, value in told.items()
        if (names is None or name in names) and usual.get(name) != value
    ]


def _flat(table: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """With dotted keys instead of tables within tables."""
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{before}{key}.")
        else:
            yield before + key, value


def _value(value: Any) -> str:
    """As TOML writes it; its strings, numbers, truths and lists are those of JSON."""
    return json.dumps(value, ensure_ascii=False)
