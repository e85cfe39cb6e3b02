"""Whether messages arrive as they were submitted, in the order in which they were.

A trace names messages by their numbers, and a simulation has no contents of its own. So each submission is given some,
which no other one has, and messages of different lengths if they are several.
"""

from collections import deque
from collections.abc import Collection, Iterator
from hashlib import shake_128

from ordercast.model.machine import Submit
from ordercast.model.nodes import name_of
from ordercast.model.units import Packet

Content = tuple[tuple[int, ...], bytes, int]
"""Lengths, payload and priority."""


class Contents:
    """What was submitted at each node, and which number it got."""

    def __init__(self, nodes: int, *, has_views: bool) -> None:
        """`has_views`: what has no destination among the members gets no number."""
        self.wrong: list[str] = []
        """A sentence for each packet that is not what was submitted."""
        self._has_views = has_views
        self._submitted: list[deque[_Waiting]] = [deque() for _ in range(nodes)]  # not numbered yet
        self._count = [0] * nodes
        self._members = [-1] * nodes  # by node: those of its latest view; all bits until the first
        self._numbered: dict[tuple[int, int], Content] = {}  # by source and first message

    def submit(self, node: int, submission: Submit) -> Submit:
        """What is submitted instead: of the same size, with a content of its own."""
        name = b"%d/%d" % (node, self._count[node])
        self._count[node] += 1
        payload = shake_128(name).digest(len(submission.payload))
        given = Submit(
            submission.destinations,
            _different(submission.lengths),
            payload,
            submission.priority,
            submission.skips,
            submission.to_all,
        )
        self._submitted[node].append(_Waiting(given, self._members[node]))
        return given

    def install(self, node: int, members: int) -> None:
        """A node installed a view."""
        self._members[node] = members
        for waiting in self._submitted[node]:
            waiting.members &= members

    def number(self, node: int, packet: Packet) -> None:
        """A node numbered what must be the next of its submissions."""
        waiting, content = self._submitted[node], _content(packet)
        if self._numbered.setdefault((packet.source, packet.first), content) != content:
            self.wrong.append(f"{name_of(node)} gives the number of {_name(packet)} to a second message")
        while waiting:
            first = waiting.popleft()
            submission = first.submission
            if content == (submission.lengths, submission.payload, submission.priority) and self._may_go_to(
                first, packet.destinations
            ):
                return
            if not self._has_views or submission.destinations & first.members:
                break
        self.wrong.append(f"{name_of(node)} numbers {_name(packet)}, which is not what was submitted to it next")

    def unsent(self, nodes: Collection[int]) -> Iterator[str]:
        """A sentence for each of these nodes that never sent what it should have."""
        for node in nodes:
            left = [each for each in self._submitted[node] if each.submission.destinations & each.members]
            if left:
                yield f"{name_of(node)} never sends {len(left):,} of its submissions, whose destinations are members"

    def compare(self, node: int, verb: str, packet: Packet) -> None:
        """A node does something with a packet: it must be what was numbered."""
        if self._numbered.get((packet.source, packet.first)) != _content(packet):
            self.wrong.append(f"{name_of(node)} {verb} {_name(packet)} with another content than was sent")

    def _may_go_to(self, waiting: "_Waiting", destinations: int) -> bool:
        asked = waiting.submission.destinations
        if self._has_views:  # those of them that are members; one that joined meanwhile may be left out
            return not destinations & ~asked and not asked & waiting.members & ~destinations
        return destinations == asked


class _Waiting:
    """A submission that has no number yet."""

    __slots__ = ("members", "submission")

    def __init__(self, submission: Submit, members: int) -> None:
        self.submission = submission
        self.members = members  # of all views that its node has been in since it was submitted


def _content(packet: Packet) -> Content:
    return packet.lengths, packet.payload, packet.priority


def _name(packet: Packet) -> str:
    return f"{name_of(packet.source)}#{packet.first}"


def _different(lengths: tuple[int, ...]) -> tuple[int, ...]:
    """Other lengths with the same sum: one byte of each message goes to the one after it, of every two."""
    found = list(lengths)
    for at in range(0, len(found) - 1, 2):
        moved = min(found[at], 1 + at % 3)
        found[at] -= moved
        found[at + 1] += moved
    return tuple(found)
