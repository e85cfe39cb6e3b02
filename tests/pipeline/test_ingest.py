"""Logs of other systems become traces, on Arrow and on Spark alike, and what is wrong with them is said."""

import json
from pathlib import Path
from random import Random
from typing import Any

import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from ordercast.audit import audit as audit_by_reference
from ordercast.audit.profiles import profile_of
from ordercast.model.errors import ConfigError, TraceError
from ordercast.pipeline import audit, audit_tables, from_log, write_trace
from ordercast.pipeline.ingest import write_trace as writing
from ordercast.trace.reader import event_files, read_runs

Rows = list[dict[str, Any]]


def kafka_rows(spoil: str = "") -> Rows:
    """Two groups that consume a topic of three partitions, each in an order of its own across partitions."""
    rows: Rows = []
    for name in ("billing", "shipping"):
        chance = Random(name)
        left = {partition: list(range(100, 120)) for partition in range(3)}
        records = []
        while any(left.values()):
            partition = chance.choice([one for one, offsets in left.items() if offsets])
            records.append((partition, left[partition].pop(0)))
        if name == "shipping":
            if "swapped" in spoil:
                at, other = (records.index((2 if "lost" in spoil else 1, offset)) for offset in (110, 111))
                records[at], records[other] = records[other], records[at]
            if "lost" in spoil:
                records.remove((1, 110))
            if spoil == "twice":
                records.append((1, 110))
        rows += [
            {"group": name, "topic": "orders", "partition": partition, "offset": offset, "position": position}
            for position, (partition, offset) in enumerate(records)
        ]
    return rows


def judged(rows: Any, tmp_path: Path, **more: Any) -> Any:
    write_trace(*from_log(rows, system="kafka", receiver="group", order="position", **more), tmp_path / "trace")
    return audit_by_reference([tmp_path / "trace"])


def test_a_good_log_holds(tmp_path: Path) -> None:
    verdict = judged(kafka_rows(), tmp_path)
    assert verdict.holds
    assert verdict.deliveries == 120
    assert list(verdict.by_protocol) == ["per-partition"]


@pytest.mark.parametrize(
    ("spoil", "service", "breaks", "sentence"),
    [
        ("lost", None, "all_delivered", "shipping lacks orders[1]@110, sent to {billing,shipping}"),
        ("twice", "per-partition-once", "complete", "shipping delivered orders[1]@110 twice, as numbers "),
        ("swapped", None, "sender_order_kept", "orders[1] sent orders[1]@110 first"),
    ],
)
def test_witnesses_have_the_systems_names(
    tmp_path: Path, spoil: str, service: str | None, breaks: str, sentence: str
) -> None:
    verdict = judged(kafka_rows(spoil), tmp_path, service=service)
    broken = {name for name, finding in verdict.findings.items() if not finding.holds}
    assert broken == ({breaks} if breaks != "complete" else {"delivered_once"})
    [finding] = [finding for finding in verdict.findings.values() if not finding.holds]
    assert sentence in verdict.told(finding.witnesses[0])
    assert finding.by_node["shipping"] == 1
    assert sentence in verdict.explain().replace("\n  ", " ")
    assert verdict.as_document()["members"]["log"][:3] == ["orders[0]", "orders[1]", "orders[2]"]


def test_tables_of_any_kind_give_one_trace() -> None:
    rows = kafka_rows()
    named: dict[str, Any] = {"system": "kafka", "receiver": "group", "order": "position"}
    by_list = from_log(rows, **named)
    assert from_log(pa.Table.from_pylist(rows), **named).events.equals(by_list.events)
    assert from_log(pd.DataFrame(rows), **named).events.equals(by_list.events)


def test_a_record_that_nobody_got_is_missed_only_if_it_is_known_to_be_sent(tmp_path: Path) -> None:
    rows = [row for row in kafka_rows() if (row["partition"], row["offset"]) != (2, 105)]
    assert judged(rows, tmp_path / "received").holds
    sent = [{"topic": "orders", "partition": one, "offset": offset} for one in range(3) for offset in range(100, 120)]
    verdict = judged(rows, tmp_path / "sent", sent=sent)
    told = [verdict.told(witness) for witness in verdict.findings["all_delivered"].witnesses]
    assert [sentence.partition(",")[0] for sentence in told] == [
        "billing lacks orders[2]@105",
        "shipping lacks orders[2]@105",
    ]


def test_subscriptions_name_topics_or_partitions(tmp_path: Path) -> None:
    rows = [row for row in kafka_rows() if row["group"] == "billing" or row["partition"] == 1]
    assert not judged(rows, tmp_path / "all").holds
    assert judged(rows, tmp_path / "some", subscriptions={"shipping": ["orders[1]"]}).holds
    verdict = judged(rows, tmp_path / "unheard", subscriptions={"shipping": ["orders[1]"], "mailing": ["orders"]})
    assert verdict.findings["all_delivered"].by_node == {"mailing": 60}  # of which the log has no row


def test_times_order_a_log(tmp_path: Path) -> None:
    frame = pd.DataFrame(kafka_rows())
    frame["position"] = pd.Timestamp("2026-01-01") + pd.to_timedelta(frame["position"], unit="us")
    assert judged(frame, tmp_path).holds


def test_a_number_that_was_given_twice_is_a_violation(tmp_path: Path) -> None:
    sent = [{"topic": "orders", "partition": one, "offset": offset} for one in range(3) for offset in range(100, 120)]
    verdict = judged(kafka_rows(), tmp_path, sent=[*sent, sent[7]])
    [witness] = verdict.findings["nothing_extra"].witnesses
    assert verdict.told(witness) == "orders[0] gave the name orders[0]@107 to two messages"


