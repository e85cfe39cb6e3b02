"""What the page asks: messages, orders, latencies, the next event."""

import json
from pathlib import Path

import pytest

from ordercast.audit.services import OF_VIEWS, PROMISES
from ordercast.model.errors import ConfigError, TraceError
from ordercast.trace.incremental_writer import IncrementalTraceWriter
from ordercast.viewer.answers import ANSWERS, run_answer, summary_answer
from ordercast.viewer.event_arrays import KINDS
from ordercast.viewer.questions import Wanted, message_rows, next_event
from ordercast.viewer.rules import IN_WORDS
from ordercast.viewer.traces import Traces
from tests.viewer.traces import many, one_loss, row, write


def test_a_message_is_all_rows_that_name_it(tmp_path: Path) -> None:
    extra = [row(2, 9, 900, "state", 0, 0, size=5), row(2, 10, 901, "view", None, 0, destinations=(0, 1, 2))]
    run = Traces([write(tmp_path, [*one_loss(), *extra])]).run("r")
    found = message_rows(run.events, 0, 0)
    assert len(found) == sum(1 for each in one_loss() if each[4] is not None)
    assert len(message_rows(run.events, 1, 0)) == 0


def test_orders_have_the_places_of_a_message(tmp_path: Path) -> None:
    run = Traces([write(tmp_path, many(100), batch=77)]).run("r")
    found = run.summary.around(2, 1, 10, reach=2)
    assert found["place"] == 31
    assert found["length"] == 100
    assert [message[:2] for message in found["messages"]] == [[2, 9], [0, 10], [1, 10], [2, 10], [0, 11]]
    missing = run.summary.around(2, 1, 999, reach=2)
    assert missing["place"] is None
    assert missing["messages"][-1][:2] == [0, 33], "the end of the log"


def test_latencies_are_from_the_send(tmp_path: Path) -> None:
    run = Traces([write(tmp_path, one_loss())]).run("r")
    found = run.summary.latencies()
    assert {level: (each["count"], each["p50"], each["most"]) for level, each in found.items()} == {
        "accept": (3, 100.0, 400.0),
        "preack": (3, 601.0, 602.0),
        "ack": (3, 701.0, 702.0),
        "deliver": (3, 701.0, 702.0),
    }
    assert all(sum(each["bins"]) == 3 for each in found.values())
    assert run.summary.totals() == {"sent": 1, "delivered": 3, "lost": 1}


def test_stops_and_views_are_marked(tmp_path: Path) -> None:
    rows = [*one_loss(), row(1, 8, 950, "view", None, 4, destinations=(0, 1), detail="heard=0; gone")]
    answer = summary_answer(Traces([write(tmp_path, rows)]).run("r"))
    assert [(mark["time"], mark["node"], mark["kind"]) for mark in answer["marks"]] == [
        (300, 2, "stop"),
        (600, 2, "resume"),
        (950, 1, "view"),
    ]
    assert answer["marks"][2] | {"seq": 4, "members": "0,1", "detail": "heard=0; gone"} == answer["marks"][2]


def test_the_next_event_is_found_forwards_and_backwards(tmp_path: Path) -> None:
    run = Traces([write(tmp_path, many(100), batch=10)]).run("r")

    def times(wanted: Wanted, after: int, *, backwards: bool = False) -> list[int]:
        return [int(time) for time in next_event(run.events, wanted, after, backwards=backwards).time]

    assert times(Wanted(kind="send"), 0) == [100]
    assert times(Wanted(kind="send", node=2), 0) == [200]
    assert times(Wanted(kind="deliver", source=1, seq=20, node=0), -1) == [6150]
    assert times(Wanted(kind="send"), 300, backwards=True) == [200]
    assert times(Wanted(kind="lose"), -1) == []


def test_a_run_that_is_too_long_has_no_summary_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ordercast.viewer.questions.MOST_SUMMARISED", 10)
    traces = Traces([write(tmp_path, one_loss())])
    assert not run_answer(traces.run("r"))["summarised"]
    assert not summary_answer(traces.run("r"))["possible"]
    assert ANSWERS["order"](traces, {"run": "r", "source": "0", "seq": "0", "reach": "3"}) == {
        "possible": False,
        "orders": [],
    }


def test_records_of_members_are_one_run_and_runs_of_other_folders_are_others(tmp_path: Path) -> None:
    config = '{"live": {"members": ["ann", "bob"], "one_clock": true}}'
    folders = []
    for node in range(2):
        rows = [row(node, 0, 10**15 + node, "send", node, 0, destinations=(0, 1))]
        folders.append(write(tmp_path / str(node), rows, nodes=2, node=node, config=config))
    [run] = Traces(folders).runs.values()
    found = run.described()
    assert found["names"] == ["ann", "bob"]
    assert found["recorded"] == [0, 1]
    assert (found["rows"], found["duration"]) == (2, 1), "a clock that did not begin with the run begins with it here"
    same = [write(tmp_path / name, one_loss()) for name in ("a", "b")]
    assert list(Traces(same).runs) == ["r", f"{same[1]}: r"]


