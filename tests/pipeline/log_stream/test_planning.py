"""Which positions a query is offered, and in which parts they are read, whatever happens to the members."""

import random
import shutil
import ssl
from pathlib import Path

import msgspec
import pytest
from pyarrow.fs import LocalFileSystem, SubTreeFileSystem

from ordercast.log.format import View
from ordercast.model.errors import ConfigError, LogError
from ordercast.pipeline.log_stream.member_log import OrderPlace
from ordercast.pipeline.log_stream.planning import LogPlanner
from ordercast.pipeline.log_stream.reading import OtherOrder, rows_of
from ordercast.pipeline.log_stream.store_disk import StoreDisk
from ordercast.trace import storage
from tests.log.test_serve import self_signed, served
from tests.pipeline.log_stream.member_logs import (
    MEMBERS,
    drop_below,
    in_log,
    options,
    packet,
    planner,
    read_parts,
    write_log,
    write_logs,
)

PACKETS = [packet(number) for number in range(40)]


def everything(plan: LogPlanner) -> tuple[OrderPlace, OrderPlace]:
    return plan.boundary("earliest"), plan.boundary("latest")


def test_a_table_has_what_the_logs_have(tmp_path: Path) -> None:
    root = write_logs(tmp_path, PACKETS)
    plan = planner(root)
    start, end = everything(plan)
    assert (start.position, end.position) == (0, 120)
    assert read_parts(plan.parts(start, end)) == in_log(root / "A")


