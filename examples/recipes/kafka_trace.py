r"""Makes a trace of what Kafka consumers printed, one file for each consumer group.

    kafka-console-consumer.sh --topic shop --group billing --from-beginning \
        --property print.timestamp=true --property print.partition=true --property print.offset=true > billing.log

    python kafka_trace.py OUT billing.log shipping.log
    ordercast audit OUT

Kafka keeps the order within a partition: partitions are sources, offsets are their numbers, and every record is for
every group. That is the service `spo`.
"""

import re
import sys
from pathlib import Path

from ordercast.trace.run_writer import TraceWriter
from ordercast.trace.schema import EventRow

_RECORD = re.compile(r"CreateTime:(\d+)\tPartition:(\d+)\tOffset:(\d+)")
_MILLISECOND = 1_000_000


def main(out: Path, logs: list[Path]) -> None:
    """Converts; nodes are the partitions, then the groups in the order of their files."""
    read = [[tuple(map(int, found.groups())) for found in _RECORD.finditer(log.read_text())] for log in logs]
    partitions = 1 + max(partition for records in read for _, partition, _ in records)
    groups = tuple(range(partitions, partitions + len(logs)))
    sent = {(partition, offset): time for records in read for time, partition, offset in records}
    rows: list[EventRow] = []
    for partition in range(partitions):
        offsets = sorted(offset for at, offset in sent if at == partition)
        for step, offset in enumerate(offsets):  # what no group saw is not in their logs, and cannot be judged by them
            time = sent[partition, offset] * _MILLISECOND
            rows.append((partition, step, time, "send", partition, offset, groups, None, None, None, None))
    for node, records in zip(groups, read, strict=True):
        for step, (time, partition, offset) in enumerate(records):
            rows.append((node, step, time * _MILLISECOND, "deliver", partition, offset, None, None, None, None, None))
    with TraceWriter(out, "shop") as trace:
        trace.write(rows)
        trace.finish({"protocol": "spo", "nodes": partitions + len(logs), "complete": True, "sent": len(sent)})


if __name__ == "__main__":
    main(Path(sys.argv[1]), [Path(name) for name in sys.argv[2:]])
