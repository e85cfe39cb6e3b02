"""The sending half of a link: datagrams to one member, cut into pieces that are repeated until they have arrived.

Losses are found as by RACK and QUIC (RFC 8985, RFC 9002): a transmission is lost if one that was sent later arrived,
and either three packets or some time lie between them. The time grows with each packet that was only late, up to a
round trip: reordered is not lost. If nothing is acknowledged for a timeout the oldest pieces are sent once more, and
the answer to them shows what else was lost.

No socket and no clock: what is to be sent is given to `write`, times are seconds and passed in.
"""

from collections import deque
from collections.abc import Callable, Sequence

from ordercast.live.transport.path_model import ACK_DELAY, PathModel, Sample
from ordercast.live.transport.pieces import HEADING, HEADING_SIZE, MAGIC, NUMBERS_BELOW, pieces_of

Write = Callable[[list[bytes | memoryview]], None]
"""Sends pieces, headings and bytes in turn; all of one size but the last."""

MAX_TRAIN = 40
"""Pieces that are sent by one call."""
REORDERING_PACKETS = 3
_PROBES = 2  # pieces that are sent after a timeout
_MAX_BACKOFF = 5  # times that a timeout is doubled
_COLLAPSED_AFTER = 3  # timeouts in a row
_REMEMBERED = 64  # transmissions that were taken to be lost last, and may still arrive
_ROUNDS_WITHOUT_REORDERING = 64  # losses after which less time is given to late ones


class _Outgoing:
    """A datagram that is not known to have arrived."""

    __slots__ = ("arrived", "count", "data", "number", "sent")

    def __init__(self, number: int, data: memoryview, count: int) -> None:
        self.number, self.data, self.count = number, data, count
        self.sent = 0
        """Pieces that were sent at least once: the first ones."""
        self.arrived = 0
        """Pieces that arrived, as a mask."""

    def is_incomplete(self) -> bool:
        """Whether a piece of it is not known to have arrived."""
        return self.arrived != (1 << self.count) - 1


class _Train:
    """Pieces of one datagram that were sent by one call: their numbers follow each other, as their places do."""

    __slots__ = ("below", "datagram", "first", "last_size", "piece", "sample", "size", "under_way")

    def __init__(self, sample: Sample, datagram: _Outgoing, piece: int, first: int, below: int) -> None:
        """`piece`: the place of the first in the datagram; `first`, `below`: the numbers of the transmissions."""
        self.sample, self.datagram, self.piece, self.first, self.below = sample, datagram, piece, first, below
        self.under_way = (1 << (below - first)) - 1
        """Those that are neither known to have arrived nor taken to be lost, as a mask."""
        self.size = self.last_size = 0
        """Bytes of each with its heading, and of the last."""

    def take(self, first: int, last: int) -> int:
        """Those under way among these numbers, as a mask: they are not any more."""
        first, last = max(first, self.first), min(last, self.below - 1)
        if last < first:
            return 0
        found = self.under_way & (((1 << (last - first + 1)) - 1) << (first - self.first))
        self.under_way ^= found
        return found

    def oldest(self) -> int:
        """The lowest number that is under way."""
        return self.first + (self.under_way & -self.under_way).bit_length() - 1

    def bytes_of(self, mask: int) -> int:
        """Their bytes."""
        size = mask.bit_count() * self.size
        return size - self.size + self.last_size if mask >> (self.below - self.first - 1) & 1 else size


