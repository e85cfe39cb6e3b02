"""A verdict as one page of HTML: definitions, results by property, protocol and node, who was excused, and the data.

The page needs nothing else: no script, no font, no other file. It is read on a phone, on paper, and as mail.
"""

import base64
import json
from collections.abc import Iterable, Iterator, Sequence
from html import escape

from ordercast.audit.definitions import DEFINITIONS
from ordercast.audit.explanation import counted, word_of
from ordercast.audit.verdict import Finding, Verdict

_STYLE = """
:root { --ink: #1b1f24; --soft: #57606a; --line: #d8dce1; --paper: #fefefe; --good: #00694e; --bad: #a83200;
  --open: #7a5c00; color-scheme: light dark; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e7eb; --soft: #9aa4af; --line: #363d46; --paper: #14181d;
  --good: #4ccf9f; --bad: #ff9a6b; --open: #e3c04d; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.2rem 1rem 3rem; max-width: 60rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.5rem; line-height: 1.25; } h2 { font-size: 1.15rem; margin: 2rem 0 0.4rem; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; font-variant-numeric: tabular-nums; min-width: 60%; }
th, td { text-align: left; vertical-align: top; padding: 0.3rem 0.9rem 0.3rem 0; border-bottom: 1px solid var(--line); }
th, td { overflow-wrap: normal; }
@media (max-width: 600px) { table { font-size: 0.8rem; } th, td { padding-right: 0.45rem; } }
td.n, th.n { text-align: right; } th { font-weight: 600; } .what { color: var(--soft); font-size: 0.88rem; }
.holds { color: var(--good); } .violated { color: var(--bad); font-weight: 600; } .open { color: var(--open); }
li { margin: 0.25rem 0; } .soft { color: var(--soft); } a { color: inherit; }
"""
_CLASSES = {"holds": "holds", "violated": "violated"}
_MOST_NODES = 50


def page(verdict: Verdict, trace: str) -> str:
    """The page of a verdict on a trace, which may be several."""
    word = "Every property holds" if verdict.holds else "Some properties are violated"
    title = f"Audit of {trace}"
    body = [
        f"<h1>{escape(title)}</h1>",
        f'<p class="{"holds" if verdict.holds else "violated"}">{word}.</p>',
        f"<p>{counted(verdict.runs, 'run')}, {counted(verdict.deliveries, 'delivery', 'deliveries')}.</p>",
        *_results(verdict),
        *_violations(verdict),
        *_by_protocol(verdict),
        *_by_node(verdict),
        *_list("Who need not have everything, and why", verdict.told_excused(), more=verdict.excused_runs),
        *_list("Incomplete records", verdict.incomplete_records),
        f"<p>{_download(verdict)}</p>",
    ]
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style>"
    )
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>{head}</head>\n<body>\n' + "\n".join(body) + "\n</body>\n</html>\n"
    )


def _results(verdict: Verdict) -> Iterator[str]:
    rows = [
        (
            f'<code>{_named(name)}</code><br><span class="what">{escape(DEFINITIONS.get(name, ""))}</span>',
            f'<span class="{_CLASSES.get(word_of(finding), "open")}">{word_of(finding)}</span>',
            f"{finding.runs:,}",
            _count(finding),
        )
        for name, finding in verdict.findings.items()
    ]
    rows += [
        (
            f'<code>{_named(name)}</code><br><span class="what">{escape(DEFINITIONS.get(name, ""))}</span>',
            '<span class="open">not recorded, so not judged</span>',
            f"{runs:,}",
            "",
        )
        for name, runs in verdict.not_recorded.items()
    ]
    yield "<h2>Properties</h2>"
    yield from _table(("property", "result", "runs", "violations"), rows, numbers=2)


def _violations(verdict: Verdict) -> Iterator[str]:
    for name, finding in verdict.findings.items():
        if not finding.holds:
            yield f"<h2>{escape(name)}: {_at_least(finding)}{counted(finding.violations, 'violation')}</h2>"
            yield f'<p class="what">{escape(DEFINITIONS.get(name, ""))} The first that were found:</p><ul>'
            for witness in finding.witnesses:
                yield f'<li>{escape(verdict.told(witness))} <span class="soft">(run {escape(witness.run)})</span></li>'
            yield "</ul>"


def _by_protocol(verdict: Verdict) -> Iterator[str]:
    yield "<h2>By protocol</h2>"
    rows = [
        (
            escape(name),
            ", ".join(f"{_named(what)} {count:,}" for what, count in part.violations.items()) or "none",
            f"{part.runs:,}",
            f"{part.deliveries:,}",
        )
        for name, part in verdict.by_protocol.items()
    ]
    yield from _table(("protocol or profile", "violations", "runs", "deliveries"), rows, numbers=2)


def _by_node(verdict: Verdict) -> Iterator[str]:
    wrong = {name: finding for name, finding in verdict.findings.items() if finding.by_node}
    if not wrong:
        return
    totals = {node: 0 for finding in wrong.values() for node in finding.by_node}
    for finding in wrong.values():
        for node, count in finding.by_node.items():
            totals[node] += count
    worst = sorted(totals, key=lambda node: (-totals[node], node))
    yield "<h2>By node</h2>"
    yield '<p class="what">Violations that are about a node; one about two nodes is counted at both.</p>'
    rows = [
        (escape(node), *(f"{finding.by_node[node]:,}" for finding in wrong.values())) for node in worst[:_MOST_NODES]
    ]
    yield from _table(("node", *map(_named, wrong)), rows, numbers=1)
    if len(worst) > _MOST_NODES:
        yield f'<p class="soft">{len(worst) - _MOST_NODES:,} more nodes have violations.</p>'


def _list(title: str, sentences: Sequence[str], more: int = 0) -> Iterator[str]:
    if sentences:
        yield f"<h2>{title}</h2><ul>"
        yield from (f"<li>{escape(sentence)}</li>" for sentence in sentences)
        yield "</ul>"
        if more > len(sentences):
            yield f'<p class="soft">{more - len(sentences):,} more runs have such nodes.</p>'


def _table(titles: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: int) -> Iterator[str]:
    """`numbers`: the column from which on there are numbers."""
    kinds = ['class="n"' if place >= numbers else "" for place in range(len(titles))]
    yield '<div class="scroll"><table><thead><tr>'
    yield "".join(f"<th {kind}>{title}</th>" for kind, title in zip(kinds, titles, strict=True))
    yield "</tr></thead><tbody>"
    for row in rows:
        yield f"<tr>{''.join(f'<td {kind}>{cell}</td>' for kind, cell in zip(kinds, row, strict=True))}</tr>"
    yield "</tbody></table></div>"


def _named(name: str) -> str:
    """The name of a property, which may be broken at its underlines."""
    return escape(name).replace("_", "_<wbr>")


def _count(finding: Finding) -> str:
    return f"{_at_least(finding)}{finding.violations:,}"


def _at_least(finding: Finding) -> str:
    return "at least " if finding.at_least else ""


def _download(verdict: Verdict) -> str:
    data = base64.b64encode(json.dumps(verdict.as_document(), indent=1).encode()).decode()
    return f'<a download="verdict.json" href="data:application/json;base64,{data}">The verdict as JSON</a>'