def test_a_profile_of_ones_own_is_kept_in_the_trace(tmp_path: Path) -> None:
    profile = profile_of("ours", {"properties": {"delivered_once": True}}, "")
    verdict = judged(kafka_rows("lost"), tmp_path, service=profile)
    assert verdict.holds
    assert list(verdict.findings) == ["delivered_once"]


def test_keys_have_orders_of_their_own(tmp_path: Path) -> None:
    rows = [{**row, "key": f"k{row['offset'] % 2}"} for row in kafka_rows("swapped")]
    assert judged(rows, tmp_path / "two", service="per-key").holds  # 110 and 111 have two keys
    rows = [{**row, "key": "one"} for row in kafka_rows("swapped")]
    verdict = judged(rows, tmp_path / "one", service="per-key")
    assert verdict.findings["key_order_kept"].violations == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"offset": None}, "column 'offset' of what was received must not be null, but 120 rows are"),
        ({"offset": 1.5}, "column 'offset' of what was received is of type double"),
        ({"group": None}, "column 'group' of what was received must not be null"),
    ],
)
def test_bad_columns_are_told(change: dict[str, Any], message: str) -> None:
    rows = [{**row, **change} for row in kafka_rows()]
    with pytest.raises(TraceError, match=message):
        from_log(rows, system="kafka", receiver="group", order="position")


def test_missing_names_are_told() -> None:
    with pytest.raises(TraceError, match="has no column 'member'; it has group, topic"):
        from_log(kafka_rows(), system="kafka", receiver="member", order="position")
    with pytest.raises(ConfigError, match="there is no system 'pulsar'; choose one of kafka, nats"):
        from_log(kafka_rows(), system="pulsar", receiver="group", order="position")
    with pytest.raises(ConfigError, match="name the columns of the log"):
        from_log(kafka_rows(), receiver="group", order="position")
    with pytest.raises(TraceError, match="the log has no rows"):
        from_log(pa.Table.from_pylist(kafka_rows())[:0], system="kafka", receiver="group", order="position")


def test_a_trace_is_never_written_over(tmp_path: Path) -> None:
    tables = from_log(kafka_rows(), system="kafka", receiver="group", order="position")
    assert write_trace(*tables, tmp_path) == 180
    with pytest.raises(TraceError, match="already holds a trace"):
        write_trace(*tables, tmp_path)


def test_row_groups_are_of_one_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "ROWS_OF_A_GROUP", 50)
    tables = [from_log(kafka_rows(), system="kafka", receiver="group", order="position", run=name) for name in "ab"]
    write_trace(pa.concat_tables(one.events for one in tables), pa.concat_tables(one.runs for one in tables), tmp_path)
    [file] = event_files([tmp_path], ["run"])
    assert all(len(runs) == 1 for runs in file.runs_by_group())
    assert file.rows == 360
    assert audit_by_reference([tmp_path]).holds


def test_spark_makes_the_same_of_a_dataframe(tmp_path: Path, spark: SparkSession) -> None:
    """The same verdict, the same names, and files that the audit reads as they are."""
    rows = [{**row, "key": f"k{row['offset'] % 5}"} for row in kafka_rows("lost, swapped")]
    Random("spark").shuffle(rows)
    frame = spark.createDataFrame(pd.DataFrame(rows)).repartition(3)
    tables = from_log(frame, system="kafka", receiver="group", order="position", run="r")
    there, here = tmp_path / "spark", tmp_path / "here"
    assert write_trace(*tables, there) == 179
    write_trace(*from_log(rows, system="kafka", receiver="group", order="position", run="r"), here)
    expected = audit_by_reference([here])
    assert sum(finding.violations for finding in expected.findings.values()) == 2
    assert audit([there]).as_document() == expected.as_document()
    assert audit([there], spark=spark).as_document() == expected.as_document()
    [row] = read_runs([there])
    assert json.loads(row["config"]) == json.loads(read_runs([here])[0]["config"])
    found = audit_tables(*tables)
    assert {one.property: one.violations for one in found.verdicts.collect()} == {
        name: finding.violations for name, finding in expected.findings.items()
    }
    text = found.explain()
    for name in ("orders[1]@110", "orders[2]@110"):
        assert name in text
    assert {one.sentence for one in found.witnesses.collect()} == {
        expected.told(witness) for finding in expected.findings.values() for witness in finding.witnesses
    }


def test_spark_takes_what_was_sent_and_to_whom(tmp_path: Path, spark: SparkSession) -> None:
    rows = pd.DataFrame([row for row in kafka_rows() if row["group"] == "billing" or row["partition"] == 1])
    sent = pd.DataFrame(
        [
            {"topic": "orders", "partition": one, "offset": offset, "to": ["billing"] + ["shipping"] * (one == 1)}
            for one in range(3)
            for offset in range(100, 121)  # the last was handed to nobody
        ]
    )
    named: dict[str, Any] = {"system": "kafka", "receiver": "group", "order": "position", "to": "to"}
    tables = from_log(spark.createDataFrame(rows), sent=spark.createDataFrame(sent), **named)
    write_trace(*tables, tmp_path / "there")
    write_trace(*from_log(rows, sent=sent, **named), tmp_path / "here")
    verdict = audit_by_reference([tmp_path / "there"])
    assert verdict.as_document() == audit_by_reference([tmp_path / "here"]).as_document()
    assert verdict.findings["all_delivered"].violations == 4
    values = "SELECT 'g' AS group, 't' AS topic, 0 AS partition, 1L AS offset"
    spoilt = spark.sql(f"{values}, CAST(NULL AS INT) AS position")
    with pytest.raises(TraceError, match="the column for order of what was received must not be null, but 1 rows are"):
        from_log(spoilt, system="kafka", receiver="group", order="position")
