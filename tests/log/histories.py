"""Random histories of a log on a faulty disk: lives that write, die and write again; what was promised must be there.

The model remembers all messages, views and notes that were ever written, in order, and how many of them were promised.
A log that is opened again must have all that were promised, and beyond them only what was written, without a gap.
"""

from collections.abc import Iterator
from hashlib import blake2b
from random import Random
from struct import pack
from typing import NamedTuple
from zlib import crc32

from ordercast.log.check import check_disk
from ordercast.log.files import LogFiles, Options
from ordercast.log.format import NO_HASH, Packet, View
from ordercast.log.reader import messages_of
from ordercast.log.retention import Retention
from ordercast.log.snapshots import read_snapshot
from ordercast.model.errors import LogDamaged, LogError
from ordercast.simulator.faulty_disk import Crashed, FaultyDisk

GROUP = "orders"
NAMES = ("A", "B", "C")


class Mix(NamedTuple):
    """What happens in a history."""

    error_rate: float = 0.0
    errors_while_opening: bool = False
    power: float = 0.7
    """How often a life ends by a power failure, and not by a kill."""
    lives: int = 6
    each_synced: bool = False
    """Every frame is synced before the next one is written."""


class Entry(NamedTuple):
    """Something that was written: a message, or a view or a note between messages."""

    kind: str
    value: object
    hash: bytes
    """The running hash after it, computed here once more."""


class Broken(AssertionError):  # noqa: N818 (it names what happened)
    """A promise was broken."""


