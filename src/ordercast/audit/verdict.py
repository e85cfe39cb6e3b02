"""What an audit reports: for each property how many runs were checked, what was violated, and the first witnesses."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ordercast.audit.names import Names, names_of_run
from ordercast.audit.violations import Violation
from ordercast.model.nodes import name_of
from ordercast.trace.schema import PROTOCOL, RUN

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
    by_node: Counter[str] = field(default_factory=Counter)
    """By node, E1, E2, … or its name: the violations that are about it, perhaps together with others."""

    @property
    def holds(self) -> bool:
        """True if no violation was found."""
        return not self.violations

    def count(self, violation: Violation) -> None:
        """Adds a violation, and its nodes, but not as a witness."""
        self.violations += 1
        self.by_node.update(name_of(node) for node in set(violation.nodes))

    def add(self, other: "Finding") -> None:
        """Adds the result of more runs."""
        self.runs += other.runs
        self.violations += other.violations
        self.at_least |= other.at_least
        self.by_node.update(other.by_node)
        self.witnesses += other.witnesses[: MOST_WITNESSES - len(self.witnesses)]


@dataclass
class ByProtocol:
    """How much of a verdict is about the runs of one protocol."""

    runs: int = 0
    deliveries: int = 0
    violations: Counter[str] = field(default_factory=Counter)
    """By the name of the property."""

    def add(self, other: "ByProtocol") -> None:
        """Adds more runs of the protocol."""
        self.runs += other.runs
        self.deliveries += other.deliveries
        self.violations.update(other.violations)

    def as_document(self) -> dict[str, object]:
        """For JSON."""
        return {"runs": self.runs, "deliveries": self.deliveries, "violations": dict(self.violations)}


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
    by_protocol: dict[str, ByProtocol] = field(default_factory=dict)
    """By the protocol, or the profile, of the runs' rows."""
    names: dict[str, Names] = field(default_factory=dict)
    """What the nodes are called in runs with witnesses or excused nodes, if they have names."""

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
        self.names.update(other.names)
        for protocol, part in other.by_protocol.items():
            self.by_protocol.setdefault(protocol, ByProtocol()).add(part)
        for name, finding in other.findings.items():
            self.findings.setdefault(name, Finding()).add(finding)

    def add_run(self, row: Mapping[str, Any], other: "Verdict") -> None:
        """Adds the verdict on one run, given its row of `runs`, and what its nodes are called if anything is told."""
        violations = Counter({name: found.violations for name, found in other.findings.items() if found.violations})
        other.by_protocol = {str(row[PROTOCOL]): ByProtocol(other.runs, other.deliveries, violations)}
        if (violations or other.excused) and (names := names_of_run(row)):
            other.names = {row[RUN]: names}
            for found in other.findings.values():
                found.by_node = Counter({names.put_into(node): count for node, count in found.by_node.items()})
        self.add(other)

    def told(self, witness: Witness) -> str:
        """The sentence of a witness, with the names of the nodes if they have any."""
        sentence = witness.violation.sentence
        names = self.names.get(witness.run)
        return names.put_into(sentence) if names else sentence

    def told_excused(self) -> list[str]:
        """The sentences on excused nodes, with their names."""
        found = []
        for sentence in self.excused:
            run, _, why = sentence.removeprefix("run ").partition(": ")
            names = self.names.get(run)
            found.append(f"run {run}: {names.put_into(why)}" if names else sentence)
        return found

    def explain(self) -> str:
        """The verdict as text for people: what each property means, who violates it, who was excused."""
        from ordercast.audit.explanation import explanation  # noqa: PLC0415 - which takes a verdict

        return explanation(self)

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
                    "witnesses": [self._witness(witness) for witness in finding.witnesses],
                    "runs": finding.runs,
                    "counts": "at least" if finding.at_least else "exact",
                    **({"by_node": dict(finding.by_node.most_common())} if finding.by_node else {}),
                }
                for name, finding in self.findings.items()
            },
            "not_recorded": dict(self.not_recorded),
            **(
                {"by_protocol": {name: part.as_document() for name, part in self.by_protocol.items()}}
                if self.by_protocol
                else {}
            ),
            **({"incomplete_records": self.incomplete_records} if self.incomplete_records else {}),
            **({"excused": {"runs": self.excused_runs, "sentences": self.excused}} if self.excused_runs else {}),
            **({"members": {run: list(names.nodes) for run, names in self.names.items()}} if self.names else {}),
        }

    def _witness(self, witness: Witness) -> dict[str, object]:
        document = {"run": witness.run, **witness.violation.as_document()}
        return {**document, "told": self.told(witness)} if witness.run in self.names else document
