"""Runs of groups whose members change, written down as scripts: one line for each event of a node.

A script is by node: `view 1 = 0 1 2 heard 0 1`, `send a 0 1 2`, `renumber a 0 1 3`, `deliver a`,
`ack a`, `state 0 1` (of view 1 from node 0), `leave drained`, `exclude 2`, `crash`, `durable a`, `restart 2 1` (as node
2 before, with one message in its log), `drop 1` (from position 1 on).
Letters name messages; a source's are numbered as it sends them.
"""

from collections.abc import Mapping
from typing import Any

from ordercast.audit.logs import ALL_COLUMNS
from ordercast.audit.reference import check_run
from ordercast.audit.verdict import Verdict
from ordercast.model.services import Service

Script = Mapping[int, str]
Row = tuple[int, int, int, str, int | None, int | None, tuple[int, ...] | None, int | None, str | None]
"""The columns that an audit reads of runs with views."""

FOUNDED = "view 0 = 0 1 2 heard"


def rows_of(script: Script) -> list[Row]:
    """The rows, node by node. The time of a row is its place in its node's script, or is given: `@7 accept a`.

    That of a `send` is 0: scripts do not say which of two nodes did something first.
    """
    lines = {
        node: [line.split() for line in text.replace(";", "\n").splitlines() if line.split()]
        for node, text in script.items()
    }
    names: dict[str, tuple[int, int]] = {}
    for node, mine in lines.items():
        for number, words in enumerate([words for words in mine if words[0] == "send"]):
            names[words[1]] = (node, number)
    rows: list[Row] = []
    for node, mine in lines.items():
        for step, words in enumerate(mine):
            time, rest = (int(words[0][1:]), words[1:]) if words[0].startswith("@") else (step, words)
            time = 0 if words[0] == "send" else time
            rows.append((node, step, time, rest[0], *_columns(rest, names)))
    return rows


def _columns(words: list[str], names: dict[str, tuple[int, int]]) -> tuple[Any, ...]:
    """source, seq, destinations, priority, detail."""
    kind, *rest = words
    match kind:
        case "view":
            text = " ".join(rest)
            number, _, text = text.partition(" = ")
            places, told, heard = text.partition("heard")
            detail = f"heard={','.join(heard.split())}; why" if told else "why"
            return None, int(number), tuple(map(int, places.split())), None, detail
        case "state" | "restart":
            return int(rest[0]), int(rest[1]), None, None, None
        case "drop" | "exclude":
            return None, int(rest[0]), None, None, "silent" if kind == "exclude" else None
        case "leave" | "crash" | "abort":
            return None, None, None, None, " ".join(rest) or None
        case "send" | "renumber":
            return (*names[rest[0]], tuple(map(int, rest[1:])), None, None)
        case _:
            return (*names.get(rest[0], (0, 900 + ord(rest[0]))), None, None, " ".join(rest[1:]) or None)


def columns_of(rows: list[Row]) -> dict[str, list[Any]]:
    return {name: [row[index] for row in rows] for index, name in enumerate(ALL_COLUMNS)}


def run_row(service: Service, nodes: int, **more: Any) -> dict[str, Any]:
    config = '{"group": {"rules": "sound", "sequencer": {"resilience": 9}}}'
    row = {"run": "r", "protocol": service.value, "nodes": nodes, "aborted": False, "complete": True, "config": config}
    return {**row, "sent": None, **more}


def audited(script: Script, service: Service = Service.TOTAL, **more: Any) -> Verdict:
    verdict = Verdict()
    check_run(run_row(service, len(script), **more), [columns_of(rows_of(script))], None, verdict)
    return verdict


def broken(script: Script, service: Service = Service.TOTAL, **more: Any) -> dict[str, str]:
    """By property that is violated: the sentence of the first witness."""
    findings = audited(script, service, **more).findings
    return {name: one.witnesses[0].violation.sentence for name, one in findings.items() if not one.holds}


def edited(script: Script, node: int, *changes: tuple[str, str]) -> dict[int, str]:
    """A script in which texts of one node's are replaced, each of which must be there."""
    text = script[node]
    for old, new in changes:
        assert old in text, (old, text)
        text = text.replace(old, new, 1)
    return {**script, node: text}
