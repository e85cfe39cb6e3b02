"""The audit of a running group: two members that disagree are named at once, and members that agree never."""

import asyncio
import json
import re
import shutil
import threading
import urllib.request
from pathlib import Path
from typing import Any

import pytest

import ordercast
from ordercast.cli.shared.log_audit import are_logs, follow_logs
from ordercast.log import Log, read
from ordercast.log.format import View
from ordercast.model.errors import LogError
from ordercast.pipeline.log_stream.audit_logs import AuditedMember, LogAudit, Unreadable, _Readability, run_audit
from ordercast.pipeline.log_stream.audit_metrics import exposition, served_metrics
from tests.cli.conftest import Command
from tests.cli.conftest import ordercast as command
from tests.live.durable.logged import kill, open_logged
from tests.live.groups import join, new_name, run
from tests.pipeline.log_stream.member_logs import MEMBERS, options, packet, write_log, write_logs

__all__ = ["command"]

PACKETS = [packet(number) for number in range(40)]


def found(root: Path) -> list[tuple[str, str]]:
    return [(each.kind, each.sentence) for each in run_audit(LogAudit(options(root)), until_idle=0.01)]


def test_members_that_agree_in_steps_of_their_own(tmp_path: Path) -> None:
    audit = LogAudit(options(tmp_path))
    for start, names in ((0, "ABC"), (10, "A"), (20, "A"), (10, "B"), (10, "C"), (20, "B")):
        write_logs(tmp_path, PACKETS[start : start + 10], *names, max_segment=700)
        audit.step()
    assert audit.found == []
    assert {name: each.position for name, each in audit.members.items()} == {"A": 90, "B": 90, "C": 60}


def test_members_with_other_orders(tmp_path: Path) -> None:
    write_logs(tmp_path, PACKETS[:10])
    audit = LogAudit(options(tmp_path))
    assert audit.step()
    assert (audit.step(), audit.agreed) == (False, 30)
    write_log(tmp_path / "A", PACKETS[10:12])
    write_log(tmp_path / "B", [PACKETS[10], PACKETS[12]])
    assert audit.step()
    assert audit.found == []  # a view in which the group went on without one of them may be on its way
    audit.conclude()
    [one] = audit.found
    assert (one.kind, set(one.members), one.position) == ("order", {"A", "B"}, 36)
    assert one.sentence == "the logs of B and A have different orders below position 36"


def test_packets_that_end_elsewhere_are_other_orders(tmp_path: Path) -> None:
    write_log(tmp_path / "A", [packet(0, 4), packet(1, 4)])
    write_log(tmp_path / "B", [packet(0, 4), packet(1, 6)])
    assert found(tmp_path) == [("order", "the logs of B and A have different orders below position 8")]


def test_a_member_that_is_far_behind_is_compared_when_it_has_caught_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ordercast.pipeline.log_stream.comparison.WINDOW", 5)
    write_log(tmp_path / "A", PACKETS)
    write_log(tmp_path / "B", [PACKETS[1], PACKETS[0], *PACKETS[2:]])
    assert found(tmp_path) == [("order", "the logs of B and A have different orders below position 108")]


def test_views_that_differ(tmp_path: Path) -> None:
    one, other = View(2, ("A", "B")), View(2, ("A", "C"))
    for folder, views in (("members", (one, other)), ("places", (one, one))):
        write_logs(tmp_path / folder, PACKETS[:10])
        later = 1 if folder == "places" else 0
        write_log(tmp_path / folder / "A", PACKETS[10:12], view=views[0])
        write_log(tmp_path / folder / "B", PACKETS[10 : 10 + later])
        write_log(tmp_path / folder / "B", PACKETS[10 + later : 12], view=views[1])
    assert found(tmp_path / "members") == [
        ("view", "view 2 has the members A, C in the log of B, and A, B in that of A")
    ]
    assert found(tmp_path / "places") == [
        ("view", "view 2 begins at position 33 in the log of B, and at 30 in that of A")
    ]


