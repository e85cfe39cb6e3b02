"""Values as people write them."""

import pytest

from ordercast.model.config import LossInference, PaperRules, SequencerReadings
from ordercast.model.errors import ConfigError
from ordercast.model.faults import (
    Bursts,
    Crash,
    Duplicates,
    Fault,
    Join,
    Leave,
    Loss,
    Miss,
    Pause,
    Return,
    Split,
    Suspicion,
    UnitKind,
)
from ordercast.model.option_parsing import (
    parse_duration,
    parse_fault,
    parse_node,
    parse_nodes,
    parse_readings,
    parse_speed,
)


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("0", 0),
        ("000", 0),
        ("200ns", 200),
        ("50us", 50_000),
        ("50 µs", 50_000),
        ("1.5ms", 1_500_000),
        ("2s", 2_000_000_000),
        (" 2S ", 2_000_000_000),
        ("0.1ms", 100_000),  # exactly, as no float would
        ("0.000000001s", 1),
        ("1.9ns", 1),
    ],
)
def test_durations(text: str, nanoseconds: int) -> None:
    assert parse_duration(text) == nanoseconds


@pytest.mark.parametrize(
    ("text", "bits"),
    [("0", 0), ("9600", 9_600), ("96bit", 96), ("10Mbit", 10_000_000), ("1.5gbit", 1_500_000_000), ("64kbit", 64_000)],
)
def test_speeds(text: str, bits: int) -> None:
    assert parse_speed(text) == bits


ENDLESS = pytest.param("9" * 5_000, id="endless")
BAD_NUMBERS = ["", "garbage", "-5us", "5 parsecs", "1e3", "1..5ms", ".5ms", "5.ms", "us", "1,5ms", ENDLESS]


@pytest.mark.parametrize("text", [*BAD_NUMBERS, "10Mbit"])
def test_what_is_no_duration_is_refused_with_examples(text: str) -> None:
    with pytest.raises(ConfigError, match=r"is not a duration such as 50us, 1\.5ms or 2s"):
        parse_duration(text)


def test_a_duration_without_a_unit_is_nobodys_guess() -> None:
    with pytest.raises(ConfigError, match="'5' has no unit; write 5us, 5ms or 5s"):
        parse_duration(" 5 ")


@pytest.mark.parametrize("text", [*BAD_NUMBERS, "10us", "10Mbyte"])
def test_what_is_no_speed_is_refused_with_examples(text: str) -> None:
    with pytest.raises(ConfigError, match="is not a speed such as 10Mbit or 1Gbit"):
        parse_speed(text)


@pytest.mark.parametrize(("text", "node"), [("0", 0), ("7", 7), ("E1", 0), ("E12", 11), (" E2 ", 1)])
def test_nodes_go_by_number_or_by_the_papers_names(text: str, node: int) -> None:
    assert parse_node(text) == node