class History:
    """One log and its disk, from life to life."""

    def __init__(self, seed: int, mix: Mix) -> None:
        self.random, self.mix = Random(seed), mix
        self.disk = FaultyDisk(self.random)
        self.disk.short_writes = 0.1
        self.now = 0
        self.entries: list[Entry] = []
        self.promised = 0
        """So many of the entries are durable."""
        self.snapshot = 0
        """The position of the last snapshot that was promised."""
        self.numbers = 0
        self.opened = 0
        retention = Retention(self.random.choice([None, 0, 900]), self.random.choice([None, 20]))
        self.options = Options(retention, max_segment=500, salt=lambda: self.random.getrandbits(32), clock=self._clock)

    def _clock(self) -> int:
        self.now += 1_000_000_000
        return self.now

    def run(self) -> None:
        for _ in range(self.mix.lives):
            rate = self.mix.error_rate
            self.disk.allow(self.random.randrange(1, 120), rate if self.mix.errors_while_opening else 0.0)
            try:
                log = self._open()
                self.disk.error_rate = rate
                self._live(log)
            except LogDamaged as error:
                raise Broken(f"the log is not opened: {error}") from error
            except (Crashed, LogError):
                pass
            self.disk.restart(power=self.random.random() < self.mix.power)
        try:
            self._open()
        except LogDamaged as error:
            raise Broken(f"the log is not opened: {error}") from error

    def _open(self) -> LogFiles:
        log = LogFiles(self.disk, GROUP, self.options)
        self.opened += 1
        left, self.disk.calls_left, rate, self.disk.error_rate = self.disk.calls_left, -1, self.disk.error_rate, 0.0
        self._require_promised(log)
        self.disk.calls_left, self.disk.error_rate = left, rate
        return log

    def _require_promised(self, log: LogFiles) -> None:
        found = self._match(log)
        if found < self.promised:
            raise Broken(f"{self.promised} entries were promised, and {found} are there")
        del self.entries[found:]
        self.promised = found
        if log.hash != (self.entries[-1].hash if self.entries else NO_HASH):
            raise Broken("the running hash is not that of what was written")
        messages = self._messages()
        first = log.segments[0].first
        if [message.payload for message in messages_of(self.disk)] != messages[first:]:
            raise Broken("the messages are not those that were written")
        if first > self.snapshot:
            snapshot = read_snapshot(self.disk)
            if snapshot is None or first > snapshot.position:
                raise Broken("messages were dropped that no snapshot has")
        if self.snapshot:
            self._require_snapshot(messages)
        report = check_disk(self.disk)
        if report.damage or report.durable != log.next or report.tail_bytes:
            raise Broken(f"the check says: {report}")

    def _require_snapshot(self, messages: list[bytes]) -> None:
        snapshot = read_snapshot(self.disk)
        if snapshot is None or snapshot.position < self.snapshot:
            raise Broken(f"the snapshot at {self.snapshot} is not there")
        if b"".join(snapshot.parts()) != b"".join(messages[: snapshot.position]):
            raise Broken("the snapshot is another state")

    def _match(self, log: LogFiles) -> int:
        """How many entries the log has: as many messages as it says, and views and notes up to its context."""
        count = 0
        best = -1
        view, note = View(), b""
        for at in range(len(self.entries) + 1):
            if count == log.next and (view, note) == (log.context.view, log.context.note):
                best = at
            if at == len(self.entries) or count > log.next:
                break
            entry = self.entries[at]
            count += entry.kind == "message"
            if entry.kind == "view":
                assert isinstance(entry.value, View)
                view = entry.value
            elif entry.kind == "note":
                assert isinstance(entry.value, bytes)
                note = entry.value
        if best < 0:
            raise Broken(f"the log is at {log.next} with {log.context}, which was never written")
        return best

    def _messages(self) -> list[bytes]:
        return [entry.value for entry in self.entries if isinstance(entry.value, bytes) and entry.kind == "message"]

    def _live(self, log: LogFiles) -> None:
        for _ in range(self.random.randrange(1, 25)):
            step = self.random.random()
            if step < 0.5:
                self._packets(log)
            elif step < 0.58:
                self._view(log)
            elif step < 0.66:
                self._note(log)
            elif step < 0.72:
                self._save(log)
            if self.mix.each_synced or self.random.random() < 0.6:
                self._sync(log)

    def _sync(self, log: LogFiles) -> None:
        log.sync()
        self.promised = len(self.entries)

    def _hash(self) -> bytes:
        return self.entries[-1].hash if self.entries else NO_HASH

    def _packets(self, log: LogFiles) -> None:
        packets = []
        for _ in range(self.random.randrange(1, 4)):
            messages = [self._payload() for _ in range(self.random.randrange(1, 4))]
            packet = Packet(
                self.random.randrange(3), self.numbers, [len(each) for each in messages], b"".join(messages)
            )
            packets.append(packet)
            self._add_messages(packet, messages)
        log.packets(packets)

    def _add_messages(self, packet: Packet, messages: list[bytes]) -> None:
        before = self._hash()
        for message in messages[:-1]:
            self.entries.append(Entry("message", message, b"within a packet"))
        self.entries.append(Entry("message", messages[-1], next_hash(before, packet)))

    def _payload(self) -> bytes:
        self.numbers += 1
        return b"%d:" % self.numbers + self.random.randbytes(self.random.choice([0, 3, 20, 70, 200]))

    def _view(self, log: LogFiles) -> None:
        self.numbers += 1
        view = View(self.numbers, NAMES)
        self.entries.append(Entry("view", view, self._hash()))
        log.view(view)

    def _note(self, log: LogFiles) -> None:
        self.numbers += 1
        note = b"note %d" % self.numbers
        self.entries.append(Entry("note", note, self._hash()))
        log.note(note)

    def _save(self, log: LogFiles) -> None:
        self._sync(log)
        place = log.place
        if place.position in {0, log.snapshot}:
            return
        try:
            size = log.save_snapshot(place, self._messages()[: place.position])
        except OSError as error:
            raise log.fail(error) from error
        log.adopt_snapshot(place.position, size)
        self.snapshot = place.position


def next_hash(before: bytes, packet: Packet) -> bytes:
    """The definition, once more."""
    lengths = b"".join(pack("<I", each) for each in packet.lengths)
    checksum = crc32(lengths + bytes(packet.payload))
    count, size = len(packet.lengths), len(packet.payload)
    record = pack("<QIIIHBx", packet.first, count, checksum, size, packet.source, packet.priority)
    return blake2b(before + record, digest_size=16).digest()


def histories(seeds: range, mix: Mix) -> Iterator[History]:
    for seed in seeds:
        history = History(seed, mix)
        try:
            history.run()
        except Broken as error:
            raise Broken(f"seed {seed} of {mix}: {error}") from error
        yield history
