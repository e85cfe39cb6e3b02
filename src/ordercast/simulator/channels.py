"""The papers' two channels, and datagrams: when a unit that was put on the network reaches each node.

What is lost on the way is none of their business: see `rules`.
"""

from typing import Protocol

from ordercast.model.runs import Channel, Network
from ordercast.simulator.randomness import stream


class ChannelModel(Protocol):
    """A channel."""

    def arrivals(self, now: int, sender: int, size: int) -> list[int]:
        """When a unit of this many bytes, handed over now, reaches each node, the sender included."""
        ...


class OneChannel:
    """1C: one medium, one order for all.

    Units take their turn on the medium, and each node hears it with a delay of its own that never changes: so all
    hear the same order.
    """

    def __init__(self, network: Network, nodes: int, seed: int) -> None:
        chance = stream(seed, "channel")
        self._network = network
        self._delays = [network.propagation + chance.randint(0, network.jitter) for _ in range(nodes)]
        self._busy_until = 0

    def arrivals(self, now: int, sender: int, size: int) -> list[int]:
        """After its turn on the medium, everywhere."""
        del sender
        done = max(now, self._busy_until) + self._network.transmission_time(size)
        self._busy_until = done
        return [done + delay for delay in self._delays]


class ManyChannels:
    """MC: a medium for each sender; each sender's order kept, and no order between senders."""

    def __init__(self, network: Network, nodes: int, seed: int) -> None:
        self._network, self._chance = network, stream(seed, "channel")
        self._busy_until = [0] * nodes
        self._latest = [[0] * nodes for _ in range(nodes)]  # by sender and receiver

    def arrivals(self, now: int, sender: int, size: int) -> list[int]:
        """After its turn on the sender's medium, at each node with a delay drawn anew, never before an older unit."""
        done = max(now, self._busy_until[sender]) + self._network.transmission_time(size)
        self._busy_until[sender] = done
        latest, jitter = self._latest[sender], self._network.jitter
        done += self._network.propagation
        if jitter:
            draw = self._chance.random
            times = [done + int(jitter * draw()) for _ in latest]
            times = list(map(max, latest, times))
        else:
            times = [done] * len(latest)
        self._latest[sender] = times
        return times


class AnyOrder:
    """Datagrams: a medium for each sender, and no order at all behind it."""

    def __init__(self, network: Network, nodes: int, seed: int) -> None:
        self._network, self._chance = network, stream(seed, "channel")
        self._busy_until = [0] * nodes

    def arrivals(self, now: int, sender: int, size: int) -> list[int]:
        """After its turn on the sender's medium, at each node with a delay drawn anew, whatever is on the way."""
        done = max(now, self._busy_until[sender]) + self._network.transmission_time(size)
        self._busy_until[sender] = done
        draw, jitter = self._chance.random, self._network.jitter
        return [done + self._network.propagation + int(jitter * draw()) for _ in self._busy_until]


def channel_model(network: Network, nodes: int, seed: int) -> ChannelModel:
    """The channel that a network has."""
    if network.channel is Channel.ONE:
        return OneChannel(network, nodes, seed)
    if network.channel is Channel.MANY:
        return ManyChannels(network, nodes, seed)
    return AnyOrder(network, nodes, seed)