NEW = View(2, ("A", "C"))


def test_what_a_killed_member_has_at_its_end_is_no_disagreement(tmp_path: Path) -> None:
    """The group went on without it; whichever log is read first."""
    for order in ("ABC", "BAC"):
        root = tmp_path / order
        names = dict(zip("ABC", order, strict=True))
        write_logs(root, PACKETS[:10])
        write_log(root / names["B"], PACKETS[20:23])
        audit = LogAudit(options(root))
        audit.step()
        later = View(2, tuple(sorted((names["A"], names["C"]))))
        for name in (names["A"], names["C"]):
            write_log(root / name, PACKETS[10:20], view=later)
        assert run_audit(audit, until_idle=0.01) == []
        [left] = audit.left_behind
        assert (left.member, left.position, left.view) == (names["B"], 30, 2)
        assert {name: each.left_behind for name, each in audit.members.items()} == dict.fromkeys("ABC", 0) | {
            names["B"]: 9
        }
        assert f'left_behind_messages{{group="orders",member="{names["B"]}"}} 9' in exposition(audit)


def test_what_a_majority_had_is_no_end_that_may_be_left_behind(tmp_path: Path) -> None:
    write_logs(tmp_path, PACKETS[:10])
    for name in ("B", "C"):
        write_log(tmp_path / name, PACKETS[20:23])
    write_log(tmp_path / "A", PACKETS[10:20], view=View(2, ("A",)))
    assert found(tmp_path) == [("order", "the logs of C and A have different orders below position 33")]


def test_who_has_entered_the_view_was_not_left_behind(tmp_path: Path) -> None:
    for kind, before, after in (("view", PACKETS[20:21], PACKETS[11:12]), ("order", [], PACKETS[20:21])):
        root = tmp_path / kind
        write_logs(root, PACKETS[:10])
        write_log(root / "A", PACKETS[10:12], view=NEW)
        write_log(root / "C", before)
        write_log(root / "C", after, view=NEW)
        assert [each for each, _ in found(root)] == [kind]


def test_who_is_in_the_next_view_must_have_had_the_same(tmp_path: Path) -> None:
    write_logs(tmp_path, PACKETS[:10])
    write_log(tmp_path / "B", PACKETS[20:23])
    write_log(tmp_path / "A", PACKETS[10:11])
    write_log(tmp_path / "A", PACKETS[11:20], view=View(2, ("A", "B")))
    assert found(tmp_path) == [("order", "the logs of B and A have different orders below position 33")]


def test_messages_that_end_the_last_view_may_differ_from_what_a_killed_member_had(tmp_path: Path) -> None:
    """The others deliver more in the old view; until their next one is on a disk nothing is said, within a bound."""
    write_logs(tmp_path, PACKETS[:10])
    write_log(tmp_path / "B", PACKETS[20:23])
    write_log(tmp_path / "A", PACKETS[10:15])
    audit = LogAudit(options(tmp_path))
    audit.step()
    audit.step()
    assert (audit.found, audit.left_behind) == ([], ())
    write_log(tmp_path / "A", PACKETS[15:16], view=NEW)
    audit.step()
    audit.conclude()
    assert audit.found == []
    assert [(left.member, left.position, left.view) for left in audit.left_behind] == [("B", 30, 2)]


def test_what_stays_unexplained_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ordercast.pipeline.log_stream.audit_logs.GRACE", 0.0)
    write_log(tmp_path / "A", PACKETS[:3])
    write_log(tmp_path / "B", [PACKETS[0], PACKETS[2]])
    audit = LogAudit(options(tmp_path))
    audit.step()
    assert audit.found == []
    audit.step()
    assert [each.kind for each in audit.found] == ["order"]


