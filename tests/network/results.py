"""What must be true of groups when their members have ended."""

from typing import Any

from tests.network.lab import Lab, Process

ORDERS = ("partial", "total", "priority", "sequenced")


def everything_arrived(lab: Lab, ended: dict[str, Process], within: float = 60) -> None:
    """All closed, and each has heard as many as were sent to it; the records hold."""
    for process in ended.values():
        process.wait(within)
        assert process.status == 0, f"{process.name}: {process.reports} {process.errors}"
    for group in next(iter(ended.values())).reports:
        reports = reports_of(ended, group)
        for name, report in reports.items():
            sent = {other: said["sent"][name] for other, said in reports.items() if name in said["sent"]}
            assert report["heard"] == sent, f"{name} in {group}"
        if not group.startswith("partial") and len({str(each["heard"]) for each in reports.values()}) == 1:
            assert len({each["order"] for each in reports.values()}) == 1, f"{group}: not one order"
    holds(lab)


def holds(lab: Lab) -> None:
    """The records, all together, keep what was promised."""
    verdict = lab.audit()
    assert verdict.holds, verdict.as_document()


def reports_of(ended: dict[str, Process], group: str) -> dict[str, dict[str, Any]]:
    """Of one group, by member."""
    return {name: process.reports[group] for name, process in ended.items()}
