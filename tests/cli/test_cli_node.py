"""`ordercast node` in processes: lines in, lines out, and how it ends."""

import asyncio
import os
import signal
import socket
import subprocess
import urllib.request
from collections import Counter
from pathlib import Path

import pytest
from rich.console import Console

import ordercast.cli.relay as ordercast_relay
from ordercast import Blocked, Excluded, Message, Unblocked, View
from ordercast.audit.reference import audit
from ordercast.cli.shared import node_process, status_view
from ordercast.cli.shared.node_process import NodeProcess, shown
from ordercast.live.host.parameters import Parameters
from ordercast.live.stats import Stats
from ordercast.model.config import SECOND
from ordercast.model.errors import ConfigError, LocalProtocolError
from ordercast.wire.keys import new_key
from tests.cli.conftest import Command
from tests.cli.nodes import NAMES, Nodes
from tests.live.ports import HERE, free_port
from tests.trace_events import read_events


@pytest.mark.parametrize("order", ["partial", "sequenced"])
def test_everybody_prints_what_everybody_said(order: str, tmp_path: Path) -> None:
    with Nodes("--order", order, "--record", str(tmp_path)) as nodes:
        for name in NAMES:
            nodes.say(name, b"".join(b"%b says %d\n" % (name.encode(), number) for number in range(100)))
            nodes.say(name, b"!7 urgent\n" if order == "priority" else b"")
        outcomes = nodes.end(b"\xff bytes\r\nno end of line")
    outputs = [out.split(b"\n") for status, out, _ in outcomes.values() if status == 0]
    assert len(outputs) == 3, outcomes
    for lines in outputs:
        assert lines.pop() == b""
        if order == "priority":
            for name in NAMES:
                lines.remove(f"{name}\turgent".encode())
        for sender in (name.encode() for name in NAMES):
            own = [line.removeprefix(sender + b"\t") for line in lines if line.startswith(sender + b"\t")]
            assert own == [
                *(b"%b says %d" % (sender, number) for number in range(100)),
                b"\xff bytes\r",
                b"no end of line",
            ]
    if order != "partial":
        assert outputs[0] == outputs[1] == outputs[2]
    verdict = audit([tmp_path])
    assert verdict.holds
    assert verdict.deliveries == 3 * (309 if order == "priority" else 306)
    priorities = Counter(
        priority for batch in read_events([tmp_path], ["priority"]) for priority in batch[0].to_pylist()
    )
    assert priorities[7] == (3 if order == "priority" else 0)


def test_lines_say_to_whom_and_what_makes_no_sense_is_refused() -> None:
    said = b"@B,C not for me\n\\@B for all\n@C for C\n@D two\n!300 three\n!x four\nlast\n"
    with Nodes("--order", "total") as nodes:
        nodes.say("A", said)
        outcomes = nodes.end()
    assert {name: out for name, (_, out, _) in outcomes.items()} == {
        "A": b"A\t@B for all\nA\tlast\n",
        "B": b"A\tnot for me\nA\t@B for all\nA\tlast\n",
        "C": b"A\tnot for me\nA\t@B for all\nA\tfor C\nA\tlast\n",
    }
    assert {name: status for name, (status, _, _) in outcomes.items()} == {"A": 2, "B": 0, "C": 0}
    err = outcomes["A"][2]
    for number, why in ((4, "'D' is not a member"), (5, "0 to 255"), (6, "backslash")):
        assert f"line {number} was not sent" in err
        assert why in err


@pytest.mark.parametrize(("override", "heard", "status"), [((), b"A\tfor B\n", 0), (("--order", "sequenced"), b"", 2)])
def test_settings_come_from_a_file_and_options_override_them(
    override: tuple[str, ...], heard: bytes, status: int, tmp_path: Path
) -> None:
    (tmp_path / "group.toml").write_text('order = "partial"\nfailure_timeout = 10\n')
    with Nodes("--settings", str(tmp_path / "group.toml"), "--no-busy-poll", *override) as nodes:
        nodes.say("A", b"@B for B\n")
        outcomes = nodes.end()
    assert {name: out for name, (_, out, _) in outcomes.items()} == {"A": b"", "B": heard, "C": b""}
    assert outcomes["A"][0] == status
    assert ("every message goes to all members" in outcomes["A"][2]) == bool(status)


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_member_leaves_and_the_others_continue(by: signal.Signals) -> None:
    with Nodes() as nodes:
        nodes.opened()
        nodes.processes["B"].send_signal(by)
        status, _, said = nodes.outcome("B")
        assert (status, said) == (1, f"ordercast: interrupted by {by.name}; B leaves the group\n")
        del nodes.processes["B"]
        nodes.say("A", b"still here\n")
        assert nodes.hear("C", 1) == [b"A\tstill here\n"]
        outcomes = nodes.end()
    for status, _, said in outcomes.values():
        assert (status, said) == (0, "ordercast: B left\nview 1: A, C\n")


