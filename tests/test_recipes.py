"""The recipes for logs of other systems: samples that their clients wrote are made traces and judged, as documented."""

import contextlib
import json
import re
import shlex
import shutil
import socket
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from ordercast.cli.app import app, main

ROOT = Path(__file__).parent.parent
RECIPES = ROOT / "examples/recipes"
DOCUMENT = (ROOT / "docs/recipes.md").read_text()


def ran(line: str) -> Result:
    with contextlib.chdir(RECIPES):
        return CliRunner().invoke(app, shlex.split(line))


def judged(tmp_path: Path, line: str, options: str = "") -> Result:
    system, *rest = line.split()
    done = ran(f"ingest {system} {tmp_path}/trace {' '.join(rest)}")
    assert done.exit_code == 0, done.output
    return ran(f"audit {tmp_path}/trace {options}")


KAFKA = "kafka billing=kafka/billing.log shipping=kafka/shipping.log --source orders"
NATS = "nats ledger=nats/ledger.log europe=nats/europe.log --for europe=orders.eu.>"
ETCD = "etcd all=etcd/all.log config=etcd/config.log --for config=/config/"
RABBITMQ = "rabbitmq mail=rabbitmq/mail.log ledger=rabbitmq/ledger.log"
CDC = "cdc search=cdc/search.log billing=cdc/billing.log --source shop"


@pytest.mark.parametrize("line", [KAFKA, NATS, ETCD, RABBITMQ, CDC], ids=lambda line: line.split()[0])
def test_good_logs_hold(tmp_path: Path, line: str) -> None:
    done = judged(tmp_path, line)
    assert done.exit_code == 0, done.output
    assert "violated" not in done.output


def test_kafka_keeps_the_order_of_a_partition_and_no_other(tmp_path: Path) -> None:
    done = judged(tmp_path, KAFKA, "--service total")
    assert done.exit_code == 1
    assert re.search(
        r"billing delivered orders\[0\]@0 before orders\[1\]@0, shipping in the opposite order", done.output
    )


REPEATED = [
    (
        "kafka billing=kafka/billing.log shipping=kafka/shipping-after-rebalance.log",
        "shipping delivered topic[0]@2 twice",
    ),
    ("nats slow=nats/slow.log europe=nats/europe.log", "slow delivered orders@9 twice, as numbers 5 and 26 of its log"),
    (RABBITMQ, "ledger delivered orders@18 twice, as numbers 18 and 20 of its log"),
    ("cdc search=cdc/search.log billing=cdc/billing-restarted.log --source shop", "billing delivered shop.public."),
]


@pytest.mark.parametrize(("line", "told"), REPEATED, ids=[line.split()[0] for line, _ in REPEATED])
def test_what_is_handed_out_again_is_found_where_once_was_asked(tmp_path: Path, line: str, told: str) -> None:
    assert judged(tmp_path / "kept", line).exit_code == 0  # none of these systems promises it
    done = judged(tmp_path / "asked", line, "--service exactly-once")
    assert done.exit_code == 1
    assert told in done.output


def test_what_a_consumer_was_not_handed_is_found(tmp_path: Path) -> None:
    lines = (RECIPES / "nats/europe.log").read_text().splitlines()
    (tmp_path / "short.log").write_text("\n".join(lines[:1] + lines[2:]))
    done = judged(tmp_path, f"nats ledger=nats/ledger.log europe={tmp_path}/short.log --for europe=orders.eu.>")
    assert done.exit_code == 1
    assert "europe lacks orders@3, sent to {europe,ledger}" in done.output


def test_what_nobody_was_handed_is_found_by_one_that_gets_everything(tmp_path: Path) -> None:
    line = "nats slow=nats/slow.log europe=nats/europe.log --for slow=orders.eu.> --for europe=orders.eu.>"
    for name in ("slow", "europe"):
        kept = [one for one in (RECIPES / f"nats/{name}.log").read_text().splitlines() if ".12." not in one[:60]]
        (tmp_path / f"{name}.log").write_text("\n".join(kept))
        line = line.replace(f"nats/{name}.log", str(tmp_path / f"{name}.log"))
    assert judged(tmp_path / "received", line).exit_code == 0
    done = judged(tmp_path / "sent", f"{line} --sent nats/ledger.log")
    assert done.exit_code == 1
    assert "europe lacks orders@12, sent to {europe,slow}" in done.output


def test_a_watcher_that_begins_late_lacks_revisions(tmp_path: Path) -> None:
    done = judged(tmp_path, "etcd all=etcd/all.log late=etcd/config-late.log --for late=/config/")
    assert done.exit_code == 1
    assert "late lacks store@2, sent to {all,late}" in done.output


