"""The sink `ordercast`: each micro-batch becomes one message of a live group, once.

Tasks hand their rows to the driver, which posts all of a batch to a gateway, or to the next one that answers. The batch
has the query's id, which its checkpoint keeps, and its number, by which the group drops what it had before.
"""

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from ssl import create_default_context
from urllib.parse import urlsplit

import msgspec
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import BinaryType, StringType, StructType

from ordercast.model.errors import ConfigError, PipelineError, reason_of

_NAMES = ("gateway", "queryId", "gatewayTimeout", "tokenFile", "caFile")
_KNOWN = {name.lower(): name for name in _NAMES}
_SPARKS = {"path", "checkpointlocation", "queryname"}  # which Spark hands over with those of the user
_COLUMNS = ("payload", "value")
_QUERY_ID = "sql.streaming.queryId"
_PAUSE = 0.5  # seconds
_PATIENCE = 60.0  # seconds for an answer


class SinkOptions(msgspec.Struct, frozen=True):
    """Where batches go."""

    gateways: tuple[str, ...]
    query_id: str | None
    """A name before Spark's."""
    timeout: float
    """Seconds in which some gateway must answer."""
    token_file: str | None
    ca_file: str | None


def sink_options(given: Mapping[str, str]) -> SinkOptions:
    """Raises `ConfigError` that names the option."""
    found = {_KNOWN.get(key.lower(), key): value for key, value in given.items() if key.lower() not in _SPARKS}
    unknown = sorted(found.keys() - set(_NAMES))
    if unknown:
        raise ConfigError(f"the sink ordercast has no option {unknown[0]!r}; it has: {', '.join(_NAMES)}")
    gateways = tuple(each.strip() for each in found.get("gateway", "").split(",") if each.strip())
    if not gateways:
        raise ConfigError('no gateway was given: .option("gateway", "http://HOST:7700"), or several with commas')
    for each in gateways:
        parts = urlsplit(each)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise ConfigError(f"gateway {each!r} is no address; give http://HOST:PORT")
    try:
        timeout = float(found.get("gatewayTimeout", "120"))
    except ValueError:
        timeout = -1.0
    if not 0 < timeout < 1e9:
        raise ConfigError(f"gatewayTimeout must be a number of seconds above 0, not {found['gatewayTimeout']!r}")
    return SinkOptions(gateways, found.get("queryId"), timeout, found.get("tokenFile"), found.get("caFile"))


@dataclass
class _Rows(WriterCommitMessage):
    """What one task was given."""

    partition: int
    query_id: str | None
    rows: list[bytes]


