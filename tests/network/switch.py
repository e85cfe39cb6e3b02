"""An Ethernet switch in a thread: it loses, delays, doubles, overtakes and limits what goes through it.

The kernel's `netem` would do the same, but many kernels come without it, this project's test machine among them; what a
switch in Python needs is /dev/net/tun alone, and its chance can be repeated. Every port is a TAP device, whose other
side is the network card of one namespace. A card's last byte of its hardware address is the number of its port.
"""

import fcntl
import heapq
import os
import select
import struct
import time
from contextlib import suppress
from random import Random
from threading import Thread, get_native_id
from typing import NamedTuple

_TUNSETIFF, _IFF_TAP, _IFF_NO_PI = 0x400454CA, 0x0002, 0x1000
_LARGEST_FRAME = 1 << 11  # cards have the MTU of Ethernet


class Weather(NamedTuple):
    """What a network does to each frame, on its way to each receiver; all independent of each other."""

    loss: float = 0.0
    delay: float = 0.0
    """Seconds; one way."""
    jitter: float = 0.0
    """Seconds; up to so much is added, for each frame anew: they overtake each other."""
    duplicate: float = 0.0
    reorder: float = 0.0
    """How many are not delayed at all."""
    rate: float = 0.0
    """Bytes in a second to each receiver; 0 is no limit."""
    queue: float = 0.1
    """Seconds of `rate` that may wait for a receiver before more is thrown away."""


class Switch:
    """Its ports are there from the beginning; it runs until it is closed."""

    def __init__(self, devices: list[str], seed: int = 1) -> None:
        self.weather = [Weather()] * len(devices)
        """By the port that a frame leaves through."""
        self.cut: frozenset[tuple[int, int]] = frozenset()
        """Pairs of ports: nothing passes from the first to the second."""
        self.link_loss: dict[tuple[int, int], float] = {}
        """By such pairs: what is lost besides."""
        self.passed = self.lost = self.overrun = 0
        self._ports = [_open_tap(device) for device in devices]
        self._chance = Random(seed)
        self._waiting: list[tuple[float, int, int, bytes]] = []  # due, running number, port, frame
        self._number = 0
        self._busy_until = [0.0] * len(devices)
        self._wake, self._waker = os.pipe()
        self._thread = Thread(target=self._run, name="switch", daemon=True)

    def start(self) -> None:
        """From now on frames are passed."""
        self._thread.start()

    def close(self) -> None:
        """Ends, and takes the devices away."""
        os.write(self._waker, b"x")
        self._thread.join(10)
        for port in (*self._ports, self._wake, self._waker):
            os.close(port)

    def _run(self) -> None:
        os.setpriority(os.PRIO_PROCESS, get_native_id(), -10)  # this thread, ahead of others as members are
        poll = select.poll()
        for port in (*self._ports, self._wake):
            poll.register(port, select.POLLIN)
        numbers = {port: number for number, port in enumerate(self._ports)}
        while True:
            now = time.monotonic()
            while self._waiting and self._waiting[0][0] <= now:
                _, _, to, frame = heapq.heappop(self._waiting)
                self._put(to, frame)
            wait = max(self._waiting[0][0] - now, 0) * 1000 if self._waiting else 1000
            for port, _ in poll.poll(wait):
                if port == self._wake:
                    return
                self._read(port, numbers[port])

    def _read(self, port: int, number: int) -> None:
        for _ in range(32):
            try:
                frame = os.read(port, _LARGEST_FRAME)
            except OSError:  # nothing more, or the card is not up yet
                return
            if frame[0] & 1:
                receivers = [other for other in range(len(self._ports)) if other != number]
            else:
                receivers = [frame[5] - 1] if 1 <= frame[5] <= len(self._ports) else []
            now = time.monotonic()
            for to in receivers:
                self._pass(number, to, frame, now)

    def _pass(self, by: int, to: int, frame: bytes, now: float) -> None:
        weather, chance = self.weather[to], self._chance.random
        if (self.cut and (by, to) in self.cut) or (self.link_loss and chance() < self.link_loss.get((by, to), 0.0)):
            self.lost += 1
            return
        for _ in range(2 if weather.duplicate and chance() < weather.duplicate else 1):
            if weather.loss and chance() < weather.loss:
                self.lost += 1
                continue
            due = now
            if weather.delay and not (weather.reorder and chance() < weather.reorder):
                due += weather.delay + (weather.jitter and weather.jitter * chance())
            if weather.rate:
                start = max(now, self._busy_until[to])
                if start - now > weather.queue:
                    self.overrun += 1
                    continue
                self._busy_until[to] = start + len(frame) / weather.rate
                due += self._busy_until[to] - now
            if due <= now:
                self._put(to, frame)
            else:
                self._number += 1
                heapq.heappush(self._waiting, (due, self._number, to, frame))

    def _put(self, to: int, frame: bytes) -> None:
        with suppress(OSError):  # a card that is down hears nothing
            os.write(self._ports[to], frame)
            self.passed += 1


def _open_tap(device: str) -> int:
    """Makes a TAP device that lives as long as what is returned is open."""
    port = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(port, _TUNSETIFF, struct.pack("16sH22x", device.encode(), _IFF_TAP | _IFF_NO_PI))
    return port
