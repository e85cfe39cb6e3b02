"""The recipes for traces of other systems: their sample files are converted and judged."""

import contextlib
import json
import re
import runpy
import shlex
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from ordercast.cli.app import app

ROOT = Path(__file__).parent.parent
RECIPES = ROOT / "examples/recipes"
DOCUMENT = (ROOT / "docs/recipes.md").read_text()


def judged(tmp_path: Path, script: str, *logs: str, options: str = "") -> Result:
    trace = str(tmp_path / "trace")
    with pytest.MonkeyPatch.context() as patch, contextlib.chdir(RECIPES):
        patch.setattr(sys, "argv", [script, trace, *logs])
        runpy.run_path(script, run_name="__main__")
    return CliRunner().invoke(app, ["audit", trace, *shlex.split(options)])


KAFKA = ("kafka/billing.log", "kafka/shipping.log")
NATS = ("nats/ledger.log=>", "nats/europe.log=orders.eu.>")
ETCD = ("etcd/all.log=/", "etcd/config.log=/config/")
SCRIPTS = [("kafka_trace.py", KAFKA), ("nats_trace.py", NATS), ("etcd_trace.py", ETCD)]


@pytest.mark.parametrize(("script", "logs"), SCRIPTS)
def test_good_logs_hold(tmp_path: Path, script: str, logs: tuple[str, ...]) -> None:
    done = judged(tmp_path, script, *logs)
    assert done.exit_code == 0, done.stdout
    assert "violated" not in done.stdout


def test_kafka_keeps_the_order_of_a_partition_and_no_other(tmp_path: Path) -> None:
    done = judged(tmp_path, "kafka_trace.py", *KAFKA, options="--service st")
    assert done.exit_code == 1
    assert re.search(r"E3 delivered E1#0 before E2#0, E4 in the opposite order", done.stdout)


def test_a_rebalance_hands_a_record_out_again(tmp_path: Path) -> None:
    done = judged(tmp_path, "kafka_trace.py", "kafka/billing.log", "kafka/shipping-after-rebalance.log")
    assert done.exit_code == 1
    assert "E4 delivered E1#2 twice" in done.stdout


def test_a_redelivery_is_found(tmp_path: Path) -> None:
    done = judged(tmp_path, "nats_trace.py", "nats/ledger.log=>", "nats/europe-redelivered.log=orders.eu.>")
    assert done.exit_code == 1
    assert "E3 delivered E1#4 twice, as numbers 2 and 3 of its log" in done.stdout


def test_what_a_consumer_was_not_handed_is_found(tmp_path: Path) -> None:
    lines = (RECIPES / "nats/europe.log").read_text().splitlines()
    (tmp_path / "short.log").write_text("\n".join(lines[:1] + lines[2:]))
    done = judged(tmp_path, "nats_trace.py", "nats/ledger.log=>", f"{tmp_path}/short.log=orders.eu.>")
    assert done.exit_code == 1
    assert "E3 lacks E1#3, sent to {E2,E3}" in done.stdout


def test_a_watcher_that_resumes_where_it_was_gets_a_revision_twice(tmp_path: Path) -> None:
    done = judged(tmp_path, "etcd_trace.py", "etcd/all.log=/", "etcd/config-resumed.log=/config/")
    assert done.exit_code == 1
    assert "E3 delivered E1#4 twice" in done.stdout


def test_a_watcher_that_resumes_behind_a_compaction_lacks_a_revision(tmp_path: Path) -> None:
    done = judged(tmp_path, "etcd_trace.py", "etcd/all.log=/", "etcd/config-compacted.log=/config/")
    assert done.exit_code == 1
    assert "E3 lacks E1#4" in done.stdout


def test_a_transaction_that_comes_in_two_responses_is_not_whole(tmp_path: Path) -> None:
    """Revision 4 changed two keys: etcd promises both at once."""
    responses = (RECIPES / "etcd/config.log").read_text().splitlines()
    torn = json.loads(responses[1])
    halves = [json.dumps({**torn, "Events": [event]}) for event in torn["Events"]]
    (tmp_path / "torn.log").write_text("\n".join([responses[0], *halves, responses[2]]))
    done = judged(tmp_path, "etcd_trace.py", "etcd/all.log=/", f"{tmp_path}/torn.log=/config/")
    assert done.exit_code == 1
    assert "E3 delivered E1#4 twice" in done.stdout


def test_the_document_names_what_is_there() -> None:
    for name in re.findall(r"examples/recipes/[\w./-]+\w", DOCUMENT):
        assert (ROOT / name).exists(), name
