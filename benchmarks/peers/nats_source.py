"""A NATS JetStream stream as a Python data source of Spark, beside the format `ordercast-log`; needs nats-py.

As its user would write it: sequence = offset, and one ordered consumer for each task, pushed without acknowledgments;
the server waits for a client that is behind. Arrow batches. Exactly once holds as it does for any source whose offsets
are sequences of one server; which of several replicas has another order nobody asks.
"""

import asyncio
from collections.abc import Iterator
from typing import Any

import nats
import pyarrow as pa
from nats.js.api import ConsumerConfig, DeliverPolicy
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

STREAM, SUBJECT = "S", "s"
_ROWS = 50_000  # of an Arrow batch
_SEQUENCE = 5  # of the fields of the subject that an acknowledgment would have


class NatsSource(DataSource):
    """Options: `server`, `maxOffsetsPerTrigger`."""

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return "nats"

    def schema(self) -> str:
        """The columns that are compared."""
        return "position long, payload binary"

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: ARG002, N802 (Spark's names)
        """The messages as they come."""
        return _Reader(self.options["server"], int(self.options.get("maxOffsetsPerTrigger", "0")))


class _Part(InputPartition):
    def __init__(self, start: int, end: int) -> None:
        super().__init__(None)
        self.start, self.end = start, end


class _Reader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, server: str, limit: int) -> None:
        self._server, self._limit = server, limit
        self._target: int | None = None

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        return {"next": 1}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadMaxRows(self._limit) if self._limit else ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._target = asyncio.run(_end(self._server))

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        end = self._target if self._target is not None else asyncio.run(_end(self._server))
        if isinstance(limit, ReadMaxRows):
            end = min(end, start["next"] + limit.max_rows)
        return {"next": end}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        return [_Part(start["next"], end["next"])]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _Part)
        loop = asyncio.new_event_loop()
        try:
            batches = _batches(self._server, partition.start, partition.end)
            while (batch := loop.run_until_complete(anext(batches, None))) is not None:
                yield batch
        finally:
            loop.close()


async def _end(server: str) -> int:
    connection = await nats.connect(server)
    info = await connection.jetstream().stream_info(STREAM)
    await connection.close()
    return int(info.state.last_seq) + 1


async def _batches(server: str, start: int, end: int) -> Any:
    connection = await nats.connect(server)
    positions: list[int] = []
    payloads: list[bytes] = []
    more = asyncio.Event()

    async def take(message: Any) -> None:
        positions.append(int(message.reply.split(".")[_SEQUENCE]))
        payloads.append(message.data)
        if len(positions) >= _ROWS or positions[-1] >= end - 1:
            more.set()

    where = ConsumerConfig(deliver_policy=DeliverPolicy.BY_START_SEQUENCE, opt_start_seq=start)
    await connection.jetstream().subscribe(
        SUBJECT,
        cb=take,
        stream=STREAM,
        ordered_consumer=True,
        config=where,
        pending_msgs_limit=-1,
        pending_bytes_limit=-1,
    )
    next_ = start
    while next_ < end:
        await more.wait()
        more.clear()
        keep = min(len(positions), end - next_)
        yield pa.record_batch({"position": pa.array(positions[:keep]), "payload": pa.array(payloads[:keep])})
        next_ += keep
        del positions[:keep], payloads[:keep]
    await connection.close()
