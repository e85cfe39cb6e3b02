"""The definitions of section 4.2 and 4.3, by the letter: what logically precedes what, failure sections, sort lines."""

from collections.abc import Iterator, Sequence
from itertools import combinations

Pair = tuple[str, str]


def together(logs: Sequence[str]) -> set[Pair]:
    """⇒ without its reflexive part: what some log has before something else, and whatever follows from that."""
    precedes = {pair for log in logs for pair in combinations(log.split(), 2)}
    while True:
        more = {(first, last) for first, middle in precedes for other, last in precedes if middle == other} - precedes
        if not more:
            return precedes
        precedes |= more


def is_consistent(logs: Sequence[str]) -> bool:
    """Whether ⇒ is anti-symmetric."""
    return all(first != second for first, second in together(logs))


def failure_section(logs: Sequence[str], node: int, lost: str) -> Pair:
    """f_i(g) of a node that lost it, given the logs that others have of it too: the last before, the first behind."""
    precedes, own = together(logs), logs[node].split()
    before = [letter for letter in own if (letter, lost) in precedes]
    behind = [letter for letter in own if (lost, letter) in precedes]
    return (before or [""])[-1], (behind or [""])[0]


def to_be_sorted(logs: Sequence[str], lost: str) -> set[str]:
    """T(g): what g precedes, and g."""
    return {lost} | {second for first, second in together(logs) if first == lost}


def sort_line(logs: Sequence[str], lost: str) -> list[str]:
    """sline(g): the first of T(g) in each log."""
    moved = to_be_sorted(logs, lost)
    return [next((letter for letter in log.split() if letter in moved), "") for log in logs]


def insertions(log: str, lost: str) -> Iterator[str]:
    """The log with g at every place."""
    letters = log.split()
    for place in range(len(letters) + 1):
        yield " ".join([*letters[:place], lost, *letters[place:]])


def agree_on_order(logs: Sequence[str]) -> bool:
    """Whether every two logs are order-equivalent."""
    pairs = {pair for log in logs for pair in combinations(log.split(), 2)}
    return not any((second, first) in pairs for first, second in pairs)
