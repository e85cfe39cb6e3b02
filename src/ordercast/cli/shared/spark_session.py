"""What the commands that work on Spark share."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import typer

from ordercast.cli.shared.progress import status_line
from ordercast.model.errors import ConfigError

MASTER = typer.Option(help="Master URL: local[4], spark://HOST:PORT, sc://HOST:PORT (default: Spark in this process).")
"""The option --master."""


@contextmanager
def pipeline_extra() -> Iterator[None]:
    """Turns a missing package of the extra `pipeline` into a `ConfigError`."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"this command needs Spark, and {error.name} is not installed: pip install 'ordercast[pipeline]'"
        ) from error


@contextmanager
def spark_session(master: str | None) -> Iterator[Any]:
    """A Spark session, with a status line while it starts. Only the pipeline knows its type."""
    with pipeline_extra():
        from ordercast.pipeline.session import session
    with ExitStack() as starting:
        starting.enter_context(status_line("starting Spark …"))
        with session(master) as spark:
            starting.close()
            yield spark
