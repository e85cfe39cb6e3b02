"""Makes a trace of what clients printed, one file for each receiver."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from ordercast.audit.profiles import Profile
from ordercast.model.errors import TraceError, reason_of
from ordercast.model.services import Service
from ordercast.pipeline.ingest.formats import FORMATS, Record
from ordercast.pipeline.ingest.tables import MARK, LogTables, from_log

_RECEIVED = pa.schema(
    [
        pa.field("receiver", pa.string()),
        pa.field("source", pa.string()),
        pa.field("seq", pa.int64()),
        pa.field("order", pa.int64()),
    ]
)
_SENT = pa.schema(
    [
        pa.field("source", pa.string()),
        pa.field("seq", pa.int64()),
        pa.field("key", pa.string()),
        pa.field("to", pa.list_(pa.string())),
    ]
)


def from_client_logs(  # noqa: PLR0913 - all but the first two by name
    system: str,
    logs: Mapping[str, Path],
    *,
    sent: Path | None = None,
    filters: Mapping[str, Sequence[str]] | None = None,
    source: str | None = None,
    service: Service | Profile | None = None,
    run: str | None = None,
) -> LogTables:
    """The tables of a trace.

    `logs`: by receiver, the file with what it printed. `sent`: what one printed that is handed everything; without it,
    what nobody was handed is not missed. `filters`: what some receivers asked for; the others get everything. `source`:
    the name of the source where lines do not have it. Raises `TraceError` for a line that is no message.
    """
    form = FORMATS[system]
    unknown = sorted(set(filters or ()) - set(logs))
    if unknown:
        raise TraceError(f"there is a filter for {unknown[0]!r}, but no log; the logs are of {', '.join(logs)}")
    read = {name: _read(system, path, source or form.source) for name, path in logs.items()}
    everything = [] if sent is None else _read(system, sent, source or form.source)
    messages: dict[tuple[str, int], tuple[set[str], str | None]] = {}
    for record in everything or [record for records in read.values() for record in records]:
        subjects, key = messages.setdefault((record.source, record.seq), (set(), record.key))
        subjects.update(record.subjects)
        messages[record.source, record.seq] = (subjects, key if key is not None else record.key)

    def is_for(name: str, subjects: set[str]) -> bool:
        wanted = (filters or {}).get(name)
        return wanted is None or any(form.matches(subject, one) for subject in subjects for one in wanted)

    received = [
        {"receiver": name, "source": record.source, "seq": record.seq, "order": order}
        for name, records in read.items()
        for order, record in enumerate(records)
    ]
    known = [
        {"source": name, "seq": seq, "key": key, "to": [to for to in logs if is_for(to, subjects)]}
        for (name, seq), (subjects, key) in messages.items()
    ]
    return from_log(
        pa.Table.from_pylist(received, schema=_RECEIVED),
        receiver="receiver",
        source="source",
        seq="seq",
        order="order",
        key="key" if any(key is not None for _, key in messages.values()) else None,
        sent=pa.Table.from_pylist(known, schema=_SENT),
        to="to",
        service=service or form.service,
        run=run or system,
        mark=MARK,
    )


def _read(system: str, path: Path, source: str) -> list[Record]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise TraceError(f"cannot read the log {path}: {reason_of(error)}; give another file") from error
    try:
        return list(FORMATS[system].read(lines, source))
    except TraceError as error:
        raise TraceError(f"{path}: {error}") from error
    except (KeyError, TypeError, ValueError) as error:  # JSON of another shape
        raise TraceError(f"{path} is no log of {system}: {type(error).__name__}: {error}") from error
