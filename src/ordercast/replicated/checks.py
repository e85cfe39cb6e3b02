"""Divergence: members compare checksums of their states at one place of the order."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ordercast.model.errors import Diverged
from ordercast.replicated.frames import Digests


class Verdict(NamedTuple):
    """A comparison that is complete."""

    number: int
    checker: str
    diverged: Diverged | None


class Checks:
    """The comparisons that are under way. All members get the same messages, so all come to the same verdict."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, int], dict[str, Mapping[str, bytes]]] = {}

    def begin(self, checker: str, number: int) -> None:
        """A check, at its place."""
        self._found[checker, number] = {}

    def view_changed(self) -> None:
        """Who joined has not seen the check, and who left does not answer: nothing is compared over a view."""
        self._found.clear()

    def add(self, sender: str, digests: Digests, members: Sequence[str]) -> Verdict | None:
        """The digests of a member; the verdict if they are the last."""
        key = digests.checker, digests.number
        found = self._found.get(key)
        if found is None:
            return None
        found[sender] = digests.digests
        if len(found) < len(members):
            return None
        del self._found[key]
        return Verdict(digests.number, digests.checker, verdict(found, members))


def verdict(found: Mapping[str, Mapping[str, bytes]], members: Sequence[str]) -> Diverged | None:
    """Who differs from most of those that hold the same object; of two halves, from that of the oldest member."""
    for name in sorted({name for digests in found.values() for name in digests}):
        holders = [member for member in members if name in found.get(member, {})]
        counts = Counter(found[member][name] for member in holders)
        most = max(counts.values())
        right = next(found[member][name] for member in holders if counts[found[member][name]] == most)
        wrong = tuple(member for member in holders if found[member][name] != right)
        if wrong:
            return Diverged(wrong[0], name, wrong)
    return None
