"""The reference is complete: each public name, option, setting, metric and error is on its page, and no other."""

import dataclasses
import importlib
import inspect
import re
import runpy
import sys
from pathlib import Path

import msgspec
import pytest

import ordercast
from ordercast.live import prometheus
from ordercast.model import errors
from tests.test_architecture import ROOMS

ROOT = Path(__file__).parent.parent
REFERENCE = ROOT / "docs/reference"


def first_cells(text: str) -> list[str]:
    """The first cell of each row of a page's tables, without the heads."""
    rows = re.findall(r"^\| ([^|]*) \|(?!---)", text, flags=re.MULTILINE)
    heads = re.findall(r"^\| ([^|]*) \|.*\n\|---", text, flags=re.MULTILINE)
    return [cell for cell in rows if cell not in heads]


def names_in(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def section(page: str, title: str) -> str:
    return (REFERENCE / page).read_text().partition(f"\n## {title}\n")[2].partition("\n## ")[0]


@pytest.mark.parametrize(
    "module",
    [
        "ordercast",
        "ordercast.simulation",
        "ordercast.log",
        "ordercast.replicated",
        "ordercast.gateway",
        "ordercast.pipeline",
    ],
)
def test_every_public_name_has_a_page(module: str) -> None:
    """The lists of api.md are what the site makes a page for each name of."""
    listed: list[str] = []
    for block in re.findall(
        r"^```\{eval-rst\}\n(.*?)^```", (REFERENCE / "api.md").read_text(), re.DOTALL | re.MULTILINE
    ):
        if f".. currentmodule:: {module}\n" in block:
            listed += block.partition(":nosignatures:\n")[2].split()
    public = set(importlib.import_module(module).__all__) - {"__version__"}
    assert sorted(listed) == sorted(public)


@pytest.mark.parametrize(
    "module",
    [
        "ordercast",
        "ordercast.simulation",
        "ordercast.log",
        "ordercast.replicated",
        "ordercast.gateway",
        "ordercast.pipeline",
    ],
)
def test_every_public_name_has_a_docstring_of_its_own(module: str) -> None:
    loaded = importlib.import_module(module)
    for name in set(loaded.__all__) - {"__version__"}:
        value = getattr(loaded, name)
        if inspect.isclass(value) or inspect.isfunction(value):
            assert value.__doc__, name
            assert value.__doc__ != getattr(value.__base__ if inspect.isclass(value) else None, "__doc__", None), name


def test_the_pages_made_from_the_code_are_up_to_date() -> None:
    for file, made in runpy.run_path(str(ROOT / "docs/reference_pages.py"))["PAGES"].items():
        assert (REFERENCE / file).read_text() == made(), "python docs/reference_pages.py"


def test_every_setting_is_on_its_page() -> None:
    table = (REFERENCE / "settings.md").read_text().partition("\n## ")[0]
    listed = [name for cell in first_cells(table) for name in names_in(cell)]
    assert listed == [field.name for field in dataclasses.fields(ordercast.Settings)]


def test_every_argument_of_join_is_on_the_page_of_settings() -> None:
    listed = [name for cell in first_cells(section("settings.md", "Arguments of `join`")) for name in names_in(cell)]
    assert sorted(listed) == sorted(set(inspect.signature(ordercast.join).parameters) - {"unknown"})


def a_value_for(annotation: object) -> object:
    """Something that fits a field of `Stats`: each dictionary with an entry, so that each metric has a sample."""
    text = str(annotation)
    if "dict" in text:
        return {"x": 1}
    if "tuple" in text:
        return ("A", "B")
    return "x" if "str" in text else 1


def test_every_metric_and_field_of_the_statistics_is_on_its_page() -> None:
    fields = {field.name: a_value_for(field.type) for field in msgspec.structs.fields(ordercast.Stats)}
    served = prometheus.exposition(ordercast.Stats(**fields)).decode()  # type: ignore[arg-type] # of the right shape only
    page = (REFERENCE / "metrics.md").read_text()
    listed = {names_in(cell)[0]: row for cell, row in re.findall(r"^\| (`ordercast_[^|]*) \|(.*)$", page, re.MULTILINE)}
    kinds = dict(re.findall(r"^# TYPE (\S+) (\S+)$", served, flags=re.MULTILINE))
    assert set(listed) == set(kinds)
    for name, row in listed.items():
        kind, label, field, _ = (cell.strip() for cell in row.strip("|").split("|"))
        assert kind == kinds[name]
        assert names_in(field)[0] in fields
        (labels,) = set(re.findall(rf"^{name}\{{([^}}]*)\}}", served, flags=re.MULTILINE)[:1])
        own = set(re.findall(r"(\w+)=", labels)) - {"group", "member", "protocol"}
        assert own == set(names_in(label))
    told = {names_in(row.split("|")[2])[0] for row in listed.values()}
    assert told == set(fields) - {"group", "me", "protocol"}


def test_metrics_that_pages_name_exist() -> None:
    known = set(re.findall(r"ordercast_\w+", (REFERENCE / "metrics.md").read_text()))
    for page in (ROOT / "docs").rglob("*.md"):
        assert set(re.findall(r"\bordercast_\w+", page.read_text())) <= known, page


def test_every_logger_is_on_the_page_about_monitoring() -> None:
    page = (ROOT / "docs/howto/monitoring.md").read_text()
    told = set(re.findall(r"^\| `(ordercast(?:\.\w+)*)` \|", page, flags=re.MULTILINE))
    source = "".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
    assert told == set(re.findall(r'getLogger\("(ordercast[.\w]*)"\)', source))


def test_every_error_is_on_its_page() -> None:
    listed = [name for cell in first_cells(section("errors.md", "Exceptions")) for name in names_in(cell)]
    classes = {name for name, each in inspect.getmembers(errors, inspect.isclass) if issubclass(each, Exception)}
    assert set(listed) | {"OrdercastError"} == classes


@pytest.mark.parametrize("title", ["Joining", "While it runs", "Asking a group (`ordercast members`)"])
def test_troubleshooting_shows_messages_that_are_said(title: str) -> None:
    """The fixed parts of each message are in the source; names and numbers are left out there."""
    source = "".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
    said = " ".join(re.sub(r'"\s*\n\s*f?"', "", source).split())
    for cell in first_cells(section("troubleshooting.md", title)):
        for message in names_in(cell):
            if message.startswith("ordercast_"):
                continue  # a metric, see above
            parts = re.split(r"…|'\w+'|\b[A-C](?:, [A-C])*\b|[\d.:]+(?= |$)|=\S+|\S+=", message)
            longest = max((part.strip(" :.,(){}") for part in parts), key=len)
            assert len(longest) > 2
            assert longest in said, message


def test_the_page_on_architecture_has_the_imports_that_are_enforced() -> None:
    page = (ROOT / "docs/architecture.md").read_text()
    rows = re.findall(r"^\| \[`(\w+)/`\]\([^)]*\) \|.*\| ([^|]*) \|$", page, flags=re.MULTILINE)
    outside = {name for _, packages in ROOMS.values() for name in packages} - set(sys.stdlib_module_names) - {"stdlib"}
    assert [name for name, _ in rows] == sorted(ROOMS, key=[name for name, _ in rows].index)
    for name, imports in rows:
        ours, packages = ROOMS[name]
        assert ours == (set(ROOMS) - {"cli"} if imports.startswith("all") else set(names_in(imports))), name
        assert packages & outside == set(re.findall(r"\w+", imports)) & outside, name
