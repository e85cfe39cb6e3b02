"""What an audit reports: for each property how many runs were checked, what was violated, and the first witnesses."""

from collections import Counter
from dataclasses import dataclass, field

from ordercast.audit.violations import Violation

MOST_WITNESSES = 10
"""Witnesses kept for each property; violations are all counted."""


@dataclass(frozen=True)
class Witness:
    """A violation, and the run that it was found in."""

    run: str
    violation: Violation


@dataclass
class Finding:
    """The result for one property, over all runs that promise it and recorded what it is about."""

    runs: int = 0
    """Runs that were checked."""
    violations: int = 0
    witnesses: list[Witness] = field(default_factory=list)
    """The first few."""
    at_least: bool = False
    """True if only parts of some run were searched: there may be more violations than were counted."""

    @property
    def holds(self) -> bool:
        """True if no violation was found."""
        return not self.violations

    def add(self, other: "Finding") -> None:
        """Adds the result of more runs."""
        self.runs += other.runs
        self.violations += other.violations
        self.at_least |= other.at_least
        self.witnesses += other.witnesses[: MOST_WITNESSES - len(self.witnesses)]


@dataclass
class Verdict:
    """The result of an audit."""

    runs: int = 0
    deliveries: int = 0
    findings: dict[str, Finding] = field(default_factory=dict)
    """By the name of the property."""
    not_recorded: Counter[str] = field(default_factory=Counter)
    """By property: runs that promise it but did not record enough to check it."""
    incomplete_records: list[str] = field(default_factory=list)
    """A sentence for each run some of whose members left no complete record."""
    excused_runs: int = 0
    """Runs in which some nodes need not have everything: they stopped, or a view excludes them."""
    excused: list[str] = field(default_factory=list)
    """For the first of these runs: who, and why."""

    def excuse(self, run: str, sentence: str) -> None:
        """Adds who is excused in a run; nothing if the sentence is empty."""
        if sentence:
            self.excused_runs += 1
            if len(self.excused) < MOST_WITNESSES:
                self.excused.append(f"run {run}: {sentence}")

    @property
    def holds(self) -> bool:
        """True if no run violates a property."""
        return all(finding.holds for finding in self.findings.values())

    def add(self, other: "Verdict") -> None:
        """Adds the verdict on more runs."""
        self.runs += other.runs
        self.deliveries += other.deliveries
        self.not_recorded.update(other.not_recorded)
        self.incomplete_records += other.incomplete_records
        self.excused_runs += other.excused_runs
        self.excused += other.excused[: MOST_WITNESSES - len(self.excused)]
        for name, finding in other.findings.items():
            self.findings.setdefault(name, Finding()).add(finding)

    def as_document(self) -> dict[str, object]:
        """For JSON."""
        return {
            "holds": self.holds,
            "runs": self.runs,
            "deliveries": self.deliveries,
            "properties": {
                name: {
                    "holds": finding.holds,
                    "violations": finding.violations,
                    "witnesses": [
                        {"run": witness.run, **witness.violation.as_document()} for witness in finding.witnesses
                    ],
                    "runs": finding.runs,
                    "counts": "at least" if finding.at_least else "exact",
                }
                for name, finding in self.findings.items()
            },
            "not_recorded": dict(self.not_recorded),
            **({"incomplete_records": self.incomplete_records} if self.incomplete_records else {}),
            **({"excused": {"runs": self.excused_runs, "sentences": self.excused}} if self.excused_runs else {}),
        }
