"""The papers' two channels, and datagrams: when a unit that was put on the network reaches each node.

Losses and duplicates are decided by `fault_rules`.
"""

from typing import Protocol

from ordercast.model.runs import Channel, Network
from ordercast.simulator.randomness import stream


class ChannelModel(Protocol):
    """A channel: computes arrival times."""

    def waits(self, now: int, sender: int) -> int:
        """How long a unit that is sent now waits until the medium is free."""
        ...

    def arrivals(self, now: int, sender: int, size: int) -> list[int]:
        """The arrival time at each node, the sender included, of a unit of this many bytes that is sent now."""
        ...


class OneChannel:
    """1C: one shared medium, one order for all.

    Units are transmitted one after the other, and each node has a constant delay, so all nodes receive one order.
    """

    def __init__(self, network: Network, nodes: int, seed: int) -> None:
        random = stream(seed, "channel")
        self._network = network
        self._delays = [network.propagation + random.randint(0, network.jitter) for _ in range(nodes)]
        self._busy_until = 0

    def waits(self, now: int, sender: int) -> int:
        """For the medium that all share."""
        del sender
        return max(0, self._busy_until - now)

    def arrivals(self, now: int, sender: int, size: int) -> list[int]:
        """After its transmission on the shared medium, with the constant delay of each node."""
        del sender
        done = max(now, self._busy_until) + self._network.transmission_time(size)
        self._busy_until = done
        return [done + delay for delay in self._delays]


class ManyChannels:
    """MC: a medium for each sender; FIFO for each sender, and no order between senders."""

    def __init__(self, network: Network, nodes: int, seed: int) -> None:
        self._network, self._random = network, stream(seed, "channel")
        self._busy_until = [0] * nodes
        self._latest = [[0] * nodes for _ in range(nodes)]  # by sender and receiver

    def waits(self, now: int, sender: int) -> int:
        """For the sender's medium."""
        return max(0, self._busy_until[sender] - now)

    def arrivals(self, now: int, sender: int, size: int) -> list[int]:
        """After its transmission on the sender's medium, with a random delay, but never before an older unit."""
        done = max(now, self._busy_until[sender]) + self._network.transmission_time(size)
        self._busy_until[sender] = done
        latest, jitter = self._latest[sender], self._network.jitter
        done += self._network.propagation
        if jitter:
            draw = self._random.random
            times = [done + int(jitter * draw()) for _ in latest]
            times = list(map(max, latest, times))
        else:
            times = [done] * len(latest)
        self._latest[sender] = times
        return times


class AnyOrder:
    """Datagrams: a medium for each sender, and no order of arrival."""

    def __init__(self, network: Network, nodes: int, seed: int) -> None:
        self._network, self._random = network, stream(seed, "channel")
        self._busy_until = [0] * nodes

    def waits(self, now: int, sender: int) -> int:
        """For the sender's medium."""
        return max(0, self._busy_until[sender] - now)

    def arrivals(self, now: int, sender: int, size: int) -> list[int]:
        """After its transmission on the sender's medium, with a random delay; units may overtake each other."""
        done = max(now, self._busy_until[sender]) + self._network.transmission_time(size)
        self._busy_until[sender] = done
        draw, jitter = self._random.random, self._network.jitter
        return [done + self._network.propagation + int(jitter * draw()) for _ in self._busy_until]


def channel_model(network: Network, nodes: int, seed: int) -> ChannelModel:
    """The channel of a network."""
    if network.channel is Channel.ONE:
        return OneChannel(network, nodes, seed)
    if network.channel is Channel.MANY:
        return ManyChannels(network, nodes, seed)
    return AnyOrder(network, nodes, seed)
