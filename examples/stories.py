"""Finds the papers' counterexamples anew: the schedules in examples/stories, their pictures in docs/pictures/stories.

    python examples/stories.py [--draw] [NAME …]

Each file says in which scenario to search. Without names all are found: that takes two minutes. With --draw nothing is
searched for, and the schedules that there are are drawn.
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


def picture(story: ScheduleFile) -> str:
    """As `ordercast replay --svg` draws it."""
    space = StateSpace(story.scenario)
    outcome = outcome_of(space, parse_schedule(space, story.schedule))
    return draw_svg(rows_of(space, outcome.shown()), space.size, names=names_of_messages(space), steps=True)


def main() -> None:
    """Finds and writes."""
    names = [argument for argument in sys.argv[1:] if argument != "--draw"]
    for path in sorted((ROOT / "examples/stories").glob("*.toml")):
        if not names or path.stem in names:
            story = read_schedule(path)
            if "--draw" not in sys.argv:
                story = found(path, story)
            (ROOT / f"docs/pictures/stories/{path.stem}.svg").write_text(picture(story), encoding="utf-8")


def found(path: Path, story: ScheduleFile) -> ScheduleFile:
    """The story as a search tells it now, written down."""
    began = time.perf_counter()
    report = search_again(story)
    story = found_again(story, report)
    write_schedule(path, story)
    took = time.perf_counter() - began
    print(f"{path.stem}: {len(story.schedule)} steps, found in {report.states} states, {took:.1f} s")
    return story


if __name__ == "__main__":
    main()
