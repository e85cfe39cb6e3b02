"""The rows of a trace: what they promise to whoever reads them, and that they are handed on in batches."""

from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise

import pytest

from ordercast.model.config import GroupConfig
from ordercast.model.faults import Bursts, Crash, Duplicates, Fault, Loss, Pause, Split
from ordercast.model.runs import Channel, Network, Pattern, RunConfig, TraceDetail, Workload
from ordercast.simulator import simulate
from ordercast.simulator.simulation import Simulation
from ordercast.trace import recorder
from ordercast.trace.recorder import Recorder
from ordercast.trace.schema import EventField, EventKind, EventRow
from tests.simulator.rows import Message, Row, by_node, make_config, of, run

LEVELS = ("accept", "preack", "ack")
OF_A_MESSAGE = {"send", "receive", "accept", "preack", "ack", "deliver", "retransmit"}


def with_record(config: RunConfig, record: TraceDetail) -> RunConfig:
    """The same run, recorded more or less."""
    text = config.to_json().replace('"record":"all"', f'"record":"{record.value}"')
    changed = RunConfig.from_json(text)
    assert changed.record is record
    return changed


def busy(channel: Channel = Channel.MANY, batch: int = 1) -> RunConfig:
    """All sorts of things happen."""
    faults: list[Fault] = [
        Loss(rate=0.15),
        Duplicates(rate=0.1),
        Bursts(well=4_000_000, bad=400_000),
        Pause(node=1, at=2_000_000, lasting=1_500_000),
        Split(side=(2, 3), at=4_000_000, lasting=1_000_000),
    ]
    return make_config(
        4,
        network=Network(channel=channel, receive_time=4_000, receive_buffer=6),
        workload=Workload(messages=40, spread=0.6, batch=batch, gap=100_000, size=30),
        faults=faults,
        polls_to_abort=10**6,
        first_seq=(7, 0, 3, 5),
    )


@pytest.fixture(scope="module", params=[(Channel.MANY, 1), (Channel.ONE, 3)], ids=["many", "one-batched"])
def rows(request: pytest.FixtureRequest) -> list[Row]:
    channel, batch = request.param
    result, made = run(busy(channel, batch))
    assert result.complete
    return made


def test_a_busy_run_has_rows_of_all_kinds(rows: list[Row]) -> None:
    """What the other tests ask of rows is asked of something."""
    others = {"abort", "crash", "view", "stop", "resume"}  # ends of groups, and what ST does
    others |= {"leave", "exclude", "block", "unblock", "state", "renumber"}  # of groups whose members change
    others |= {"durable", "restart", "drop"}  # of nodes with durable logs
    assert {row.event for row in rows} == {kind.value for kind in EventKind} - others
    assert {row.detail for row in of(rows, "transmit")} == {"data", "copy", "status", "poll", "request"}
    assert {row.detail for row in of(rows, "lose")} >= {"loss", "burst", "split", "overrun"}


def test_steps_count_a_nodes_own_events_without_holes(rows: list[Row]) -> None:
    for mine in by_node(rows).values():
        assert [row.step for row in mine] == list(range(len(mine)))


def test_times_never_run_back_at_a_node(rows: list[Row]) -> None:
    for mine in by_node(rows).values():
        assert all(earlier.time <= later.time for earlier, later in pairwise(mine))


def test_each_receipt_and_loss_has_its_transmission(rows: list[Row]) -> None:
    transmitted: dict[int | None, list[Row]] = defaultdict(list)
    for row in of(rows, "transmit"):
        transmitted[row.transmission].append(row)
    for row in of(rows, "receive", "hear", "lose"):
        sent = transmitted[row.transmission]
        assert sent
        assert sent[0].node != row.node
        assert sent[0].time < row.time
        assert row.message in {unit.message for unit in sent}  # (None, None) for a unit without messages
    assert None not in transmitted


def test_transmissions_are_numbered_in_the_order_made(rows: list[Row]) -> None:
    numbers = list(dict.fromkeys(row.transmission for row in of(rows, "transmit")))
    assert numbers == list(range(1, len(numbers) + 1))


def test_levels_rise_in_order_at_each_node_and_then_comes_delivery(rows: list[Row]) -> None:
    """At a destination accept, preack, ack, deliver; at a source that is none, preack and ack; nowhere else any."""
    whom = {row.message: row.destinations or () for row in of(rows, "send")}
    ladder: dict[tuple[int | None, Message], list[Row]] = defaultdict(list)
    for row in of(rows, *LEVELS, "deliver"):
        ladder[row.node, row.message].append(row)
    for (node, message), climbed in ladder.items():
        steps = [row.step for row in sorted(climbed, key=lambda row: row.step)]
        events = [row.event for row in sorted(climbed, key=lambda row: row.step)]
        assert len(set(steps)) == len(steps)
        assert events == ([*LEVELS, "deliver"] if node in whom[message] else ["preack", "ack"])
    due = {(node, message) for message, nodes in whom.items() for node in nodes}
    assert set(ladder) == due | {(message[0], message) for message in whom}


def test_nothing_is_known_of_a_message_before_it_is_sent(rows: list[Row]) -> None:
    sent: set[Message] = set()
    for row in rows:  # rows come in the order in which things happened
        if row.event == "send":
            assert row.message not in sent
            sent.add(row.message)
        elif row.event in OF_A_MESSAGE or row.source is not None:
            assert row.message in sent


