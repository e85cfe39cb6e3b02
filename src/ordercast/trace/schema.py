"""The one schema of a trace: what a column is called and what it holds.

A trace is a folder of two Parquet datasets:

    DIR/runs/      one row for each run
    DIR/events/    one row for each event

Integers are signed because Spark has no others. Times are whole nanoseconds on the run's one clock.
"""

from enum import StrEnum

import pyarrow as pa

RUNS_FOLDER = "runs"
EVENTS_FOLDER = "events"
SUFFIX = ".parquet"


class EventKind(StrEnum):
    """What happened at a node. More kinds may be added; a reader passes over those that it does not know."""

    SEND = "send"
    """The message was given its number at its source: it enters the sending log (SL)."""
    TRANSMIT = "transmit"
    """A unit was put on the channel; `detail` is data, copy, status, poll, request, reset, reply, done, marker,
    order (numbers alone) or view."""
    RECEIVE = "receive"
    """A unit with this message reached the node from the channel."""
    HEAR = "hear"
    """A unit without messages reached the node from the channel."""
    LOSE = "lose"
    """It should have reached the node but did not; `detail` says which fault."""
    ACCEPT = "accept"
    """The node accepted it (level 1)."""
    PREACK = "preack"
    """The node knows that every destination has accepted it (level 2)."""
    ACK = "ack"
    """The node knows that every destination has pre-acknowledged it (level 3)."""
    DELIVER = "deliver"
    """It was handed to the application: it enters the receipt log (RL)."""
    DISCARD = "discard"
    """Received and thrown away; `detail` says why."""
    REQUEST = "request"
    """A repair was asked for."""
    RETRANSMIT = "retransmit"
    """A source sent a message again."""
    TIMEOUT = "timeout"
    """A timer fired."""
    ABORT = "abort"
    """The node gave the group up."""
    VIEW = "view"
    """The membership changed; `destinations` are the members that go on, at the node that is told."""
    STOP = "stop"
    """The node stopped to agree on an order anew; `detail` says why."""
    RESUME = "resume"
    """The order is agreed on; `detail` says how much it took."""
    CRASH = "crash"
    """The node stopped."""


# The columns of `events`.
RUN = "run"
NODE = "node"
STEP = "step"  # the papers' ->k
TIME = "time"
EVENT = "event"
SOURCE = "source"
SEQ = "seq"
DESTINATIONS = "destinations"
PRIORITY = "priority"
SIZE = "size"
DETAIL = "detail"
TRANSMISSION = "transmission"

EVENTS = pa.schema(
    [
        pa.field(RUN, pa.string(), nullable=False),
        pa.field(NODE, pa.int32(), nullable=False),
        pa.field(STEP, pa.int64(), nullable=False),
        pa.field(TIME, pa.int64(), nullable=False),
        pa.field(EVENT, pa.string(), nullable=False),
        pa.field(SOURCE, pa.int32()),
        pa.field(SEQ, pa.int64()),
        pa.field(DESTINATIONS, pa.list_(pa.int32())),
        pa.field(PRIORITY, pa.int32()),
        pa.field(SIZE, pa.int32()),
        pa.field(DETAIL, pa.string()),
        pa.field(TRANSMISSION, pa.int64()),
    ]
)

OPTIONAL_EVENT_COLUMNS = frozenset({TRANSMISSION})
"""What a trace from elsewhere may lack; it is then read as null."""

EventRow = tuple[
    int,  # node
    int,  # step
    int,  # time
    str,  # event
    int | None,  # source
    int | None,  # seq
    tuple[int, ...] | None,  # destinations
    int | None,  # priority
    int | None,  # size
    str | None,  # detail
    int | None,  # transmission
]
"""One event, in the order of the columns, without `run`. A plain tuple: runs of millions of events make them."""

# The columns of `runs` besides `run`; and `node`, where only one node was recorded: a member of a live group.
PROTOCOL = "protocol"
NODES = "nodes"
CHANNEL = "channel"
SEED = "seed"
CONFIG = "config"
COMPLETE = "complete"
VIRTUAL_TIME = "virtual_time"
STALLED = "stalled"
ABORTED = "aborted"
ERROR = "error"  # why a run of a sweep came to nothing
LATENCY = "latency"  # JSON: by level, the times from the send to it: count, total, p50, p99, most
WAITING = "waiting"  # JSON: by priority, the times from the send to the delivery, likewise

COUNTERS = (
    "sent",
    "delivered",
    "transmitted",
    "retransmitted",
    "received",
    "lost",
    "lost_data",
    "discarded",
    "duplicated",
    "control",
    "requests",
    "interrupts",
    "bytes",
    "control_bytes",
    "recoveries",
    "insertions",
    "sortings",
    "inserted",
    "resorted",
    "processing",
    "frozen_time",
    "longest_sent",
    "longest_accepted",
    "longest_preacknowledged",
    "sent_together",
    "together",
)

RUNS = pa.schema(
    [
        pa.field(RUN, pa.string(), nullable=False),
        pa.field(PROTOCOL, pa.string(), nullable=False),
        pa.field(NODES, pa.int32(), nullable=False),
        pa.field(CHANNEL, pa.string()),
        pa.field(SEED, pa.int64()),
        pa.field(CONFIG, pa.string()),
        pa.field(COMPLETE, pa.bool_(), nullable=False),
        *(pa.field(counter, pa.int64()) for counter in COUNTERS),
        pa.field(VIRTUAL_TIME, pa.int64()),
        pa.field(STALLED, pa.bool_()),
        pa.field(ABORTED, pa.bool_()),
        pa.field(ERROR, pa.string()),
        pa.field(LATENCY, pa.string()),
        pa.field(WAITING, pa.string()),
        pa.field(NODE, pa.int32()),
    ]
)

OPTIONAL_RUN_COLUMNS = frozenset({*COUNTERS, VIRTUAL_TIME, STALLED, ABORTED, ERROR, LATENCY, WAITING, NODE})
"""What a trace from elsewhere may lack; it is then read as null."""


def is_hidden(name: str) -> bool:
    """Whether a file or folder of this name is no part of a dataset, by Spark's rule and ours."""
    return name.startswith(("_", "."))
