"""The commands of `ordercast`, and how every failure becomes one sentence and an exit status."""

import sys
from typing import Annotated

import typer

from ordercast import __version__
from ordercast.cli.audit import audit_command
from ordercast.cli.channel import channel_command
from ordercast.cli.check import check_command
from ordercast.cli.doctor import doctor_command, key_command
from ordercast.cli.evaluate import evaluate_command
from ordercast.cli.node import node_command
from ordercast.cli.replay import replay_command
from ordercast.cli.report import report_command
from ordercast.cli.shrink import shrink_command
from ordercast.cli.simulate import simulate_command
from ordercast.cli.soak import soak_command
from ordercast.cli.sweep import sweep_command
from ordercast.model.errors import OrdercastError

_INTERRUPTED = 130  # what typer makes of an interrupt, without a word

app = typer.Typer(
    name="ordercast",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("simulate")(simulate_command)
app.command("audit")(audit_command)
app.command("check")(check_command)
app.command("sweep")(sweep_command)
app.command("soak")(soak_command)
app.command("shrink")(shrink_command)
app.command("evaluate")(evaluate_command)
app.command("report")(report_command)
app.command("replay")(replay_command)
app.command("node")(node_command)
app.command("channel")(channel_command)
app.command("key")(key_command)
app.command("doctor")(doctor_command)


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
    """Runs the command line; errors that we raise on purpose are sentences on standard error, exit 2."""
    try:
        app()
    except OrdercastError as error:
        typer.echo(f"ordercast: {error}", err=True)
        sys.exit(2)
    except OSError as error:  # what rooms read and write raises an error of ours: this is where we print
        typer.echo(f"ordercast: cannot print the outcome: {error}; give standard output a place with room", err=True)
        sys.exit(2)
    except SystemExit as ended:
        if ended.code == _INTERRUPTED:
            typer.echo("ordercast: stopped; nothing half-written was kept", err=True)
        raise