def test_send_rows_tell_to_whom_and_how_much(rows: list[Row]) -> None:
    for row in of(rows, "send"):
        assert row.node == row.source
        assert row.destinations
        assert list(row.destinations) == sorted(set(row.destinations))
        assert set(row.destinations) <= {0, 1, 2, 3}
        assert row.size == 30
        assert row.priority is None
    assert any(row.node not in (row.destinations or ()) for row in of(rows, "send"))
    for row in rows:
        assert row.event == "send" or (row.destinations, row.size, row.priority) == (None, None, None)


def test_messages_are_numbered_from_0_in_the_order_sent(rows: list[Row]) -> None:
    """Whatever number the protocol starts with."""
    for node, mine in by_node(of(rows, "send")).items():
        assert [row.seq for row in mine] == list(range(40)), node


def test_a_batch_has_a_row_for_each_message() -> None:
    """Three in a packet: told one after the other, at one instant and in one transmission."""
    _, rows = run(make_config(2, workload=Workload(messages=7, batch=3, pattern=Pattern.TALKER)))
    for event in ("send", "transmit", "receive", "accept", "preack", "ack", "deliver"):
        mine = [row for row in of(rows, event) if row.node == (1 if event == "receive" else 0) and row.source == 0]
        assert [row.seq for row in mine] == list(range(7))
        for first in (0, 3, 6):
            batch = mine[first : first + 3]
            assert len({(row.time, row.transmission, row.destinations) for row in batch}) == 1
            assert [row.step - batch[0].step for row in batch] == list(range(len(batch)))


def test_a_request_says_what_is_asked_for() -> None:
    faults = [Split(side=(1,), at=0, lasting=1_400_000)]
    talker = Workload(messages=10, pattern=Pattern.TALKER, gap=200_000)
    _, rows = run(make_config(3, workload=talker, faults=faults, network=Network(jitter=0)))
    [asked] = of(rows, "request")
    assert (asked.node, asked.detail) == (1, "E1 0-6")  # what was sent at 0, 0.2, …, 1.2 ms


# --- how much is recorded ---


def test_recording_deliveries_keeps_send_and_deliver_only() -> None:
    whole = run(busy())[1]
    narrow = run(with_record(busy(), TraceDetail.DELIVERIES))[1]
    assert {row.event for row in narrow} == {"send", "deliver"}

    def without_steps(rows: list[Row]) -> list[Row]:
        return [row._replace(step=0) for row in rows]

    assert without_steps(narrow) == without_steps(of(whole, "send", "deliver"))
    for mine in by_node(narrow).values():
        assert [row.step for row in mine] == list(range(len(mine)))


def test_a_stop_is_told_in_every_recording() -> None:
    config = make_config(3, workload=Workload(messages=30), faults=[Crash(node=2, at=1_000_000)], polls_to_abort=4)
    events = {row.event for row in run(with_record(config, TraceDetail.DELIVERIES))[1]}
    assert events == {"send", "deliver", "crash", "abort"}


def test_recording_nothing_leaves_the_counters() -> None:
    result, rows = run(with_record(busy(), TraceDetail.NONE))
    assert rows == []
    assert result.counters == run(busy())[0].counters


@pytest.mark.parametrize("record", list(TraceDetail))
def test_what_is_recorded_does_not_change_what_happens(record: TraceDetail) -> None:
    whole, narrow = simulate(busy()), simulate(with_record(busy(), record))
    assert narrow.counters == whole.counters
    assert (narrow.complete, narrow.virtual_time) == (whole.complete, whole.virtual_time)


# --- batches ---


def test_rows_are_handed_on_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """No batch is larger than its size and the rows of the one packet that filled it; together they are the run."""
    whole: list[EventRow] = []
    simulate(busy(batch=3), rows=whole)
    monkeypatch.setattr(recorder, "BATCH", 200)
    batches: list[Sequence[EventRow]] = []
    Simulation(busy(batch=3), batches.append).run()
    assert len(batches) > 10
    assert all(200 <= len(batch) < 200 + 3 for batch in batches[:-1])
    assert 0 < len(batches[-1]) < 200 + 3
    assert [row for batch in batches for row in batch] == whole


def test_the_recorder_holds_no_more_than_a_batch() -> None:
    sizes: list[int] = []
    kept = Recorder(1, lambda batch: sizes.append(len(batch)), deliveries_only=False)
    most = 0
    for time in range(2 * recorder.BATCH + 5):
        kept.note(time, 0, EventKind.TIMEOUT, None)
        most = max(most, len(kept._rows))
    kept.flush()
    kept.flush()
    assert sizes == [recorder.BATCH, recorder.BATCH, 5]
    assert most < recorder.BATCH <= 100_000


@pytest.mark.parametrize(("protocol", "expected"), [("prito", {0}), ("prio", {0}), ("to", {None})])
def test_where_there_are_priorities_every_message_has_one(protocol: str, expected: set[int | None]) -> None:
    config = RunConfig(protocol=protocol, group=GroupConfig(nodes=2), network=Network(channel=Channel.ONE))
    rows: list[EventRow] = []
    simulate(config, rows=rows)
    assert {row[EventField.PRIORITY] for row in rows if row[EventField.EVENT] == "send"} == expected
