"""Audits a group while it runs: reads the logs of all members as they grow, and says at once if two disagree."""

import time
from collections.abc import Callable
from threading import Event

import msgspec

from ordercast.model.errors import ConfigError, LogDamaged, LogError, OrdercastError, reason_of
from ordercast.pipeline.log_stream.comparison import Comparison, Disagreement
from ordercast.pipeline.log_stream.follow_log import Gap, LoggedView, LogTail
from ordercast.pipeline.log_stream.options import LogOptions
from ordercast.pipeline.log_stream.places import LogPlace, ReadableDisk, access_of, open_disk, places_of

_POLL = 0.25  # seconds


class AuditedMember(msgspec.Struct):
    """How far the audit of a log is."""

    position: int = 0
    """Messages below it were read and verified."""
    why_away: str | None = None
    """It cannot be read now."""


class LogAudit:
    """What was found so far: `members` and `found` may be looked at by another thread."""

    def __init__(self, options: LogOptions) -> None:
        self._options = options
        self._tails: dict[LogPlace, tuple[LogTail, ReadableDisk]] = {}
        self._comparison = Comparison()
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
        return moved

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


def run_audit(
    audit: LogAudit,
    *,
    until_idle: float | None = None,
    stop: Event | None = None,
    stays: bool = False,
    tell: Callable[[Disagreement], None] | None = None,
) -> list[Disagreement]:
    """Follows the logs until two disagree, until `stop` is set, or until nothing was new for `until_idle` seconds.

    `stays`: goes on until `stop` is set, so that whoever scrapes its metrics sees what was found. `tell`: is called
    with each disagreement at once. Raises `LogError` if no log can be read; one of several counts as away.
    """
    stopped, told, busy = stop or Event(), 0, time.monotonic()
    while not stopped.is_set():
        if not audit.found and audit.step():
            busy = time.monotonic()
        for each in audit.found[told:]:
            if tell is not None:
                tell(each)
        told = len(audit.found)
        if told and not stays:
            break
        if until_idle is not None and time.monotonic() - busy > until_idle:
            break
        stopped.wait(_POLL)
    if not audit.found and all(each.why_away is not None for each in audit.members.values()):
        why = "; ".join(f"{name}: {each.why_away}" for name, each in audit.members.items())
        raise LogError(f"no log could be read: {why}")
    return audit.found