@pytest.mark.parametrize("text", ["", "E", "E0", "E00", "e1", "-1", "E-1", "1.0", "E1 E2", ENDLESS])
def test_what_is_no_node_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="is not a node; write 0, 1, … or E1, E2, …"):
        parse_node(text)


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("loss rate=0.1", Loss(rate=0.1)),
        ("loss rate=0.1 shared=true until=20ms", Loss(rate=0.1, shared=True, until=20_000_000)),
        ("loss rate=0 shared=false", Loss(rate=0)),
        ("bursts well=10ms bad=1ms", Bursts(well=10_000_000, bad=1_000_000)),
        ("bursts well=10ms bad=1ms rate=0.5 until=1s", Bursts(well=10**7, bad=10**6, rate=0.5, until=10**9)),
        ("duplicates rate=0.01 until=5us", Duplicates(rate=0.01, until=5_000)),
        ("miss node=E3 source=E1 nth=2", Miss(node=2, source=0, nth=2)),
        ("miss  nth=2 kind=copy  source=0 node=2", Miss(node=2, source=0, nth=2, kind=UnitKind.COPY)),
        ("pause node=E2 at=1ms lasting=5ms", Pause(node=1, at=1_000_000, lasting=5_000_000)),
        ("split side=E1,E2 at=1ms lasting=5ms", Split(side=(0, 1), at=1_000_000, lasting=5_000_000)),
        ("split side=3 at=0 lasting=1ns one_way=true", Split(side=(3,), at=0, lasting=1, one_way=True)),
        ("split nodes=E1,E2 from=1ms until=6ms", Split(side=(0, 1), at=1_000_000, lasting=5_000_000)),
        ("pause node=E2 from=0 until=5us", Pause(node=1, at=0, lasting=5_000)),
        ("crash node=E2 at=3ms", Crash(node=1, at=3_000_000)),
        ("join node=E5 at=3ms", Join(node=4, at=3_000_000)),
        ("leave node=E2 at=0", Leave(node=1, at=0)),
        ("return node=E2 at=9ms", Return(node=1, at=9_000_000)),
        ("suspect node=E3 by=E1 at=1us", Suspicion(node=2, by=0, at=1_000)),
    ],
)
def test_faults(text: str, made: Fault) -> None:
    assert parse_fault(text) == made


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "choose one of: loss, bursts, duplicates, miss, twice, pause, split, crash"),
        ("lose rate=0.1", "unknown fault 'lose rate=0.1'"),
        ("loss", "missing required field `rate`"),
        ("loss rate=2", "the loss rate must be at least 0 and below 1, not 2"),
        ("loss rate=often", "'loss rate=often' is invalid"),
        ("loss speed=1", "'speed' is not a field of the fault 'loss'; write: loss rate=… shared=… until=…"),
        ("loss 0.1", "'0.1' is not a field"),
        ("miss node=E1 source=E2 nth=0", "counts units from 1"),
        ("miss node=E1 source=E2 nth=1 kind=voice", "voice"),
        ("miss node=E0 source=E2 nth=1", "'E0' is not a node"),
        ("pause node=E1 at=1ms", "missing required field `lasting`"),
        ("pause node=E1 at=1ms lasting=0", "`lasting` > 0"),
        ("split side= at=0 lasting=1ms", "'' is not a node"),
        ("split side=E1 until=2ms", "'until' is not a field of the fault 'split'"),
        ("split nodes=E1 from=2ms until=2ms", "'until=2ms' must be later than the beginning, 2ms"),
        ("suspect node=E1 by=E1 at=0", "`node` and `by` must differ"),
        ("split side=E1,,E2 at=0 lasting=1ms", "'' is not a node"),
        ("crash node=E1 at=soon", "'soon' is not a duration"),
        ("bursts well=0 bad=1ms", "positive mean times"),
        ("duplicates rate=1.5", "from 0 to 1"),
    ],
)
def test_what_is_no_fault_is_refused_with_what_would_be(text: str, words: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parse_fault(text)
    assert words in str(refused.value)


@pytest.mark.parametrize(("text", "named"), [("", ()), (" ", ()), ("E2", (1,)), ("0,E3", (0, 2))])
def test_several_nodes(text: str, named: tuple[int, ...]) -> None:
    assert parse_nodes(text) == named


def test_readings_of_the_printed_rules_go_by_their_names_whatever_protocol_they_belong_to() -> None:
    assert parse_readings([]) == PaperRules()
    expected = PaperRules(
        condition_2=LossInference.OTHERS,
        buffer_divisor=2,
        sequencer=SequencerReadings(first_id=1, asks_once=True, whole_answers=False),
    )
    chosen = ["first_id=1", "condition_2=others", "asks_once=true", "buffer_divisor=2", "whole_answers=false"]
    assert parse_readings(chosen) == expected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("first=1", "'first=1' is not a reading; write NAME=VALUE with one of: condition_2, "),
        ("first_id", "'first_id' is not a reading"),
        ("sequencer=1", "'sequencer=1' is not a reading"),
        ("first_id=E2", "'first_id=E2' is not a reading; first_id must be a whole number"),
        ("condition_2=some", "'condition_2=some' is not a reading; condition_2 must be one of all, others, none"),
        ("asks_once=often", "'asks_once=often' is not a reading; asks_once must be true or false"),
        ("first_id=-1", "first_id must not be negative"),
        ("elects=true", "elects needs advances_own_row"),
    ],
)
def test_what_is_no_reading_is_refused(text: str, words: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parse_readings([text])
    assert words in str(refused.value)