def test_a_signal_while_others_are_awaited() -> None:
    with Nodes("--timeout", "50", names=["A"]) as nodes:
        process = nodes.processes["A"]
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(4)
        process.send_signal(signal.SIGTERM)
        status, _, err = nodes.outcome("A")
    assert status in {1, 130, -signal.SIGTERM}, "the others if a busy machine has hardly started it"
    told = {"ordercast: interrupted by SIGTERM\n", "ordercast: interrupted; no partial output was kept\n", ""}
    assert err.removeprefix("ordercast: waiting for B, C\n") in told


def test_who_is_missing_is_named_and_the_status_says_so() -> None:
    with Nodes("--timeout", "1", names=["A", "B"]) as nodes:
        for name in ("A", "B"):
            status, out, err = nodes.outcome(name)
            assert (status, out) == (1, b"")
            assert "C" in err
            assert err.count("\n") == 1


def test_a_reader_that_leaves_ends_it_like_any_command() -> None:
    with Nodes("--order", "sequenced") as nodes:
        nodes.opened()
        pipe = nodes.processes["A"].stdout
        assert pipe is not None
        pipe.close()
        nodes.processes["A"].stdout = None
        nodes.say("B", b"hello\n")
        status, _, err = nodes.outcome("A")
        assert status == 141
        assert "the reader of its output has gone; A leaves the group" in err
        assert "Traceback" not in err
        del nodes.processes["A"]
        assert {(status, out) for status, out, _ in nodes.end().values()} == {(0, b"B\thello\n")}


def test_one_that_is_killed_leaves_the_group_to_the_others_and_its_record(tmp_path: Path) -> None:
    port = free_port(socket.SOCK_STREAM)
    own = {"A": ["--metrics", str(port)], "B": ["--status"]}
    with Nodes("--order", "total", "--record", str(tmp_path), own=own) as nodes:
        nodes.opened()
        nodes.say("C", b"last words\n")
        for name in NAMES:
            assert nodes.hear(name, 1) == [b"C\tlast words\n"]
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=20) as page:
            metrics = page.read().decode()
        nodes.kill("C")
        nodes.say("A", b"still here\n")
        assert nodes.hear("B", 1) == [b"A\tstill here\n"]
        assert nodes.error("A") == b"ordercast: C did not answer\n"
        assert nodes.error("A") == b"view 1: A, B\n"
        outcomes = nodes.end()
    assert {status for status, _, _ in outcomes.values()} == {0}
    assert f'{{group="{nodes.group}",member="A",protocol="st",sender="C"}} 1.0\n' in metrics
    assert "delivered" in outcomes["B"][2], "the statistics"
    verdict = audit([tmp_path])
    assert verdict.holds, verdict.findings
    assert "the record of C is incomplete" in verdict.incomplete_records[0]


