"""The counters of a member as Prometheus metrics, written by `prometheus_client`: imported when metrics are served."""

from collections.abc import Iterator

from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, CollectorRegistry, Metric, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from ordercast.live.stats import Stats

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4

# Metrics with the name of a field of `Stats`: ordercast_NAME_total for counters, ordercast_NAME for gauges.
_COUNTERS = {
    "messages_sent": "Messages of this member accepted by the protocol.",
    "units_sent": "Protocol units sent.",
    "units_overrun": "Received units dropped because the application did not read, or the recording was behind.",
    "retransmissions": "Data units sent again.",
    "retransmission_requests": "Units sent that asked for retransmissions.",
    "recoveries": "Times that the group agreed on its order again.",
    "datagrams_received": "Datagrams received.",
    "datagrams_sent": "Datagrams sent.",
    "packets_repeated": "Packets sent again since they were lost.",
}
_COUNTERS_BY_LABEL = {
    "messages_delivered": ("sender", "Messages delivered here."),
    "units_discarded": ("reason", "Received units that the protocol had no use for."),
    "datagrams_rejected": ("reason", "Received datagrams or records that were not for us, or invalid."),
    "send_errors": ("reason", "Datagrams that the operating system did not send."),
    "receive_errors": ("reason", "Errors that the operating system reported instead of a datagram."),
}
_GAUGES = {
    "pending_bytes": "Bytes sent by the application and not yet accepted by the protocol.",
    "unread_bytes": "Bytes delivered and not yet read by the application.",
    "view": "The number of the current view.",
    "log_bytes": "What the durable log has on the disk.",
    "durable_position": "Messages below it are on the disks of a majority.",
}
_BYTES = {
    "received_bytes": ("bytes_received", "Bytes received."),
    "sent_bytes": ("bytes_sent", "Bytes sent."),
    "state_received_bytes": ("state_bytes_received", "Bytes of the application's state received."),
    "state_sent_bytes": ("state_bytes_sent", "Bytes of the application's state sent to members that joined."),
}
_LABELS = ("group", "member", "protocol")


def exposition(stats: Stats) -> bytes:
    """All metrics in Prometheus' text format."""
    registry = CollectorRegistry()
    registry.register(_Collector(stats))
    return generate_latest(registry)


class _Collector:
    """Makes the metrics of one look at a member."""

    def __init__(self, stats: Stats) -> None:
        self._stats = stats

    def collect(self) -> Iterator[Metric]:
        """All of them."""
        stats = self._stats
        common = (stats.group, stats.me, stats.protocol)

        def counter(name: str, about: str, counts: dict[str, int], label: str = "") -> Metric:
            family = CounterMetricFamily(f"ordercast_{name}", about, labels=(*_LABELS, label) if label else _LABELS)
            for key, count in counts.items():
                family.add_metric((*common, key) if label else common, count)
            return family

        def gauge(name: str, about: str, value: float | None) -> Metric:
            family = GaugeMetricFamily(f"ordercast_{name}", about, labels=_LABELS)
            if value is not None:
                family.add_metric(common, value)
            return family

        for name, about in _COUNTERS.items():
            yield counter(name, about, {"": getattr(stats, name)})
        for name, (label, about) in _COUNTERS_BY_LABEL.items():
            yield counter(name, about, getattr(stats, name), label)
        for metric, (name, about) in _BYTES.items():
            yield counter(metric, about, {"": getattr(stats, name)})
        for name, about in _GAUGES.items():
            yield gauge(name, about, getattr(stats, name))
        yield gauge("members", "Current members.", len(stats.members))
        yield gauge("uptime_seconds", "Time since the group opened.", stats.uptime)
        yield gauge("round_trip_seconds", "Round trip to another member when the group opened.", stats.round_trip)
        yield gauge("recording_failed", "1: the recording ended before the group.", stats.recording_error is not None)
        yield gauge("log_failed", "1: the durable log ended before the group.", stats.log_error is not None)
        logs = GaugeMetricFamily("ordercast_log_packets", "Packets that the protocol holds.", labels=(*_LABELS, "log"))
        for log, size in stats.logs.items():
            logs.add_metric((*common, log), size)
        yield logs
