"""Grids: what is multiplied and added up, that a key means what the command line's option means, and refusals."""

import shlex
from itertools import product
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ordercast.cli.app import app
from ordercast.model.config import GroupConfig, LossInference, RecoveryPolicy, Rules
from ordercast.model.errors import ConfigError
from ordercast.model.faults import Bursts, Crash, Loss, Pause
from ordercast.model.runs import Channel, Pattern, RunConfig, TraceDetail
from ordercast.pipeline.sweep import grid
from ordercast.pipeline.sweep.grid import grid_of, read_grid
from ordercast.trace.reader import read_runs

EXAMPLE = Path(__file__).parents[2] / "examples" / "grid.toml"


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def one(**keys: Any) -> RunConfig:
    [config] = grid_of({"protocol": "spo", **keys}, "g.toml")
    return config


def test_lists_are_multiplied() -> None:
    runs = grid_of({"protocol": ["spo", "st"], "nodes": [3, 5, 7], "seed": [4, 9], "messages": 10}, "g.toml")
    assert {(run.protocol, run.group.nodes, run.seed) for run in runs} == set(product(("spo", "st"), (3, 5, 7), (4, 9)))
    assert len(runs) == 12
    assert {run.workload.messages for run in runs} == {10}


def test_blocks_are_added_up_and_what_is_above_them_holds_for_all(tmp_path: Path) -> None:
    text = """
        seeds = 2
        messages = 7
        [[grid]]
        protocol = "spo"
        [[grid]]
        protocol = "st"
        messages = 9
    """
    runs = read_grid(written(tmp_path / "g.toml", text))
    assert [(run.protocol, run.workload.messages, run.seed) for run in runs] == [
        ("spo", 7, 0),
        ("spo", 7, 1),
        ("st", 9, 0),
        ("st", 9, 1),
    ]


def test_a_run_named_twice_is_run_once() -> None:
    blocks = [{"protocol": "spo", "nodes": [3, 4]}, {"protocol": "spo", "nodes": [4, 5]}]
    assert [run.group.nodes for run in grid_of({"grid": blocks}, "g.toml")] == [3, 4, 5]


def test_record_is_overridden(tmp_path: Path) -> None:
    path = written(tmp_path / "g.toml", 'protocol = "spo"\nrecord = "all"\n')
    assert [run.record for run in read_grid(path, TraceDetail.NONE)] == [TraceDetail.NONE]
    assert [run.record for run in read_grid(path)] == [TraceDetail.ALL]


def test_every_field_can_be_reached() -> None:
    reached = set(grid._TYPES)
    decoded = msgspec.json.decode(RunConfig(protocol="spo", group=GroupConfig(nodes=2)).to_json())

    def paths(value: Any, prefix: str) -> set[str]:
        if isinstance(value, dict):
            return {path for key, item in value.items() for path in paths(item, f"{prefix}.{key}")}
        return {prefix[1:]}

    by_default = {"workload.script", "group.views", "group.polls_late", "group.sequencer.history_bytes", "logs"}
    assert reached == paths(decoded, "") - {"faults"} | by_default


def test_fields_by_their_paths_short_and_whole() -> None:
    config = one(
        group={"timing": {"poll": "3ms"}, "paper": {"condition_2": "others"}},
        rules="paper",
        workload={"senders": [[0, 2]], "pattern": "bursty"},
        bandwidth="10Mbit",
        gap="1.5ms",
        patience="2s",
        **{"sequencer.node": "E3"},
    )
    assert config.group.timing.poll == 3_000_000
    assert config.group.rules is Rules.PAPER
    assert config.group.paper.condition_2 is LossInference.OTHERS
    assert config.group.sequencer.node == 2
    assert config.workload.senders == (0, 2)
    assert config.workload.pattern is Pattern.BURSTY
    assert config.workload.gap == 1_500_000
    assert config.network.bits_per_second == 10_000_000
    assert config.stall_timeout == 2_000_000_000


def test_faults_are_written_as_on_the_command_line() -> None:
    faults = ["bursts well=10ms bad=1ms", ["crash node=E2 at=3ms", "pause node=0 at=1ms lasting=5ms"], []]
    runs = grid_of({"protocol": "spo", "loss": [0.0, 0.1], "fault": faults}, "g.toml")
    bursts, crash, pause = (
        Bursts(well=10**7, bad=10**6),
        Crash(node=1, at=3 * 10**6),
        Pause(node=0, at=10**6, lasting=5 * 10**6),
    )
    together = [(bursts,), (crash, pause), ()]
    assert [run.faults for run in runs] == [*together, *((Loss(rate=0.1), *faults) for faults in together)]


def test_what_is_not_named_suits_the_protocol() -> None:
    assert one(protocol="st").network.channel is Channel.ONE
    assert one(protocol="spo").network.channel is Channel.MANY
    assert one(protocol="spo", channel="one").network.channel is Channel.ONE
    assert one(protocol="prito").workload.priorities == 3


