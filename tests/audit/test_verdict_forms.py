"""A verdict in other forms: as text, as a page, and for CI systems. Each is read back as its readers do."""

import json
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from ordercast.audit.ci_results import junit, sarif
from ordercast.audit.definitions import DEFINITIONS
from ordercast.audit.names import MARK, Names, names_of_run
from ordercast.audit.page import page
from ordercast.audit.profiles import PROPERTIES
from ordercast.audit.verdict import Finding as Found
from ordercast.audit.verdict import Verdict, Witness
from ordercast.audit.violations import Violation
from tests.cli.conftest import Command, ordercast

__all__ = ["ordercast"]


def violated() -> Verdict:
    """Two runs of two protocols: one lacks something, and one has an excused node and says something unprintable."""
    total = Verdict(incomplete_records=["run b: the record of x is incomplete"])
    lacks = Violation("complete", "E3 lacks E1#4, sent to {E2,E3}", ((0, 4),), (2,))
    one = Verdict(1, 10, {"complete": Found(1), "same_order": Found(1)})
    one.findings["complete"].witnesses.append(Witness("a", lacks))
    one.findings["complete"].count(lacks)
    names = json.dumps({"log": {"names": ["orders[0]", "<billing>", "ship\x1bping"], "mark": "@"}})
    total.add_run({"run": "a", "protocol": "st", "nodes": 3, "config": names}, one)
    other = Verdict(1, 5, {"complete": Found(1)})
    other.not_recorded["accepted_truthfully"] = 1
    other.excuse("b", "what these lack is no violation: E2 (crashed)")
    total.add_run({"run": "b", "protocol": "spo", "nodes": 3, "config": None}, other)
    return total


TOLD = r"ship\x1bping lacks orders[0]@4, sent to {<billing>,ship\x1bping}"


def test_every_property_has_a_definition() -> None:
    assert set(DEFINITIONS) == {*PROPERTIES, "complete"}


def test_names_are_put_into_sentences() -> None:
    names = Names(("orders[4]", "shipping"), "@")
    assert names.put_into("E2 lacks E1#468, sent to {E2,E3}") == "shipping lacks orders[4]@468, sent to {shipping,E3}"
    assert names.put_into("E3#1 is of nobody, # is none") == "E3@1 is of nobody, # is none"
    assert Names(("ada", "bob")).put_into("E1#0 before E2#0") == "ada#0 before bob#0"


@pytest.mark.parametrize(
    "config", [None, "", "[]", '{"log": 3}', '{"log": {"names": ["one"]}}', '{"log": {"names": 2}}']
)
def test_a_run_without_names_has_none(config: str | None) -> None:
    assert names_of_run({"run": "r", "nodes": 3, "config": config}) is None


@pytest.mark.parametrize("mark", ["", 7, None])
def test_a_mark_that_is_none_is_ours(mark: object) -> None:
    config = json.dumps({"log": {"names": ["a", "b"], "mark": mark}})
    names = names_of_run({"run": "r", "nodes": 2, "config": config})
    assert names is not None
    assert names.mark == MARK


def test_the_explanation_says_all() -> None:
    told = violated().explain()
    for words in (
        "Some properties are violated: 2 runs, 15 deliveries.",
        "st: 1 run: complete 1",
        "spo: 1 run: no violation",
        "complete: violated",
        r"1 violation (ship\x1bping in 1). For example:",
        f"- run a: {TOLD}",
        "same_order: holds",
        "Not recorded, so not judged: accepted_truthfully.",
        "run b: what these lack is no violation: E2 (crashed)",
        "run b: the record of x is incomplete",
    ):
        assert words in told, words
    assert DEFINITIONS["same_order"] in told


def test_junit_has_a_case_for_each_property() -> None:
    root = ET.fromstring(junit(violated(), "shop"))  # noqa: S314 - our own
    assert (root.get("tests"), root.get("failures"), root.get("skipped")) == ("3", "1", "1")
    cases = {str(case.get("name")): case for case in root.iter("testcase")}
    assert set(cases) == {"complete", "same_order", "accepted_truthfully"}
    failure = cases["complete"].find("failure")
    assert failure is not None
    assert failure.get("message") == "1 violation"
    assert f"run a: {TOLD}" in str(failure.text)
    assert not list(cases["same_order"])
    assert cases["accepted_truthfully"].find("skipped") is not None
    notes = root.find("testsuite/system-out")
    assert notes is not None
    assert "E2 (crashed)" in str(notes.text)


def test_sarif_has_a_result_for_each_witness() -> None:
    document = json.loads(sarif(violated(), "shop", "1.0"))
    assert document["version"] == "2.1.0"
    [run] = document["runs"]
    rules = run["tool"]["driver"]["rules"]
    [result] = run["results"]
    assert rules[result["ruleIndex"]]["id"] == result["ruleId"] == "complete"
    assert result["message"]["text"] == f"run a: {TOLD}"
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "shop"
    notes = [each["message"]["text"] for each in run["invocations"][0]["toolExecutionNotifications"]]
    assert any("accepted_truthfully: not recorded" in note for note in notes)


class _Text(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.text: list[str] = []
        self.open: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in {"meta", "br", "wbr"}:
            self.open.append(tag)
        self.links += [value or "" for name, value in attrs if name in {"href", "src"}]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def test_the_page_has_all_and_needs_nothing_else() -> None:
    reader = _Text()
    reader.feed(page(violated(), "shop & <others>"))
    assert reader.open == []
    text = " ".join(" ".join(reader.text).split())
    for words in (
        "Audit of shop & <others>",
        "Some properties are violated.",
        TOLD,
        DEFINITIONS["complete"],
        "not recorded, so not judged",
        "By protocol",
        "By node",
        "run b: what these lack is no violation: E2 (crashed)",
        "run b: the record of x is incomplete",
    ):
        assert words in text, words
    assert [link.partition(",")[0] for link in reader.links] == ["data:application/json;base64"]


def test_the_command_writes_all_forms(ordercast: Command, tmp_path: Path) -> None:
    trace = tmp_path / "t"
    assert ordercast(f"simulate to --nodes 3 --messages 4 --out {trace}").status == 0
    line = f"audit {trace} --report {tmp_path}/p.html --junit {tmp_path}/r.xml --sarif {tmp_path}/r.sarif --explain"
    done = ordercast(line)
    assert (done.status, done.err) == (0, "")
    assert "Every property holds: 1 run" in done.out
    assert "Every property holds." in (tmp_path / "p.html").read_text()
    assert ET.parse(tmp_path / "r.xml").getroot().get("failures") == "0"  # noqa: S314
    assert json.loads((tmp_path / "r.sarif").read_text())["runs"][0]["results"] == []
    assert "--report: only for the verdict on complete traces" in ordercast(f"audit {trace} --report x --follow").err
    refused = ordercast(f"audit {trace} --junit {tmp_path}/no/such/r.xml")
    assert refused.status == 2
    assert "cannot write the verdict" in refused.err
