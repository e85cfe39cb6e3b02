"""`ordercast simulate sequencer`: its options, what its summary adds, and the published protocol."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from ordercast.model.config import GroupConfig, PaperRules, Rules, SequencerConfig, SequencerReadings
from ordercast.model.runs import Channel, Network, RunConfig, Workload
from tests.cli.conftest import Command

SMALL = "simulate sequencer --nodes 5 --messages 12"
READINGS = "--reading first_id=1 --reading acknowledges_last=true --reading advances_own_row=true"


def document_of(text: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(text)
    return document


def test_every_option_reaches_the_configuration(ordercast: Command) -> None:
    done = ordercast(
        f"{SMALL} --rules paper {READINGS} --reading dummy_after=4 --history 9 --resilience 2 --direct-from 700 "
        "--send-time 3us --receive-time 2us --senders E2,E4 --json"
    )
    network = Network(channel=Channel.ANY, send_time=3_000, receive_time=2_000)
    workload = Workload(messages=12, senders=(1, 3))
    readings = SequencerReadings(first_id=1, acknowledges_last=True, advances_own_row=True, dummy_after=4)
    group = GroupConfig(
        nodes=5,
        rules=Rules.PAPER,
        paper=PaperRules(sequencer=readings),
        sequencer=SequencerConfig(history=9, resilience=2, direct_from=700),
    )
    expected = RunConfig(protocol="sequencer", group=group, network=network, workload=workload).with_default_timeouts()
    assert RunConfig.from_json(json.dumps(document_of(done.out)["config"])) == expected


@pytest.mark.parametrize("more", ["", "--resilience 2", "--history 2", "--channel many", "--channel one"])
def test_a_run_of_the_sound_rules_is_complete(ordercast: Command, more: str) -> None:
    done = ordercast(f"{SMALL} --loss 0.1 --seed 4 {more} --json")
    assert (done.status, document_of(done.out)["complete"]) == (0, True)


def test_the_summary_tells_packets_and_interrupts(ordercast: Command) -> None:
    """One continuous sender: two packets for each broadcast, and as many interrupts as there are nodes."""
    done = ordercast(f"{SMALL} --rules paper {READINGS} --senders E2")
    assert done.status == 0
    assert re.search(r"packets +24 +units put on the network, 2\.00 per message", done.out)
    assert re.search(r"interrupts +60 +units that reached a node, 5\.00 per message", done.out)
    counters = document_of(ordercast(f"{SMALL} --rules paper {READINGS} --senders E2 --json").out)["counters"]
    assert counters["interrupts"] == 60


def test_other_protocols_do_not_count_broadcasts(ordercast: Command) -> None:
    done = ordercast("simulate spo --nodes 3 --messages 4")
    assert "per message" not in done.out


def test_the_published_protocol_ends_with_its_first_message(ordercast: Command) -> None:
    done = ordercast(f"{SMALL} --rules paper")
    assert (done.status, done.err) == (1, "")
    assert "E1: gave up: GetFromHistory finds nothing for the duplicate 0 of E" in done.out
    assert "0 deliveries" in done.out


PAGE = (Path(__file__).parents[2] / "docs" / "protocols" / "sequencer_paper.md").read_text()
EXAMPLES = re.findall(r"^```console\n\$ ordercast (.*?)\n(.*?)^```", PAGE, flags=re.DOTALL | re.MULTILINE)


def test_the_page_shows_every_flaw() -> None:
    assert len(EXAMPLES) == len(re.findall(r"^\*\*S\d: ", PAGE, flags=re.MULTILINE)) == 8


@pytest.mark.parametrize(("line", "shown"), EXAMPLES, ids=[f"S{number}" for number in range(1, len(EXAMPLES) + 1)])
def test_the_page_on_the_published_protocol_shows_what_is_printed(ordercast: Command, line: str, shown: str) -> None:
    printed = ordercast(line).out
    for words in shown.splitlines():
        assert words in printed


def test_a_group_that_went_on_without_a_node_says_when(ordercast: Command) -> None:
    """The last messages of that node may be lost: not every message was delivered everywhere."""
    line = "simulate sequencer --nodes 4 --messages 40 --fault 'crash node=E1 at=2ms' --record none"
    done, document = ordercast(line), json.loads(ordercast(line, "--json").out)
    assert done.status == 0
    assert "every message" not in done.out
    assert document["crashed"] == {"E1": 2_000_000}
    view = document["view"]
    assert (view["number"], view["members"]) == (1, ["E2", "E3", "E4"])
    assert 2_000_000 < view["time"] < document["virtual_time"]
    times = [f"{time / 1e6:.3g} ms" for time in (view["time"], document["virtual_time"])]
    sentence = f"E1 crashed at 2 ms; E2, E3, E4 went on without E1 at {times[0]}; the last progress was at {times[1]}"
    assert sentence in done.out.splitlines()


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        (
            "sequencer --nodes 3 --fault 'crash node=E1 at=100ms'",
            "E1 crashed at 100 ms; no view without E1 was installed",
        ),
        ("spo --nodes 3 --no-views --fault 'crash node=E2 at=0ms'", "E2 crashed at 0 ns; the last progress was at "),
        ("spo --nodes 3 --fault 'crash node=E2 at=0ms'", "E2 crashed at 0 ns; view 1 since "),
        ("sequencer --nodes 5 --fault 'pause node=E3 at=1ms lasting=1s'", "E1, E2, E4, E5 went on without E3 at "),
    ],
)
def test_the_summary_says_who_failed_and_whether_the_others_went_on(
    ordercast: Command, line: str, sentence: str
) -> None:
    done = ordercast(f"simulate {line} --messages 5 --record none")
    assert any(shown.startswith(sentence) for shown in done.out.splitlines()), done.out


def test_without_failures_there_is_no_line_about_them(ordercast: Command) -> None:
    done = ordercast("simulate sequencer --nodes 3 --messages 5 --record none")
    assert "went on" not in done.out
    assert "last progress" not in done.out