def test_a_transaction_that_comes_in_two_responses_is_not_whole(tmp_path: Path) -> None:
    """Revision 26 changed two keys: etcd promises both at once."""
    responses = (RECIPES / "etcd/config.log").read_text().splitlines()
    torn = json.loads(responses[-1])
    halves = [json.dumps({**torn, "Events": [event]}) for event in torn["Events"]]
    assert len(halves) == 2
    (tmp_path / "torn.log").write_text("\n".join([*responses[:-1], *halves]))
    done = judged(tmp_path, f"etcd all=etcd/all.log config={tmp_path}/torn.log --for config=/config/")
    assert done.exit_code == 1
    assert "config delivered store@26 twice" in done.output


KCAT = '{"topic":"orders","partition":3,"offset":%d,"tstype":"create","ts":1,"broker":0,"key":"k","payload":"p"}'
DEBEZIUM = (
    '{"payload":{"op":"c","after":{"id":%d},"source":{"db":"shop","table":"orders","file":"bin.000007","pos":%d}}}'
)


@pytest.mark.parametrize(
    ("system", "lines", "told"),
    [
        ("kafka", [KCAT % 4, KCAT % 5], "b lacks orders[3]@5"),
        ("cdc", [DEBEZIUM % (1, 400), DEBEZIUM % (2, 500)], f"b lacks shop.orders@{(7 << 44) + (500 << 8)}"),
    ],
)
def test_other_clients_of_a_system_are_read(tmp_path: Path, system: str, lines: list[str], told: str) -> None:
    (tmp_path / "a").write_text("\n".join(lines))
    (tmp_path / "b").write_text(lines[0])
    done = judged(tmp_path, f"{system} a={tmp_path}/a b={tmp_path}/b")
    assert done.exit_code == 1
    assert told in done.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("kafka OUT a=etcd/all.log", "etcd/all.log: line 1 has no whole number as offset, but None"),
        ("kafka OUT a=nats/slow.log", "nats/slow.log: line 1 has no partition and offset"),
        ("nats OUT a=kafka/billing.log", "line 1 is no subject with a reply subject of JetStream"),
        ("etcd OUT a=nats/slow.log", "line 1 is no JSON"),
        ("rabbitmq OUT a=etcd/all.log", "line 1 does not say which message it is"),
        ("cdc OUT a=etcd/all.log", "line 1 is no change event of Debezium or wal2json"),
        ("nats OUT a=no/such.log", "cannot read the log no/such.log"),
        ("nats OUT nats/slow.log", "'nats/slow.log' must be NAME=…"),
        ("nats OUT a=nats/slow.log --for b=x", "there is a filter for 'b', but no log; the logs are of a"),
        ("nats OUT a=nats/slow.log a=nats/slow.log", "two logs have the same name"),
        ("nats OUT a=nats/slow.log --service best", "there is no service 'best'"),
    ],
)
def test_what_is_no_log_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: str, message: str
) -> None:
    line = arguments.replace("OUT", str(tmp_path / "trace"))
    monkeypatch.setattr(sys, "argv", ["ordercast", "ingest", *shlex.split(line)])
    with contextlib.chdir(RECIPES), pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "trace").exists()


@pytest.mark.skipif(
    shutil.which("nats-server") is None or find_spec("nats") is None,
    reason="nats-server and nats-py are not installed: see requirements-clients.txt",
)
def test_a_real_nats_server_is_audited(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    command = [str(shutil.which("nats-server")), "-js", "-a", "127.0.0.1", "-p", port, "-sd", str(tmp_path / "store")]
    with (tmp_path / "server.log").open("wb") as log, subprocess.Popen(command, stderr=log) as server:  # noqa: S603
        try:
            for _ in range(200):
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", int(port)), 1):
                    break
                time.sleep(0.05)
            script = [sys.executable, "nats_record.py", f"nats://127.0.0.1:{port}", str(tmp_path)]
            subprocess.run(script, cwd=RECIPES, check=True, timeout=60)  # noqa: S603
        finally:
            server.terminate()
    logs = " ".join(f"{name}={tmp_path}/{name}.log" for name in ("ledger", "europe", "slow"))
    line = f"nats {logs} --for europe=orders.eu.> --for slow=orders.eu.>"
    assert judged(tmp_path / "one", line).exit_code == 0
    done = judged(tmp_path / "other", line, "--service exactly-once")
    assert done.exit_code == 1
    assert "slow delivered orders@9 twice" in done.output


def test_the_commands_of_the_document_work(tmp_path: Path) -> None:
    shutil.copytree(RECIPES, tmp_path / "recipes")
    lines = re.findall(r"^\$ (ordercast .+)$", DOCUMENT, re.MULTILINE)
    assert len(lines) > 8
    for line in lines:
        with contextlib.chdir(tmp_path / "recipes"):
            done = CliRunner().invoke(app, shlex.split(line)[1:])
        assert done.exit_code == (1 if "exactly-once" in line or "--service total" in line else 0), (line, done.output)


def test_the_document_names_what_is_there() -> None:
    for name in re.findall(r"examples/recipes/[\w./-]+\w", DOCUMENT):
        assert (ROOT / name).exists(), name
