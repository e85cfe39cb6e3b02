"""`python -m tests.mutations`: breaks our own code on purpose, and says which test noticed.

Exit status: 0 if every mutation was noticed, 1 if one survived, 2 if an argument is wrong.
"""

import argparse
import json
import sys
import time
from collections.abc import Iterable, Iterator, Sequence, Set
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import Progress
from rich.table import Table

from tests.mutations.mutation import Mutation
from tests.mutations.suites import SUITES, Suite
from tests.mutations.systematic import spots_of
from tests.mutations.trials import Outcome, Trial, outcomes

_Row = dict[str, Any]
_Key = tuple[str, str, str]  # suite, file, mutation


def main() -> int:
    """The whole command."""
    asked = _arguments()
    console = Console(width=None if sys.stdout.isatty() else 160)
    suites = [suite for suite in SUITES if not asked.only or suite.name in asked.only]
    known = _noticed_earlier(Path(asked.json)) if asked.resume else []
    if known:
        console.print(f"{len(known)} were noticed by an earlier run, and are not tried again")
    found: list[Outcome] = []
    try:
        for outcome in _watched(suites, asked, {_key(row) for row in known}, Console(stderr=True)):
            found.append(outcome)
            if asked.json:  # at once: whoever ends this run can resume it
                _write(Path(asked.json), [*known, *map(_as_row, found)])
    except KeyboardInterrupt:
        console.print("interrupted: this is what was tried so far")
    if asked.all:
        console.print(_table("Every mutation", found))
    console.print(_summary(found))
    survivors = [outcome for outcome in found if outcome.noticed is None]
    if survivors:
        console.print(_table("Survivors", survivors))
    return 1 if survivors else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutations", description=__doc__)
    names = [suite.name for suite in SUITES]
    parser.add_argument("--only", nargs="+", metavar="SUITE", choices=names, help=f"of {', '.join(map(repr, names))}")
    parser.add_argument("--systematic", action="store_true", help="break every comparison, bound and statement instead")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no trial after so long")
    parser.add_argument("--at-once", type=int, default=0, metavar="N", help="trials at once; unless told, one per core")
    parser.add_argument("--all", action="store_true", help="print a row for each mutation, not only for survivors")
    parser.add_argument("--json", metavar="FILE", help="write all rows there")
    parser.add_argument("--resume", action="store_true", help="leave out what was noticed by the run that wrote FILE")
    asked = parser.parse_args()
    if asked.resume and not asked.json:
        parser.error("--resume needs --json FILE: the rows of the run to be resumed")
    return asked


def _noticed_earlier(file: Path) -> list[_Row]:
    """The rows of an earlier run but its survivors: these are tried again, since there may be new tests."""
    return [row for row in json.loads(file.read_text()) if row["noticed_by"]] if file.exists() else []


def _write(file: Path, rows: Sequence[_Row]) -> None:
    """All of it or nothing, so that a run that is ended here leaves a file that can be read."""
    beside = file.with_name(f"{file.name}.new")
    beside.write_text(json.dumps(rows, indent=1) + "\n")
    beside.replace(file)


def _watched(
    suites: Sequence[Suite], asked: argparse.Namespace, known: Set[_Key], console: Console
) -> Iterator[Outcome]:
    """All outcomes, with progress; survivors are told as they are found. Each suite gets its share of the time."""
    until = time.monotonic() + asked.seconds
    with Progress(console=console, transient=True) as progress:
        for left, suite in zip(range(len(suites), 0, -1), suites, strict=True):
            all_of_it = _spots(suite) if asked.systematic else suite.mutants()
            mutations = [it for it in all_of_it if (suite.name, _file(it), it.name) not in known]
            share = time.monotonic() + (until - time.monotonic()) / left
            task = progress.add_task(suite.name, total=len(mutations))
            for outcome in outcomes(_while(share, suite.trials(mutations)), asked.at_once):
                progress.advance(task)
                if outcome.noticed is None:
                    mutation = outcome.trial.mutation
                    line = f"survives: {suite.name}, {mutation.module}: {mutation.name}"
                    progress.console.print(line, markup=False, soft_wrap=True)
                yield outcome
            progress.remove_task(task)


def _spots(suite: Suite) -> Sequence[Mutation]:
    """One of each module after the other, so that a share of the time sees something of all."""
    left = [spots_of(module) for module in suite.code]
    return [spots.pop() for _ in range(max(map(len, left), default=0)) for spots in left if spots]


def _while(until: float, trials: Iterable[Trial]) -> Iterator[Trial]:
    return (trial for trial in trials if time.monotonic() < until)


def _file(mutation: Mutation) -> str:
    return f"{mutation.module.replace('.', '/')}.py"


def _key(row: _Row) -> _Key:
    return row["suite"], row["file"], row["mutation"]


def _as_row(outcome: Outcome) -> _Row:
    mutation = outcome.trial.mutation
    noticed = outcome.noticed
    return {
        "suite": outcome.trial.suite,
        "file": _file(mutation),
        "mutation": mutation.name,
        "noticed_by": noticed.check if noticed else None,
        "why": noticed.why if noticed else None,
        "seconds": round(outcome.seconds, 3),
    }


def _table(title: str, found: Iterable[Outcome]) -> Table:
    table = Table("suite", "file", "mutation", "noticed by", "s", title=title)
    for outcome in found:
        row = _as_row(outcome)
        table.add_row(*[escape(str(row[name])) for name in ("suite", "file", "mutation", "noticed_by", "seconds")])
    return table


def _summary(found: Sequence[Outcome]) -> Table:
    table = Table("suite", "file", "mutations", "noticed", "s each", title="Mutations")
    keys = dict.fromkeys((outcome.trial.suite, outcome.trial.mutation.module) for outcome in found)
    for suite, module in keys:
        here = [it for it in found if (it.trial.suite, it.trial.mutation.module) == (suite, module)]
        noticed = [it for it in here if it.noticed]
        mean = sum(it.seconds for it in here) / len(here)
        table.add_row(suite, f"{module.replace('.', '/')}.py", str(len(here)), str(len(noticed)), f"{mean:.2f}")
    table.add_section()
    table.add_row("all", "", str(len(found)), str(sum(it.noticed is not None for it in found)), "")
    return table


if __name__ == "__main__":
    sys.exit(main())
