"""What live members log for operators: fixed fields, nothing by default, and not too often."""

import logging
import subprocess
import sys
from typing import Any

import pytest

from ordercast.live.host.host import Host
from ordercast.live.host.operator_warnings import HealthLog
from ordercast.live.logs import GroupLogs
from ordercast.live.session.events import Suspected
from ordercast.protocols.membership.events import InstallView
from ordercast.protocols.membership.view import GroupView
from tests.live.groups import group_of, hear, member_of, run


class Counts:
    """What a host counts."""

    def __init__(self) -> None:
        self.transmitted = self.retransmitted = self.requests = self.overrun = 0


class Health:
    """A log of one member, and what it has said."""

    def __init__(self, caplog: pytest.LogCaptureFixture) -> None:
        self.log, self.counts, self.dropped, self._caplog = HealthLog(GroupLogs("g", "A")), Counts(), {}, caplog

    dropped: dict[str, int]

    def check(self, now: float) -> list[tuple[str, dict[str, Any]]]:
        self._caplog.clear()
        counts: Any = self.counts
        self.log.check(counts, self.dropped, now)
        names = ("count", "units", "reason", "group", "member")
        return [
            (record.name, {name: value for name, value in vars(record).items() if name in names})
            for record in self._caplog.records
        ]


def test_loss_is_logged_above_a_rate_and_once_in_ten_seconds(caplog: pytest.LogCaptureFixture) -> None:
    health = Health(caplog)
    health.counts.transmitted, health.counts.retransmitted = 99, 50
    assert health.check(0.0) == [], "too few say nothing"
    health.counts.transmitted, health.counts.requests = 200, 10
    told = {"group": "g", "member": "A", "count": 60, "units": 200}
    assert health.check(1.0) == [("ordercast.protocol", told)]
    health.counts.transmitted, health.counts.retransmitted = 400, 200
    assert health.check(10.9) == [], "not again so soon"
    health.counts.transmitted, health.counts.retransmitted = 600, 250
    told = {"group": "g", "member": "A", "count": 200, "units": 400}
    assert health.check(11.0) == [("ordercast.protocol", told)], "with all since the last time"
    health.counts.transmitted += 1000
    health.counts.retransmitted += 50
    assert health.check(30.0) == [], "one in twenty is no loss that anybody need know of"


def test_an_application_that_does_not_read_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    health = Health(caplog)
    health.counts.overrun = 3
    assert health.check(0.0) == [("ordercast.protocol", {"group": "g", "member": "A", "count": 3})]
    health.counts.overrun = 5
    assert health.check(9.0) == []
    assert health.check(10.0) == [("ordercast.protocol", {"group": "g", "member": "A", "count": 2})]
    assert health.check(30.0) == []


def test_rejected_datagrams_are_logged_by_reason(caplog: pytest.LogCaptureFixture) -> None:
    health = Health(caplog)
    health.dropped = {"forged": 99, "late": 5000}
    assert health.check(0.0) == [], "too few; and what is late is no attack"
    health.dropped = {"forged": 100, "replayed": 250}
    found = health.check(1.0)
    assert {name for name, _ in found} == {"ordercast.security"}
    assert {(told["reason"], told["count"]) for _, told in found} == {("forged", 100), ("replayed", 250)}
    assert health.check(20.0) == []


def test_sessions_suspicions_and_views_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        async with group_of("A", "B", "C", order="sequenced") as groups:
            member = member_of(groups["A"])
            suspected: list[int] = []
            assert isinstance(member.host, Host)
            member.host.suspect = suspected.append  # type: ignore[method-assign, assignment]
            member.session_changed(Suspected(1))
            assert suspected == [0b10]
            view = GroupView(7, member.views.view.members, (0, 1, 2), b"the next", 3)
            member.views.enter = lambda *_: None  # type: ignore[method-assign]
            member.view_installed(InstallView(view, 0, (), (), "B was slow", None, gives_state=False))
            member.recovery_started("E3 lost something")
            await groups["B"].send(b"x")
            for group in groups.values():
                await hear(group, 1)

    with caplog.at_level(logging.INFO, logger="ordercast"):
        run(test)
    membership = [record for record in caplog.records if record.name == "ordercast.membership"]
    opened = [record for record in membership if "is open with A, B, C" in record.getMessage()]
    assert sorted(vars(record)["member"] for record in opened) == ["A", "B", "C"]
    (suspicion,) = [record for record in membership if "suspects" in record.getMessage()]
    assert (suspicion.levelname, vars(suspicion)["peer"]) == ("WARNING", "B")
    (view,) = [record for record in membership if record.getMessage().startswith("view 7")]
    assert (vars(view)["view"], vars(view)["members"], vars(view)["reason"]) == (7, ("A", "B", "C"), "B was slow")
    (recovery,) = [record for record in caplog.records if "recovery" in record.getMessage()]
    assert recovery.getMessage() == "recovery: C lost something"


def test_nothing_is_printed_unless_logging_is_configured() -> None:
    program = "from ordercast.live.logs import GroupLogs; GroupLogs('g', 'A').shutdown.warning('the end')"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout + done.stderr == ""