class BatchWriter(DataSourceStreamArrowWriter):
    """Hands the batches of one query to a group."""

    def __init__(self, options: SinkOptions, schema: StructType) -> None:
        """Raises `ConfigError` if the rows are no messages."""
        self._options = options
        self._column = _payload_column(schema)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> _Rows:
        """In a task: its rows, which Spark brings to the driver."""
        context = TaskContext.get()
        told = context.getLocalProperty(_QUERY_ID) if context is not None else None
        query_id = " ".join(filter(None, (self._options.query_id, told))) or None
        rows: list[bytes] = []
        for batch in iterator:
            column = batch.column(self._column)
            if column.null_count:
                raise PipelineError(
                    f"a row has no {self._column} (it is null), and a message must have bytes: filter such rows out, "
                    "or replace the null"
                )
            rows += column.cast(pa.binary()).to_pylist()
        return _Rows(context.partitionId() if context else 0, query_id, rows)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 (Spark's name)
        """At the driver: returns when the batch is in the order of the group."""
        parts = sorted((each for each in messages if isinstance(each, _Rows)), key=lambda each: each.partition)
        rows = [row for part in parts for row in part.rows]
        if not rows:
            return
        query_id = next((part.query_id for part in parts if part.query_id), None)
        if query_id is None:
            raise PipelineError(
                "Spark does not tell the id of the query: name it by the option queryId, another for each checkpoint"
            )
        _post(self._options, query_id, batchId, rows)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Nothing to undo: if the batch has arrived all the same, its repetition is dropped."""


def _payload_column(schema: StructType) -> str:
    names = schema.fieldNames()
    if len(names) != 1 or names[0] not in _COLUMNS or not isinstance(schema[0].dataType, BinaryType | StringType):
        raise ConfigError(
            f"the sink ordercast takes one column, payload or value, of the type binary or string, not "
            f"{', '.join(names) or 'none'}: select what a message is to hold, such as "
            'df.selectExpr("to_json(struct(*)) AS payload")'
        )
    return names[0]


def _post(options: SinkOptions, source: str, batch: int, rows: list[bytes]) -> None:
    """To the first gateway that answers; again, in turn, until one has. The group drops what it had before."""
    body = msgspec.msgpack.encode((source, batch, rows))
    deadline, wrong = time.monotonic() + options.timeout, dict[str, str]()
    while True:
        for gateway in options.gateways:
            try:
                status, answer = _answer_of(gateway, options, body)
            except (HTTPException, OSError) as error:
                wrong[gateway] = reason_of(error) or type(error).__name__
                continue
            last = _last_in(answer) if status == 200 else None
            if last is not None:
                _require_last(last, source, batch)
                return
            wrong[gateway] = _reason_in(answer) or f"it answers {status}, and not as a gateway does"
            if status not in {200, 503}:
                raise PipelineError(f"batch {batch} was refused by {gateway}: {wrong[gateway]}")
        if time.monotonic() > deadline:
            why = "; ".join(f"{gateway}: {each}" for gateway, each in wrong.items())
            raise PipelineError(
                f"no gateway has taken batch {batch} for {options.timeout:g} seconds (gatewayTimeout): {why}; start "
                "one again, and then the query: the batch is sent again, and the group has it once"
            )
        time.sleep(_PAUSE)


def _last_in(answer: bytes) -> int | None:
    """The number of the last batch that the group has; None if this is no answer of a gateway."""
    try:
        return int(msgspec.json.decode(answer)["last"])
    except (msgspec.DecodeError, KeyError, TypeError, ValueError):
        return None


def _require_last(last: int, source: str, batch: int) -> None:
    """Whoever numbers batches sends none below the last: its rows may be others than those that were dropped for it."""
    if last > batch:
        raise PipelineError(
            f"the group has had batch {last} of the query {source!r} already, and dropped batch {batch}: the "
            "checkpoint is an old copy, or another query has this id; give a queryId that no query had, and a new "
            "checkpoint"
        )


def _answer_of(gateway: str, options: SinkOptions, body: bytes) -> tuple[int, bytes]:
    parts = urlsplit(gateway)
    headers = {"Content-Type": "application/msgpack"}
    token = _token(options)
    if token:
        headers["Authorization"] = f"Bearer {token}"
    connection: HTTPConnection
    if parts.scheme == "https":
        context = create_default_context(cafile=options.ca_file)
        connection = HTTPSConnection(str(parts.hostname), parts.port, timeout=_PATIENCE, context=context)
    else:
        connection = HTTPConnection(str(parts.hostname), parts.port, timeout=_PATIENCE)
    try:
        connection.request("POST", "/batches", body, headers)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def _reason_in(answer: bytes) -> str:
    try:
        return str(msgspec.json.decode(answer)["error"])
    except (msgspec.DecodeError, KeyError, TypeError):
        return ""


def _token(options: SinkOptions) -> str | None:
    if options.token_file is None:
        return os.environ.get("ORDERCAST_GATEWAY_TOKEN")
    try:
        return Path(options.token_file).read_text().strip()
    except OSError as error:
        raise ConfigError(f"cannot read tokenFile {options.token_file}: {reason_of(error)}") from error
