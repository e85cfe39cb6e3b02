"""The rooms of the package, what each may import, and how large a file may grow: enforced, not hoped for."""

import ast
import sys
from functools import cache
from pathlib import Path

import pytest

from ordercast.cli.app import COMMANDS

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "ordercast"

# Each room: our rooms that it may import, and the packages. "stdlib" is the whole standard library.
ROOMS: dict[str, tuple[set[str], set[str]]] = {
    # `mypy_extensions` only for type checkers: it is not needed to run.
    "model": (set(), {"stdlib", "msgspec", "mypy_extensions"}),
    "trace": ({"model"}, {"stdlib", "pyarrow"}),
    # Files of a durable log. No asyncio, no socket; the disk is an argument.
    "log": ({"model"}, {"stdlib", "msgspec", "pyarrow"}),
    # By allow-list: a clock, a socket, chance or a log would be found here, whatever it is called.
    "protocols": (
        {"model"},
        {
            "collections",
            "enum",
            "functools",
            "hashlib",
            "heapq",
            "importlib",
            "itertools",
            "msgspec",
            "operator",
            "typing",
        },
    ),
    # Bytes and values. `cryptography` only behind a key: see the test below.
    "wire": ({"model", "protocols"}, {"stdlib", "msgspec", "cryptography"}),
    # The only room with sockets; what can be decided without them is decided without them.
    "live": ({"model", "protocols", "trace", "wire", "log"}, {"stdlib", "msgspec", "prometheus_client"}),
    # Objects on live groups; what is applied, and when, is decided without the event loop.
    "replicated": ({"model", "trace", "live"}, {"stdlib", "msgspec"}),
    # Batches from outside, once in the order of a group.
    "gateway": ({"model", "log", "live"}, {"stdlib", "msgspec"}),
    "audit": ({"model", "trace"}, {"stdlib"}),
    "drawing": ({"model"}, {"stdlib", "rich"}),
    "simulator": ({"model", "protocols", "trace", "log"}, {"stdlib"}),
    # Time is only measured here, never asked for.
    "explorer": ({"model", "protocols", "trace"}, {"stdlib", "msgspec"}),
    # Random runs: drawn, judged, made small.
    "swarm": ({"model", "protocols", "trace", "audit", "simulator"}, {"stdlib", "msgspec"}),
    # The only room with Spark. What it measures and judges is made elsewhere.
    "pipeline": (
        {"model", "trace", "log", "protocols", "audit", "simulator", "explorer", "swarm"},
        {"stdlib", "msgspec", "numpy", "pyarrow", "pyspark", "scipy"},
    ),
    # Experiments as data, formulas and statistics; how runs are measured is handed in.
    "evaluation": ({"model", "trace"}, {"stdlib", "msgspec", "numpy", "scipy"}),
    # From stored results alone.
    "report": ({"model", "evaluation"}, {"stdlib", "jinja2", "matplotlib"}),
    # The page, what it asks for, and a server on this machine. It reads traces and judges nothing.
    "viewer": ({"model", "trace", "audit"}, {"stdlib", "numpy", "pyarrow"}),
    "cli": (
        {
            "model",
            "trace",
            "log",
            "protocols",
            "wire",
            "live",
            "replicated",
            "gateway",
            "audit",
            "drawing",
            "simulator",
            "explorer",
            "swarm",
            "pipeline",
            "evaluation",
            "report",
            "viewer",
        },
        {"stdlib", "msgspec", "rich", "typer", "uvloop"},
    ),
}
METAPHORS = {
    *("box_order", "boxes", "chance", "cuts", "dockets", "entries", "finding", "gate", "growing", "heeded", "joined"),
    *("ledger", "lines", "lingering", "liveness", "making", "mishaps", "opening", "outgoing", "pace", "packed"),
    *("parcels", "recent", "resequencing", "said", "searched", "side_by_side", "strands", "surveying", "terms"),
    *("trains", "walk", "whole_state", "wording", "world"),
}
"""Names that modules had before they were named by the field's words: nobody who knows the field finds them."""
HOMONYMS = {"channel": "explorer", "completion": "explorer", "nodes": "explorer", "replay": "explorer"}
"""Names that one package has no module of, because another package has one that is something else."""
LISTS_OF_OPTIONS = {"simulate_command", "check_command", "node_command", "audit_command", "gateway_command", "join"}
LIVE_LAYERS = {
    "values": set(),  # what users are given: events, statistics, names of logs, sentences
    "session": set(),
    "transport": set(),
    "settings": {"transport"},  # which reads addresses
    "state_transfer": {"values", "transport"},
    "host": {"values", "session", "transport", "settings", "state_transfer"},
    "top": {"values", "session", "transport", "settings", "state_transfer", "host"},  # what users call
}
"""The layers of `live`, each with those below it that it may import."""
LIVE_MODULES = {
    **dict.fromkeys(("durability", "events", "log_settings", "logs", "stats", "why_not_open"), "values"),
    "application_exceptions": "values",
    **dict.fromkeys(("session", "transport", "settings", "state_transfer", "host"), ""),
    **dict.fromkeys(("doctor", "group", "join", "join_options", "metrics_server", "open_group", "prometheus"), "top"),
    **dict.fromkeys(("__init__", "group_members", "join_open_group", "local_groups", "member_parts", "restart"), "top"),
    **dict.fromkeys(("relay_process", "resolution", "sync_group", "user_key"), "top"),
}
"""The layer of each module and package of `live`; "": its own name."""
MODULES = sorted(PACKAGE.rglob("*.py"))