def test_a_member_that_came_back_is_read_from_its_beginning(tmp_path: Path) -> None:
    """Its end was written anew, and is longer now than when it was read."""
    write_logs(tmp_path, PACKETS[:10])
    write_log(tmp_path / "B", PACKETS[20:23])
    for name in ("A", "C"):
        write_log(tmp_path / name, PACKETS[10:20], view=NEW)
    audit = LogAudit(options(tmp_path))
    audit.step()
    assert audit.left_behind
    shutil.rmtree(tmp_path / "B")
    write_log(tmp_path / "B", PACKETS[:10])
    write_log(tmp_path / "B", PACKETS[10:40], view=NEW)
    audit.step()
    assert audit.step()
    assert (audit.found, audit.left_behind, audit.members["B"].position) == ([], (), 120)


def test_damage_and_other_groups(tmp_path: Path) -> None:
    write_logs(tmp_path / "damaged", PACKETS)
    segment = min((tmp_path / "damaged" / "B").glob("0*"))
    data = bytearray(segment.read_bytes())
    data[300] ^= 1
    segment.write_bytes(data)
    [(kind, sentence)] = found(tmp_path / "damaged")
    assert kind == "damage"
    assert sentence.startswith("the log of B: segment 00000000000000000000, offset ")
    write_logs(tmp_path / "mixed", PACKETS, "A", "B")
    write_log(tmp_path / "mixed" / "C", PACKETS, group="bills")
    [(kind, sentence)] = found(tmp_path / "mixed")
    assert kind == "group"
    assert sentence.endswith("is a log of the group 'bills', not of 'orders'")


def test_a_log_that_is_away_comes_back(tmp_path: Path) -> None:
    write_logs(tmp_path, PACKETS)
    members = ",".join(str(tmp_path / name) for name in MEMBERS)
    (tmp_path / "B").rename(tmp_path / "gone")
    audit = LogAudit(options(members))
    audit.step()
    assert [name for name, each in audit.members.items() if each.why_away] == ["B"]
    write_log(tmp_path / "B", PACKETS[:20])  # it has its beginning again
    audit.step()
    assert not audit.found
    assert (audit.members["B"].why_away, audit.members["B"].position) == (None, 60)
    with pytest.raises(LogError, match=r"no log could be read: .*not there"):
        run_audit(LogAudit(options(tmp_path / "none")), until_idle=0.01)


def test_a_log_that_cannot_be_read_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_logs(tmp_path, PACKETS, "A", "B")
    members = ",".join(f"{name}={tmp_path / name}" for name in MEMBERS)
    assert follow_logs(members, 0.01, None, None) == 0
    begun, away, ended = capsys.readouterr().err.splitlines()
    assert begun == "ordercast: follows 2 of 3 logs of the group orders"
    assert re.fullmatch("ordercast: cannot read the log of C: .*not there.*", away)
    assert ended == "ordercast: 2 of 3 logs of the group orders: no disagreement up to position 120"


def test_a_log_that_comes_back_in_time_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ordercast.pipeline.log_stream.audit_logs.GRACE", 3.0)
    there, away = AuditedMember(), AuditedMember(why_away="it is gone")
    readability = _Readability()

    def news(at: float, a: AuditedMember, b: AuditedMember) -> list[Unreadable]:
        return list(readability.news({"A": a, "B": b}, at))

    assert news(0.0, there, away) == [Unreadable("B", "it is gone")]  # never read
    assert news(1.0, away, away) == []
    assert news(3.9, away, there) == [Unreadable("B", None)]
    assert news(4.0, away, there) == [Unreadable("A", "it is gone")]
    assert news(5.0, there, away) == [Unreadable("A", None)]
    assert news(7.9, there, there) == []
    assert news(8.5, there, away) == []


