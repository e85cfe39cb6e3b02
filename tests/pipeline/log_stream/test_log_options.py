"""The options of the format: what is wrong is named, with what there is."""

import pyarrow as pa
import pytest

from ordercast.model.errors import ConfigError
from ordercast.pipeline.log_stream.ddl import struct_of
from ordercast.pipeline.log_stream.options import options_of


def test_names_are_those_of_kafka_in_any_case() -> None:
    found = options_of(
        {
            "PATH": "a, B=b",
            "startingoffsets": "earliest",
            "endingOffsets": '{"next": 7}',
            "maxOffsetsPerTrigger": "10",
            "failOnDataLoss": "False",
            "minPartitions": "4",
            "memberTimeout": "0.5",
        }
    )
    assert found.members == ("a", "B=b")
    assert (found.start, found.end, found.max_offsets, found.min_partitions) == ("earliest", 7, 10, 4)
    assert (found.fail_on_data_loss, found.member_timeout) == (False, 0.5)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, "no log was given"),
        ({"path": "a", "members": "b"}, "exclude each other"),
        ({"path": "a,a"}, "the same log twice"),
        ({"path": "a", "startingOffset": "1"}, "no option 'startingOffset'; it has: path, members"),
        ({"path": "a", "startingOffsets": "first"}, 'startingOffsets must be "earliest", "latest", a position'),
        ({"path": "a", "endingOffsets": "-3"}, "endingOffsets must be"),
        ({"path": "a", "endingOffsets": "true"}, "endingOffsets must be"),
        ({"path": "a", "maxOffsetsPerTrigger": "0"}, "maxOffsetsPerTrigger must be a whole number above 0, not '0'"),
        ({"path": "a", "minPartitions": "two"}, "minPartitions must be a whole number above 0, not 'two'"),
        ({"path": "a", "failOnDataLoss": "no"}, "failOnDataLoss must be true or false, not 'no'"),
        ({"path": "a", "memberTimeout": "nan"}, "memberTimeout must be a number of seconds above 0"),
        ({"path": "a", "value": "xml"}, "value must be one of json, msgpack, utf8, not 'xml'"),
        ({"path": "a", "value": "json"}, "value='json' needs the columns of the messages"),
        ({"path": "a", "value": "utf8", "valueSchema": "a int"}, "valueSchema has an effect with"),
        ({"path": "a", "undecodable": "skip"}, "undecodable must be one of fail, null, not 'skip'"),
    ],
)
def test_a_wrong_option_is_named(given: dict[str, str], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        options_of(given)


def test_schemas_are_read_as_spark_writes_them() -> None:
    text = "id BIGINT, `a b` string, tags array<string>, at struct<x: double, deep:array<struct<y int>>>, ok boolean"
    deep = pa.list_(pa.struct([("y", pa.int32())]))
    assert struct_of(text) == pa.struct(
        [
            ("id", pa.int64()),
            ("a b", pa.string()),
            ("tags", pa.list_(pa.string())),
            ("at", pa.struct([("x", pa.float64()), ("deep", deep)])),
            ("ok", pa.bool_()),
        ]
    )


@pytest.mark.parametrize(
    "text", ["", "id", "id lng", "id long,", "id long x", "tags array<string", "a struct<>", "a long)"]
)
def test_a_wrong_schema_is_told_where(text: str) -> None:
    with pytest.raises(ConfigError, match=r"valueSchema .* is to be followed or replaced by"):
        struct_of(text)
