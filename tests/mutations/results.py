"""What came of the mutations that were tried, in a file: a line of JSON for each, so that a run can be resumed.

A row holds for the code that it was found on: who noticed a mutation notices it until its module changes, or, of one
that is written by hand, the module that has it; a survivor may be noticed as soon as anything changes, code or tests.
"""

import json
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

from tests.mutations.measurement import digest_of_code
from tests.mutations.mutation import Mutant, Mutation, path_of, source_of
from tests.mutations.suites import Suite
from tests.mutations.trials import Outcome

Row = dict[str, Any]
_Key = tuple[str, str, str]  # suite, file, mutation


class Results:
    """The rows of this run and, if they are asked for, those of earlier ones that still hold."""

    def __init__(self, file: Path | None, *, resume: bool) -> None:
        self._file = file
        self._known: dict[_Key, Row] = {}
        if file is not None and not resume:
            file.unlink(missing_ok=True)
        elif file is not None and file.exists():
            for line in file.read_text().splitlines():
                with suppress(ValueError):  # the run was ended while it wrote
                    row = json.loads(line)
                    self._known[row["suite"], row["file"], row["mutation"]] = row

    def known(self, suite: Suite, mutation: Mutation) -> Row | None:
        """What an earlier run found, if it would be found again."""
        row = self._known.get((suite.name, file_of(mutation), mutation.name))
        if row is None or row["module"] != _digest_of_module(mutation):
            return None
        return row if row["noticed_by"] or row["all"] == _digest_of_all(suite) else None

    def add(self, suite: Suite, outcome: Outcome) -> Row:
        """Writes it at once: whoever ends this run can resume it."""
        mutation, noticed = outcome.trial.mutation, outcome.noticed
        row = {
            "suite": suite.name,
            "file": file_of(mutation),
            "mutation": mutation.name,
            "noticed_by": noticed.check if noticed else None,
            "why": noticed.why if noticed else None,
            "seconds": round(outcome.seconds, 3),
            "checks": len(outcome.trial.checks),
            "module": _digest_of_module(mutation),
            "all": _digest_of_all(suite),
        }
        if self._file is not None:
            with self._file.open("a") as file:
                file.write(json.dumps(row) + "\n")
        return row


def file_of(mutation: Mutation) -> str:
    """Where it is, below src/ordercast."""
    return f"{mutation.module.replace('.', '/')}.py"


def _digest_of_module(mutation: Mutation) -> str:
    """Of what is broken, and of what breaks it if that is written by hand."""
    by_hand = path_of(mutation.change.__module__) if isinstance(mutation, Mutant) else None
    text = source_of(mutation.module) + (by_hand.read_text() if by_hand else "")
    return sha256(text.encode()).hexdigest()[:16]


def _digest_of_all(suite: Suite) -> str:
    return sha256((digest_of_code() + suite.battery.digest).encode()).hexdigest()[:16]
