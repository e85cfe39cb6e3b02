"""What clients of some systems print about the messages that they are handed, line by line.

A reader makes records of the lines; what is no message is skipped only where the system is known to print such lines.
"""

import json
import re
from base64 import b64decode
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from ordercast.model.errors import TraceError


class Record(NamedTuple):
    """One message that a receiver was handed."""

    source: str
    seq: int
    subjects: tuple[str, ...] = ()
    """What a filter of a receiver is compared with."""
    key: str | None = None


class Format(NamedTuple):
    """The format of a system."""

    read: Callable[[Sequence[str], str], Iterator[Record]]
    """Lines, and the name of the source where they do not say it."""
    matches: Callable[[str, str], bool]
    """Whether a subject is one of those that a filter names."""
    service: str
    source: str
    """The name of the source where lines do not say it."""


_CONSOLE = re.compile(r"Partition:(\d+)\tOffset:(\d+)")


def kafka(lines: Sequence[str], topic: str) -> Iterator[Record]:
    """Of `kafka-console-consumer.sh` with partition and offset, or of `kcat -J`."""
    for number, line in enumerate(lines, start=1):
        if line.lstrip().startswith("{"):
            found = _json(line, number)
            name = str(found.get("topic", topic))
            key = found.get("key")
            offset = _whole(found, "offset", number)
            yield Record(f"{name}[{_whole(found, 'partition', number)}]", offset, (name,), key and str(key))
        elif told := _CONSOLE.search(line):
            yield Record(f"{topic}[{int(told[1])}]", int(told[2]), (topic,))
        elif line.strip() and not line.startswith("Processed a total of"):
            raise TraceError(
                f"line {number} has no partition and offset: {line[:80]!r}; consume with "
                "--property print.partition=true --property print.offset=true, or with kcat -J"
            )


def nats(lines: Sequence[str], stream: str) -> Iterator[Record]:
    """The subject of a message and its reply subject, `$JS.ACK.<stream>.<consumer>.<delivered>.<seq>.…`."""
    del stream
    for number, line in enumerate(lines, start=1):
        words = line.split()
        if not words:
            continue
        parts = words[1].split(".") if len(words) == 2 else []
        if parts[:2] != ["$JS", "ACK"] or len(parts) not in {9, 11, 12}:
            raise TraceError(
                f"line {number} is no subject with a reply subject of JetStream: {line[:80]!r}; "
                "write msg.subject and msg.reply of each message"
            )
        begin = parts[2:] if len(parts) == 9 else parts[4:]  # newer servers put a domain and an account before
        yield Record(begin[0], _number(begin[3], number), (words[0],))


def etcd(lines: Sequence[str], store: str) -> Iterator[Record]:
    """Of `etcdctl watch --write-out=json`: a revision is one message, with all keys that it changed."""
    for number, line in enumerate(lines, start=1):
        changed = [event["kv"] for event in _json(line, number).get("Events") or ()] if line.strip() else []
        for revision, same in groupby(changed, key=lambda each: int(each["mod_revision"])):
            yield Record(store, revision, tuple(b64decode(each["key"]).decode() for each in same))


def rabbitmq(lines: Sequence[str], queue: str) -> Iterator[Record]:
    """JSON of each message, as `rabbitmqadmin --format=raw_json get` has it: of a stream, with `x-stream-offset`."""
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        for found in _list(line, number):
            properties = found.get("properties") or {}
            headers = properties.get("headers") or {}
            name = str(found.get("queue") or queue)
            subject = str(found.get("routing_key", name))
            if "x-stream-offset" in headers:
                yield Record(name, _whole(headers, "x-stream-offset", number), (subject,))
            elif properties.get("app_id") and properties.get("message_id"):
                source = f"{name}[{properties['app_id']}]"
                yield Record(source, _number(str(properties["message_id"]), number), (subject,))
            else:
                raise TraceError(
                    f"line {number} does not say which message it is: RabbitMQ numbers the messages of streams "
                    "(x-stream-offset); to those of queues publishers must give app_id, and a number as message_id"
                )


