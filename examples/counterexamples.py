"""Searches for the counterexamples to the papers again, and writes their schedules and pictures.

The schedules are in examples/counterexamples, the pictures in docs/pictures/counterexamples.

    python examples/counterexamples.py [--draw] [NAME …]

Each file says in which scenario to search. Without names all are found: that takes two minutes. With --draw nothing is
searched for, and the existing schedules are drawn.
"""

import sys
import time
from pathlib import Path

from ordercast.drawing import draw_svg
from ordercast.explorer.notation import parse_schedule
from ordercast.explorer.outcome import outcome_of
from ordercast.explorer.paper_counterexamples import found_again, search_again
from ordercast.explorer.rows import names_of_messages, rows_of
from ordercast.explorer.schedule_files import ScheduleFile, read_schedule, write_schedule
from ordercast.explorer.state_space import StateSpace

ROOT = Path(__file__).parent.parent


def picture(schedule: ScheduleFile) -> str:
    """As `ordercast replay --svg` draws it."""
    space = StateSpace(schedule.scenario)
    outcome = outcome_of(space, parse_schedule(space, schedule.schedule))
    return draw_svg(rows_of(space, outcome.shown()), space.size, names=names_of_messages(space), steps=True)


def main() -> None:
    """Finds and writes."""
    names = [argument for argument in sys.argv[1:] if argument != "--draw"]
    for path in sorted((ROOT / "examples/counterexamples").glob("*.toml")):
        if not names or path.stem in names:
            schedule = read_schedule(path)
            if "--draw" not in sys.argv:
                schedule = found(path, schedule)
            (ROOT / f"docs/pictures/counterexamples/{path.stem}.svg").write_text(picture(schedule), encoding="utf-8")


def found(path: Path, schedule: ScheduleFile) -> ScheduleFile:
    """Searches for the counterexample again, and writes the file."""
    began = time.perf_counter()
    report = search_again(schedule)
    schedule = found_again(schedule, report)
    write_schedule(path, schedule)
    took = time.perf_counter() - began
    print(f"{path.stem}: {len(schedule.schedule)} steps, found in {report.states} states, {took:.1f} s")
    return schedule


if __name__ == "__main__":
    main()
