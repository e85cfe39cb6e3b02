"""Schedules as TOML files: a scenario, the steps as text, and the promise that they break.

    version = 1
    kind = "schedule"
    about = "The loss of the last unit is never noticed."
    schedule = [
        "E1 sends a{2}",
        "E2 loses E1#0 a",
    ]

    [expected]
    sentence = "a{2} of E1 is never accepted at E2: …"
    live = true                    # broken by the fair continuation of the schedule

    [notes]                        # for people who go through it step by step, by the number of the step
    2 = "E2 does not receive a, and nothing will tell it."

    [search]
    eager = false                  # the search that found it checked liveness in every state
    begins = 0                     # the number of first steps that were given to that search

    [scenario]
    protocol = "spo"
    rules = "paper"
    channel = "many"
    scripts = ["a{2}", ""]
    losses = 1

    [group]                        # what differs from the defaults of the group's configuration
    window = 8

    [promise]                      # what differs from the defaults of `Promise`
    liveness_goal = "accepted"

The steps contain no internal numbers, so a file stays valid when the program changes; `notation` has their syntax. An
error names the file and the line.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import msgspec

from ordercast.explorer.membership import MemberMachine
from ordercast.explorer.notation import parse_schedule
from ordercast.explorer.scenario import Promise, Scenario, format_script, returning, scripts
from ordercast.explorer.state_space import StateSpace
from ordercast.model.config import ConfigValue, GroupConfig, Rules, require
from ordercast.model.errors import ConfigError, reason_of
from ordercast.model.machine import Level
from ordercast.model.runs import Channel
from ordercast.model.toml import converted, flat, list_lines, table_lines, value_text
from ordercast.protocols.registry import PROTOCOLS, MachineClass, machine_class
from ordercast.trace.small_files import read_toml, write_atomically

VERSION = 1
KIND = "schedule"
_NOTHING = "nothing"  # no liveness goal
_PAGE = "docs/counterexamples.md"


@dataclass(frozen=True, kw_only=True)
class ScheduleFile:
    """The content of such a file."""

    scenario: Scenario
    schedule: tuple[str, ...]
    about: str = ""
    sentence: str = ""
    """The broken promise that is expected, as a sentence; empty: none."""
    live: bool = False
    """True if the fair continuation breaks it, rather than the last step."""
    eager: bool = False
    """True if the search that found it checked liveness in every state; see `Search`."""
    begins: int = 0
    """The number of first steps that were given to that search."""
    notes: Mapping[int, str] = field(default_factory=dict)
    """What is said about some steps to people who go through them, by the number of the step, from 1."""

    def given(self) -> tuple[str, ...]:
        """These steps."""
        return self.schedule[: self.begins]


class _Scenario(ConfigValue, frozen=True, kw_only=True):
    protocol: str
    scripts: tuple[str, ...]
    channel: Channel
    rules: Rules = Rules.SOUND
    losses: int = 0
    loses: tuple[str, ...] = ()
    duplicates: int = 0
    firings: int = 0
    patient: bool = False
    drained: bool = False
    crashes: int = 0
    suspicions: int = 0
    at_once: int = 1
    leaves: int = 0
    give_ups: int = 0
    joins: int = 0
    returns: tuple[str, ...] = ()
    fires: tuple[str, ...] = ()
    suspects: tuple[str, ...] = ()
    logs: bool = False
    damages: int = 0
    rounds: int = 40


class _Promise(ConfigValue, frozen=True, kw_only=True):
    sender_order: bool = True
    urgent_first: bool = False
    one_order: bool = False
    in_pairs: bool = False
    ladder: bool = True
    delivers_at: str = "acknowledged"
    liveness_goal: str = "acknowledged"
    never_less: tuple[str, ...] = ()
    never_discards: tuple[str, ...] = ()
    views: bool = False
    uniform: bool = False
    most_under_way: int = 0


class _Expected(ConfigValue, frozen=True, kw_only=True):
    sentence: str
    live: bool = False


class _Search(ConfigValue, frozen=True, kw_only=True):
    eager: bool = False
    begins: int = 0


class _File(ConfigValue, frozen=True, kw_only=True):
    version: int
    kind: str
    schedule: tuple[str, ...]
    scenario: _Scenario
    about: str = ""
    group: dict[str, Any] = msgspec.field(default_factory=dict)
    promise: _Promise = _Promise()
    expected: _Expected | None = None
    search: _Search = _Search()
    notes: dict[str, str] = msgspec.field(default_factory=dict)


# --- reading ---


def read_schedule(path: Path) -> ScheduleFile:
    """Reads a schedule file and checks that every step is enabled where it stands."""
    document = read_toml(path)
    try:
        return schedule_of(document)
    except ConfigError as error:
        line = _line_of(path.read_text(encoding="utf-8"), str(error))
        raise ConfigError(f"{path}{line}: {error}") from error


def schedule_of(document: Mapping[str, Any]) -> ScheduleFile:
    """The schedule of a TOML document."""
    if document.get("version") != VERSION or document.get("kind") != KIND:
        raise ConfigError(
            f'a schedule file needs version = {VERSION} and kind = "{KIND}"; this one has others, or none'
        )
    content = converted(document, _File, _PAGE)
    asked = content.scenario
    for name in (
        "losses",
        "duplicates",
        "firings",
        "crashes",
        "suspicions",
        "leaves",
        "joins",
        "damages",
        "give_ups",
        "rounds",
    ):
        require(getattr(asked, name) >= 0, f"`scenario.{name}` must not be negative: {getattr(asked, name)}")
    steps, given = len(content.schedule), content.search.begins
    require(0 <= given <= steps, f"`search.begins` must be 0 to {steps}, the number of steps, not {given}")
    settings = {**content.group, "nodes": len(asked.scripts), "rules": asked.rules.value}
    bounds = {name: getattr(asked, name) for name in _BOUNDS}
    group = converted(settings, GroupConfig, _PAGE, "group")
    machine: MachineClass = machine_class(asked.protocol, asked.rules, group.recovery)
    if group.views:
        founders = group.nodes - asked.joins - len(asked.returns)
        machine = MemberMachine(asked.protocol, founders, returning(asked.returns, group.nodes), asked.logs)
    scenario = Scenario(
        machine=machine,
        group=group,
        scripts=scripts(*asked.scripts),
        promise=_promise(content.promise),
        channel=asked.channel,
        **bounds,
    )
    parse_schedule(StateSpace(scenario), content.schedule)
    expected = content.expected or _Expected(sentence="")
    return ScheduleFile(
        scenario=scenario,
        schedule=content.schedule,
        about=content.about,
        sentence=expected.sentence,
        live=expected.live,
        eager=content.search.eager,
        begins=content.search.begins,
        notes=_notes(content.notes),
    )


def _notes(content: Mapping[str, str]) -> dict[int, str]:
    for number in content:
        require(number.isdecimal() and int(number) > 0, f"`notes.{number}`: a note is for a step, by its number from 1")
    return {int(number): content[number] for number in sorted(content, key=int)}


def _promise(content: _Promise) -> Promise:
    names = {_NOTHING: None, **{level.name.lower(): level for level in Level}}
    if content.liveness_goal not in names:
        raise ConfigError(f"liveness_goal is one of {', '.join(names)}, not {content.liveness_goal!r}")
    level = names.get(content.delivers_at)
    if level is None:
        raise ConfigError(f"delivers_at is one of {', '.join(list(names)[1:])}, not {content.delivers_at!r}")
    values = {name: getattr(content, name) for name in content.__struct_fields__}
    return Promise(**{**values, "liveness_goal": names[content.liveness_goal], "delivers_at": level})


def _line_of(text: str, sentence: str) -> str:
    """The place of the first line that contains something quoted in the sentence."""
    quoted = [part for quote in "`'" for part in sentence.split(quote)[1::2]]
    for part in quoted:
        name = part.rsplit(".", 1)[-1].split("[")[0]
        for number, line in enumerate(text.splitlines(), start=1):
            if part in line or (name and line.startswith((f"{name} ", f"{name}="))):
                return f", line {number}"
    return ""


# --- writing ---

_BOUNDS = tuple(name for name in _Scenario.__struct_fields__ if name not in {"protocol", "scripts", "channel", "rules"})


def schedule_text(file: ScheduleFile) -> str:
    """The text of the file; reading it gives an equal value."""
    asked = file.scenario
    protocol, rules = protocol_of(asked.machine)
    lines = [f"version = {VERSION}", f'kind = "{KIND}"']
    lines += [f"about = {value_text(file.about)}"] if file.about else []
    lines += list_lines("schedule", file.schedule)
    if file.sentence:
        lines += table_lines("expected", {"sentence": file.sentence, "live": file.live}, {"live": False})
    lines += table_lines("notes", {str(number): note for number, note in file.notes.items()}, {})
    lines += table_lines("search", {"eager": file.eager, "begins": file.begins}, {"eager": False, "begins": 0})
    words = [format_script(script) for script in asked.scripts]
    named = {"protocol": protocol, "rules": rules, "channel": asked.channel, "scripts": words}
    bounds = {name: getattr(asked, name) for name in _BOUNDS}
    lines += table_lines("scenario", named | bounds, _defaults(Scenario, _BOUNDS))
    group, default = (msgspec.to_builtins(config) for config in (asked.group, GroupConfig(nodes=asked.group.nodes)))
    lines += table_lines("group", dict(flat(group)), {**dict(flat(default)), "rules": rules.value})
    end = asked.promise.liveness_goal
    promise = {field.name: getattr(asked.promise, field.name) for field in fields(Promise)}
    promise["liveness_goal"] = _NOTHING if end is None else end.name.lower()
    promise["delivers_at"] = asked.promise.delivers_at.name.lower()
    usual = {"liveness_goal": _Promise().liveness_goal, "delivers_at": _Promise().delivers_at}
    lines += table_lines("promise", promise, {**_defaults(Promise, promise), **usual})
    return "\n".join(lines) + "\n"


def write_schedule(path: Path, file: ScheduleFile) -> None:
    """Writes the file, completely or not at all: on a full disk a file that was there stays as it is."""
    try:
        write_atomically(path, schedule_text(file).encode())
    except OSError as error:
        raise ConfigError(f"cannot write the schedule {path}: {reason_of(error)}; choose another path") from error


def protocol_of(machine: MachineClass) -> tuple[str, Rules]:
    """The protocol and rules of a machine."""
    if isinstance(machine, MemberMachine):
        return machine.protocol, Rules.SOUND
    for protocol, by_rules in PROTOCOLS.items():
        for rules, kind in by_rules.items():
            if kind == (machine.__module__, getattr(machine, "__qualname__", None)):
                return protocol, rules
    raise ConfigError(f"{machine} is not a machine of the protocols, so it cannot be written to a file")


def _defaults(kind: type[Scenario] | type[Promise], names: Any) -> dict[str, Any]:
    return {field.name: field.default for field in fields(kind) if field.name in set(names)}
