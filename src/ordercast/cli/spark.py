"""What commands that work on Spark have in common."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import typer

from ordercast.cli.progress import status_line
from ordercast.model.errors import ConfigError

MASTER = typer.Option(help="Where Spark is: local[4], spark://HOST:PORT or sc://HOST:PORT; if not said, in here.")
"""The option --master."""


@contextmanager
def pipeline_extra() -> Iterator[None]:
    """Turns the absence of the pipeline's packages into a sentence; they are imported when a command needs them."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"this needs Spark, and {error.name} is not there: pip install 'ordercast[pipeline]'"
        ) from error


@contextmanager
def opened(master: str | None) -> Iterator[Any]:
    """A session, to be handed on as it is: only the pipeline knows Spark. Whoever watches is told while it starts."""
    with pipeline_extra():
        from ordercast.pipeline.session import session  # noqa: PLC0415
    with ExitStack() as waiting:
        waiting.enter_context(status_line("Spark starts …"))
        with session(master) as spark:
            waiting.close()
            yield spark
