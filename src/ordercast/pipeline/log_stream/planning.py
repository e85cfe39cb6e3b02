"""Which positions a query reads next, and in which parts: decided from what the members have on their disks.

Nothing here has to be remembered from one call to the next: after a restart Spark asks for the parts of a batch whose
end was decided by another process. What is kept makes the next look faster, and tells how long too few members answer.
"""

import logging
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import TypeVar

import msgspec

from ordercast.model.errors import ConfigError, LogError, OrdercastError, reason_of
from ordercast.pipeline.log_stream.majority import Offered, disagreement, offered
from ordercast.pipeline.log_stream.member_log import FramePoint, MemberLog, OrderPlace, Standing
from ordercast.pipeline.log_stream.options import Boundary, LogOptions
from ordercast.pipeline.log_stream.places import Access, LogPlace, access_of, open_disk, places_of

ROWS_OF_A_PART = 1_000_000
_POLL = 0.25  # seconds
_SAY_AGAIN = 30.0  # seconds
_Answer = TypeVar("_Answer")
_log = logging.getLogger("ordercast.pipeline.log_stream")


class Part(msgspec.Struct, frozen=True):
    """What one task reads."""

    start: OrderPlace
    end: OrderPlace
    group: str
    sources: tuple[tuple[LogPlace, FramePoint | None], ...]
    """Logs that should have it, the best first; and where in each reading may begin."""
    access: Access
    member_timeout: float


