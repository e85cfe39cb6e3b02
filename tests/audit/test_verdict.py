"""Verdicts on several runs add up to the verdict on all of them."""

import pytest

from ordercast.audit.verdict import MOST_WITNESSES, Finding, Verdict, Witness
from ordercast.audit.violations import Violation


def finding(violations: int, *, at_least: bool = False) -> Finding:
    kept = [Witness("r", Violation("complete", str(number))) for number in range(min(violations, MOST_WITNESSES))]
    return Finding(1, violations, kept, at_least)


def test_counts_add_up() -> None:
    total = Verdict(runs=1, deliveries=7, findings={"complete": finding(1)}, incomplete_records=["run a"])
    total.not_recorded["same_runs"] += 1
    other = Verdict(
        runs=2, deliveries=5, findings={"complete": finding(2), "no_cycle": finding(0)}, incomplete_records=["run b"]
    )
    other.not_recorded["same_runs"] += 2
    total.add(other)
    assert (total.runs, total.deliveries, total.incomplete_records) == (3, 12, ["run a", "run b"])
    assert total.not_recorded == {"same_runs": 3}
    assert total.findings["complete"] == Finding(2, 3, [*finding(1).witnesses, *finding(2).witnesses])
    assert total.findings["no_cycle"] == Finding(1, 0)


def test_no_more_than_the_first_witnesses_are_kept() -> None:
    total = Finding()
    for _ in range(3):
        total.add(finding(MOST_WITNESSES - 3))
    assert total.violations == 3 * (MOST_WITNESSES - 3)
    assert [witness.violation.sentence for witness in total.witnesses] == [*map(str, range(MOST_WITNESSES - 3)), *"012"]


@pytest.mark.parametrize(("violations", "holds"), [((0, 0), True), ((0, 1), False), ((2, 0), False)])
def test_one_violation_is_enough(violations: tuple[int, int], holds: bool) -> None:
    verdict = Verdict(findings={str(number): finding(count) for number, count in enumerate(violations)})
    assert verdict.holds is holds
    assert verdict.as_document()["holds"] is holds


@pytest.mark.parametrize("at_least", [False, True])
def test_a_document_says_whether_all_were_counted(at_least: bool) -> None:
    total = Finding()
    total.add(finding(1, at_least=at_least))
    total.add(finding(1))
    document = Verdict(findings={"complete": total}).as_document()
    assert document["properties"] == {
        "complete": {
            "holds": False,
            "violations": 2,
            "witnesses": [{"run": "r", **witness.violation.as_document()} for witness in total.witnesses],
            "runs": 2,
            "counts": "at least" if at_least else "exact",
        }
    }
    assert "incomplete_records" not in document
    assert Verdict(incomplete_records=["x"]).as_document()["incomplete_records"] == ["x"]


def test_runs_in_which_somebody_is_excused_are_counted_and_the_first_are_named() -> None:
    total, other = Verdict(), Verdict()
    for number in range(MOST_WITNESSES - 1):
        total.excuse(f"a{number}", "E1 (crashed)")
    total.excuse("none", "")
    assert (total.excused_runs, len(total.excused)) == (MOST_WITNESSES - 1, MOST_WITNESSES - 1)
    for number in range(MOST_WITNESSES + 2):
        other.excuse(f"b{number}", "E2 (crashed)")
    assert (other.excused_runs, len(other.excused)) == (MOST_WITNESSES + 2, MOST_WITNESSES)
    total.add(other)
    assert total.excused_runs == 2 * MOST_WITNESSES + 1
    assert total.excused[-2:] == [f"run a{MOST_WITNESSES - 2}: E1 (crashed)", "run b0: E2 (crashed)"]
    assert total.as_document()["excused"] == {"runs": total.excused_runs, "sentences": total.excused}
