"""A verdict as text: what was asked, what was found, about whom, and what the record could not show."""

from collections.abc import Iterator
from textwrap import fill

from ordercast.audit.definitions import DEFINITIONS
from ordercast.audit.verdict import Finding, Verdict

_WIDTH = 110
_SHOWN = 3  # witnesses, and nodes, of each property


def explanation(verdict: Verdict) -> str:
    """The whole text, without a line break at its end."""
    return "\n".join(_lines(verdict))


def word_of(finding: Finding) -> str:
    """The result for one property in a word or two."""
    if not finding.holds:
        return "violated"
    return "none seen" if finding.at_least else "holds"


def _lines(verdict: Verdict) -> Iterator[str]:
    result = "Every property holds" if verdict.holds else "Some properties are violated"
    yield f"{result}: {counted(verdict.runs, 'run')}, {counted(verdict.deliveries, 'delivery', 'deliveries')}."
    for protocol, part in verdict.by_protocol.items():
        if len(verdict.by_protocol) > 1:
            found = ", ".join(f"{name} {count:,}" for name, count in part.violations.items()) or "no violation"
            yield _indented(f"{protocol}: {counted(part.runs, 'run')}: {found}")
    for name, finding in verdict.findings.items():
        yield ""
        yield f"{name}: {word_of(finding)}"
        yield _indented(DEFINITIONS.get(name, ""))
        if finding.holds:
            if finding.at_least:
                yield _indented("Only parts of long runs were searched in detail; none was seen there.")
            continue
        at_least = "At least " if finding.at_least else ""
        yield _indented(f"{at_least}{counted(finding.violations, 'violation')}{_about(finding)}. For example:")
        for witness in finding.witnesses[:_SHOWN]:
            where = f"run {witness.run}: " if verdict.runs > 1 else ""
            yield _indented(f"- {where}{verdict.told(witness)}")
    if verdict.not_recorded:
        yield ""
        yield fill(f"Not recorded, so not judged: {', '.join(verdict.not_recorded)}.", _WIDTH)
    if verdict.excused_runs:
        yield ""
        yield f"Nodes are excused in {counted(verdict.excused_runs, 'run')}:"
        yield from (_indented(sentence) for sentence in verdict.told_excused()[:_SHOWN])
    for sentence in verdict.incomplete_records:
        yield ""
        yield fill(sentence, _WIDTH)


def _about(finding: Finding) -> str:
    """The nodes that most violations are about."""
    most = finding.by_node.most_common(_SHOWN)
    more = len(finding.by_node) - len(most)
    named = ", ".join(f"{node} in {count:,}" for node, count in most)
    return f" ({named}{f', {more:,} more' if more else ''})" if most else ""


def counted(count: int, noun: str, plural: str = "") -> str:
    """A number with its noun: `1 run`, `2 deliveries`."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def _indented(text: str) -> str:
    return fill(text, _WIDTH, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False)
