"""Values of points, computed from the rows of their runs."""

import json
from collections.abc import Callable, Sequence

from ordercast.evaluation.experiment import MeasuredRun, Value
from ordercast.evaluation.results import Estimate
from ordercast.evaluation.statistics import mean_over_runs, share
from ordercast.model.config import MILLISECOND, SECOND

_ACCEPTED, _PREACKNOWLEDGED = "accepted", "preacknowledged"


def over_runs(of_row: Callable[[MeasuredRun], float | None]) -> Value:
    """The mean of a value of each run; a run that shows none counts as none."""

    def value(rows: Sequence[MeasuredRun]) -> Estimate | None:
        found = [of_row(row) for row in rows]
        return mean_over_runs([one for one in found if one is not None])

    return value


def per_sent(counter: str) -> Value:
    """A counter for each message sent, over runs."""
    return over_runs(lambda row: row[counter] / row["sent"] if row["sent"] else None)


def share_of_sent(counter: str) -> Value:
    """A counter as a share of all messages, each of which it counts at most once, whatever happens to the others."""

    def value(rows: Sequence[MeasuredRun]) -> Estimate | None:
        sent = sum(row["sent"] for row in rows)
        return share(min(sent, sum(row[counter] for row in rows)), sent)

    return value


def per_loss(row: MeasuredRun) -> float | None:
    """Data units sent again for each one that a node lost and should have had."""
    return row["retransmitted"] / row["lost_data"] if row["lost_data"] else None


def waiting_for_others(row: MeasuredRun) -> float | None:
    """Milliseconds from acceptance to pre-acknowledgment, on average."""
    sojourn = _sojourn(row)
    return None if sojourn is None else sojourn / MILLISECOND


def mean_log(row: MeasuredRun) -> float | None:
    """Packets that a node has accepted and not yet pre-acknowledged, averaged over nodes and time.

    The area under a log's length is the sum of the times that packets spent in it.
    """
    sojourn, times = _sojourn(row), json.loads(row["latency"])
    if sojourn is None or not row["virtual_time"]:
        return None
    return float(sojourn * times[_PREACKNOWLEDGED]["count"] / row["nodes"] / row["virtual_time"])


def _sojourn(row: MeasuredRun) -> float | None:
    times = json.loads(row["latency"])
    accepted, preacknowledged = times[_ACCEPTED], times[_PREACKNOWLEDGED]
    if not accepted["count"] or not preacknowledged["count"]:
        return None
    return float(preacknowledged["total"] / preacknowledged["count"] - accepted["total"] / accepted["count"])


def longest_wait(priority: int) -> Callable[[MeasuredRun], float | None]:
    """Milliseconds that the packet of a priority that waited longest took from its send to a delivery."""

    def of_row(row: MeasuredRun) -> float | None:
        times = json.loads(row["waiting"]).get(str(priority))
        return times["most"] / MILLISECOND if times else None

    return of_row


def mean_wait(priority: int) -> Callable[[MeasuredRun], float | None]:
    """Milliseconds from the send to a delivery, on average."""

    def of_row(row: MeasuredRun) -> float | None:
        times = json.loads(row["waiting"]).get(str(priority))
        return times["total"] / times["count"] / MILLISECOND if times else None

    return of_row


def time_per_message(row: MeasuredRun) -> float | None:
    """Milliseconds for each message, one after the other."""
    return row["virtual_time"] / row["sent"] / MILLISECOND if row["sent"] else None


def rate_together(row: MeasuredRun) -> float | None:
    """Messages per second while all senders were sending."""
    return row["sent_together"] * SECOND / row["together"] if row["together"] else None


def throughput(row: MeasuredRun) -> float | None:
    """Messages per second, from the first to the last acknowledgment; none, if the run is not complete."""
    return row["sent"] * SECOND / row["virtual_time"] if row["complete"] and row["virtual_time"] else None


def packets_per_message(row: MeasuredRun) -> float | None:
    """Units put on the network for each message; one to everybody counts once."""
    units = row["transmitted"] + row["retransmitted"] + row["control"]
    return units / row["sent"] if row["sent"] else None


def header_of_data(payload: int) -> Callable[[MeasuredRun], float | None]:
    """Bytes of a data unit besides its one message and that message's length."""

    def of_row(row: MeasuredRun) -> float | None:
        units = row["transmitted"] + row["retransmitted"]
        return (row["bytes"] - row["control_bytes"]) / units - payload - 2 if units else None

    return of_row
