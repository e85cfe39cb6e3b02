"""Tables that have each micro-batch of a stream once, whatever is killed when: SQLite, Delta Lake, Iceberg.

    python examples/exactly_once_tables.py LOGS sqlite orders.db      what is in the logs of a group; again: what is new
    python examples/exactly_once_tables.py LOGS delta orders          pip install deltalake
    python examples/exactly_once_tables.py LOGS iceberg warehouse     pip install 'pyiceberg[sql-sqlite,pyarrow]'

Made to be copied. Spark repeats the last batch of a query that was killed, with the same rows. So each function here
writes the rows of a batch and its number in one transaction of the table, and does nothing if the number is there.
`query` names the checkpoint: another one for each, since the numbers of a new checkpoint begin at 0.

Delta Lake and Iceberg are written from Arrow by the driver, by their own Python packages: Spark needs no jar of theirs.
Needs the extra `pipeline` (Spark; the Java for it comes along).
"""

import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame

from ordercast.pipeline import register
from ordercast.pipeline.session import session

WriteBatch = Callable[[DataFrame, int], None]
"""What `foreachBatch` takes."""


def sqlite_table(file: Path, query: str) -> WriteBatch:
    """One transaction has the rows and the number."""

    def write(batch: DataFrame, number: int) -> None:
        rows = [(row.position, row.sender, bytes(row.payload)) for row in batch.collect()]
        with sqlite3.connect(file) as table:
            table.execute(
                "CREATE TABLE IF NOT EXISTS batches (query TEXT, number INTEGER, PRIMARY KEY (query, number))"
            )
            table.execute("CREATE TABLE IF NOT EXISTS orders (position INTEGER, sender TEXT, payload BLOB)")
            table.execute("BEGIN IMMEDIATE")  # nobody else writes until the number is there
            if table.execute("INSERT OR IGNORE INTO batches VALUES (?, ?)", (query, number)).rowcount:
                table.executemany("INSERT INTO orders VALUES (?, ?, ?)", rows)

    return write


def delta_table(place: str, query: str) -> WriteBatch:
    """A commit of Delta Lake has the rows and an action `txn` with the number: so do Spark's own writers of Delta."""
    from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake  # noqa: PLC0415 (who writes another kind needs it not)

    def write(batch: DataFrame, number: int) -> None:
        last = DeltaTable(place).transaction_version(query) if DeltaTable.is_deltatable(place) else None
        if last is not None and last >= number:
            return
        commit = CommitProperties(app_transactions=[Transaction(query, number)])
        write_deltalake(place, batch.toArrow(), mode="append", commit_properties=commit)

    return write


def iceberg_table(catalog: Any, name: str, query: str) -> WriteBatch:
    """A snapshot of Iceberg has the rows, and the number among its properties.

    Whoever expires snapshots must keep the last one of each query: the number of its last batch is there alone.
    """
    key = f"batch.{query}"

    def write(batch: DataFrame, number: int) -> None:
        rows = batch.toArrow()
        table = catalog.create_table_if_not_exists(name, rows.schema)
        current = table.current_snapshot()
        while current is not None:  # of several queries each has its own number, in its own snapshots
            if current.summary is not None and key in current.summary.additional_properties:
                if int(current.summary.additional_properties[key]) >= number:
                    return
                break
            parent = current.parent_snapshot_id
            current = table.snapshot_by_id(parent) if parent is not None else None
        table.append(rows, snapshot_properties={key: str(number)})

    return write


def table_of(kind: str, place: str, query: str) -> WriteBatch:
    """By its name."""
    if kind == "sqlite":
        return sqlite_table(Path(place), query)
    if kind == "delta":
        return delta_table(place, query)
    from pyiceberg.catalog.sql import SqlCatalog  # noqa: PLC0415 (who writes another kind needs it not)

    warehouse = Path(place).absolute()
    warehouse.mkdir(parents=True, exist_ok=True)
    catalog = SqlCatalog("local", uri=f"sqlite:///{warehouse}/catalog.db", warehouse=f"file://{warehouse}")
    catalog.create_namespace_if_not_exists("group")
    return iceberg_table(catalog, "group.orders", query)


def rows_of(kind: str, place: str) -> list[tuple[int, str, bytes]]:
    """Position, sender and payload of each row of a table."""
    if kind == "sqlite":
        with sqlite3.connect(place) as table:
            return table.execute("SELECT position, sender, payload FROM orders ORDER BY position").fetchall()
    if kind == "delta":
        from deltalake import DeltaTable  # noqa: PLC0415 (who writes another kind needs it not)

        rows = DeltaTable(place).to_pyarrow_table()
    else:
        from pyiceberg.catalog.sql import SqlCatalog  # noqa: PLC0415 (who writes another kind needs it not)

        catalog = SqlCatalog("local", uri=f"sqlite:///{Path(place).absolute()}/catalog.db")
        rows = catalog.load_table("group.orders").scan().to_arrow()
    columns = [rows.column(name).to_pylist() for name in ("position", "sender", "payload")]
    return sorted(zip(*columns, strict=True))


def main(logs: str, kind: str, place: str) -> None:
    """Reads what there is, and ends."""
    with session("local[2]") as spark:
        register(spark)
        stream = spark.readStream.format("ordercast-log").option("startingOffsets", "earliest").load(logs)
        query = (
            stream.select("position", "sender", "payload")
            .writeStream.foreachBatch(table_of(kind, place, "orders"))
            .option("checkpointLocation", f"{place}.checkpoint")
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
    rows = rows_of(kind, place)
    print(f"{len(rows):,} rows, positions {rows[0][0]:,} to {rows[-1][0]:,}, each once" if rows else "no row")


if __name__ == "__main__":
    main(*sys.argv[1:])
