"""What becomes of datagrams between two sockets: lost, late, doubled, changed, cut, refused; by chance or on order."""

from collections.abc import Collection
from errno import ECONNREFUSED
from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple

from tests.live_harness.plan import Weather

if TYPE_CHECKING:
    from tests.live_harness.sockets import VirtualSocket
    from tests.live_harness.world import World

Place = tuple[str, int]
MICROSECOND = 1_000
_BACKLOG = 20_000_000
"""Nanoseconds that a datagram waits at most before a narrow line; then it is lost."""


class Cut(NamedTuple):
    """Nothing gets from these hosts to those until a time."""

    sources: frozenset[Place]
    targets: frozenset[Place]
    until: int


class Network:
    """Knows all sockets of a world by their numbers and by their addresses."""

    def __init__(self, world: "World", weather: Weather, *, encrypted: bool) -> None:
        self._world, self.weather, self._encrypted = world, weather, encrypted
        self._chance = world.chance("network")
        self.sockets: dict[int, VirtualSocket] = {}
        self.bound: dict[Place, VirtualSocket] = {}
        self._cuts: list[Cut] = []
        self._storm = (0.0, 0)
        self._busy_until: dict[tuple[Place, Place], int] = {}
        self.datagrams = 0

    def add(self, place: "VirtualSocket") -> int:
        """Its number; no number is used twice."""
        number = 1000 + len(self.sockets)
        self.sockets[number] = place
        return number

    def cut(self, sources: Collection[Place], targets: Collection[Place], until: int) -> None:
        """Nothing gets from these to those until then."""
        self._cuts.append(Cut(frozenset(sources), frozenset(targets), until))

    def storm(self, loss: float, until: int) -> None:
        """So many are lost until then."""
        self._storm = loss, until

    def heal(self) -> None:
        """From now on nothing is lost, late or changed."""
        self._cuts.clear()
        self._storm = 0.0, 0
        self.weather = Weather(delay=self.weather.delay, jitter=0.2)

    def transmit(self, source: Place, target: Place, data: bytes) -> None:
        """A datagram is under way, or lost."""
        world, weather, chance = self._world, self.weather, self._chance
        self.datagrams += 1
        if world.remembers:
            digest = blake2b(data, digest_size=8).hexdigest()
            world.history.append(f"{world.now} {source} {target} {len(data)} {digest}")
        if self._cuts and self._is_cut(source, target):
            return
        loss, until = self._storm
        if chance.random() < max(weather.loss, loss if world.now < until else 0.0):
            return
        when = world.now + int(weather.delay * 1e9 * (1 + weather.jitter * chance.random()))
        if weather.rate:
            begins = max(self._busy_until.get((source, target), 0), world.now)
            if begins - world.now > _BACKLOG:
                return
            self._busy_until[source, target] = begins + int(len(data) / weather.rate * 1e9)
            when += begins - world.now
        if weather.late and chance.random() < weather.late:
            when += int(weather.delay * 1e9 * chance.choice([3, 20, 200]))
        if weather.changed and chance.random() < weather.changed:
            if not self._encrypted:
                return  # the checksum of the system would notice
            data = _changed(data, chance.randrange(len(data)), chance.randrange(1, 256))
        if weather.truncated and chance.random() < weather.truncated:
            data = data[: chance.randrange(len(data))]
        grain = world.grain
        when = -(-when // grain) * grain
        world.at(when, self._arrive, source, target, data)
        if weather.doubled and chance.random() < weather.doubled:
            world.at(when + int(weather.delay * 1e9 * chance.random()), self._arrive, source, target, data)

    def _is_cut(self, source: Place, target: Place) -> bool:
        now = self._world.now
        return any(now < cut.until and source in cut.sources and target in cut.targets for cut in self._cuts)

    def _arrive(self, source: Place, target: Place, data: bytes) -> None:
        place = self.bound.get(target)
        if place is not None:
            place.arrive(source, data)
        elif self.weather.unreachable:
            self._world.at(self._world.now + int(self.weather.delay * 1e9), self._refuse, source)

    def _refuse(self, source: Place) -> None:
        """The system of the target says that nobody is there (ICMP)."""
        place = self.bound.get(source)
        if place is not None:
            place.fail(ECONNREFUSED)


def _changed(data: bytes, at: int, by: int) -> bytes:
    return data[:at] + bytes([data[at] ^ by]) + data[at + 1 :]
