"""What a follower of a growing trace does: events in a second of CPU and bytes of state, with and without a loss.

Files of 10,000 messages are made in memory and handed to the audit of a prefix one after the other, as `--follow` does;
reading files and Spark are not part of it. `lost`: E1 never delivers one of the first messages.

    python benchmarks/following.py
"""

import os
import platform
import time
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from command_line import parser_for

from ordercast.model.services import Service
from ordercast.pipeline.audit.stream.prefix import Prefix
from ordercast.trace.arrow_schema import EVENTS

IN_A_FILE = 10_000
LOST = 515  # the number of a message in the first file
SERVICES = (Service.SELECTIVE_TOTAL, Service.TOTAL, Service.PARTIAL, Service.PRIORITY_TOTAL, Service.PRIORITY)


def files(nodes: int, messages: int, *, lost: bool, priorities: int) -> Iterator[pa.RecordBatch]:
    """Messages of random sources to everybody; with priorities, each 50 are delivered in their order."""
    chance = np.random.default_rng(1)
    steps, sent = np.zeros(nodes, np.int64), np.zeros(nodes, np.int64)
    everybody = list(range(nodes))
    for first in range(0, messages, IN_A_FILE):
        numbers = np.arange(IN_A_FILE)
        source, seq = chance.integers(0, nodes, IN_A_FILE), np.zeros(IN_A_FILE, np.int64)
        for one in everybody:
            (mine,) = np.nonzero(source == one)
            seq[mine] = sent[one] + np.arange(mine.size)
            sent[one] += mine.size
        priority = chance.integers(1, priorities + 1, IN_A_FILE)
        order = np.lexsort((numbers, -priority, numbers // 50)) if priorities > 1 else numbers
        node = np.concatenate([source, *(np.full(IN_A_FILE, one) for one in everybody)])
        message = np.concatenate([numbers, *(order for _ in everybody)])
        is_send = np.arange(node.size) < IN_A_FILE
        when = np.concatenate([numbers * 10, *(numbers * 10 + 500 + one for one in everybody)]) + first * 10
        kept = ~(~is_send & (node == 0) & (message == LOST)) if lost and first == 0 else np.ones(node.size, np.bool_)
        by_time = np.lexsort((~is_send, when))
        by_time = by_time[kept[by_time]]
        node, message, is_send, when = node[by_time], message[by_time], is_send[by_time], when[by_time]
        step = np.empty(node.size, np.int64)
        for one in everybody:
            (mine,) = np.nonzero(node == one)
            step[mine] = steps[one] + np.arange(mine.size)
            steps[one] += mine.size
        columns = {
            "run": pa.array(["r"] * node.size),
            "node": pa.array(node),
            "step": pa.array(step),
            "time": pa.array(when),
            "event": pa.array(np.where(is_send, "send", "deliver")),
            "source": pa.array(source[message]),
            "seq": pa.array(seq[message]),
            "destinations": pa.array([everybody if one else None for one in is_send], pa.list_(pa.int32())),
            "priority": pa.array(priority[message], mask=~is_send),
        }
        arrays = [columns.get(field.name, pa.nulls(node.size)).cast(field.type) for field in EVENTS]
        yield pa.RecordBatch.from_arrays(arrays, schema=EVENTS)


def measure(service: Service, nodes: int, messages: int, *, lost: bool) -> None:
    """Prints a line."""
    priorities = 3 if service in {Service.PRIORITY, Service.PRIORITY_TOTAL} else 1
    prefix, cpu, events, state = Prefix("r", nodes=nodes), 0.0, 0, 0
    for batch in files(nodes, messages, lost=lost, priorities=priorities):
        began = time.process_time()
        found = prefix.grow(batch, service, uniform=False)
        cpu += time.process_time() - began
        assert not found, found
        events += batch.num_rows
        state = max(state, len(prefix.events))
    lacks = "; ".join(sentence for _, sentence in prefix.lags().values())
    print(f"{service.value:10} {'lost' if lost else 'good':5} {events / cpu:>12,.0f} {state:>9,}  {lacks}")


def main() -> None:
    """Prints the table."""
    parser = parser_for(__doc__, "half a minute")
    parser.add_argument("--nodes", type=int, default=8)
    parser.add_argument("--messages", type=int, default=300_000)
    arguments = parser.parse_args()
    print(f"{platform.platform()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    print(f"{arguments.messages:,} messages to {arguments.nodes} nodes")
    print(f"{'service':10} {'':5} {'events/CPU-s':>12} {'state, B':>9}")
    for service in SERVICES:
        for lost in (False, True):
            measure(service, arguments.nodes, arguments.messages, lost=lost)


if __name__ == "__main__":
    main()