def test_a_trace_that_grows_is_read_on(tmp_path: Path) -> None:
    writer = IncrementalTraceWriter(tmp_path, "member", "r")
    writer.begin({"protocol": "po", "nodes": 2, "complete": False, "node": 0})
    traces = Traces([tmp_path])
    asked = ANSWERS["grown"]
    begun = 10**15
    nothing = {"rows": 0, "duration": 0, "names": ["E1", "E2"], "ended": "incomplete", "since": None}
    assert asked(traces, {"run": "r"}) == nothing
    for number in range(3):
        writer.append([row(0, number, begun + 500 * number, "send", 0, number, destinations=(0, 1), size=8)])
        grown = {"rows": number + 1, "duration": 500 * number, "since": 500 * number}
        assert asked(traces, {"run": "r"}) == nothing | grown
        assert traces.run("r").summary.totals()["sent"] == number + 1
    assert asked(traces, {"run": "r"})["since"] is None  # type: ignore[call-overload]
    assert len(traces.run("r").events.between(begun, begun + 10_000)) == 3
    config = '{"live": {"members": ["ann", "bob", "bob"], "one_clock": true}}'
    writer.describe({"protocol": "po", "nodes": 3, "complete": True, "node": 0, "config": config})
    found = asked(traces, {"run": "r"})
    assert isinstance(found, dict)
    assert (found["names"], found["ended"]) == (["ann", "bob", "bob(E3)"], "complete"), "bob left, and came back"
    assert traces.run("r").events.rows == 3


@pytest.mark.parametrize(
    ("name", "query", "sentence"),
    [
        ("tile", {"run": "x"}, "there is no run 'x'; the trace has: r"),
        ("tile", {"run": "r", "exponent": "99", "index": "0"}, "exponent='99' is no number from 0 to 61"),
        ("message", {"run": "r", "source": "one", "seq": "0"}, "source='one' is no number"),
        ("find", {"run": "r", "kind": "teleport", "after": "0"}, "there is no kind of event 'teleport'"),
    ],
)
def test_questions_that_make_no_sense_are_answered_with_a_sentence(
    tmp_path: Path, name: str, query: dict[str, str], sentence: str
) -> None:
    traces = Traces([write(tmp_path, one_loss())])
    with pytest.raises((ConfigError, TraceError), match=sentence.replace("(", r"\(")):
        ANSWERS[name](traces, query)


def test_every_property_of_an_audit_has_words() -> None:
    promised = {each.__name__ for properties in PROMISES.values() for each in properties}
    assert set(IN_WORDS) == promised | {each.__name__ for each in OF_VIEWS}


def test_kinds_are_those_of_the_schema() -> None:
    assert KINDS[-1] == "unknown"


def test_long_times_without_events_are_gaps(tmp_path: Path) -> None:
    rows = [row(0, number, time, "timeout") for number, time in enumerate([0, 10, 500, 505, 510, 990, 1000])]
    run = Traces([write(tmp_path, rows, batch=3)]).run("r")
    assert run.summary.gaps == [(10, 500), (510, 990)]
    assert summary_answer(run)["gaps"] == [[10, 500], [510, 990]]


def test_what_is_held_and_lost_is_counted_over_time(tmp_path: Path) -> None:
    run = Traces([write(tmp_path, one_loss())]).run("r")
    found = run.summary.over_time()
    # Accepted at 100, 200 and 500, delivered at 800 to 802; the last bin has 802.
    assert [max(each) for each in found["held"]] == [1, 1, 1]
    assert [each[-1] for each in found["held"]] == [0, 0, 0]
    assert sum(found["lost"]) == 1
    bins = len(found["lost"])
    assert found["held"][2].index(1) == int((500 - 100) / (802 - 100) * bins)


def test_events_have_what_the_send_of_their_message_says(tmp_path: Path) -> None:
    rows = [*one_loss(), row(1, 90, 900, "accept", 5, 0), row(0, 91, 901, "view", None, 0, destinations=(0, 1))]
    run = Traces([write(tmp_path, rows)]).run("r")
    found = run.summary.with_sends(run.events.between(0, 1000))
    texts = run.events.texts.all
    told = {
        (KINDS[kind], int(source)): (texts[code] if code >= 0 else None, int(priority))
        for kind, source, code, priority in zip(
            found.kind, found.source, found.destinations, found.priority, strict=True
        )
    }
    assert told["deliver", 0] == ("0,1,2", 2)
    assert told["accept", 5][0] is None, "its send is not recorded"
    assert told["view", -1][0] == "0,1"


def test_a_range_is_cut_and_says_by_how_much(tmp_path: Path) -> None:
    run = Traces([write(tmp_path, many(100), batch=70)]).run("r")
    found, left = run.events.first_between(0, 1 << 40, 1000)
    assert (len(found), left) == (400, 0)
    found, left = run.events.first_between(0, 1 << 40, 50)
    assert (len(found), left) == (50, 350)
    assert list(found.time) == sorted(found.time)
    found, left = run.events.first_between(100, 1100, 1000)
    assert (len(found), left) == (40, 0)


def test_the_sequencer_and_a_member_that_relays_are_known(tmp_path: Path) -> None:
    sequencer = json.dumps({"group": {"sequencer": {"node": 2}}})
    relayed = json.dumps({"live": {"members": ["A", "B", "C"], "relay": None}})
    by_process = json.dumps({"live": {"members": ["A", "B", "C"], "relay": "10.0.0.9:7000"}})

    def role(name: str, protocol: str, config: str) -> object:
        return (
            Traces([write(tmp_path / name, one_loss(), protocol=protocol, config=config)]).run("r").described()["role"]
        )

    assert role("sequencer", "sequencer", sequencer) == {"what": "sequencer", "node": 2}
    assert role("relay", "st", relayed) == {"what": "relay", "node": 0}
    assert role("process", "st", by_process) is None
    assert role("direct", "spo", relayed) is None
