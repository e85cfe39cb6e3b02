"""Prints which broken machine is noticed by whom. Exit status: 1 if one is not noticed where it must be.

`python -m tests.blind`: of how many protocols each judge notices the machine. `python -m tests.blind spo st`: what
each says, protocol by protocol. `--views` and `--logs`: the members that break a promise of these. `--machine
FILE.py:CLASS st`: what all judges say of a machine of your own; exit status 1 if none notices it.
"""

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence

from tests.blind.judges import JUDGES, OF_MEMBERS, Judge
from tests.blind.machines import BLIND, EVERY, BlindMachine
from tests.blind.members import LOGS, MEMBERS, VIEWS, BlindMember
from tests.blind.own_machine import judged, machine_in

_WIDTH = 60
Case = BlindMachine | BlindMember


def main(arguments: Sequence[str]) -> int:
    """The whole command."""
    asked = _parser().parse_args(arguments)
    unknown = sorted({*asked.protocols}.difference(EVERY))
    if unknown:
        sys.stderr.write(f"unknown protocol {unknown[0]!r}; choose of: {', '.join(EVERY)}\n")
        return 2
    if asked.machine:
        return _own(asked.machine, asked.protocols or EVERY)
    if asked.views or asked.logs:
        about = [name for name, wanted in ((VIEWS, asked.views), (LOGS, asked.logs)) if wanted]
        return _table([member for member in MEMBERS if member.about in about], OF_MEMBERS, asked.protocols)
    return _table(BLIND, JUDGES, asked.protocols)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.blind")
    parser.add_argument("protocols", nargs="*", help=f"of {', '.join(EVERY)}; default: a count over all")
    parser.add_argument("--views", action="store_true", help="members that break a promise of views")
    parser.add_argument("--logs", action="store_true", help="members that break a promise of logs")
    parser.add_argument("--machine", metavar="FILE.py:CLASS", help="a machine of your own, or a spoiler for one")
    return parser


def _own(place: str, protocols: Sequence[str]) -> int:
    try:
        machine = machine_in(place)
    except ValueError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    missed = 0
    for protocol in protocols:
        sys.stdout.write(f"{protocol}\n")
        noticed = False
        for judge, found in judged(machine, protocol):
            noticed = noticed or bool(found)
            sys.stdout.write(f"  {judge:<16} {found or 'notices nothing'}\n")
            sys.stdout.flush()
        missed += not noticed
        sys.stdout.write("  noticed\n" if noticed else "  NOT NOTICED BY ANY\n")
    return 1 if missed else 0


def _table(cases: Sequence[Case], judges: Mapping[str, Judge], protocols: Sequence[str]) -> int:
    """Judges all of these, and prints a table in Markdown, or one for each protocol."""
    found = {
        (case.name, protocol): {name: judge(case, protocol) for name, judge in judges.items()}
        for case in cases
        for protocol in protocols or EVERY
        if protocol in case.protocols
    }
    for protocol in protocols:
        said = [(case, found[case.name, protocol]) for case in cases if protocol in case.protocols]
        _print(protocol, ((case, {name: text[:_WIDTH] for name, text in each.items()}) for case, each in said))
    if not protocols:
        _print("", ((case, _counts(case, found)) for case in cases))
    by_name = {case.name: case for case in cases}
    return int(any(not each[judge] for (name, _), each in found.items() for judge in by_name[name].noticed_by))


def _counts(case: Case, found: dict[tuple[str, str], dict[str, str]]) -> dict[str, str]:
    """By judge: of how many protocols it notices the machine."""
    noticed = {name: sum(bool(found[case.name, protocol][name]) for protocol in case.protocols) for name in JUDGES}
    return {name: f"{count} of {len(case.protocols)}" if count else "" for name, count in noticed.items()}


def _print(title: str, rows: Iterator[tuple[Case, dict[str, str]]]) -> None:
    lines = [f"## {title}", ""] if title else []
    lines += [f"| a machine that | {' | '.join(JUDGES)} |", f"|---|{'---|' * len(JUDGES)}"]
    for case, texts in rows:
        cells = [texts[name] or ("✗" if name in case.noticed_by else "–") for name in JUDGES]
        lines.append(f"| {case.name} | {' | '.join(cells)} |")
    sys.stdout.write("\n".join([*lines, "", ""]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