class LogPlanner:
    """Looks at the logs of all members."""

    def __init__(self, options: LogOptions) -> None:
        self._options = options
        self._access = access_of(options)
        self._logs: dict[LogPlace, MemberLog] = {}
        self._away: dict[str, str] = {}
        self._waits_since: float | None = None
        self._said_at = -_SAY_AGAIN
        self._trusted: int | None = None
        """The order below this position is known to be that of the checkpoint."""
        self.group = ""
        self.seen = 0
        """What was offered last."""

    # --- what there is ---

    def _standings(self) -> dict[MemberLog, Standing]:
        """Of all logs that answer, those of members first; raises `LogError` if one is of another group."""
        found: dict[MemberLog, Standing] = {}
        self._away = {}
        places = places_of(self._options)
        for place in places:
            try:
                log, standing = self._look(place)
            except ConfigError:
                raise
            except (OrdercastError, OSError) as error:
                self._away[place.name] = reason_of(error)
                if len(places) == 1 and isinstance(error, LogError):
                    raise LogError(f"{place.place}: {error}") from error
            else:
                found[log] = standing
        self._require_one_group(found)
        voters = self._voters(found)
        return dict(sorted(found.items(), key=lambda each: each[0].place.name not in voters))

    def _look(self, place: LogPlace) -> tuple[MemberLog, Standing]:
        """A second time from the beginning if the log is not as it was: its member may have come back."""
        known = self._logs.get(place)
        if known is not None:
            try:
                return known, known.look()
            except (LogError, OSError):
                self._logs.pop(place)
        log = MemberLog(place, open_disk(place, self._access))
        standing = log.look()
        self._logs[place] = log
        return log, standing

    def _require_one_group(self, found: dict[MemberLog, Standing]) -> None:
        wanted = self._options.group or self.group
        for log, standing in found.items():
            wanted = wanted or standing.group
            if standing.group != wanted:
                raise LogError(
                    f"{log.place.name} ({log.place.place}) is a log of the group {standing.group!r}, not of "
                    f"{wanted!r}: list the logs of one group"
                )
        self.group = wanted

    def _offered(self, found: dict[MemberLog, Standing]) -> Offered:
        names = [place.name for place in places_of(self._options)]
        return offered(names, {log.place.name: standing for log, standing in found.items()})

    def _voters(self, found: dict[MemberLog, Standing]) -> tuple[str, ...]:
        """Whoever else has a log may have at its end what was never agreed on."""
        return self._offered(found).voters

    def _waited(self, offer: Offered, what: str) -> None:
        """Too few logs answer: waits, tells, and in the end gives up."""
        now = time.monotonic()
        self._waits_since = self._waits_since or now
        unlisted = dict.fromkeys(offer.lacks, "its log is not in the list")
        away = "; ".join(f"{name}: {why}" for name, why in (unlisted | self._away).items()) or "nobody has it"
        if now - self._waits_since > self._options.member_timeout:
            raise LogError(
                f"{what} for {self._options.member_timeout:g} seconds (memberTimeout): {away}; start the missing "
                "members again, or correct the list of logs; the query then goes on where it was"
            )
        if now - self._said_at > _SAY_AGAIN:
            self._said_at = now
            _log.warning("%s (a majority is %d): %s", what, offer.asked, away)

    def _majority(self) -> tuple[dict[MemberLog, Standing], int]:
        """Waits for it."""
        while True:
            found = self._standings()
            offer = self._offered(found)
            if offer.position is not None:
                self._waits_since = None
                self.seen = offer.position
                return found, offer.position
            self._waited(offer, "too few logs answer")
            time.sleep(_POLL)

    # --- offsets ---

    def boundary(self, which: Boundary) -> OrderPlace:
        """Where a query begins or ends that says so by a word or a position."""
        found, end = self._majority()
        first = min(standing.first for standing in found.values())
        if which == "earliest":
            position = first
        elif which == "latest":
            position = end
        else:
            position = which
        if position > end:
            raise LogError(f"position {position} is beyond the end of the order, which is {end}; give at most that")
        if position < first:
            self._lost(position, first)
            position = first
        return OrderPlace(position, self._agreed_hash(found, position, None))

    def _lost(self, wanted: int, first: int) -> None:
        """Positions were dropped by retention; raises `LogError` unless the user said to go on."""
        what = f"positions {wanted} to {first - 1} are not in any log any more: retention has dropped them"
        if self._options.fail_on_data_loss:
            raise LogError(
                f"{what}; begin at {first} with a new checkpoint, or say failOnDataLoss=false to go on without them"
            )
        _log.error("%s; the query goes on without them (failOnDataLoss=false)", what)

    def latest(self, start: OrderPlace, limit: int | None, target: OrderPlace | None = None) -> OrderPlace:
        """The end of the next batch, at most `limit` messages after `start` and not above `target`.

        `start` itself if there is nothing more, or too few members answer.
        """
        found = self._standings()
        offer = self._offered(found)
        if offer.position is None:
            self._waited(offer, "too few logs answer")
            return start
        self.seen = max(offer.position, start.position)
        if offer.position <= start.position:
            self._require_not_behind(found, offer, start)
            return start
        self._waits_since = None
        self._require_same_order(found, start)
        end = offer.position if target is None else min(offer.position, target.position)
        first = min(standing.first for standing in found.values())
        begin = max(start.position, first)
        if limit is not None and begin + limit < end:
            end = begin + limit
        if end <= start.position:
            return start
        place = self._place_below(found, end, begin)
        return OrderPlace(place.position, self._agreed_hash(found, place.position, None))

    def _require_not_behind(self, found: dict[MemberLog, Standing], offer: Offered, start: OrderPlace) -> None:
        """What the query has read was on the disks of a majority once: it comes back, or these are other logs."""
        if offer.position == start.position:
            self._waits_since = None
            self._require_same_order(found, start)
            return
        ends = ", ".join(f"{log.place.name} at {standing.durable}" for log, standing in found.items())
        if not self._away and max(standing.durable for standing in found.values()) < start.position:
            raise LogError(
                f"this query has read below position {start.position}, and the logs end before it ({ends}): they are "
                "other logs, or have lost what was on their disks; begin with a new checkpoint"
            )
        self._waited(offer, f"a majority of the logs ends before position {start.position}, which was read ({ends})")

    def _require_same_order(self, found: dict[MemberLog, Standing], start: OrderPlace) -> None:
        """The logs have what the query has read."""
        if start.hash and self._trusted is None:
            self._agreed_hash(found, start.position, start)
            self._trusted = start.position

    def _place_below(self, found: dict[MemberLog, Standing], target: int, above: int) -> OrderPlace:
        """As the first log knows that has it: ends of packets are the same in all."""
        why = "nobody has it"
        for log, standing in found.items():
            if standing.first < target <= standing.durable:
                try:
                    return _asked(log, partial(log.place_below, target, above))
                except (LogError, OSError) as error:
                    why = f"{log.place.name}: {reason_of(error)}"
        raise LogError(f"no log has the message before position {target}: {why}")

    def _agreed_hash(self, found: dict[MemberLog, Standing], position: int, expected: OrderPlace | None) -> bytes:
        """The running hash at a position, which all members have that have the position."""
        places: dict[str, OrderPlace | None] = {}
        asked = {log: each for log, each in found.items() if each.first <= position <= each.durable}
        voters = self._voters(found)
        if any(log.place.name in voters for log in asked):
            asked = {log: each for log, each in asked.items() if log.place.name in voters}
        for log in asked:
            try:
                hash_ = _asked(log, partial(log.hash_at, position))
            except (LogError, OSError) as error:
                _log.warning("cannot read the log of %s: %s", log.place.name, reason_of(error))
                continue
            places[log.place.name] = OrderPlace(position, hash_) if hash_ is not None else None
        if all(each is None for each in places.values()) and (expected is None or not expected.hash):
            return b""  # in the middle of a packet
        wrong = disagreement(places, expected)
        if wrong is not None:
            raise LogError(
                f"{wrong}; the query stops before it. Whose log is wrong, or of another group, is to be taken out of "
                "the list, or its folder moved away so that the member is given the log anew"
            )
        return next((each.hash for each in places.values() if each is not None), b"")

    # --- parts ---

    def parts(self, start: OrderPlace, end: OrderPlace) -> list[Part]:
        """Parts of about a million messages, or more if `minPartitions` asks for it."""
        if start.position >= end.position:
            return []
        found = self._with(end)
        first = min(standing.first for standing in found.values())
        if start.position < first:
            self._lost(start.position, min(first, end.position))
            start = OrderPlace(first, b"")
            if first >= end.position:
                return []
        if end.hash:
            self._agreed_hash(found, end.position, end)
        bounds = [start, *self._bounds(found, start, end), end]
        voters = self._voters(found)
        agreed = [log for log, each in found.items() if each.durable >= end.position and log.place.name in voters]
        others = [log for log in found if log not in agreed]
        return [
            Part(
                *(one, other, self.group),
                self._sources([*_turned(agreed, turn), *others], one),
                self._access,
                self._options.member_timeout,
            )
            for turn, (one, other) in enumerate(pairwise(bounds))
        ]

    def _with(self, end: OrderPlace) -> dict[MemberLog, Standing]:
        """The logs, those that have the end first: it was on a majority of disks when it was offered.

        What others have at their ends may never have been agreed on.
        """
        while True:
            found = self._standings()
            if any(standing.durable >= end.position for standing in found.values()):
                self._waits_since = None
                return dict(sorted(found.items(), key=lambda each: each[1].durable < end.position))
            self._waited(self._offered(found), f"no log has the messages below position {end.position}")
            time.sleep(_POLL)

    def _bounds(self, found: dict[MemberLog, Standing], start: OrderPlace, end: OrderPlace) -> Iterator[OrderPlace]:
        """Where parts end, between the first and the last one."""
        rows = end.position - start.position
        parts = min(rows, max(self._options.min_partitions, -(-rows // ROWS_OF_A_PART)))
        if parts == 1:
            return
        reached = start.position
        for part in range(1, parts):
            place = self._place_below(found, start.position + part * rows // parts, reached)
            if place.position >= end.position:
                return
            if place.position > reached:
                yield place
            reached = place.position

    def _sources(self, logs: list[MemberLog], start: OrderPlace) -> tuple[tuple[LogPlace, FramePoint | None], ...]:
        """These, and in the end those that do not answer now."""
        known = [(log.place, log.point_before(start.position)) for log in logs]
        others = [(place, None) for place in places_of(self._options) if place not in {each for each, _ in known}]
        return (*known, *others)


def _turned(logs: list[MemberLog], turn: int) -> list[MemberLog]:
    """Parts are read from different members, as far as there are several."""
    first = turn % max(1, len(logs))
    return [*logs[first:], *logs[:first]]


def _asked(log: MemberLog, question: Callable[[], _Answer]) -> _Answer:
    """A second time from the beginning if the log is not as it was."""
    try:
        return question()
    except (LogError, OSError):
        log.forget()
        return question()