@pytest.mark.soak
def test_one_that_is_killed_leaves_the_others_a_sequenced_group(tmp_path: Path) -> None:
    with Nodes("--order", "sequenced", "--record", str(tmp_path)) as nodes:
        nodes.opened()
        nodes.say("C", b"last words\n")
        for name in NAMES:
            assert nodes.hear(name, 1) == [b"C\tlast words\n"]
        nodes.kill("C")
        nodes.say("A", b"still here\n")
        assert nodes.hear("B", 1) == [b"A\tstill here\n"]
        outcomes = nodes.end()
    for status, _, err in outcomes.values():
        assert status == 0
        assert "\nview 1: A, B\n" in err
    verdict = audit([tmp_path])
    assert verdict.holds, verdict.findings
    assert "the record of C is incomplete" in verdict.incomplete_records[0]


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ("g", "the members are missing; give --members A,B,C, or --size 3 to discover so many"),
        (
            "g --members A,B --size 2",
            "--members and --size exclude each other; give --members to open a group, --size to discover its members",
        ),
        ("g --size 3", "--size needs the name of this member, its address, and where members discover each other"),
        ("g --members A", "2 to"),
        ("g --members A,A", "named twice"),
        ("g --members A,=B", "invalid member '=B'"),
        ("g --members A,B= --name A", "invalid member 'B='"),
        ("g --members A,B --name C", "'C' is not a member"),
        ("g --members A,B --order alphabetical", "unknown order 'alphabetical'; choose one of: partial, total"),
        ("g --members A=10.0.0.1:7000,B=10.0.0.2:7000", "need a key"),
        ("g --members A=10.0.0.1,B=10.0.0.2:7000", "is not an address"),
        (
            "g --members A,B --key /no/such/file",
            "No such file or directory; check the path, or make a key: ordercast key --out FILE",
        ),
        ("g --members A,B --metrics here", "--metrics: 'here' is neither a port, such as 9100, nor an address"),
        ("g --members A,B --metrics 65536", "--metrics: invalid port 65536; ports are 1 to 65535"),
        (
            "g --members A,B --settings /no/such/file",
            "settings from /no/such/file: No such file or directory; check the path",
        ),
        ("g --members A,B --relay 127.0.0.1:7000 --order partial", "relay has no effect for order 'partial'"),
        ("g --members A,B --max-datagram-size 1", "max_datagram_size must be 512 to"),
        ("g --members A,B --silence 3", "the option --silence was renamed to --failure-timeout"),
        ("g --members A,B --channel=127.0.0.1:7000", "the option --channel was renamed to --relay"),
        ("g --members A=10.0.0.1:1,B=10.0.0.2:1", "or add --insecure if nobody else can reach this network"),
    ],
)
def test_wrong_arguments_are_told_what_is_right(ordercast: Command, arguments: str, why: str) -> None:
    outcome = ordercast(f"node {arguments}")
    assert outcome.status == 2
    assert why in outcome.sentence


def test_a_channel_that_is_killed_and_started_again(tmp_path: Path) -> None:
    place = f"127.0.0.1:{free_port()}"
    with Nodes("--order", "total", "--relay", place, "--record", str(tmp_path)) as nodes:
        arguments = (place, "--group", nodes.group, "--members", ",".join(NAMES))
        nodes.start("relay", *arguments)
        nodes.start("relay", *arguments, called="second", waits=True)  # or a busy machine starts it too late
        assert nodes.hear("second", 1) == [b"\n"]
        for name in NAMES:
            nodes.say(name, b"one\n")
        for name in NAMES:
            assert len(nodes.hear(name, 3)) == 3
        nodes.kill("relay")
        for name in NAMES:
            nodes.say(name, b"two\n")
        nodes.say("second", b"\n")
        for name in NAMES:
            assert sorted(nodes.hear(name, 3)) == [b"A\ttwo\n", b"B\ttwo\n", b"C\ttwo\n"]
        outcomes = nodes.end()
        nodes.processes["second"].terminate()
        status, _, err = nodes.outcome("second")
    assert {status for status, _, _ in outcomes.values()} == {0}, outcomes
    assert status == 0
    assert "datagrams relayed" in err
    verdict = audit([tmp_path])
    assert verdict.holds
    assert verdict.deliveries == 18


@pytest.mark.parametrize(
    ("options", "mtu", "round_trip"),
    [("", 1400, 0.05), ("--mtu 1000", 1000, 0.05), ("--round-trip 0.02", 1400, 0.02)],
)
def test_a_relay_has_the_settings_of_its_group(
    ordercast: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: str, mtu: int, round_trip: float
) -> None:
    text = 'order = "priority"\nmtu = 1400\nround_trip = 0.05\nrelay = "localhost:7100"\n'
    (tmp_path / "group.toml").write_text(text)
    found: list[Parameters] = []

    def remember(_: str, __: object, ___: object, parameters: Parameters, **____: object) -> None:
        found.append(parameters)
        raise ConfigError("enough")

    monkeypatch.setattr(ordercast_relay, "RelayProcess", remember)
    done = ordercast(f"relay 127.0.0.1:7100 --group g --members A,B {options} --settings", tmp_path / "group.toml")
    assert (done.status, done.sentence) == (2, "enough")
    (parameters,) = found
    assert (parameters.mtu, parameters.round_trip) == (mtu, round_trip * SECOND)


