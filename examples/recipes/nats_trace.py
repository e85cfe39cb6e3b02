"""Makes a trace of what NATS JetStream consumers were handed, one file for each consumer.

A line is the subject of a message and its reply subject, which says all that is needed:

    orders.eu.new $JS.ACK.<stream>.<consumer>.<times delivered>.<stream seq>.<consumer seq>.<nanoseconds>.<pending>

    python nats_trace.py OUT ledger.log='>' europe.log='orders.eu.>'
    ordercast audit OUT

The stream is the one source, its sequence the numbers, from 1 on; a message is for the consumers whose filter its
subject matches. That is the service `st`: all consumers are handed what is for them, once, in the order of the stream.
"""

import sys
from pathlib import Path

from ordercast.trace.run_writer import TraceWriter
from ordercast.trace.schema import EventRow


def main(out: Path, logs: list[tuple[Path, str]]) -> None:
    """Converts; node 0 is the stream, the others are the consumers in the order of their files."""
    read = [[_read(line) for line in log.read_text().splitlines()] for log, _ in logs]
    subjects = {seq: (subject, time) for messages in read for subject, seq, time in messages}
    rows: list[EventRow] = []
    for step, (seq, (subject, time)) in enumerate(sorted(subjects.items())):
        to = tuple(node for node, (_, wanted) in enumerate(logs, start=1) if matches(subject, wanted))
        rows.append((0, step, time, "send", 0, seq, to, None, None, None, None))
    for node, messages in enumerate(read, start=1):
        for step, (_, seq, time) in enumerate(messages):
            rows.append((node, step, time, "deliver", 0, seq, None, None, None, None, None))
    with TraceWriter(out, "orders") as trace:
        trace.write(rows)
        trace.finish({"protocol": "st", "nodes": 1 + len(logs), "complete": True, "sent": len(subjects)})


def _read(line: str) -> tuple[str, int, int]:
    subject, reply = line.split()
    *_, stream_seq, _, nanoseconds, _ = reply.split(".")
    return subject, int(stream_seq), int(nanoseconds)


def matches(subject: str, wanted: str) -> bool:
    """Whether a subject is one of those that a filter names: `*` is one word, `>` all the rest."""
    words, filters = subject.split("."), wanted.split(".")
    for place, one in enumerate(filters):
        if one == ">":
            return len(words) > place
        if place >= len(words) or one not in {"*", words[place]}:
            return False
    return len(words) == len(filters)


if __name__ == "__main__":
    main(Path(sys.argv[1]), [(Path(name), wanted) for name, _, wanted in (a.partition("=") for a in sys.argv[2:])])
