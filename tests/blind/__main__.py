"""Prints which broken machine is noticed by whom. Exit status: 1 if one is not noticed where it must be.

`python -m tests.blind`: of how many protocols each judge notices the machine. `python -m tests.blind spo st`: what
each says, protocol by protocol.
"""

import sys
from collections.abc import Iterator, Sequence

from tests.blind.judges import JUDGES
from tests.blind.machines import BLIND, EVERY, BlindMachine

_WIDTH = 60


def main(protocols: Sequence[str]) -> int:
    """Judges all machines, and prints a table in Markdown, or one for each protocol."""
    unknown = sorted({*protocols}.difference(EVERY))
    if unknown:
        sys.stderr.write(f"unknown protocol {unknown[0]!r}; choose of: {', '.join(EVERY)}\n")
        return 2
    found = {
        (blind.name, protocol): {name: judge(blind, protocol) for name, judge in JUDGES.items()}
        for blind in BLIND
        for protocol in protocols or EVERY
        if protocol in blind.protocols
    }
    for protocol in protocols:
        said = [(blind, found[blind.name, protocol]) for blind in BLIND if protocol in blind.protocols]
        _print(protocol, ((blind, {name: text[:_WIDTH] for name, text in each.items()}) for blind, each in said))
    if not protocols:
        _print("", ((blind, _counts(blind, found)) for blind in BLIND))
    by_name = {blind.name: blind for blind in BLIND}
    return int(any(not each[judge] for (name, _), each in found.items() for judge in by_name[name].noticed_by))


def _counts(blind: BlindMachine, found: dict[tuple[str, str], dict[str, str]]) -> dict[str, str]:
    """By judge: of how many protocols it notices the machine."""
    noticed = {name: sum(bool(found[blind.name, protocol][name]) for protocol in blind.protocols) for name in JUDGES}
    return {name: f"{count} of {len(blind.protocols)}" if count else "" for name, count in noticed.items()}


def _print(title: str, rows: Iterator[tuple[BlindMachine, dict[str, str]]]) -> None:
    lines = [f"## {title}", ""] if title else []
    lines += [f"| a machine that | {' | '.join(JUDGES)} |", f"|---|{'---|' * len(JUDGES)}"]
    for blind, texts in rows:
        cells = [texts[name] or ("✗" if name in blind.noticed_by else "–") for name in JUDGES]
        lines.append(f"| {blind.name} | {' | '.join(cells)} |")
    sys.stdout.write("\n".join([*lines, "", ""]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
