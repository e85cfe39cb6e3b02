"""Makes a trace of what etcd watchers were sent, one file for each watcher.

    etcdctl watch --prefix / --write-out=json > all.log
    etcdctl watch --prefix /config/ --write-out=json > config.log

    python etcd_trace.py OUT all.log=/ config.log=/config/
    ordercast audit OUT

The store is the one source, and a message is a revision: etcd promises that a watcher gets revisions in order, once
each, and each whole, with all the keys of a transaction that the watcher's prefix matches. A revision is for the
watchers whose prefix matches one of its keys. That is the service `st`.
"""

import json
import sys
from base64 import b64decode
from itertools import groupby
from pathlib import Path

from ordercast.trace.run_writer import TraceWriter
from ordercast.trace.schema import EventRow


def main(out: Path, logs: list[tuple[Path, str]]) -> None:
    """Converts; node 0 is the store, the others are the watchers in the order of their files."""
    read = [[found for line in log.read_text().splitlines() for found in _revisions(line)] for log, _ in logs]
    keys: dict[int, set[str]] = {}
    for watched in read:
        for revision, changed in watched:
            keys.setdefault(revision, set()).update(changed)
    rows: list[EventRow] = []
    for step, revision in enumerate(sorted(keys)):
        to = tuple(
            node
            for node, (_, prefix) in enumerate(logs, start=1)
            if any(key.startswith(prefix) for key in keys[revision])
        )
        rows.append((0, step, 0, "send", 0, revision, to, None, None, None, None))
    for node, watched in enumerate(read, start=1):
        for step, (revision, _) in enumerate(watched):
            rows.append((node, step, 0, "deliver", 0, revision, None, None, None, None, None))
    with TraceWriter(out, "store") as trace:
        trace.write(rows)
        trace.finish({"protocol": "st", "nodes": 1 + len(logs), "complete": True, "sent": len(keys)})


def _revisions(line: str) -> list[tuple[int, set[str]]]:
    """The revisions of one watch response, in the order of its events; none if it only says that the watch began."""
    changed = [event["kv"] for event in json.loads(line).get("Events") or ()]
    return [
        (revision, {b64decode(each["key"]).decode() for each in same})
        for revision, same in groupby(changed, key=lambda each: int(each["mod_revision"]))
    ]


if __name__ == "__main__":
    main(Path(sys.argv[1]), [(Path(name), prefix) for name, _, prefix in (a.partition("=") for a in sys.argv[2:])])
