"""The commands of `ordercast`, and how every failure becomes one sentence and an exit status.

A command's module is imported when the command is called: `ordercast --help` reads the table `PANELS` instead.
"""

import re
import sys
import traceback
from difflib import get_close_matches
from importlib import import_module
from inspect import getdoc
from pathlib import Path
from signal import SIGTERM, default_int_handler, signal
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from ordercast import __version__
from ordercast.cli.shared.printing import BROKEN_PIPE
from ordercast.cli.shared.renamed_options import require_current_options
from ordercast.model.errors import ConfigError, OrdercastError, reason_of

_URL = re.compile(r"([a-z][a-z0-9+.-]+):/")
_PATHS = frozenset({"path", "file", "directory"})  # types of parameters, by their names in click
_HELP = {"help_option_names": ["-h", "--help"]}
_INTERRUPTED = 130  # typer's exit status for an interrupt, about which it prints nothing

PANELS = {
    "Live groups": {
        "node": "Join a live group: send each line of standard input, print each message.",
        "store": "Run a member of a replicated dictionary.",
        "gateway": "Run a member that accepts batches from outside, and hands each to its group once.",
        "members": "Ask a running group who its members are.",
        "top": "Watch a running group: members, rates, latencies, losses, who waits for whom.",
        "log": "Look at a durable log: its segments, its damage, its messages.",
        "relay": "Relay the datagrams of a live group in one order, until interrupted.",
        "key": "Generate a key for a live group.",
        "doctor": "Check whether this machine is ready for a live group.",
    },
    "Simulations, searches, audits": {
        "simulate": "Simulate one run and print its summary.",
        "ingest": "Make a trace of what clients of another system received.",
        "audit": "Check that recorded traces keep the promises of their service.",
        "view": "Look at traces in the browser: space-time, messages, latencies, violations.",
        "check": "Search every schedule of a small group for a counterexample.",
        "replay": "Run a recorded counterexample step by step.",
        "shrink": "Reduce a failing run to a small one and write it with a test.",
    },
    "Many runs, on Spark": {
        "sweep": "Simulate all runs of a parameter grid on Spark.",
        "soak": "Simulate and audit random configurations on Spark until a limit is reached.",
        "evaluate": "Measure every table and figure of the papers on Spark.",
        "report": "Build the report page of an evaluation from its stored results.",
    },
}
COMMANDS = {name: line for commands in PANELS.values() for name, line in commands.items()}
"""Each command with its line in `ordercast --help`, which is also the first line of its own help.

The command NAME is the function NAME_command of the module `ordercast.cli.NAME`; what commands share is in `shared`.
"""


class _Command(TyperCommand):
    """A command that knows the old names of its options."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Reads the arguments."""
        require_current_options(str(self.name), args)
        rest = super().parse_args(ctx, args)
        for name in (str(parameter.name) for parameter in self.params if parameter.type.name in _PATHS):
            value = ctx.params[name] or ()
            for path in (value,) if isinstance(value, str | Path) else value:
                _require_local(Path(path))
        return rest


def _require_local(path: Path) -> None:
    """Raises `ConfigError` for a URL: as a path it would be a folder `s3:` here."""
    found = _URL.match(str(path))
    if found and not path.exists():
        raise ConfigError(
            f"{found[1]}:// is no local folder, and files elsewhere are not read or written; mount it, or copy it here"
        )


class _Commands(TyperGroup):
    """A group that imports a command only to run it."""

    def list_commands(self, ctx: typer.Context) -> list[str]:  # type: ignore[override]
        """In the order of the table."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: typer.Context, cmd_name: str) -> TyperCommand | None:  # type: ignore[override]
        """The line of a command for the list of all; None if there is no such command."""
        del ctx
        panel = next((panel for panel, commands in PANELS.items() if cmd_name in commands), None)
        return TyperCommand(cmd_name, help=COMMANDS[cmd_name], rich_help_panel=panel) if panel else None

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """The command that is called, imported."""
        if args[0] not in COMMANDS and (near := get_close_matches(args[0], COMMANDS, 1)):
            ctx.fail(f"No such command {args[0]!r}. Did you mean {near[0]!r}?")
        name, listed, rest = super().resolve_command(ctx, args)
        return name, listed and load_command(str(name)), rest


def load_command(name: str) -> TyperCommand:
    """Imports a command of the table."""
    function = getattr(import_module(f"ordercast.cli.{name}"), f"{name}_command")
    single = typer.Typer(add_completion=False, pretty_exceptions_enable=False, context_settings=_HELP)
    single.command(name, cls=_Command, help=_flowing(getdoc(function) or ""))(function)
    command = typer.main.get_command(single)
    assert isinstance(command, TyperCommand)
    return command


def _flowing(text: str) -> str:
    """Help without the line breaks of the source, which are at other places than those of a terminal."""
    return re.sub(r"(?<!\n)\n(?!\n|Exit )", " ", text)


app = typer.Typer(
    name="ordercast",
    cls=_Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings=_HELP,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from ordercast.model.compiled import is_compiled

        typer.echo(f"ordercast {__version__}{', compiled' if is_compiled() else ''}")
        raise typer.Exit


@app.callback()
def ordercast(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Ordered group communication over networks that lose messages.

    `ordercast COMMAND --help` has the options of a command.
    """
    del version  # handled by its callback


def main() -> None:
    """Runs the command line; an error that we raise on purpose is a sentence on standard error and exit status 2.

    If the reader of our output leaves early, as `head` does, the exit status says neither success nor failure: typer
    and rich would end with 1, which is a verdict. SIGTERM, as sent by `timeout`, is handled like an interrupt, so that
    no partial output is left behind.
    """
    signal(SIGTERM, default_int_handler)
    try:
        app()
    except OrdercastError as error:
        typer.echo(f"ordercast: {error}", err=True)
        sys.exit(2)
    except OSError as error:
        typer.echo(f"ordercast: {_sentence(error)}", err=True)
        sys.exit(2)
    except SystemExit as ended:
        if isinstance(ended.__context__, BrokenPipeError):
            sys.exit(BROKEN_PIPE)
        if ended.code == _INTERRUPTED:
            typer.echo("ordercast: interrupted; no partial output was kept", err=True)
        raise
    except Exception:
        traceback.print_exc()
        sys.exit(70)  # EX_SOFTWARE of sysexits.h: Python's own status, 1, is that of a verdict


def _sentence(error: OSError) -> str:
    """Reads and writes of files raise our own errors; what is left is a path that was only looked at, or printing."""
    if error.filename is not None:
        return f"cannot use {error.filename}: {error.strerror}; give another path"
    return f"cannot write to standard output: {reason_of(error)}; redirect it to a place with free space"