@pytest.mark.parametrize("order", ["partial", "sequenced", "po"])
def test_a_relay_for_an_order_without_one_is_refused(ordercast: Command, tmp_path: Path, order: str) -> None:
    file = tmp_path / "group.toml"
    file.write_text(f'order = "{order}"\n')
    done = ordercast("relay 127.0.0.1:7100 --group g --members A,B --settings", file)
    assert done.status == 2
    assert done.sentence == (
        f"{file}: order '{order}' needs no relay, only 'total' and 'priority' do; start its members without one"
    )


@pytest.mark.parametrize(
    ("line", "named"), [("", "no relay"), ('relay = "127.0.0.1:7200"\n', "the relay 127.0.0.1:7200")]
)
def test_a_relay_that_the_settings_do_not_name_says_so(
    ordercast: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, named: str
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise ConfigError("enough")

    file = tmp_path / "group.toml"
    file.write_text(line)
    monkeypatch.setattr(ordercast_relay, "RelayProcess", refuse)
    done = ordercast("relay 127.0.0.1:7100 --group g --members A,B --settings", file)
    warning = f"{file} names {named}: only members that name 127.0.0.1:7100 as their relay will use this one"
    assert done.err == f"ordercast: {warning}\nordercast: enough\n"


def test_keys_are_read_again_on_a_hangup(tmp_path: Path) -> None:
    """Members and relay go from one key to the next, and nothing is lost."""
    path, place = tmp_path / "group.key", f"127.0.0.1:{free_port()}"
    old, new = new_key(1), new_key(2)

    def write(*lines: str) -> None:
        path.write_text("\n".join(lines))
        path.chmod(0o600)

    write(old)
    with Nodes("--order", "total", "--relay", place, "--key", str(path)) as nodes:
        nodes.start("relay", place, "--group", nodes.group, "--members", ",".join(NAMES), "--key", str(path))
        assert b"relaying for the group" in nodes.error("relay")
        for name in NAMES:
            assert b"is in the group" in nodes.error(name)
        for keys, first in (((old, new), 1), ((new, old), 2), ((new,), 2)):
            write(*keys)
            for name in ("relay", *NAMES):
                nodes.processes[name].send_signal(signal.SIGHUP)
                said = f"ordercast: keys read again from {path}: encrypts with key {first}\n"
                assert nodes.error(name).decode() == said
            nodes.say("B", f"{len(keys)} from {first}\n".encode())
            for name in NAMES:
                assert nodes.hear(name, 1) == [f"B\t{len(keys)} from {first}\n".encode()]
        write("2:no key")
        for name in ("relay", "A"):
            nodes.processes[name].send_signal(signal.SIGHUP)
            assert nodes.error(name).decode().startswith("ordercast: the keys stay as they were: line 1 of")
        outcomes = nodes.end(b"the end\n")
        nodes.processes["relay"].terminate()
        assert nodes.outcome("relay")[0] == 0
    assert {status for status, _, _ in outcomes.values()} == {0}, outcomes


def test_a_member_that_cannot_do_what_it_was_told_lets_the_others_know(tmp_path: Path) -> None:
    unreadable = os.open(tmp_path / "file", os.O_CREAT | os.O_WRONLY)
    with Nodes(names="AC") as nodes:
        nodes.start("node", nodes.group, "--name", "B", "--members", ",".join(NAMES), called="B", stdin=unreadable)
        assert nodes.outcome("B")[0] == 2
        del nodes.processes["B"]
        outcomes = nodes.end()
    os.close(unreadable)
    for status, _, said in outcomes.values():
        assert status == 0
        assert "ordercast: B left\nview 1: A, C\n" in said


def test_what_a_member_cannot_do_is_told_before_it_joins_and_the_others_wait(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with socket.create_server((HERE, 0)) as taken, Nodes(names="AC") as nodes:
        line = ["node", nodes.group, "--name", "B", "--members", ",".join(NAMES)]
        metrics = f"--metrics={taken.getsockname()[1]}"
        for option, why in (
            (metrics, "cannot serve metrics at"),
            (f"--record={tmp_path / 'file'}", "cannot record to"),
        ):
            nodes.start(*line, option, called="B")
            status, _, said = nodes.outcome("B")
            assert status == 2
            assert said.startswith(f"ordercast: {why}")
        for name in "AC":
            assert nodes.error(name) == b"ordercast: waiting for B\n"
        nodes.start(*line, called="B", stdin=subprocess.DEVNULL)
        nodes.opened()
        nodes.end()
        assert nodes.outcome("B")[0] == 0


class _Refuses:
    """A group that takes short messages only."""

    max_message_size = 10

    def __init__(self) -> None:
        self.sent: list[bytes] = []

    async def send(self, payload: bytes, **_: object) -> None:
        if len(payload) > self.max_message_size:
            raise LocalProtocolError("too long")
        self.sent.append(payload)

    async def close(self) -> None:
        """Nothing is open."""


def test_a_line_that_is_too_long_is_not_sent_in_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was cut when it was read; without its `@B` it would just fit."""
    (tmp_path / "input").write_bytes(b"@B 0123456789abcdef\nshort\n")
    group = _Refuses()
    with (tmp_path / "input").open("rb") as file:
        monkeypatch.setattr(node_process, "_INPUT", file.fileno())
        asyncio.run(NodeProcess().send_lines(group))  # type: ignore[arg-type]
    assert group.sent == [b"short"]


def test_an_input_that_cannot_be_read_is_told_in_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = os.open(tmp_path, os.O_RDONLY)
    monkeypatch.setattr(node_process, "_INPUT", folder)
    with pytest.raises(ConfigError, match="cannot read standard input: Is a directory"):
        asyncio.run(NodeProcess().send_lines(_Refuses()))  # type: ignore[arg-type]
    os.close(folder)


def test_names_are_shown_as_they_are() -> None:
    """Though a console takes brackets for colours."""
    shown = Console(width=200)
    counted = Stats(
        group="a[/b]",
        me="[red]",
        protocol="spo",
        members=("[red]",),
        view=0,
        uptime=1.0,
        round_trip=None,
        messages_sent=0,
        messages_delivered={"[red]": 1},
        units_sent=0,
        retransmissions=0,
        retransmission_requests=0,
        recoveries=0,
        units_discarded={},
        units_overrun=0,
        datagrams_received=0,
        datagrams_sent=0,
        bytes_received=0,
        bytes_sent=0,
        state_bytes_received=0,
        state_bytes_sent=0,
        datagrams_rejected={},
        send_errors={},
        receive_errors={},
        pending_bytes=0,
        unread_bytes=0,
        logs={},
    )
    with shown.capture() as printed:
        shown.print(status_view.status(counted))
    assert "a[/b]: [red] (spo)" in printed.get()
    assert printed.get().count("[red]") == 2


def test_no_member_has_power_over_the_terminal_of_another() -> None:
    said = Message("B", "x \x1b[2J\x1b]0;mine\x07\rA\tforged\nümlaut \x9b1m \u202eback".encode() + b" \xff")
    assert shown(said) == "B\tx \\x1b[2J\\x1b]0;mine\\x07\\rA\tforged\\nümlaut \\x9b1m \\u202eback \ufffd"


def test_what_happens_to_the_group_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    view = View(number=1, position=0, members=("A", "C"), left={"B": "silent"}, why="B failed")
    for event in (view, Blocked(("A", "B")), Unblocked(), Excluded("C was silent")):
        NodeProcess().tell(event)
    assert capsys.readouterr().err.splitlines() == [
        "ordercast: B failed",
        "view 1: A, C",
        "ordercast: blocked: it does not reach A, B, and without them there are too few members",
        "ordercast: not blocked any more",
        "ordercast: excluded, and joins again: C was silent",
    ]


def test_what_others_say_of_the_end_has_none_either(capsys: pytest.CaptureFixture[str]) -> None:
    NodeProcess().say("B failed: \x1b[2J")
    assert capsys.readouterr().err == "ordercast: B failed: \\x1b[2J\n"
