"""`replay --page` and `check --page`: schedules and simulations as pages; and the links to them on the site."""

import runpy
from pathlib import Path

from ordercast.swarm.failing_runs import FailingRun, failing_run_text
from ordercast.swarm.run_audit import failures_of
from tests.cli.conftest import Command, ordercast
from tests.swarm.test_failing_runs import BROKEN
from tests.viewer.test_cli_view import data_of

__all__ = ["ordercast"]  # a fixture

ROOT = Path(__file__).parent.parent.parent
SPO_C3 = ROOT / "examples/counterexamples/spo-c3.toml"


def test_a_counterexample_has_its_steps_its_states_and_its_end(ordercast: Command, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert ordercast("replay", SPO_C3, "--page", page).status == 1
    [part] = data_of(page)["embedded"]
    story = part["run"]["story"]
    assert story["title"] == "spo-c3"
    assert story["broken"]
    assert story["steps"][0]["words"].startswith("E1 sends ")
    changes = [change for step in story["steps"] for change in step["changes"]]
    assert all(story["states"][node].get(name) == before for node, name, before, _ in story["steps"][0]["changes"])
    assert {node for node, *_ in changes} <= {0, 1, 2}
    assert part["run"]["labels"]["0#0"] == "a"


def test_what_a_search_finds_can_be_gone_through(ordercast: Command, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    line = "check spo --rules paper --script a{2,3};b{3} --losses 0 --liveness-goal accepted --jobs 1 --no-draw --page"
    assert ordercast(line, page).status == 1
    story = data_of(page)["embedded"][0]["run"]["story"]
    assert "is never accepted at E3" in story["broken"]
    assert "free_from" in story, "it is the fair continuation that fails"


def test_a_simulation_is_a_run_with_times(ordercast: Command, tmp_path: Path) -> None:
    file, page = tmp_path / "lost.toml", tmp_path / "page.html"
    [failure] = failures_of(BROKEN)
    file.write_text(failing_run_text(FailingRun(BROKEN, failure)))
    assert ordercast("replay", file, "--page", page).status == 1
    run = data_of(page)["embedded"][0]["run"]
    assert (run["name"], run["protocol"], run["nodes"]) == ("lost", "spo", 2)
    assert run["rows"] > 0
    assert "story" not in run


def test_a_page_needs_a_schedule_not_a_search(ordercast: Command, tmp_path: Path) -> None:
    told = ordercast("replay --search", SPO_C3, "--page", tmp_path / "page.html")
    assert (told.status, told.sentence) == (2, "--search and --sound open no steps; omit --view and --page")


def test_the_site_links_to_pages_of_schedules() -> None:
    rewritten = runpy.run_path(str(ROOT / "docs/conf.py"))["rewritten"]
    words = "[Step by step](../../examples/counterexamples/st-s1.toml)"
    assert rewritten(words, ROOT / "docs/counterexamples/st.md") == '<a href="../stories/st-s1.html">Step by step</a>'
    assert rewritten("[here](../examples/stories/st-one-loss.toml)", ROOT / "docs/live.md") == (
        '<a href="stories/st-one-loss.html">here</a>'
    )
