"""Logs what operators should know: loss, overrun and rejected datagrams above a rate, each at most once in a while."""

from collections import Counter
from collections.abc import Collection, Mapping

from ordercast.live.host.unit_counts import UnitCounts
from ordercast.live.logs import GroupLogs

_LOSS_RATE = 0.05  # retransmissions and requests per unit
_MIN_UNITS = 100  # fewer say nothing about a rate
_MIN_REJECTED = 100  # datagrams between two logs
_INTERVAL = 10.0  # seconds between two logs of one kind
_REJECTED = frozenset({"forged", "key", "ciphertext", "plaintext", "replayed", "not_addressed", "non_member"})


class HealthLog:
    """Looks at counters now and then. Times are seconds of a monotonic clock."""

    def __init__(self, logs: GroupLogs) -> None:
        self._logs = logs
        self._counted: Counter[str] = Counter()  # when each kind was last logged
        self._logged_at: dict[str, float] = {}

    def check(self, counts: UnitCounts, dropped: Mapping[str, int], now: float) -> None:
        """Compares the counters with those at the last log of each kind."""
        lost, units, overrun = counts.retransmitted + counts.requests, counts.transmitted, counts.overrun
        lost_since, units_since = lost - self._counted["lost"], units - self._counted["units"]
        if units_since >= _MIN_UNITS and self._is_due("loss", now):
            self._counted["lost"], self._counted["units"] = lost, units
            if lost_since > _LOSS_RATE * units_since:
                self._logged_at["loss"] = now
                self._logs.protocol.warning(
                    "loss: %d retransmissions and requests for %d units",
                    lost_since,
                    units_since,
                    extra={"count": lost_since, "units": units_since},
                )
        overrun_since = overrun - self._counted["overrun"]
        if overrun_since and self._is_due("overrun", now):
            self._counted["overrun"], self._logged_at["overrun"] = overrun, now
            self._logs.protocol.warning(
                "overrun: the application reads, or the recording is written, too slowly: %d units were dropped",
                overrun_since,
                extra={"count": overrun_since},
            )
        self._check_rejected(dropped, now)

    def waits_for(self, names: Collection[str], now: float) -> None:
        """Sending waits for these members, whose applications do not read; for none: it does not wait."""
        if names and self._is_due("flow", now):
            self._logged_at["flow"] = now
            listed = ", ".join(sorted(names))
            self._logs.protocol.warning("sending waits: %s does not read", listed, extra={"peer": listed})

    def waits_for_relay(self, relay: object, now: float) -> None:
        """It is asked, and does not answer."""
        if self._is_due("relay", now):
            self._logged_at["relay"] = now
            self._logs.protocol.warning("the relay at %s does not answer: is ordercast relay running there?", relay)

    def _check_rejected(self, dropped: Mapping[str, int], now: float) -> None:
        for reason in _REJECTED & dropped.keys():
            rejected = dropped[reason] - self._counted[reason]
            if rejected >= _MIN_REJECTED and self._is_due(reason, now):
                self._counted[reason], self._logged_at[reason] = dropped[reason], now
                self._logs.security.warning(
                    "rejected %d datagrams: %s", rejected, reason, extra={"count": rejected, "reason": str(reason)}
                )

    def _is_due(self, kind: str, now: float) -> bool:
        return now - self._logged_at.get(kind, -_INTERVAL) >= _INTERVAL
