"""Schedules as files that people read and keep: a scenario, the steps in words, and what they break.

    version = 1
    kind = "schedule"
    about = "The loss of the last unit is never noticed."
    schedule = [
        "E1 sends a{2}",
        "E2 loses E1#0 a",
    ]

    [expected]
    sentence = "a{2} of E1 is never accepted at E2: …"
    live = true                    # broken by what follows the schedule, though nothing is lost any more

    [search]
    eager = false                  # whether the search that found it continued every state
    begins = 0                     # how many of its first steps were given to that search

    [scenario]
    protocol = "spo"
    rules = "paper"
    channel = "many"
    scripts = ["a{2}", ""]
    losses = 1

    [group]                        # what differs from the defaults of the group's configuration
    window = 8

    [promise]                      # what is owed, as far as it differs from `Promise`
    liveness_goal = "accepted"

The steps name nothing that is numbered inside, so a file outlives the program that wrote it; `wording` says how they
are read. A file that cannot be read is refused with its line and what to do about it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import msgspec

from ordercast.explorer.notation import parse_schedule
from ordercast.explorer.scenario import Promise, Scenario, script_in_words, scripts
from ordercast.explorer.state_space import StateSpace
from ordercast.model.config import ConfigValue, GroupConfig, Rules, require
from ordercast.model.errors import ConfigError, reason_of
from ordercast.model.machine import Level
from ordercast.model.runs import Channel
from ordercast.model.toml import converted, flat, list_lines, table_lines, value_text
from ordercast.protocols.registry import PROTOCOLS, MachineClass, machine_class
from ordercast.trace.small_files import read_toml

VERSION = 1
KIND = "schedule"
_NOTHING = "nothing"  # is promised in the end
_PAGE = "docs/stories.md"


@dataclass(frozen=True, kw_only=True)
class ScheduleFile:
    """What such a file says."""

    scenario: Scenario
    schedule: tuple[str, ...]
    about: str = ""
    sentence: str = ""
    """The promise that is expected to be broken, as the judgement puts it; empty: none is."""
    live: bool = False
    """Whether it is broken by what follows the schedule, rather than by its last step."""
    eager: bool = False
    """Whether the search that found it continued every state; see `Search`."""
    begins: int = 0
    """How many of the first steps were given to that search, which found the others."""

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
    rounds: int = 40


class _Promise(ConfigValue, frozen=True, kw_only=True):
    sender_order: bool = True
    urgent_first: bool = False
    one_order: bool = False
    in_pairs: bool = False
    ladder: bool = True
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


# --- reading ---


def read_schedule(path: Path) -> ScheduleFile:
    """A file of this kind; every step of its schedule is known to be possible."""
    document = read_toml(path)
    try:
        return schedule_of(document)
    except ConfigError as error:
        line = _line_of(path.read_text(encoding="utf-8"), str(error))
        raise ConfigError(f"{path}{line}: {error}") from error


def schedule_of(document: Mapping[str, Any]) -> ScheduleFile:
    """What a document says."""
    if document.get("version") != VERSION or document.get("kind") != KIND:
        raise ConfigError(f'a schedule begins with version = {VERSION} and kind = "{KIND}"; this has others, or none')
    said = converted(document, _File, _PAGE)
    asked = said.scenario
    for name in ("losses", "duplicates", "firings", "crashes", "rounds"):
        require(getattr(asked, name) >= 0, f"`scenario.{name}`: {name} must not be negative")
    steps, given = len(said.schedule), said.search.begins
    require(0 <= given <= steps, f"`search.begins`: of {steps} steps the first {given} cannot be given")
    settings = {**said.group, "nodes": len(asked.scripts), "rules": asked.rules.value}
    bounds = {name: getattr(asked, name) for name in _BOUNDS}
    scenario = Scenario(
        machine=machine_class(asked.protocol, asked.rules),
        group=converted(settings, GroupConfig, _PAGE, "group"),
        scripts=scripts(*asked.scripts),
        promise=_promise(said.promise),
        channel=asked.channel,
        **bounds,
    )
    parse_schedule(StateSpace(scenario), said.schedule)
    expected = said.expected or _Expected(sentence="")
    return ScheduleFile(
        scenario=scenario,
        schedule=said.schedule,
        about=said.about,
        sentence=expected.sentence,
        live=expected.live,
        eager=said.search.eager,
        begins=said.search.begins,
    )


def _promise(said: _Promise) -> Promise:
    names = {_NOTHING: None, **{level.name.lower(): level for level in Level}}
    if said.liveness_goal not in names:
        raise ConfigError(f"liveness_goal is one of {', '.join(names)}, not {said.liveness_goal!r}")
    values = {name: getattr(said, name) for name in said.__struct_fields__}
    return Promise(**{**values, "liveness_goal": names[said.liveness_goal]})


def _line_of(text: str, sentence: str) -> str:
    """Where the first line stands that holds something which the sentence quotes."""
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
    """The file; reading it gives the same back."""
    asked = file.scenario
    protocol, rules = protocol_of(asked.machine)
    lines = [f"version = {VERSION}", f'kind = "{KIND}"']
    lines += [f"about = {value_text(file.about)}"] if file.about else []
    lines += list_lines("schedule", file.schedule)
    if file.sentence:
        lines += table_lines("expected", {"sentence": file.sentence, "live": file.live}, {"live": False})
    lines += table_lines("search", {"eager": file.eager, "begins": file.begins}, {"eager": False, "begins": 0})
    words = [script_in_words(script) for script in asked.scripts]
    named = {"protocol": protocol, "rules": rules, "channel": asked.channel, "scripts": words}
    bounds = {name: getattr(asked, name) for name in _BOUNDS}
    lines += table_lines("scenario", named | bounds, _defaults(Scenario, _BOUNDS))
    group, usual = (msgspec.to_builtins(config) for config in (asked.group, GroupConfig(nodes=asked.group.nodes)))
    lines += table_lines("group", dict(flat(group)), {**dict(flat(usual)), "rules": rules.value})
    end = asked.promise.liveness_goal
    promise = {field.name: getattr(asked.promise, field.name) for field in fields(Promise)}
    promise["liveness_goal"] = _NOTHING if end is None else end.name.lower()
    usual_end = {"liveness_goal": _Promise().liveness_goal}
    lines += table_lines("promise", promise, {**_defaults(Promise, promise), **usual_end})
    return "\n".join(lines) + "\n"


def write_schedule(path: Path, file: ScheduleFile) -> None:
    """Writes it there."""
    try:
        path.write_text(schedule_text(file), encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot write the schedule {path}: {reason_of(error)}; choose another place") from error


def protocol_of(machine: MachineClass) -> tuple[str, Rules]:
    """The names by which a machine is known."""
    for protocol, by_rules in PROTOCOLS.items():
        for rules, kind in by_rules.items():
            if kind == (machine.__module__, getattr(machine, "__qualname__", None)):
                return protocol, rules
    raise ConfigError(f"{machine} is none of the protocols, and a file names its machine by protocol and rules")


def _defaults(kind: type[Scenario] | type[Promise], names: Any) -> dict[str, Any]:
    return {field.name: field.default for field in fields(kind) if field.name in set(names)}