class LinkSender:
    """To one member, in one view."""

    def __init__(self, stream: int, segment: int, path: PathModel, write: Write) -> None:
        """`segment`: bytes of a packet; `path`: what is known of the way there, from views before as well."""
        self._stream, self._size, self._path, self._write = stream, segment - HEADING_SIZE, path, write
        self._segment = segment
        self._queue: deque[_Outgoing] = deque()  # not sent, or not all of it
        self._kept: deque[_Outgoing] = deque()  # sent, and not known to be handed over
        self._handed_over = 0  # the other side is done with the datagrams below this number
        self._again: deque[tuple[_Outgoing, int]] = deque()  # pieces that were lost
        self._trains: deque[_Train] = deque()  # by number, ascending; something of the first is under way
        self._given_up: dict[int, tuple[_Outgoing, int]] = {}  # taken to be lost, by number
        self._next_number = self._next_datagram = 0
        self.in_flight = 0
        """Bytes under way."""
        self.unsent = 0
        """Bytes that wait to be sent for the first time."""
        self._largest, self._largest_at = -1, 0.0  # the latest transmission that arrived, and when it was sent
        self._reordering = 0.0  # seconds that a packet may be late; 0: none ever was
        self._losses_in_order = 0
        self._last_sent, self._timeouts = 0.0, 0
        self._loss_at: float | None = None  # when something under way counts as lost
        self.closed = False
        """The other side has no room: one piece at a time is sent, to ask."""
        self.repeated = 0
        """Pieces that were sent again."""

    def send(self, datagram: bytes) -> None:
        """Adds a datagram; `transmit` sends."""
        if not (self._queue or self._again) and self.in_flight < self._path.window:
            self._path.ran_out(self.in_flight)
        count = pieces_of(len(datagram), self._segment)
        self._queue.append(_Outgoing(self._next_datagram, memoryview(datagram), count))
        self._next_datagram += 1
        self.unsent += len(datagram)

    def transmit(self, now: float) -> None:
        """Sends what the path allows now: what was lost first."""
        path = self._path
        while self._again or self._queue:
            room = path.window - self.in_flight
            if self.closed and self.in_flight:
                path.ran_out(self.in_flight)
                return
            if room <= 0 or path.may_send_at() > now:
                return
            if self._again:
                self._repeat(now)
            else:
                self._send_train(min(room, path.burst()), now)

    def enough_unsent(self) -> int:
        """Bytes that wait to be sent for a while, if others have to be asked for more."""
        return int(2 * self._path.bandwidth * self._path.shortest)

    def due_at(self) -> float | None:
        """When `tick` has something to do; None: not before something is sent or acknowledged."""
        due, loss_at, times_out_at = self._sends_at(), self._loss_at, self._times_out_at()
        if loss_at is not None and (due is None or loss_at < due):
            due = loss_at
        return times_out_at if times_out_at is not None and (due is None or times_out_at < due) else due

    def tick(self, now: float) -> None:
        """The time of `due_at` has come, perhaps."""
        if self._loss_at is not None and self._loss_at <= now:
            self._find_lost(now)
        times_out = self._times_out_at()
        if times_out is not None and times_out <= now:
            self._probe(now)
        self.transmit(now)

    def acknowledged(
        self, ranges: Sequence[tuple[int, int]], delay: float, now: float, waits_for: int, *, closed: bool
    ) -> None:
        """The transmissions of these numbers arrived; the latest of them `delay` seconds before this was said.

        `waits_for`: the datagram that the other side hands over next.
        """
        self.closed = closed
        arrived, latest, number = 0, None, -1
        begin, end = 0, len(ranges)  # they ascend
        for each in self._trains:
            while begin < end and ranges[begin][1] < each.first:
                begin += 1
            if begin == end:
                break
            at, found = begin, 0
            while at < end and ranges[at][0] < each.below:
                found |= each.take(*ranges[at])
                at += 1
            if found:
                arrived += each.bytes_of(found)
                each.datagram.arrived |= found << each.piece
                number, latest = each.first + found.bit_length() - 1, each
        self.in_flight -= arrived
        self._drop_trains()
        if self._given_up:
            self._take_late(ranges)
        self._note_handed_over(waits_for)
        if latest is None:
            return
        self._timeouts = 0
        if number > self._largest:
            self._largest, self._largest_at = number, latest.sample.time
            self._path.measured(max(now - latest.sample.time - min(delay, 2 * ACK_DELAY), 1e-6), now)
        self._path.acknowledged(arrived, latest.sample, now, self.in_flight)
        self._find_lost(now)

    # --- sending ---

    def _send_train(self, most: int, now: float) -> None:
        """Pieces of the first datagram that waits."""
        datagram, size = self._queue[0], self._size
        first = datagram.sent
        end = min(datagram.count, first + max(1, min(MAX_TRAIN, most // self._segment)))
        datagram.sent = end
        if end == datagram.count:
            self._kept.append(self._queue.popleft())
        self.unsent -= min(end * size, len(datagram.data)) - first * size
        self._send_pieces(datagram, first, end, now)

    def _repeat(self, now: float) -> None:
        datagram, index = self._again.popleft()
        if not datagram.arrived >> index & 1:
            self._send_again(datagram, index, now)

    def _send_again(self, datagram: _Outgoing, index: int, now: float) -> None:
        self.repeated += 1
        self._send_pieces(datagram, index, index + 1, now)

    def _send_pieces(self, datagram: _Outgoing, first: int, end: int, now: float) -> None:
        """One transmission of each of these pieces."""
        data, size, begin, stream, count = datagram.data, self._size, self._next_number, self._stream, datagram.count
        total = min(end * size, len(data)) - first * size + (end - first) * HEADING_SIZE
        sample = self._path.sent(total, end - first, now, self.in_flight)
        parts: list[bytes | memoryview] = []
        for number, index in enumerate(range(first, end), begin):
            parts.append(HEADING.pack(MAGIC, stream, number, datagram.number, index, count))
            parts.append(data[index * size : (index + 1) * size])
        train = _Train(sample, datagram, first, begin, begin + end - first)
        train.size, train.last_size = size + HEADING_SIZE, len(parts[-1]) + HEADING_SIZE
        self._trains.append(train)
        self._next_number = train.below
        self.in_flight += total
        self._last_sent = now
        self._write(parts)

    # --- losses ---

    def _sends_at(self) -> float | None:
        waits = self._again or self._queue
        if not waits or self.in_flight >= self._path.window or (self.closed and self.in_flight):
            return None
        return self._path.may_send_at()

    def _times_out_at(self) -> float | None:
        if not self._trains:
            return None
        return self._last_sent + self._path.timeout * (1 << min(self._timeouts, _MAX_BACKOFF))

    def _probe(self, now: float) -> None:
        """Nothing was acknowledged for a timeout: the oldest pieces are sent once more."""
        self._timeouts += 1
        for datagram, piece in self._oldest(_PROBES):
            self._send_again(datagram, piece, now)
        if self._timeouts == _COLLAPSED_AFTER:
            self._path.collapsed()

    def _oldest(self, most: int) -> list[tuple[_Outgoing, int]]:
        """The pieces that have been under way for the longest time."""
        found: list[tuple[_Outgoing, int]] = []
        for train in self._trains:
            found += [(train.datagram, train.piece + place) for place in _places(train.under_way)]
            if len(found) >= most:
                break
        return found[:most]

    def _find_lost(self, now: float) -> None:
        """What was sent before the latest that arrived, and is overdue, is sent again."""
        path, reordering, largest = self._path, self._reordering, self._largest
        overdue = now - max(path.smoothed, path.latest) - max(reordering, path.smoothed / 8)
        before = self._largest_at - max(reordering, path.smoothed / 8)
        packets = REORDERING_PACKETS if not reordering else NUMBERS_BELOW
        lost = 0
        self._loss_at = None
        for train in self._trains:
            if train.first >= largest:
                break
            if not train.under_way:
                continue
            sent = train.sample.time
            is_late = sent <= before or sent <= overdue
            found = train.take(train.first, largest - 1 if is_late else largest - packets)
            if found:
                lost += found.bit_count()
                self._give_up(train, found)
            if self._loss_at is None and train.under_way and not is_late and train.oldest() < largest:
                self._loss_at = now + (sent - overdue)
        if lost:
            self._drop_trains()
            self._note_losses(lost)

    def _give_up(self, train: _Train, lost: int) -> None:
        """These of a train, as a mask, are sent again."""
        self.in_flight -= train.bytes_of(lost)
        datagram = train.datagram
        for place in _places(lost):
            piece = train.piece + place
            self._given_up[train.first + place] = datagram, piece
            if not datagram.arrived >> piece & 1:
                self._again.append((datagram, piece))

    def _note_losses(self, lost: int) -> None:
        while len(self._given_up) > _REMEMBERED:
            del self._given_up[next(iter(self._given_up))]
        self._path.lost(lost)
        if self._reordering:
            self._losses_in_order += 1
            if self._losses_in_order > _ROUNDS_WITHOUT_REORDERING:
                self._reordering, self._losses_in_order = 0.0, 0

    def _drop_trains(self) -> None:
        """Nothing of the first ones is under way any more."""
        trains = self._trains
        while trains and not trains[0].under_way:
            trains.popleft()

    def _note_handed_over(self, waits_for: int) -> None:
        """Pieces are not authenticated: their numbers may have arrived without them, or they without their numbers.

        What the other side is done with needs no acknowledgment, and what it waits for although all of it has arrived
        is sent again.
        """
        kept = self._kept
        while kept and kept[0].number < waits_for:
            done = kept.popleft()
            if done.is_incomplete():
                self._forget(done)
                self._timeouts = 0
        self._handed_over = max(self._handed_over, waits_for)
        if kept and kept[0].number == self._handed_over and not kept[0].is_incomplete():
            kept[0].arrived = 0
            self._again.extend((kept[0], index) for index in range(kept[0].count))

    def _forget(self, done: _Outgoing) -> None:
        """What is under way of a datagram, or waits to be sent again, does not matter any more."""
        for train in self._trains:
            if train.datagram is done:
                self.in_flight -= train.bytes_of(train.take(train.first, train.below))
        self._drop_trains()
        done.arrived = (1 << done.count) - 1

    def _take_late(self, ranges: Sequence[tuple[int, int]]) -> None:
        """What was taken to be lost, and has arrived."""
        late = [number for number in self._given_up if any(first <= number <= last for first, last in ranges)]
        for number in late:
            datagram, piece = self._given_up.pop(number)
            datagram.arrived |= 1 << piece
        if late:
            self._allow_more_reordering()

    def _allow_more_reordering(self) -> None:
        self._losses_in_order = 0
        smoothed = self._path.smoothed
        self._reordering = min(max(2 * self._reordering, smoothed / 4), smoothed)


def _places(mask: int) -> list[int]:
    """The places of the bits that are set, ascending."""
    return [place for place in range(mask.bit_length()) if mask >> place & 1]
