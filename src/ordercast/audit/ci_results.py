"""Verdicts in the formats that CI systems read: JUnit XML, as of a test run, and SARIF, as of a static analysis."""

import json
from xml.etree import ElementTree as ET

from ordercast.audit.definitions import DEFINITIONS
from ordercast.audit.verdict import Finding, Verdict

_SARIF = "https://json.schemastore.org/sarif-2.1.0.json"


def junit(verdict: Verdict, trace: str) -> bytes:
    """A test suite with a test case for each property: failed if violated, skipped if it was not recorded."""
    failures = sum(not finding.holds for finding in verdict.findings.values())
    counts = {
        "name": "ordercast audit",
        "tests": str(len(verdict.findings) + len(verdict.not_recorded)),
        "failures": str(failures),
        "errors": "0",
        "skipped": str(len(verdict.not_recorded)),
    }
    suites = ET.Element("testsuites", counts)
    suite = ET.SubElement(suites, "testsuite", {**counts, "name": trace})
    properties = ET.SubElement(suite, "properties")
    for name, value in (("runs", verdict.runs), ("deliveries", verdict.deliveries)):
        ET.SubElement(properties, "property", {"name": name, "value": str(value)})
    for name, finding in verdict.findings.items():
        case = ET.SubElement(suite, "testcase", {"classname": trace, "name": name})
        if not finding.holds:
            failure = ET.SubElement(case, "failure", {"message": _count(finding), "type": name})
            failure.text = _xml("\n".join([DEFINITIONS.get(name, ""), *_sentences(verdict, finding)]))
    for name, runs in verdict.not_recorded.items():
        case = ET.SubElement(suite, "testcase", {"classname": trace, "name": name})
        ET.SubElement(case, "skipped", {"message": f"not recorded in {runs:,} runs, so not judged"})
    notes = [*verdict.told_excused(), *verdict.incomplete_records]
    if notes:
        ET.SubElement(suite, "system-out").text = _xml("\n".join(notes))
    ET.indent(suites)
    text: bytes = ET.tostring(suites, "utf-8", xml_declaration=True)
    return text + b"\n"


def sarif(verdict: Verdict, trace: str, version: str) -> bytes:
    """A run of a tool whose rules are the properties and whose results are the witnesses; `version`: of ordercast."""
    rules = [
        {"id": name, "shortDescription": {"text": DEFINITIONS.get(name, name)}, "properties": {"runs": finding.runs}}
        for name, finding in verdict.findings.items()
    ]
    results = [
        {
            "ruleId": name,
            "ruleIndex": index,
            "level": "error",
            "message": {"text": f"run {witness.run}: {verdict.told(witness)}"},
            "locations": [{"physicalLocation": {"artifactLocation": {"uri": trace}}}],
            "properties": {"run": witness.run, **witness.violation.as_document()},
        }
        for index, (name, finding) in enumerate(verdict.findings.items())
        for witness in finding.witnesses
    ]
    notes = [
        *(f"{name}: not recorded in {runs:,} runs, so not judged" for name, runs in verdict.not_recorded.items()),
        *(f"{name}: {_count(finding)}" for name, finding in verdict.findings.items() if not finding.holds),
        *verdict.told_excused(),
        *verdict.incomplete_records,
    ]
    invocation = {
        "executionSuccessful": True,
        "toolExecutionNotifications": [{"level": "note", "message": {"text": note}} for note in notes],
    }
    driver = {"name": "ordercast", "version": version, "rules": rules}
    run = {"tool": {"driver": driver}, "invocations": [invocation], "results": results}
    return json.dumps({"$schema": _SARIF, "version": "2.1.0", "runs": [run]}, indent=2).encode()


def _count(finding: Finding) -> str:
    at_least = "at least " if finding.at_least else ""
    return f"{at_least}{finding.violations:,} violation{'' if finding.violations == 1 else 's'}"


def _sentences(verdict: Verdict, finding: Finding) -> list[str]:
    return [f"run {witness.run}: {verdict.told(witness)}" for witness in finding.witnesses]


def _xml(text: str) -> str:
    """Without characters that XML cannot hold; names may come from anywhere."""
    return "".join(letter if letter in "\n\t" or letter >= " " else "\ufffd" for letter in text)