def cdc(lines: Sequence[str], database: str) -> Iterator[Record]:
    """Change events of Debezium, or of wal2json in its format 2: positions in the database's log are the numbers."""
    changes = (change for number, line in enumerate(lines, start=1) for change in _changes(line, number, database))
    for (table, position), same in groupby(changes, key=lambda each: each[:2]):
        first = next(same)
        yield Record(table, position, (table,), first[2])


def _changes(line: str, number: int, database: str) -> Iterator[tuple[str, int, str]]:
    found = _json(line, number) if line.strip() else {}
    found = found.get("payload") or found
    if "source" in found:
        source = found["source"]
        name = ".".join(str(source[part]) for part in ("schema", "table") if source.get(part))
        row = found.get("after") or found.get("before") or {}
        key = json.dumps(found.get("key") or row.get("id"))
        yield f"{source.get('db') or database}.{name}", _debezium_position(source, number), key
    elif found.get("action") in {"I", "U", "D"}:
        kept = found.get("identity") or found.get("columns") or ()
        identities = {each["name"] for each in found.get("pk") or ()}
        key = json.dumps([each.get("value") for each in kept if each.get("name") in identities])
        upper, _, lower = str(found.get("lsn", "")).partition("/")
        if not lower:
            raise TraceError(f"line {number} has no lsn; ask wal2json for it by -o include-lsn=true")
        yield f"{database}.{found['schema']}.{found['table']}", int(upper, 16) << 32 | int(lower, 16), key
    elif found and found.get("action") not in {"B", "C", "M", "T"}:
        raise TraceError(f"line {number} is no change event of Debezium or wal2json (format 2): {line[:80]!r}")


def _debezium_position(source: dict[str, Any], number: int) -> int:
    if source.get("lsn") is not None:
        return _whole(source, "lsn", number)
    file = re.search(r"(\d+)$", str(source.get("file", "")))
    if file is None:
        raise TraceError(f"line {number} has neither lsn (PostgreSQL) nor file and pos (MySQL) in its source")
    return int(file[1]) << 44 | _whole(source, "pos", number) << 8 | int(source.get("row") or 0)


def matches_subject(subject: str, wanted: str) -> bool:
    """As NATS compares: `*` is one word, `>` all the rest."""
    words, filters = subject.split("."), wanted.split(".")
    for place, one in enumerate(filters):
        if one == ">":
            return len(words) > place
        if place >= len(words) or one not in {"*", words[place]}:
            return False
    return len(words) == len(filters)


def _is(subject: str, wanted: str) -> bool:
    return subject == wanted


FORMATS = {
    "kafka": Format(kafka, _is, "per-partition", "topic"),
    "nats": Format(nats, matches_subject, "total-at-least-once", "stream"),
    "etcd": Format(etcd, str.startswith, "total", "store"),
    "rabbitmq": Format(rabbitmq, _is, "per-partition", "stream"),
    "cdc": Format(cdc, _is, "per-partition", "database"),
}
"""By the name of the system."""


def _json(line: str, number: int) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except ValueError as error:
        raise TraceError(f"line {number} is no JSON: {error}") from error
    if not isinstance(found, dict):
        raise TraceError(f"line {number} is no JSON object: {line[:80]!r}")
    return found


def _list(line: str, number: int) -> Iterable[dict[str, Any]]:
    if not line.lstrip().startswith("["):
        return [_json(line, number)]
    try:
        return [dict(each) for each in json.loads(line)]
    except (ValueError, TypeError) as error:
        raise TraceError(f"line {number} is no JSON: {error}") from error


def _whole(found: dict[str, Any], name: str, number: int) -> int:
    if not isinstance(found.get(name), int):
        raise TraceError(f"line {number} has no whole number as {name}, but {found.get(name)!r}")
    return int(found[name])


def _number(text: str, number: int) -> int:
    if not text.isdecimal():
        raise TraceError(f"line {number} has {text[:40]!r} where a number is expected")
    return int(text)
