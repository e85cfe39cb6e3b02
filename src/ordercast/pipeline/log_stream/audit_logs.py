"""Audits a group while it runs: reads the logs of all members as they grow, and says at once if two disagree."""

import time
from collections.abc import Callable, Iterator, Mapping
from threading import Event

import msgspec

from ordercast.model.errors import ConfigError, LogDamaged, LogError, OrdercastError, reason_of
from ordercast.pipeline.log_stream.comparison import Comparison, Disagreement, LeftBehind, Suspected
from ordercast.pipeline.log_stream.follow_log import Gap, LoggedView, LogTail
from ordercast.pipeline.log_stream.options import LogOptions
from ordercast.pipeline.log_stream.places import LogPlace, ReadableDisk, access_of, open_disk, places_of

_POLL = 0.25  # seconds
GRACE = 3.0
"""Seconds in which a view of others that explains a difference must have come.

It is on their disks with the next sync: that takes some ms, but more than a second where a disk has too much to do.
"""


class AuditedMember(msgspec.Struct):
    """How far the audit of a log is."""

    position: int = 0
    """Messages below it were read and verified."""
    why_away: str | None = None
    """It cannot be read now."""
    left_behind_from: int | None = None
    """What it has from this position on the group went on without: it is dropped when the member comes back."""

    @property
    def left_behind(self) -> int:
        """So many messages."""
        return max(0, self.position - self.left_behind_from) if self.left_behind_from is not None else 0


class LogAudit:
    """What was found so far: `members` and `found` may be looked at by another thread."""

    def __init__(self, options: LogOptions) -> None:
        self._options = options
        self._tails: dict[LogPlace, tuple[LogTail, ReadableDisk]] = {}
        self._comparison = Comparison()
        self._since: dict[Suspected, float] = {}
        self._group = options.group or ""
        self.members: dict[str, AuditedMember] = {}
        self.found: list[Disagreement] = []

    @property
    def agreed(self) -> int:
        """Up to this position at least two members have the same order."""
        return self._comparison.agreed

    @property
    def group(self) -> str:
        """The name of the group."""
        return self._group

    @property
    def left_behind(self) -> tuple[LeftBehind, ...]:
        """Members that have messages at their ends that are not of the order; that is no disagreement."""
        return tuple(self._comparison.left_behind.values())

    def step(self) -> bool:
        """Reads what is new; whether there was something."""
        moved = False
        for place in places_of(self._options):
            member = self.members.setdefault(place.name, AuditedMember())
            before = member.position
            try:
                self._read(place, member)
                member.why_away = None
            except ConfigError:
                raise
            except LogDamaged as error:
                member.why_away = str(error)
                self._add(Disagreement("damage", (place.name,), member.position, f"the log of {place.name}: {error}"))
                self._forget(place)
            except (OrdercastError, OSError) as error:
                member.why_away = reason_of(error)
                self._forget(place)
            moved = moved or member.position != before
        self._judge()
        for name, member in self.members.items():
            left = self._comparison.left_behind.get(name)
            member.left_behind_from = left.position if left is not None else None
        return moved

    def conclude(self) -> None:
        """Nothing more is read: what is suspected is found."""
        self._judge(final=True)

    def _judge(self, *, final: bool = False) -> None:
        """Tells of what has been suspected for too long."""
        now = time.monotonic()
        suspected = tuple(self._comparison.suspected.values())
        self._since = {each: self._since.get(each, now) for each in suspected}
        for each in suspected:
            self._add(self._comparison.judge(each, final=final or now - self._since[each] > GRACE))

    def _read(self, place: LogPlace, member: AuditedMember) -> None:
        if place not in self._tails:
            disk = open_disk(place, access_of(self._options))
            self._tails[place] = LogTail(disk), disk
            self._comparison.begin(place.name)
        tail, _ = self._tails[place]
        for news in tail.news():
            self._require_group(place, tail)
            if isinstance(news, Gap):
                self._comparison.begin(place.name)
            elif isinstance(news, LoggedView):
                self._add(self._comparison.view(place.name, news.position, news.view))
            else:
                self._add(self._comparison.place(place.name, news))
                member.position = news.position
            if self.found:
                return

    def _require_group(self, place: LogPlace, tail: LogTail) -> None:
        self._group = self._group or tail.group
        if tail.group != self._group:
            sentence = f"{place.place} is a log of the group {tail.group!r}, not of {self._group!r}"
            self._add(Disagreement("group", (place.name,), 0, sentence))

    def _add(self, found: Disagreement | None) -> None:
        if found is not None and found not in self.found:
            self.found.append(found)

    def _forget(self, place: LogPlace) -> None:
        """The log is read from its beginning when it is there again: its member may have come back with another end."""
        known = self._tails.pop(place, None)
        if known is not None:
            known[1].close()
            self._comparison.begin(place.name)


class Unreadable(msgspec.Struct, frozen=True):
    """The log of a member cannot be read, or can again."""

    member: str
    why: str | None
    """None: it is read again."""


class _Readability:
    """What is new about logs that cannot be read.

    One that was readable before has some time to come back: its member may be writing it anew.
    """

    def __init__(self) -> None:
        self._read: set[str] = set()
        self._since: dict[str, float] = {}
        self._told: set[str] = set()

    def news(self, members: Mapping[str, AuditedMember], now: float) -> Iterator[Unreadable]:
        for name, member in members.items():
            if member.why_away is None:
                self._read.add(name)
                self._since.pop(name, None)
                if name in self._told:
                    self._told.remove(name)
                    yield Unreadable(name, None)
            elif name not in self._told:
                grace = GRACE if name in self._read else 0.0
                if now - self._since.setdefault(name, now) >= grace:
                    self._told.add(name)
                    yield Unreadable(name, member.why_away)


def run_audit(
    audit: LogAudit,
    *,
    until_idle: float | None = None,
    stop: Event | None = None,
    stays: bool = False,
    tell: Callable[[Disagreement], None] | None = None,
    note: Callable[[LeftBehind | Unreadable], None] | None = None,
) -> list[Disagreement]:
    """Follows the logs until two disagree, until `stop` is set, or until nothing was new for `until_idle` seconds.

    `stays`: goes on until `stop` is set, so that whoever scrapes its metrics sees what was found. `tell`: is called
    with each disagreement at once; `note`: with each member that has what the group went on without, or whose log
    cannot be read. Raises `LogError` if no log can be read; one of several counts as away.
    """
    stopped, told, busy, noted = stop or Event(), 0, time.monotonic(), set[LeftBehind]()
    readability = _Readability()
    ended = False
    while not ended:
        if not audit.found and audit.step():
            busy = time.monotonic()
        ended = stopped.is_set() or (until_idle is not None and time.monotonic() - busy > until_idle)
        if ended and not audit.found:
            audit.conclude()
        for each in audit.found[told:]:
            if tell is not None:
                tell(each)
        told = len(audit.found)
        besides: list[LeftBehind | Unreadable] = [
            *readability.news(audit.members, time.monotonic()),
            *(set(audit.left_behind) - noted),
        ]
        if note is not None:
            for news in besides:
                note(news)
        noted |= set(audit.left_behind)
        ended = ended or (bool(told) and not stays) or stopped.wait(_POLL)
    if not audit.found and all(each.why_away is not None for each in audit.members.values()):
        why = "; ".join(f"{name}: {each.why_away}" for name, each in audit.members.items())
        raise LogError(f"no log could be read: {why}")
    return audit.found
