"""The schema of a trace, declared once: what the columns are called, what they hold, which may be missing.

A trace is a folder of two Parquet datasets:

    DIR/runs/      one row for each run
    DIR/events/    one row for each event

`arrow_schema` has the same as Arrow schemas; here is nothing that needs Arrow. Integers are signed because Spark has
no others. Times are whole nanoseconds on the run's one clock.
"""

from enum import Enum, StrEnum
from typing import Final, NamedTuple

RUNS_FOLDER = "runs"
EVENTS_FOLDER = "events"
SUFFIX = ".parquet"


class EventKind(StrEnum):
    """What happened at a node. More kinds may be added; a reader ignores those that it does not know."""

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
    """Received and discarded; `detail` says why."""
    REQUEST = "request"
    """A retransmission was requested."""
    RETRANSMIT = "retransmit"
    """A source sent a message again."""
    TIMEOUT = "timeout"
    """A timer fired."""
    ABORT = "abort"
    """The node gave the group up."""
    VIEW = "view"
    """A view begins at this node; `destinations` are its members. Where members may join, `seq` is its number, the
    members are in their places, and `detail` is that of `view_rows`; traces of 0.1 have neither number nor places."""
    LEAVE = "leave"
    """The node left the group by itself; `detail`: `drained`, or `unconfirmed` if some of its messages may be lost."""
    EXCLUDE = "exclude"
    """The node was told that view `seq` is without it; `detail` says why."""
    BLOCK = "block"
    """Too few members of the view can be reached to agree on the next one."""
    UNBLOCK = "unblock"
    """Enough can be reached again."""
    STATE = "state"
    """The application's state at the beginning of view `seq` came from the node `source`, `size` bytes."""
    RENUMBER = "renumber"
    """The message was not delivered in the view in which it was sent, and is sent again in view `detail`."""
    DURABLE = "durable"
    """The message is on the disk of the node, at the next position of its log."""
    RESTART = "restart"
    """The process of the node `source` was started again, as this node; `seq` messages are in its log, and the next
    `durable` rows of the node name them, from the first position on."""
    DROP = "drop"
    """The node dropped its log from position `seq` on: the group never agreed on what was there."""
    STOP = "stop"
    """The node stopped to agree on an order anew; `detail` says why."""
    RESUME = "resume"
    """The order is agreed on; `detail` says how much it took."""
    CRASH = "crash"
    """The node stopped."""


class ColumnType(Enum):
    """The type of a column, by its name in Arrow."""

    STRING = "string"
    INT32 = "int32"
    INT64 = "int64"
    BOOL = "bool"
    INT32_LIST = "list<int32>"


class Column(NamedTuple):
    """A column of a dataset."""

    name: str
    type: ColumnType
    nullable: bool = True
    optional: bool = False
    """A trace written by other programs may lack it; it is then read as null."""


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

EVENT_COLUMNS = (
    Column(RUN, ColumnType.STRING, nullable=False),
    Column(NODE, ColumnType.INT32, nullable=False),
    Column(STEP, ColumnType.INT64, nullable=False),
    Column(TIME, ColumnType.INT64, nullable=False),
    Column(EVENT, ColumnType.STRING, nullable=False),
    Column(SOURCE, ColumnType.INT32),
    Column(SEQ, ColumnType.INT64),
    Column(DESTINATIONS, ColumnType.INT32_LIST),
    Column(PRIORITY, ColumnType.INT32),
    Column(SIZE, ColumnType.INT32),
    Column(DETAIL, ColumnType.STRING, optional=True),
    Column(TRANSMISSION, ColumnType.INT64, optional=True),
)


class EventField:
    """The positions of the columns in an `EventRow`."""

    NODE: Final = 0
    STEP: Final = 1
    TIME: Final = 2
    EVENT: Final = 3
    SOURCE: Final = 4
    SEQ: Final = 5
    DESTINATIONS: Final = 6
    PRIORITY: Final = 7
    SIZE: Final = 8
    DETAIL: Final = 9
    TRANSMISSION: Final = 10


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
"""One event, in the order of the columns, without `run`; see `EventField`. A plain tuple: runs of millions of events
make them."""

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
ERROR = "error"  # why a run of a sweep failed
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

RUN_COLUMNS = (
    Column(RUN, ColumnType.STRING, nullable=False),
    Column(PROTOCOL, ColumnType.STRING, nullable=False),
    Column(NODES, ColumnType.INT32, nullable=False),
    Column(CHANNEL, ColumnType.STRING),
    Column(SEED, ColumnType.INT64),
    Column(CONFIG, ColumnType.STRING),
    Column(COMPLETE, ColumnType.BOOL, nullable=False),
    *(Column(counter, ColumnType.INT64, optional=True) for counter in COUNTERS),
    Column(VIRTUAL_TIME, ColumnType.INT64, optional=True),
    Column(STALLED, ColumnType.BOOL, optional=True),
    Column(ABORTED, ColumnType.BOOL, optional=True),
    Column(ERROR, ColumnType.STRING, optional=True),
    Column(LATENCY, ColumnType.STRING, optional=True),
    Column(WAITING, ColumnType.STRING, optional=True),
    Column(NODE, ColumnType.INT32, optional=True),
)


def is_hidden(name: str) -> bool:
    """True if a file or folder of this name is not part of a dataset, by Spark's rule and ours."""
    return name.startswith(("_", "."))