async def changing_group(folder: Path) -> None:
    """Members are killed, come back and join, under an audit that reads their logs all the time."""
    group = new_name()
    options_of_group: dict[str, Any] = {"failure_timeout": 1.0}
    groups = dict(zip(MEMBERS, await open_logged(group, folder, *MEMBERS, **options_of_group), strict=True))
    audit = LogAudit(options(folder))

    async def send(count: int) -> None:
        for _ in range(count):
            receipts = [await each.send(b"x" * 50) for each in groups.values()]
        await asyncio.gather(*(each.durable() for each in receipts))
        await asyncio.to_thread(audit.step)

    await send(20)
    await kill(groups.pop("C"))
    with Log(folder / "C", group) as log:  # what it had sent to nobody
        log.append(2, 0, [5, 6], b"alonealone!")
    await send(20)
    assert [left.member for left in audit.left_behind] == ["C"]
    groups["C"] = await join(group, name="C", members=MEMBERS, timeout=20, log=folder / "C", **options_of_group)
    groups["D"] = await ordercast.join(group, name="D", contacts="local", timeout=20, log=folder / "D")
    await send(20)
    await groups.pop("A").leave()
    await send(5)
    await asyncio.gather(*(each.close() for each in groups.values()))
    while audit.step():
        pass
    assert audit.found == []
    assert audit.members["B"].position == audit.members["D"].position == sum(1 for _ in read(folder / "B"))


def test_a_group_whose_members_come_and_go_agrees(tmp_path: Path) -> None:
    run(changing_group, tmp_path)


def test_prometheus_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ordercast.pipeline.log_stream.audit_logs.GRACE", 0.0)
    write_logs(tmp_path, PACKETS[:10], "A", "B")
    audit = LogAudit(options(tmp_path))
    audit.step()
    lines = exposition(audit).splitlines()
    assert 'ordercast_audit_disagreements{group="orders",kind="order"} 0' in lines
    assert 'ordercast_audit_agreed_position{group="orders"} 30' in lines
    write_log(tmp_path / "A", PACKETS[10:12])
    write_log(tmp_path / "B", [PACKETS[11], PACKETS[10]])
    stop = threading.Event()
    told: list[object] = []
    running = threading.Thread(
        target=run_audit, args=(audit,), kwargs={"stop": stop, "stays": True, "tell": told.append}
    )
    running.start()
    try:
        with served_metrics(("127.0.0.1", 0), audit) as port:
            while not told:
                pass
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
                text = answer.read().decode()
    finally:
        stop.set()
        running.join()
    assert 'ordercast_audit_disagreements{group="orders",kind="order"} 1' in text.splitlines()
    assert 'ordercast_audit_readable{group="orders",member="B"} 1' in text.splitlines()


def test_the_command_says_it_and_exits_with_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ordercast.pipeline.log_stream.audit_logs.GRACE", 0.0)
    write_logs(tmp_path, PACKETS)
    assert are_logs([tmp_path])
    assert are_logs([tmp_path / "A"])
    assert follow_logs(str(tmp_path), 0.01, None, None) == 0
    assert capsys.readouterr().err == (
        "ordercast: follows 3 logs of the group orders\n"
        "ordercast: 3 logs of the group orders: no disagreement up to position 120\n"
    )
    shutil.rmtree(tmp_path / "B")
    write_log(tmp_path / "B", [*PACKETS[:38], PACKETS[39], PACKETS[38]])
    assert follow_logs(str(tmp_path), None, None, tmp_path / "found.json") == 1
    assert capsys.readouterr().out == (
        "order: the logs of B and A have different orders below position 117\n"
        "order: the logs of C and B have different orders below position 117\n"
    )
    document = json.loads((tmp_path / "found.json").read_bytes())
    assert document["disagreements"][0]["kind"] == "order"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--members", "A"], "--members and --metrics have no effect without --follow"),
        (["--follow"], "give the folders of traces, or, with --follow, logs by --members"),
        (["--follow", "--members", "A", "--spark"], "--spark: of durable logs, orders and views are compared in this"),
        (["--follow", "--members", "A,A"], "members names the same log twice"),
        (["--follow", "--members", "A", "--until-idle", "-1"], "--until-idle must be a positive number of seconds"),
    ],
)
def test_arguments_that_are_wrong(command: Command, arguments: list[str], told: str) -> None:
    status, _, errors = command("audit", *arguments)
    assert (status, told in " ".join(errors.split())) == (2, True), errors
