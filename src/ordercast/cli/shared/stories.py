"""Schedules as stories in the viewer: each step with what follows from it, and what differs in the machines' states."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from ordercast.cli.shared.viewing import serve, viewer_packages, write_page

if TYPE_CHECKING:
    from ordercast.explorer.scenario import Scenario
    from ordercast.trace.schema import EventRow
    from ordercast.viewer.traces import Traces

STEP = 1_000
"""Nanoseconds of a step in the picture."""
_ABOUT = "Every step of a schedule of a small group: what happens, what follows, and what each machine then holds."


@dataclass(frozen=True)
class Told:
    """What a schedule is told with, besides its steps."""

    title: str
    about: str = ""
    notes: Mapping[int, str] = field(default_factory=dict)
    """About some steps, by their numbers from 1."""


def show_story(scenario: "Scenario", schedule: Sequence[str], told: Told, *, view: bool, page: Path | None) -> None:
    """Serves a schedule as a story until interrupted, or writes it as a page."""
    with story_traces({told.title: (scenario, schedule, told)}) as traces:
        _show(traces, view=view, page=page)


def page_of_story(file: Path) -> bytes:
    """A schedule's file as a page."""
    from ordercast.explorer.schedule_files import read_schedule

    with viewer_packages():
        from ordercast.viewer.export import Range, exported
    schedule = read_schedule(file)
    told = Told(file.stem, schedule.about, schedule.notes)
    with story_traces({told.title: (schedule.scenario, schedule.schedule, told)}) as traces:
        return exported(traces, [told.title], Range()).page


def show_rows(
    rows: Sequence["EventRow"], title: str, columns: Mapping[str, Any], *, view: bool, page: Path | None
) -> None:
    """The same of a simulated run: it has times, and no states of machines."""
    from ordercast.trace.run_writer import TraceWriter

    with viewer_packages():
        from ordercast.viewer.traces import Traces
    with TemporaryDirectory() as folder:
        with TraceWriter(Path(folder), title) as trace:
            trace.write(list(rows))
            trace.finish(dict(columns))
        _show(Traces([Path(folder)], title=title), view=view, page=page)


def _show(traces: "Traces", *, view: bool, page: Path | None) -> None:
    from ordercast.viewer.export import Range

    if page is not None:
        write_page(page, traces, [], Range(), [])
    if view:
        serve(traces)


@contextmanager
def story_traces(
    schedules: Mapping[str, tuple["Scenario", Sequence[str], Told]],
) -> Iterator["Traces"]:
    """Schedules as runs of a trace, in a folder that is removed at the end."""
    from ordercast.explorer.schedule_files import protocol_of
    from ordercast.trace.run_writer import TraceWriter

    with viewer_packages():
        from ordercast.viewer.traces import Traces
    with TemporaryDirectory() as name:
        folder, stories = Path(name), {}
        for title, (scenario, schedule, told) in schedules.items():
            events, stories[title] = _told(scenario, schedule, told)
            protocol, rules = protocol_of(scenario.machine)
            config = f'{{"group": {{"rules": "{rules.value}"}}}}'
            with TraceWriter(folder, title) as trace:
                trace.write(events)
                row = {"protocol": protocol, "nodes": scenario.group.nodes, "config": config}
                trace.finish({**row, "complete": not stories[title]["story"]["broken"]})
        traces = Traces([folder], title=next(iter(schedules)))
        for title, story in stories.items():
            traces.tell(title, story)
        yield traces


def _told(scenario: "Scenario", schedule: Sequence[str], told: Told) -> "tuple[list[EventRow], dict[str, Any]]":
    from ordercast.explorer.notation import parse_schedule
    from ordercast.explorer.outcome import outcome_of
    from ordercast.explorer.rows import names_of_messages, rows_of
    from ordercast.explorer.state_space import StateSpace
    from ordercast.explorer.step_by_step import first_states, notes_of, steps_of

    space = StateSpace(scenario)
    outcome = outcome_of(space, parse_schedule(space, list(schedule)))
    shown = outcome.shown()
    steps = [
        {
            "words": step.words,
            "note": told.notes.get(number, ""),
            "effects": step.effects,
            "changes": [[each.node, each.name, each.before, each.after] for each in step.changes],
        }
        for number, step in enumerate(steps_of(space, shown), start=1)
    ]
    story: dict[str, Any] = {
        "title": told.title,
        "about": told.about or _ABOUT,
        "broken": outcome.sentence,
        "steps": steps,
    }
    if outcome.continuation:
        story["free_from"] = len(outcome.steps)
    labels = {f"{source}#{first}": name for (source, first), name in names_of_messages(space).items()}
    rows = [_in_time(row) for row in rows_of(space, shown)]
    machines = {"states": first_states(space), "variables": notes_of(space)}
    return rows, {"story": {**story, **machines}, "step": STEP, "labels": labels}


def _in_time(row: "EventRow") -> "EventRow":
    """The picture's axis is of time, and has room between two steps."""
    return (*row[:2], row[2] * STEP, *row[3:])
