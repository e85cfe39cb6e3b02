"""What is counted, timed and recorded when machines report progress."""

from array import array

from ordercast.model.machine import Deliver, Discard, Level, Reached, ReachedByView, Resumed, Stopped
from ordercast.model.units import DataUnit, Packet
from ordercast.simulator.completion import Completion
from ordercast.simulator.counters import Counters, Durations
from ordercast.trace.recorder import EventRecorder
from ordercast.trace.schema import EventKind

_ACCEPTED, _PREACKNOWLEDGED = Level.ACCEPTED, Level.PREACKNOWLEDGED


class Measurements:
    """Counters, latencies and trace rows of one run. It observes and changes nothing."""

    def __init__(self, nodes: int, counters: Counters, completion: Completion, recorder: EventRecorder | None) -> None:
        self.last_progress = 0
        """The time of the last progress."""
        self._counters, self._completion, self._recorder = counters, completion, recorder
        self._sent_at = [array("q") for _ in range(nodes)]  # by source and message
        self._stopped_at = [0] * nodes
        self._under_way = [0] * nodes  # by node: own packets not known to be accepted by all
        self._accepted = [0] * nodes  # packets at this level, by node
        self._preacknowledged = [0] * nodes
        self._latency = [counters.latency[Level(max(level, 1))].add for level in range(len(Level) + 1)]  # by level

    def numbered(self, time: int, node: int, packet: Packet) -> None:
        """A submission got its number."""
        counters, count = self._counters, len(packet.lengths)
        counters.sent += count
        self._completion.numbered(packet)
        if not counters.together and self._completion.has_sent_all(node):
            counters.together, counters.sent_together = time, counters.sent
        sent_at = self._sent_at[node]
        if len(sent_at) < packet.first:  # messages whose destinations had all left got numbers, and were not sent
            sent_at.extend([time] * (packet.first - len(sent_at)))
        sent_at.extend([time] * count)
        self.last_progress = time
        self._under_way[node] += 1
        if self._under_way[node] > counters.longest_sent:
            counters.longest_sent = self._under_way[node]
        if self._recorder is not None:
            self._recorder.send(time, packet)

    def reached(self, time: int, node: int, output: Reached) -> None:
        """What a node knows of a packet rose."""
        level, packet, counters = output.level, output.packet, self._counters
        for_me = packet.destinations >> node & 1
        self.last_progress = time
        if for_me:
            self._latency[level](time - self._sent_at[packet.source][packet.first])
        if level is _ACCEPTED:
            self._accepted[node] += 1
            if self._accepted[node] > counters.longest_accepted:
                counters.longest_accepted = self._accepted[node]
        elif level is _PREACKNOWLEDGED:
            self._accepted[node] -= for_me
            if packet.source == node:
                self._under_way[node] -= 1
            self._preacknowledged[node] += 1
            if self._preacknowledged[node] > counters.longest_preacknowledged:
                counters.longest_preacknowledged = self._preacknowledged[node]
        else:
            self._preacknowledged[node] -= 1
        if self._recorder is not None:
            self._recorder.level(time, node, level, packet, by_view=type(output) is ReachedByView)

    def deliver(self, time: int, node: int, output: Deliver) -> None:
        """A packet was delivered."""
        packet, counters = output.packet, self._counters
        counters.delivered += len(packet.lengths)
        self._completion.delivered(node, packet)
        self.last_progress = time
        if packet.priority:
            waiting = counters.waiting.setdefault(packet.priority, Durations())
            waiting.add(time - self._sent_at[packet.source][packet.first])
        if self._recorder is not None:
            self._recorder.deliver(time, node, packet)

    def discard(self, time: int, node: int, output: Discard) -> None:
        """A unit was discarded."""
        self._counters.discarded += isinstance(output.unit, DataUnit)
        if self._recorder is not None:
            self._recorder.discard(time, node, output.unit, output.why)

    def stopped(self, time: int, node: int, output: Stopped) -> None:
        """A node stopped until an order is agreed."""
        self._stopped_at[node] = time
        if self._recorder is not None:
            self._recorder.note(time, node, EventKind.STOP, output.why)

    def resumed(self, time: int, node: int, output: Resumed) -> None:
        """It resumed."""
        counters = self._counters
        counters.recoveries += 1
        counters.inserted += output.inserted
        counters.resorted += output.resorted
        counters.insertions += output.inserted == 1
        counters.sortings += output.inserted > 1
        counters.processing += output.resorted or output.inserted
        counters.frozen_time += time - self._stopped_at[node]
        self.last_progress = time
        if self._recorder is not None:
            self._recorder.resume(time, node, output)