@pytest.mark.parametrize("seed", range(6))
def test_any_parts_and_any_batches_have_each_position_once(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    packets = [packet(number, chance.randint(1, 9)) for number in range(60)]
    root = write_logs(tmp_path, packets, max_segment=chance.choice([300, 1500, 1 << 20]))
    expected = in_log(root / "A")
    found, place = [], planner(root).boundary("earliest")
    while place.position < len(expected):
        plan = planner(root, minPartitions=chance.randint(1, 5))  # each batch may be planned by a new process
        end = plan.latest(place, chance.choice([None, 1, 7, 100]))
        assert end.position > place.position
        found += read_parts(plan.parts(place, end))
        place = end
    assert found == expected


def test_a_batch_is_cut_between_packets_and_a_large_packet_is_taken_whole(tmp_path: Path) -> None:
    root = write_logs(tmp_path, [packet(0, 4), packet(1, 10), packet(2, 2)])
    plan = planner(root)
    ends, place = [], plan.boundary("earliest")
    while place.position < 16:
        place = plan.latest(place, 5)
        ends.append(place.position)
    assert ends == [4, 14, 16]


def test_only_what_a_majority_has_is_offered(tmp_path: Path) -> None:
    write_logs(tmp_path, PACKETS[:10])
    write_logs(tmp_path, PACKETS[10:20], "A")
    assert planner(tmp_path).boundary("latest").position == 30
    write_logs(tmp_path, PACKETS[10:15], "B")
    assert planner(tmp_path).boundary("latest").position == 45
    assert planner(tmp_path / "A").boundary("latest").position == 60  # one log alone: what it has


def test_the_majority_is_that_of_the_newest_view(tmp_path: Path) -> None:
    write_logs(tmp_path, PACKETS[:10])
    later = View(2, ("A", "D", "E"))
    for name in ("D", "E"):
        write_log(tmp_path / name, PACKETS[:10])
    for name in ("A", "D"):
        write_log(tmp_path / name, PACKETS[10:20], view=later)
    assert planner(tmp_path).boundary("latest").position == 60  # A and D are two of three; B and C went
    members = ",".join(f"x{name}={tmp_path / name}" for name in "ABCDE")  # names that no view has: all logs count
    assert planner(members).boundary("latest").position == 30


def test_members_that_join_are_found_in_the_folder(tmp_path: Path) -> None:
    write_logs(tmp_path, PACKETS[:10])
    plan = planner(tmp_path)
    place = plan.boundary("latest")
    view = View(2, ("A", "D"))
    write_log(tmp_path / "D", [*PACKETS[:10]])
    for name in ("A", "D"):
        write_log(tmp_path / name, PACKETS[10:20], view=view)
    assert plan.latest(place, None).position == 60


def test_a_member_that_is_lost_in_mid_part_is_replaced_at_the_same_position(tmp_path: Path) -> None:
    packets = [packet(number, 4000) for number in range(100)]
    write_logs(tmp_path, packets, max_segment=1 << 19)
    plan = planner(tmp_path)
    [part] = plan.parts(*everything(plan))
    assert [place.name for place, _ in part.sources] == ["A", "B", "C"]
    found = []
    for number, rows in enumerate(rows_of(part)):
        found += rows.column("position").to_pylist()
        if number < 2:
            (tmp_path / "AB"[number]).rename(tmp_path / f"gone{number}")
    assert found == list(range(400_000))


def test_a_log_that_is_served_and_its_server_that_goes(tmp_path: Path) -> None:
    packets = [packet(number, 4000) for number in range(100)]
    write_logs(tmp_path, packets, max_segment=1 << 19)
    with served(tmp_path / "A") as first:
        where = ",".join([f"A=http://127.0.0.1:{first.port}", f"B={tmp_path / 'B'}", f"C={tmp_path / 'C'}"])
        plan = planner(where, memberTimeout=1)
        [part] = plan.parts(*everything(plan))
        reading = rows_of(part)
        found = next(reading).column("position").to_pylist()
    for rows in reading:
        found += rows.column("position").to_pylist()
    assert found == list(range(400_000))


def test_a_server_asks_for_its_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ORDERCAST_LOG_TOKEN", raising=False)
    write_log(tmp_path / "A", PACKETS)
    (tmp_path / "token").write_text("sesame\n")
    with served(tmp_path / "A", "sesame") as server:
        where = f"http://127.0.0.1:{server.port}/log"
        with pytest.raises(LogError, match="asks for a token: give the option tokenFile"):
            planner(where).boundary("latest")
        assert planner(where, tokenFile=tmp_path / "token").boundary("latest").position == 120
        with pytest.raises(ConfigError, match="cannot read tokenFile"):
            planner(where, tokenFile=tmp_path / "none").boundary("latest")


def test_a_log_that_is_served_by_https(tmp_path: Path) -> None:
    """Whoever reads must know the authority of the certificate."""
    write_log(tmp_path / "A", PACKETS)
    pem = self_signed(tmp_path / "certificate")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(pem)
    with served(tmp_path / "A", tls=tls) as server:
        where = f"https://localhost:{server.port}"
        with pytest.raises(LogError, match="certificate verify failed"):
            planner(where, memberTimeout=0.01).boundary("latest")
        plan = planner(where, caFile=pem)
        assert read_parts(plan.parts(*everything(plan))) == in_log(tmp_path / "A")


def test_a_copy_in_a_store_is_read_and_is_one_of_a_majority(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = SubTreeFileSystem(str(tmp_path / "store"), LocalFileSystem())
    monkeypatch.setattr(storage, "_filesystem", lambda *_: (store, False))
    write_logs(tmp_path / "store" / "bucket" / "orders", PACKETS)
    write_logs(tmp_path, PACKETS, "A", "B")
    plan = planner("s3://bucket/orders/C")
    assert read_parts(plan.parts(*everything(plan))) == in_log(tmp_path / "A")
    plan = planner(f"s3://bucket/orders/C,{tmp_path / 'A'},{tmp_path / 'B'}")
    parts = plan.parts(*everything(plan))
    shutil.rmtree(tmp_path / "A")
    shutil.rmtree(tmp_path / "B")
    assert len(read_parts(parts)) == 120
    with pytest.raises(LogError, match="s3://bucket/none: there is no log"):
        planner("s3://bucket/none").boundary("latest")
    with pytest.raises(ConfigError, match="names no bucket or host"):
        planner("s3:///orders").boundary("latest")
    disk = StoreDisk("s3://bucket/orders/C")
    for call in (disk.create, disk.sync, disk.open("end").write):
        with pytest.raises(OSError, match="can only be read"):
            call(0, ())


def test_a_url_of_a_folder_is_the_folder(tmp_path: Path) -> None:
    write_log(tmp_path / "A", PACKETS)
    plan = planner(f"file://{tmp_path / 'A'}")
    assert read_parts(plan.parts(*everything(plan))) == in_log(tmp_path / "A")


def test_a_member_with_another_order_is_named(tmp_path: Path) -> None:
    write_logs(tmp_path, PACKETS[:10])
    plan = planner(tmp_path)
    start = plan.boundary("latest")
    write_logs(tmp_path, PACKETS[10:20], "A", "C")
    write_log(tmp_path / "B", [*PACKETS[11:20], PACKETS[10]])
    with pytest.raises(LogError, match="B has another order than A and C, below position 60"):
        plan.latest(start, None)
    with pytest.raises(LogError, match="B has another order than A and C, below position 60"):
        planner(tmp_path).boundary("latest")
    shutil.rmtree(tmp_path / "C")
    with pytest.raises(LogError, match="A and B have different orders below position 60, and none has a majority"):
        planner(tmp_path).boundary("latest")


def test_a_member_with_another_order_is_named_by_who_reads_it(tmp_path: Path) -> None:
    write_logs(tmp_path, PACKETS, "A", "C")
    plan = planner(tmp_path)
    parts = plan.parts(*everything(plan))
    shutil.rmtree(tmp_path / "A")
    write_log(tmp_path / "A", [*PACKETS[:20], PACKETS[21], PACKETS[20], *PACKETS[22:]])
    with pytest.raises(OtherOrder, match=r"A \(.*A\) has another order than the other members, below position 120"):
        read_parts(parts)


def test_a_log_of_another_group_is_named(tmp_path: Path) -> None:
    write_logs(tmp_path, PACKETS, "A", "B")
    write_log(tmp_path / "C", PACKETS, group="bills")
    with pytest.raises(LogError, match=r"C \(.*\) is a log of the group 'bills', not of 'orders'"):
        planner(tmp_path).boundary("latest")
    with pytest.raises(LogError, match=r"A .* is a log of the group 'orders', not of 'other'"):
        planner(tmp_path, group="other").boundary("latest")


def test_a_folder_that_is_no_log(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is no log, and none of its folders is one"):
        planner(tmp_path).boundary("latest")
    with pytest.raises(LogError, match="it is not there"):
        planner(tmp_path / "none").boundary("latest")
    with pytest.raises(ConfigError, match="is no address of a log; give http://HOST:PORT"):
        planner("http://127.0.0.1:1/elsewhere").boundary("latest")


def test_a_position_beyond_the_end_is_refused(tmp_path: Path) -> None:
    write_logs(tmp_path, PACKETS)
    with pytest.raises(LogError, match="position 121 is beyond the end of the order, which is 120"):
        planner(tmp_path).boundary(121)
    middle = planner(tmp_path).boundary(61)  # in the middle of a packet
    assert middle == OrderPlace(61, b"")
    plan = planner(tmp_path)
    assert read_parts(plan.parts(middle, plan.boundary(100))) == in_log(tmp_path / "A")[61:100]


def test_what_retention_has_dropped_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write_logs(tmp_path, PACKETS * 2)
    whole = in_log(tmp_path / "A")
    start = planner(tmp_path).boundary(3)
    for name in MEMBERS:
        drop_below(tmp_path / name, 150)
    first = min(in_log(tmp_path / name)[0][0] for name in MEMBERS)
    assert 3 < first <= 150
    told = rf"positions 3 to {first - 1} are not in any log any more: .*failOnDataLoss=false"
    plan = planner(tmp_path)
    with pytest.raises(LogError, match=told):
        plan.parts(start, plan.latest(start, None))
    with pytest.raises(LogError, match=told):
        plan.boundary(3)
    lenient = planner(tmp_path, failOnDataLoss="false")
    assert read_parts(lenient.parts(start, lenient.latest(start, None))) == whole[first:]
    assert "the query goes on without them" in caplog.text
    assert lenient.boundary("earliest").position == first


def test_one_log_that_lacks_the_beginning_is_replaced(tmp_path: Path) -> None:
    write_logs(tmp_path, PACKETS * 2)
    whole = in_log(tmp_path / "A")
    for name in ("A", "B"):
        drop_below(tmp_path / name, 150)
    plan = planner(tmp_path)
    assert read_parts(plan.parts(*everything(plan))) == whole


def test_other_logs_under_an_old_checkpoint(tmp_path: Path) -> None:
    write_logs(tmp_path / "old", PACKETS)
    start = planner(tmp_path / "old").boundary("latest")
    write_logs(tmp_path / "short", PACKETS[:10])
    with pytest.raises(LogError, match="this query has read below position 120, and the logs end before it"):
        planner(tmp_path / "short").latest(start, None)
    write_logs(tmp_path / "other", [*reversed(PACKETS), *PACKETS])
    with pytest.raises(LogError, match="have another order than what this query has read before, below position 120"):
        planner(tmp_path / "other").latest(start, None)


def test_too_few_members_are_waited_for_and_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write_logs(tmp_path, PACKETS[:10])
    where = ",".join(str(tmp_path / name) for name in MEMBERS)
    plan = planner(where, memberTimeout=0.2)
    start = plan.boundary("latest")
    for name in ("B", "C"):
        (tmp_path / name).rename(tmp_path / f"gone{name}")
    assert plan.latest(start, None) == start
    assert "too few logs answer" in caplog.text
    plan._waits_since = -1.0
    with pytest.raises(LogError, match=r"too few logs answer for 0.2 seconds .*B: .*not there; C: .*not there"):
        plan.latest(start, None)
    (tmp_path / "goneB").rename(tmp_path / "B")
    write_logs(tmp_path, PACKETS[10:12], "A", "B")
    assert plan.latest(start, None).position == 36


def test_a_log_that_comes_back_shorter_and_grows_again_is_looked_at_anew(tmp_path: Path) -> None:
    write_log(tmp_path / "A", PACKETS[:20], 1, max_segment=1 << 20)
    plan = planner(tmp_path / "A")
    start = plan.boundary("earliest")
    plan.latest(start, 10)
    shutil.rmtree(tmp_path / "A")
    write_log(tmp_path / "A", PACKETS[:30], 4, max_segment=1 << 20)
    place = plan.latest(start, None)
    assert place.position == 90
    assert read_parts(plan.parts(start, place)) == in_log(tmp_path / "A")


def test_what_tasks_are_given_can_be_sent_to_them(tmp_path: Path) -> None:
    import pickle  # noqa: PLC0415

    write_logs(tmp_path, PACKETS)
    plan = LogPlanner(options(tmp_path))
    [part] = plan.parts(*everything(plan))
    assert pickle.loads(pickle.dumps(part)) == part  # noqa: S301
    lonely = msgspec.structs.replace(part, sources=part.sources[:1], member_timeout=0.0)
    shutil.rmtree(tmp_path / "A")
    with pytest.raises(LogError, match=r"no log has the message at position 0: A: .*not there"):
        read_parts([lonely])


def test_who_left_is_not_asked_any_more(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The view is that at the end of a log, and not where its segment begins."""
    for end, names in ((10, "ABC"), (20, "BC"), (30, "C")):
        for name in names:
            write_log(tmp_path / name, PACKETS[end - 10 : end], view=View(end, tuple(names)), max_segment=1 << 20)
    plan = planner(tmp_path)
    assert plan.boundary("latest").position == 90
    write_log(tmp_path / "C", PACKETS[30:], view=View(40, ("C", "D")), max_segment=1 << 20)
    start = OrderPlace(90, b"")
    assert plan.latest(start, None) == start  # a majority is both of them
    assert "too few logs answer (a majority is 2): D: its log is not in the list" in caplog.text
    write_log(tmp_path / "D", PACKETS, view=View(40, ("C", "D")), max_segment=1 << 20)
    assert plan.boundary("latest").position == 120


def with_a_tail(tmp_path: Path, more: int) -> str:
    """C was killed with a message that nobody else has; A and B went on without it, and have so many packets more."""
    write_logs(tmp_path, PACKETS[:10], max_segment=1 << 20)
    write_log(tmp_path / "C", [packet(12, 4)])
    for name in "AB":
        write_log(tmp_path / name, PACKETS[10 : 10 + more], view=View(2, ("A", "B")), max_segment=1 << 20)
    return ",".join(f"{name}={tmp_path / name}" for name in "CAB")


@pytest.mark.parametrize("more", [1, 10])
@pytest.mark.parametrize("parts", [1, 7])
def test_what_was_never_agreed_on_is_not_read(more: int, parts: int, tmp_path: Path) -> None:
    plan = planner(with_a_tail(tmp_path, more), minPartitions=parts)
    middle = plan.latest(plan.boundary(27), 5)
    assert middle.position == 30
    assert plan.latest(middle, None).position == 30 + 3 * more
    start, end = everything(plan)
    assert read_parts(plan.parts(start, end)) == in_log(tmp_path / "A")


def test_a_log_that_has_no_packet_end_where_another_log_ends_has_another_order(tmp_path: Path) -> None:
    plan = planner(with_a_tail(tmp_path, 10))
    [part] = plan.parts(*everything(plan))
    assert [place.name for place, _ in part.sources] == ["A", "B", "C"]
    turned = msgspec.structs.replace(part, sources=part.sources[::-1])
    with pytest.raises(OtherOrder, match="has another order than the other members, below position 34"):
        read_parts([turned])


def test_a_log_that_is_listed_twice_is_refused(tmp_path: Path) -> None:
    write_logs(tmp_path, PACKETS)
    (tmp_path / "link").symlink_to(tmp_path / "A")
    for other in (tmp_path / "B/../A", tmp_path / "link", tmp_path):
        with pytest.raises(ConfigError, match=r"members names the same log twice, A=.*: it would count as two of a"):
            planner(f"A={tmp_path / 'A'},{other}").boundary("latest")
