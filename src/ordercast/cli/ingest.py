"""`ordercast ingest`: what clients of other systems printed, as a trace."""

from enum import StrEnum
from pathlib import Path
from shlex import quote
from typing import Annotated, Any

import typer

from ordercast.cli.shared.printing import counted
from ordercast.cli.shared.spark_session import pipeline_extra
from ordercast.model.config import require
from ordercast.trace.storage import location


class System(StrEnum):
    """The systems whose clients are known."""

    KAFKA = "kafka"
    NATS = "nats"
    ETCD = "etcd"
    RABBITMQ = "rabbitmq"
    CDC = "cdc"


def ingest_command(
    system: Annotated[System, typer.Argument(help="Which system it is.", case_sensitive=False)],
    out: Annotated[Any, typer.Argument(help="Folder for the trace, also as a URL.", parser=location, metavar="OUT")],
    logs: Annotated[
        list[str], typer.Argument(help="For each receiver what it received: NAME=FILE.", metavar="NAME=FILE...")
    ],
    sent: Annotated[
        Path | None,
        typer.Option(
            help="What a client received that gets everything; without it, nobody knows what all of the others lack."
        ),
    ] = None,
    filters: Annotated[
        list[str] | None,
        typer.Option("--for", help="What a receiver asked for, NAME=FILTER; may be repeated.", metavar="NAME=FILTER"),
    ] = None,
    source: Annotated[
        str | None, typer.Option(help="The name of the topic, store, queue or database where the logs do not say it.")
    ] = None,
    service: Annotated[
        str | None,
        typer.Option(help="What is promised: a service, a profile, or the TOML file of one.", metavar="NAME|FILE.toml"),
    ] = None,
    run: Annotated[str | None, typer.Option(help="The name of the run (default: the system).")] = None,
) -> None:
    """Make a trace of what clients of another system received.

    A FILTER is a topic (kafka), a subject with * and > (nats), a prefix of keys (etcd), a routing key (rabbitmq) or a
    table (cdc).
    Exit 0: the trace is written; 2: a log cannot be read.
    """
    with pipeline_extra():
        from ordercast.pipeline.ingest.client_logs import from_client_logs
        from ordercast.pipeline.ingest.write_trace import write_trace
    from ordercast.audit.profiles import asked_by

    named = {name: Path(file) for name, file in map(_pair, logs)}
    require(len(named) == len(logs), "two logs have the same name; a receiver has one log")
    wanted: dict[str, list[str]] = {}
    for name, one in map(_pair, filters or ()):
        wanted.setdefault(name, []).append(one)
    tables = from_client_logs(
        system.value,
        named,
        sent=sent,
        filters=wanted,
        source=source,
        service=asked_by(service) if service is not None else None,
        run=run,
    )
    events = write_trace(tables.events, tables.runs, out)
    what = f"{counted(len(named), 'receiver')}, {counted(events, 'event')}"
    typer.echo(f"{what}; audit the trace with: ordercast audit {quote(str(out))}")


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    require(bool(name and equals and value), f"{text!r} must be NAME=…: who received it, and the file or filter")
    return name, value
