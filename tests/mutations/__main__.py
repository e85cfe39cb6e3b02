"""`python -m tests.mutations`: breaks our own code on purpose, and says which test noticed.

Exit status: 0 if every mutation was noticed, 1 if one survived or a test fails here that should pass, 2 if an argument
is wrong.
"""

import argparse
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.progress import Progress
from rich.table import Table

from tests.mutations.mutation import Mutation
from tests.mutations.results import Results, Row
from tests.mutations.suites import SUITES, Suite
from tests.mutations.systematic import spots_of
from tests.mutations.trials import Controls, Trial, outcomes


def main() -> int:
    """The whole command."""
    asked = _arguments()
    console = Console(width=None if sys.stdout.isatty() else 160)
    suites = [suite for suite in SUITES if not asked.only or suite.name in asked.only]
    found: list[Row] = []
    controls = Controls()
    not_tried: dict[str, str] = {}
    try:
        found.extend(_watched(suites, asked, controls, not_tried, Console(stderr=True)))
    except KeyboardInterrupt:
        console.print("interrupted: this is what was tried so far")
    if asked.all:
        console.print(_table("Every mutation", found))
    console.print(_summary(found))
    survivors = [row for row in found if row["noticed_by"] is None]
    if survivors:
        console.print(_table("Survivors", survivors))
    for (module, check), why in controls.failed.items():
        console.print(f"{check} fails when {module} is loaded by this command without a change: {why}", markup=False)
    for suite, why in not_tried.items():
        console.print(f"{suite} was not tried to its end: {why}", markup=False)
    return 1 if survivors or controls.failed or not_tried else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutations", description=__doc__)
    names = [suite.name for suite in SUITES]
    parser.add_argument("--only", nargs="+", metavar="SUITE", choices=names, help=f"of {', '.join(map(repr, names))}")
    parser.add_argument("--modules", nargs="+", metavar="MODULE", help="of these only, such as protocols.st.machine")
    parser.add_argument("--systematic", action="store_true", help="break every comparison, bound and statement instead")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no trial after so long")
    parser.add_argument("--at-once", type=int, default=0, metavar="N", help="trials at once; unless told, one per core")
    parser.add_argument("--all", action="store_true", help="print a row for each mutation, not only for survivors")
    parser.add_argument("--json", metavar="FILE", help="write all rows there, a line for each")
    parser.add_argument("--resume", action="store_true", help="take over what the rows in FILE say of the same code")
    asked = parser.parse_args()
    if asked.resume and not asked.json:
        parser.error("--resume needs --json FILE: the rows of the run to be resumed")
    return asked


def _watched(
    suites: Sequence[Suite],
    asked: argparse.Namespace,
    controls: Controls,
    not_tried: dict[str, str],
    console: Console,
) -> Iterator[Row]:
    """All rows, with progress; survivors are told as they are found. Each suite gets its share of the time.

    A suite that cannot be tried, since one of its tests fails on the code as it is, does not keep the others from it.
    """
    results = Results(Path(asked.json) if asked.json else None, resume=asked.resume)
    measurements = Path(f"{asked.json}.lines") if asked.json else None
    until = time.monotonic() + asked.seconds
    with Progress(console=console, transient=True) as progress:
        for left, suite in zip(range(len(suites), 0, -1), suites, strict=True):
            mutations = [it for it in _mutations(suite, asked) if not asked.modules or it.module in asked.modules]
            earlier = [results.known(suite, it) for it in mutations]
            yield from (row for row in earlier if row is not None)
            fresh = [it for it, row in zip(mutations, earlier, strict=True) if row is None]
            share = time.monotonic() + (until - time.monotonic()) / left
            task = progress.add_task(suite.name, total=len(mutations), completed=len(mutations) - len(fresh))
            try:
                for tried in outcomes(_while(share, suite.trials(fresh, measurements)), asked.at_once):
                    progress.advance(task)
                    outcome = controls.believed(tried)
                    row = results.add(suite, outcome)
                    if outcome.noticed is None:
                        where = f"{suite.name}, {row['file']}: {row['mutation']}"
                        line = f"survives: {where} ({row['checks']} tests run it)"
                        progress.console.print(line, markup=False, soft_wrap=True)
                    yield row
            except RuntimeError as error:
                not_tried[suite.name] = str(error)
            progress.remove_task(task)


def _mutations(suite: Suite, asked: argparse.Namespace) -> Sequence[Mutation]:
    return _spots(suite) if asked.systematic else suite.mutants()


def _spots(suite: Suite) -> Sequence[Mutation]:
    """One of each module after the other, so that a share of the time sees something of all."""
    left = [spots_of(module) for module in suite.code]
    return [spots.pop() for _ in range(max(map(len, left), default=0)) for spots in left if spots]


def _while(until: float, trials: Iterable[Trial]) -> Iterator[Trial]:
    return (trial for trial in trials if time.monotonic() < until)


def _table(title: str, found: Iterable[Row]) -> Table:
    table = Table("suite", "file", "mutation", "noticed by", "s", title=title)
    for row in found:
        table.add_row(*[escape(str(row[name])) for name in ("suite", "file", "mutation", "noticed_by", "seconds")])
    return table


def _summary(found: Sequence[Row]) -> Table:
    table = Table("suite", "file", "mutations", "noticed", "s each", title="Mutations")
    for suite, file in dict.fromkeys((row["suite"], row["file"]) for row in found):
        here = [row for row in found if (row["suite"], row["file"]) == (suite, file)]
        noticed = [row for row in here if row["noticed_by"]]
        mean = sum(row["seconds"] for row in here) / len(here)
        table.add_row(suite, file, str(len(here)), str(len(noticed)), f"{mean:.2f}")
    table.add_section()
    table.add_row("all", "", str(len(found)), str(sum(row["noticed_by"] is not None for row in found)), "")
    return table


if __name__ == "__main__":
    sys.exit(main())