@pytest.mark.parametrize(
    ("keys", "options"),
    [
        ({"protocol": "spo"}, "simulate spo"),
        ({"protocol": "prito", "nodes": 3, "loss": 0.1}, "simulate prito --nodes 3 --loss 0.1"),
        (
            {"protocol": "st", "recovery": "go-back-n", "propagation": "1ms", "fault": "crash node=E2 at=3ms"},
            "simulate st --recovery go-back-n --propagation 1ms --fault 'crash node=E2 at=3ms'",
        ),
        (
            {"protocol": "to", "fault": [["join node=E6 at=3ms", "leave node=E2 at=9ms", "return node=E2 at=20ms"]]},
            "simulate to --fault 'join node=E6 at=3ms' --fault 'leave node=E2 at=9ms' --fault 'return node=E2 at=20ms'",
        ),
        ({"protocol": "po", "views": True}, "simulate po --views"),
        (
            {"protocol": "sequencer", "bandwidth": "10Mbit", "spread": 0.5, "seed": 3},
            "simulate sequencer --bandwidth 10Mbit --spread 0.5 --seed 3",
        ),
    ],
    ids=["spo", "prito", "st", "to", "po", "sequencer"],
)
def test_a_grid_makes_the_run_that_the_command_line_makes(keys: dict[str, Any], options: str, tmp_path: Path) -> None:
    app([*shlex.split(options), "--messages", "1", "--out", str(tmp_path)], standalone_mode=False)
    [row] = read_runs([tmp_path])
    assert one(**keys, messages=1).to_json() == row["config"]


def test_the_example_is_a_grid() -> None:
    runs = read_grid(EXAMPLE)
    assert len(runs) == 5 * (2 * 2 * 2 * 3 + 2 * 2 * 2)
    assert {run.group.recovery for run in runs} == {RecoveryPolicy.SELECTIVE, RecoveryPolicy.GO_BACK_N}


REFUSED = [
    ('protocol = "spo"\nsedes = 3', "g.toml: unknown key 'sedes'; did you mean 'seeds'?"),
    ('protocol = "spo"\nnods = 3', "g.toml: unknown key 'nods'; did you mean 'nodes'?"),
    ('protocol = "spo"\nwhatever = 3', "g.toml: unknown key 'whatever'; known: "),
    ('protocol = "spo"\nnodes = [4, 1]', "g.toml, key nodes: a group has 2 to 1024 nodes, not 1"),
    ('protocol = "spo"\nnodes = "four"', "g.toml, key nodes: invalid value 'four': Expected `int`"),
    ('protocol = "spo"\nnodes = true', "g.toml, key nodes: invalid value True: Expected `int`"),
    ('protocol = "spo"\nrules = "mended"', "g.toml, key rules: invalid value 'mended'; choose one of: sound, paper"),
    ('protocol = "spo"\nspread = nan', "g.toml, key spread: the spread must be above 0 and at most 1"),
    ('protocol = "spo"\ngap = "soon"', "g.toml, key gap: 'soon' is not a duration such as 50us"),
    ('protocol = "spo"\nloss = 1.5', "g.toml, key loss: the loss rate must be at least 0 and below 1"),
    ('protocol = "spo"\nfault = "flood"', "g.toml, key fault: unknown fault 'flood'"),
    ('protocol = "spo"\nfault = 3', "g.toml, key fault: a fault is written as on the command line"),
    ('protocol = "spo"\nsenders = [0, 1]', "a list in the list, such as [[0, 1]], is one value"),
    ('protocol = "spo"\nseeds = 0', "g.toml, key seeds: the number of seeds"),
    ('protocol = "spo"\nseeds = [1, 2]', "g.toml, key seeds: the number of seeds"),
    ('protocol = "spo"\nseeds = 2\nseed = 1', "key seed: given twice"),
    ('protocol = "spo"\nwindow = 2\ngroup.window = 1', "key group.window: given twice"),
    ('protocol = "spo"\nseed = []', "g.toml, key seed: an empty list leaves no run"),
    ("nodes = 3", "g.toml: the key protocol is missing; set it to one of: "),
    ('protocol = "xyz"', "g.toml, key protocol: unknown protocol 'xyz'; choose one of: "),
    ('seeds = 2\nmessages = 5\n[[grid]]\nprotocol = "xyz"', "block 1, key protocol: unknown protocol 'xyz'"),
    ('protocol = "st"\nchannel = "many"', "g.toml, key channel: st needs the channel 'one'"),
    ('[[grid]]\nprotocol = "spo"\n[[grid]]\nprotocol = "po"\nrules = "paper"', "g.toml, block 2, key rules: po has no"),
    ('window = 0\n[[grid]]\nprotocol = "spo"', "g.toml, block 1, key window: the window must be at least 1"),
    ('windw = 0\n[[grid]]\nprotocol = "spo"', "g.toml, above the blocks: unknown key 'windw'"),
    ('[grid]\nprotocol = "spo"', "write [[grid]], in double brackets"),
    ('protocol = "spo"\nnodes = [2, 5]\nfirst_seq = [[1, 2]]', "with nodes = 5: first_seq needs one number"),
    ('protocol = "spo"\nseeds = 1000000\nnodes = [2, 3]', "more than 1,000,000 runs"),
    ("protocol = spo", "g.toml: invalid TOML: "),
]


@pytest.mark.parametrize(("text", "sentence"), REFUSED, ids=[sentence[-40:] for _, sentence in REFUSED])
def test_refusals_name_the_block_and_the_key(text: str, sentence: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as refused:
        read_grid(written(tmp_path / "g.toml", text))
    assert sentence in str(refused.value)
    assert "\n" not in str(refused.value)


def test_files_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot read the grid .*none.toml: No such file"):
        read_grid(tmp_path / "none.toml")
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="is not UTF-8 text"):
        read_grid(tmp_path / "binary")
