"""Help is quick, because it imports nothing that it does not need, and it says what the commands themselves say."""

import subprocess
import sys
from collections.abc import Set

import pytest
from rich.text import Text

from ordercast.cli.app import COMMANDS, load_command
from ordercast.cli.shared.group_options import ORDERS
from ordercast.cli.shared.renamed_options import RENAMED_OPTIONS, require_current_options
from ordercast.live.settings import PROTOCOLS
from ordercast.model.errors import ConfigError

HEAVY = {"asyncio", "cryptography", "matplotlib", "msgspec", "numpy", "pandas", "pyarrow", "pyspark", "scipy", "uvloop"}
LIVE = {"gateway", "store", "node", "members", "top", "relay", "doctor"}  # which need asyncio


_RUN = """
import sys
from ordercast.cli import main
for line in sys.argv[1:]:
    sys.argv = ["ordercast", *line.split()]
    try:
        main()
    except SystemExit as ended:
        assert not ended.code, line
print(*sorted({name.partition(".")[0] for name in sys.modules}), file=sys.stderr)
"""


def imported_by(*lines: str) -> set[str]:
    """The packages that commands import, in a process of their own."""
    done = subprocess.run([sys.executable, "-c", _RUN, *lines], capture_output=True, text=True, check=True)  # noqa: S603
    return set(done.stderr.splitlines()[-1].split())


def test_the_version_imports_nothing_but_typer() -> None:
    found = imported_by("--version")
    assert found & (HEAVY | {"rich"}) == set()
    assert {name for name in found - sys.stdlib_module_names if not name.startswith("_")} <= {
        "annotated_doc",
        "ordercast",
        "shellingham",
        "typer",
        "typing_extensions",
    }


def test_the_list_of_commands_imports_no_command() -> None:
    assert imported_by("--help") & HEAVY == set()


@pytest.mark.parametrize(
    ("commands", "allowed"),
    [(COMMANDS.keys() - LIVE, {"msgspec"}), (LIVE, {"msgspec", "asyncio"})],
    ids=["run", "live"],
)
def test_the_help_of_a_command_imports_only_what_declares_its_options(commands: Set[str], allowed: set[str]) -> None:
    """All of them one after the other in one process: what any of them imports is imported."""
    assert imported_by(*(f"{command} --help" for command in sorted(commands))) & HEAVY <= allowed


def test_the_orders_of_live_groups_are_those_that_the_commands_know() -> None:
    assert {str(order): protocol for order, protocol in PROTOCOLS.items()} == ORDERS


@pytest.mark.parametrize("command", COMMANDS)
def test_the_list_says_what_the_command_says_of_itself(command: str) -> None:
    assert (load_command(command).help or "").splitlines()[0] == COMMANDS[command]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_is_shown_as_it_was_written(command: str) -> None:
    """Help is read as markup, in which a word in brackets is a style and vanishes."""
    loaded = load_command(command)
    texts = [loaded.help, *(parameter.help for parameter in loaded.params if hasattr(parameter, "help"))]
    for text in texts:
        assert text is not None
        assert Text.from_markup(text).plain == text.replace("\\[", "["), text


@pytest.mark.parametrize(
    ("command", "old", "new"),
    [(command, old, new) for command, renamed in RENAMED_OPTIONS.items() for old, new in renamed.items()],
)
def test_options_that_were_renamed_are_answered_with_their_new_name(command: str, old: str, new: str) -> None:
    known = {name for option in load_command(command).params for name in (*option.opts, *option.secondary_opts)}
    assert new in known
    assert old not in known
    for argument in (old, f"{old}=3"):
        with pytest.raises(ConfigError, match=f"the option {old} was renamed to {new}"):
            require_current_options(command, ["x", argument])
    require_current_options(command, ["x", "--", old])
