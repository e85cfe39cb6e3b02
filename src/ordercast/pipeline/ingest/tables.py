"""`from_log`: a log of another system, as a table in any form, becomes the two tables of a trace."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa

from ordercast.audit.profiles import Profile
from ordercast.model.errors import ConfigError
from ordercast.model.services import Service

MARK = "@"
_ROLES = ("receiver", "source", "seq", "order", "time", "key", "to")


class LogTables(NamedTuple):
    """A log as the tables of a trace: DataFrames, if it was one, else Arrow tables."""

    events: Any
    runs: Any


@dataclass(frozen=True)
class LogColumns:
    """Which columns of a log say what."""

    receiver: str
    source: tuple[str, ...]
    seq: str
    order: str
    time: str | None = None
    key: str | None = None
    to: str | None = None
    """Of what was sent: a list of the receivers that it is for."""


@dataclass(frozen=True)
class LogOptions:
    """What else is known of a log."""

    service: Service | Profile | str
    run: str
    subscriptions: Mapping[str, Sequence[str]] | None
    mark: str
    one_clock: bool


COLUMNS_OF: dict[str, dict[str, Any]] = {
    "kafka": {"source": ("topic", "partition"), "seq": "offset", "key": "key", "service": "per-partition"},
    "nats": {"source": "stream", "seq": "stream_seq", "service": "total-at-least-once"},
    "etcd": {"source": "store", "seq": "mod_revision", "service": "total"},
    "rabbitmq": {"source": "stream", "seq": "offset", "service": "per-partition"},
    "cdc": {"source": "table", "seq": "lsn", "key": "key", "service": "per-partition"},
}
"""What the columns are called in exports of some systems, and what these promise."""


def from_log(  # noqa: PLR0913 - all but the first by name
    received: Any,
    *,
    receiver: str,
    order: str,
    system: str | None = None,
    source: str | Sequence[str] | None = None,
    seq: str | None = None,
    time: str | None = None,
    key: str | None = None,
    sent: Any = None,
    to: str | None = None,
    subscriptions: Mapping[str, Sequence[str]] | None = None,
    service: Service | Profile | str | None = None,
    run: str = "log",
    mark: str = MARK,
    one_clock: bool = False,
) -> LogTables:
    """Makes the tables of a trace from a log: a row for each time that something was handed to a receiver.

    `received`: a DataFrame of Spark, or what Arrow makes a table of: an Arrow table, a pandas DataFrame, a list of
    dictionaries. The other arguments name its columns: `receiver`, who was handed it; `source`, what has an order of
    its own, as a partition or a queue; several columns are joined, as in `orders[4]`; `seq`, its number there;
    `order`, the position in the receiver's own log, a whole number or a time. `system`: kafka, nats, etcd, rabbitmq or
    cdc, whose names of columns are known, as is what they promise (`service`).

    `sent`: a table of what was sent, with the same columns for source, number and key; without it what any receiver was
    handed counts as sent, and what nobody was handed is not missed. `to`: its column with lists of receivers; or
    `subscriptions`: of receivers, the sources that they get; default: everything is for everybody. `time`: when; it
    must rise with `order`. `one_clock`: times of senders and receivers are comparable. `mark`: what stands between a
    source and a number in the names of messages, `orders[4]@468`.

    Raises `TraceError` if a column is missing or has nulls, and `ConfigError` for an unknown system or service.
    """
    if system is not None and system not in COLUMNS_OF:
        raise ConfigError(f"there is no system {system!r}; choose one of {', '.join(COLUMNS_OF)}, or name the columns")
    if not hasattr(received, "toArrow"):
        received, sent = _as_arrow(received), None if sent is None else _as_arrow(sent)
    known = COLUMNS_OF.get(system or "", {})
    source, seq = source or known.get("source"), seq or known.get("seq")
    if not source or not seq:
        raise ConfigError("name the columns of the log: source= and seq=, or the system that it is of, system=")
    names = (source,) if isinstance(source, str) else tuple(source)
    columns = LogColumns(receiver, names, seq, order, time, key or _if_there(received, known.get("key")), to)
    service = service or known.get("service") or "per-partition"
    options = LogOptions(service, run, subscriptions, mark, one_clock)
    if hasattr(received, "toArrow"):
        from ordercast.pipeline.ingest.on_spark import tables_on_spark  # noqa: PLC0415 - Spark, only if it is there

        return tables_on_spark(received, sent, columns, options)
    from ordercast.pipeline.ingest.in_process import tables_in_process  # noqa: PLC0415

    return tables_in_process(received, sent, columns, options)


def _if_there(table: Any, name: str | None) -> str | None:
    names = table.column_names if isinstance(table, pa.Table) else table.columns
    return name if name in names else None


def _as_arrow(table: Any) -> pa.Table:
    if isinstance(table, pa.Table):
        return table
    if isinstance(table, list):
        return pa.Table.from_pylist(table)
    return pa.Table.from_pandas(table, preserve_index=False)
