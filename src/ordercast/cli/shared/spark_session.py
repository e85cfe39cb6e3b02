"""What the commands that work on Spark share."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import typer

from ordercast.cli.shared.progress import status_line
from ordercast.model.config import require
from ordercast.model.errors import ConfigError

MASTER = typer.Option(help="Master URL: local[4], spark://HOST:PORT, sc://HOST:PORT (default: Spark in this process).")
"""The option --master."""
CONF = typer.Option("--conf", help="A setting of Spark, as NAME=VALUE; may be repeated.", metavar="NAME=VALUE")
"""The option --conf."""


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
def spark_session(master: str | None, conf: list[str] | None = None) -> Iterator[Any]:
    """A Spark session, with a status line while it starts. Only the pipeline knows its type."""
    with pipeline_extra():
        from ordercast.pipeline.session import session
    settings = dict(map(_setting, conf or ()))
    with ExitStack() as starting:
        starting.enter_context(status_line("starting Spark …"))
        with session(master, settings) as spark:
            starting.close()
            yield spark


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    require(bool(equals) and name.startswith("spark."), f"--conf takes spark.NAME=VALUE, not {text!r}")
    return name, value
