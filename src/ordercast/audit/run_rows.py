"""What an audit takes from the rows of `runs`: which service a run promises, and what its record must contain."""

import json
from collections.abc import Sequence

from ordercast.audit.names import NAMES, log_of, member_names, merged_names
from ordercast.audit.profiles import SHIPPED, Asked, profile_of, shipped
from ordercast.audit.records import ABSENT, UNRECORDED, absent_in, members_join, unrecorded_in
from ordercast.model.config import Rules
from ordercast.model.errors import ConfigError, TraceError
from ordercast.model.nodes import everybody
from ordercast.model.services import Service
from ordercast.trace.reader import RunRow
from ordercast.trace.schema import ABORTED, COMPLETE, CONFIG, ERROR, NODE, NODES, PROTOCOL, RUN

_MOST_NODES = 1 << 16  # each has its own logs, even if it has no events


def runs_by_name(rows: Sequence[RunRow]) -> dict[str, RunRow]:
    """One row for each run. The members of a live group have a row each; these are merged, and must agree.

    Failed runs of a sweep have no events and are left out.
    """
    runs: dict[str, RunRow] = {}
    for row in rows:
        if row.get(ERROR) is not None:
            continue
        known = runs.setdefault(row[RUN], {**row, UNRECORDED: -1, ABSENT: -1})
        joining = members_join(known) and members_join(row)
        if joining:  # who joined later knows of more nodes
            known[NODES] = max(known[NODES], row[NODES])
            known[COMPLETE] = known[COMPLETE] or row[COMPLETE]
        for column in (PROTOCOL,) if joining else (PROTOCOL, NODES):
            if known[column] != row[column]:
                raise TraceError(
                    f"run {row[RUN]} is recorded with {column} {known[column]} and with {row[column]}; "
                    "audit folders of different groups one by one"
                )
        known[ABORTED] = known[ABORTED] or row[ABORTED]
        known["sent"] = max(known["sent"], row["sent"], key=lambda sent: -1 if sent is None else sent)
        known[UNRECORDED] &= unrecorded_in(row)
        known[ABSENT] &= absent_in(row)
        known[NAMES] = merged_names(known.get(NAMES, ()), member_names(row))
    if rows and not runs:
        raise TraceError(f"all runs failed, so there is nothing to audit; the first error: {rows[0][ERROR]}")
    for row in runs.values():
        row[UNRECORDED] &= everybody(max(0, row[NODES]))
        row[ABSENT] &= row[UNRECORDED]
        if not 1 <= row[NODES] <= _MOST_NODES:
            raise TraceError(f"run {row[RUN]} has {row[NODES]:,} nodes; a group has 1 to {_MOST_NODES:,}")
    return runs


def is_uniform(row: RunRow) -> bool:
    """True if a run promises uniform delivery: its sequencer waits for others before anything is delivered."""
    try:
        group = json.loads(row[CONFIG] or "{}")["group"]
        return bool(group["rules"] == Rules.SOUND.value and group["sequencer"]["resilience"] >= 1)
    except (KeyError, TypeError, ValueError):  # a trace from elsewhere has no such configuration
        return False


def delivers_stable(row: RunRow) -> bool:
    """True if a run delivers what is pre-acknowledged, and does not wait until it is acknowledged."""
    try:
        return bool(json.loads(row[CONFIG] or "{}")["group"]["delivers_stable"])
    except (KeyError, TypeError, ValueError):
        return False


def resilience_of(row: RunRow) -> int:
    """How many others have a message when a sequencer's node delivers it; 0 if unknown."""
    try:
        return int(json.loads(row[CONFIG] or "{}")["group"]["sequencer"]["resilience"])
    except (KeyError, TypeError, ValueError):
        return 0


def service_of(row: RunRow) -> Asked:
    """The service that a run promises, or the profile of a log from elsewhere; `TraceError` if it is unknown."""
    profile = log_of(row).get("profile")
    if isinstance(profile, dict):
        try:
            return profile_of(str(row[PROTOCOL]), profile, f"run {row[RUN]}")
        except ConfigError as error:
            raise TraceError(str(error)) from error
    if row[PROTOCOL] in SHIPPED:
        return shipped(row[PROTOCOL])
    try:
        return Service(row[PROTOCOL])
    except ValueError:
        known = ", ".join(service.value for service in Service)
        raise TraceError(
            f"run {row[RUN]} has the unknown protocol {row[PROTOCOL]!r}; say which service to audit it by: {known}"
        ) from None


def require_nothing_sent(row: RunRow) -> None:
    """A run without events must be one in which nothing was sent; otherwise a missing record would pass."""
    if row["sent"] != 0:
        raise TraceError(f"run {row[RUN]} was recorded without its events; record deliveries to audit it")


def missing_by_counters(row: RunRow, sends: int, deliveries: int) -> str:
    """How a run's events differ from its own counters, as text; empty if they agree or were not recorded.

    The counters of a member of a live group are about that member alone, and are not compared.
    """
    if row.get(NODE) is not None:
        return ""
    differences = [
        f"the run counted {row[counter]:,} {what}, and its record has {found:,}"
        for counter, what, found in (("sent", "messages sent", sends), ("delivered", "deliveries", deliveries))
        if row.get(counter) is not None and row[counter] != found
    ]
    return "; ".join(differences)