@cache
def nodes_of(path: Path) -> list[ast.AST]:
    return list(ast.walk(ast.parse(path.read_text())))


def imports_of(path: Path) -> set[str]:
    """The modules that a file imports, wherever in it."""
    found = set()
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative imports hide which room is meant"
            found.add(str(node.module))
    return found


def test_every_room_is_listed() -> None:
    assert {path.name for path in PACKAGE.iterdir() if path.is_dir() and path.name != "__pycache__"} == set(ROOMS)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_room_imports_only_what_it_may(path: Path) -> None:
    room = path.relative_to(PACKAGE).parts[0]
    if room.endswith(".py"):
        return  # the front door
    rooms, packages = ROOMS[room]
    for name in imports_of(path):
        top, *rest = name.split(".")
        if top == "ordercast":
            if rest:  # the front door itself, which holds the version, may be imported by all
                assert rest[0] in rooms | {room}, f"{room} may not import {name}"
        elif top not in packages:
            assert "stdlib" in packages, f"{room} may not import {name}"
            assert top in sys.stdlib_module_names, f"{room} may not import {name}"


def test_modules_are_named_by_the_fields_words() -> None:
    names = {path.stem: path.relative_to(PACKAGE) for path in MODULES}
    assert {name: str(path) for name, path in names.items() if name in METAPHORS} == {}
    packages = [path.relative_to(PACKAGE).parts for path in MODULES]
    assert [parts for parts in packages if HOMONYMS.get(parts[-1].removesuffix(".py")) == parts[0]] == []


def test_a_listing_of_the_command_line_is_the_list_of_its_commands() -> None:
    files = {path.stem for path in (PACKAGE / "cli").glob("*.py")}
    assert files - {"__init__", "__main__", "app"} == set(COMMANDS)


@pytest.mark.parametrize("protocol", ["sequencer", "spo", "st", "to"])
def test_what_all_protocols_do_has_one_name_in_each_package(protocol: str) -> None:
    package = PACKAGE / "protocols" / protocol
    assert {"units", "machine", "loss_detection"} <= {path.stem for path in package.glob("*.py")}
    tree = ast.parse((package / "loss_detection.py").read_text())
    assert "detect_loss" in {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def test_the_arrows_point_one_way() -> None:
    order = list(ROOMS)
    for room, (rooms, _) in ROOMS.items():
        assert all(order.index(other) < order.index(room) for other in rooms)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_files_and_functions_stay_small(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 700, "what second thing is in it?"
    for node in nodes_of(path):
        if isinstance(node, ast.FunctionDef) and node.name not in LISTS_OF_OPTIONS:
            assert node.end_lineno is not None
            assert node.end_lineno - node.lineno < 70, f"{node.name} does more than one thing"


def test_no_clock_or_chance_in_the_simulator_but_its_own() -> None:
    for path in (PACKAGE / "simulator").glob("*.py"):
        forbidden = {"time", "datetime", "secrets", "uuid", "os", "threading", "asyncio"}
        if path.name != "randomness.py":
            assert "Random(" not in path.read_text(), f"{path.name}: use `randomness.stream`"
        assert not imports_of(path) & forbidden


def test_no_clock_socket_or_chance_on_the_wire_but_in_new_keys() -> None:
    for path in (PACKAGE / "wire").glob("*.py"):
        forbidden = {"time", "datetime", "random", "uuid", "socket", "threading", "asyncio"}
        allowed = {"keys.py": {"os", "secrets"}}.get(path.name, set())
        assert not imports_of(path) & ((forbidden | {"os", "secrets"}) - allowed), path.name


def test_the_log_has_no_event_loop_and_no_socket() -> None:
    for path in (PACKAGE / "log").glob("*.py"):
        assert not imports_of(path) & {"asyncio", "socket", "random", "multiprocessing", "subprocess"}, path.name


def test_sessions_have_no_clock_socket_or_chance() -> None:
    forbidden = {"time", "datetime", "random", "secrets", "uuid", "os", "socket", "threading", "asyncio"}
    for path in (PACKAGE / "live" / "session").glob("*.py"):
        assert not imports_of(path) & forbidden, path.name


def live_layer(name: str) -> str:
    return LIVE_MODULES[name] or name


def test_every_module_of_live_has_a_layer() -> None:
    found = {path.stem for path in (PACKAGE / "live").iterdir() if path.name != "__pycache__"}
    assert found == set(LIVE_MODULES)
    order = list(LIVE_LAYERS)
    for layer, below in LIVE_LAYERS.items():
        assert all(order.index(other) < order.index(layer) for other in below)


@pytest.mark.parametrize("path", sorted((PACKAGE / "live").rglob("*.py")), ids=lambda path: path.stem)
def test_live_imports_only_downwards(path: Path) -> None:
    layer = live_layer(path.relative_to(PACKAGE / "live").parts[0].removesuffix(".py"))
    for name in imports_of(path):
        parts = name.split(".")
        if parts[:2] == ["ordercast", "live"] and len(parts) > 2:
            assert live_layer(parts[2]) in LIVE_LAYERS[layer] | {layer}, f"{layer} may not import {name}"


def test_only_the_module_that_authenticates_imports_the_package_for_it() -> None:
    users = {path.name for path in MODULES if any(name.startswith("cryptography") for name in imports_of(path))}
    assert users == {"authentication.py"}


def test_the_project_speaks_only_of_itself() -> None:
    words = ("TO" + "DO", "FIX" + "ME", "XX" + "X")
    for path in [*MODULES, *ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        for word in words:
            assert word not in path.read_text(), f"{path} has something left to do"
