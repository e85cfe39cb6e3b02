"""The commands of `ordercast`, and how every failure becomes one sentence and an exit status."""

import sys
from importlib import import_module
from signal import SIGTERM, default_int_handler, signal
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from ordercast import __version__
from ordercast.cli.printing import BROKEN_PIPE
from ordercast.model.errors import OrdercastError, reason_of

_HELP = {"help_option_names": ["-h", "--help"]}
_INTERRUPTED = 130  # what typer makes of an interrupt, without a word

COMMANDS = {
    "simulate": "simulate",
    "audit": "audit",
    "check": "check",
    "sweep": "sweep",
    "soak": "soak",
    "shrink": "shrink",
    "evaluate": "evaluate",
    "report": "report",
    "replay": "replay",
    "node": "node",
    "relay": "relay",
    "key": "key",
    "doctor": "doctor",
}
"""Each command, and the module that has it as NAME_command: it is loaded when it is called, or listed with all."""


class _Commands(TyperGroup):
    def list_commands(self, ctx: typer.Context) -> list[str]:  # type: ignore[override]
        """As people meet them."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: typer.Context, cmd_name: str) -> Any:  # type: ignore[override]
        """None if there is no such command."""
        del ctx
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"ordercast.cli.{COMMANDS[cmd_name]}")
        alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False, context_settings=_HELP)
        alone.command(cmd_name)(getattr(module, f"{cmd_name}_command"))
        return typer.main.get_command(alone)


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
        typer.echo(f"ordercast {__version__}")
        raise typer.Exit


@app.callback()
def ordercast(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and leave.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Ordered group communication over networks that lose messages."""
    del version  # asked for before any command is


def main() -> None:
    """Runs the command line; errors that we raise on purpose are sentences on standard error, exit 2.

    A reader of our output that leaves early, as `head` does, says nothing about the outcome: where typer and rich would
    end with 1, which is a verdict, the status is one that no verdict has. Being told to end, as by `timeout`, counts
    as an interrupt: nothing is left behind.
    """
    signal(SIGTERM, default_int_handler)
    try:
        app()
    except OrdercastError as error:
        typer.echo(f"ordercast: {error}", err=True)
        sys.exit(2)
    except OSError as error:
        typer.echo(f"ordercast: {_told(error)}", err=True)
        sys.exit(2)
    except SystemExit as ended:
        if isinstance(ended.__context__, BrokenPipeError):
            sys.exit(BROKEN_PIPE)
        if ended.code == _INTERRUPTED:
            typer.echo("ordercast: stopped; nothing half-written was kept", err=True)
        raise


def _told(error: OSError) -> str:
    """Rooms make sentences of what they cannot read or write; what is left is a path that was asked about, or print."""
    if error.filename is not None:
        return f"cannot use {error.filename}: {error.strerror}; name another"
    return f"cannot print the outcome: {reason_of(error)}; give standard output a place with room"
