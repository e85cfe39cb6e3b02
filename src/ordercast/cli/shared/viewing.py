"""What the commands share that show a trace in the browser."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ordercast.cli.shared.printing import counted
from ordercast.model.errors import ConfigError, reason_of

if TYPE_CHECKING:
    from ordercast.viewer.export import Range
    from ordercast.viewer.traces import Traces


@contextmanager
def viewer_packages() -> Iterator[None]:
    """Turns a missing package into a `ConfigError`."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"the viewer needs {error.name}, which is not installed: pip install 'ordercast[viewer]'"
        ) from error


def serve(
    traces: "Traces",
    *,
    runs: Sequence[str] = (),
    witnesses: Sequence[Mapping[str, Any]] = (),
    port: int = 0,
    open_browser: bool = True,
    follow: bool = False,
) -> None:
    """Serves the page until interrupted, which is its regular end. Raises `TraceError` if what it follows is gone."""
    with viewer_packages():
        from ordercast.viewer.server import ViewerServer

    with (
        ViewerServer(traces, port=port, runs=runs, witnesses=witnesses, follow=follow) as server,
        suppress(KeyboardInterrupt),
    ):
        typer.echo(f"{server.address}")
        typer.echo("ordercast: serving this page on this machine only, until interrupted (control-C)", err=True)
        if open_browser:
            _open(server.address)
        server.serve_forever(poll_interval=0.2)
        if server.gone is not None:
            raise server.gone


def _open(address: str) -> None:
    """Opens the browser, if there is one; whoever has none sees the address."""
    import webbrowser

    try:
        opened = webbrowser.open(address)
    except webbrowser.Error:
        opened = False
    if not opened:
        typer.echo("ordercast: no browser was found; open the address yourself", err=True)


def read_verdict(path: Path) -> list[dict[str, Any]]:
    """The witnesses of a verdict. Raises `ConfigError` if the file is none."""
    from ordercast.viewer.rules import witnesses_in

    try:
        return witnesses_in(json.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise ConfigError(f"cannot read the verdict {path}: {reason_of(error)}; give a file of audit --json") from error
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ConfigError(f"{path} is no verdict; write one with: ordercast audit TRACE --json FILE") from error


def write_page(
    path: Path, traces: "Traces", runs: Sequence[str], bounds: "Range", witnesses: Sequence[Mapping[str, Any]]
) -> None:
    """Writes the page with the events of some runs: those that are named, or those of witnesses, or the first."""
    from ordercast.trace.small_files import write_atomically
    from ordercast.viewer.export import exported, runs_to_export

    keys = runs_to_export(traces, runs, witnesses)
    found = exported(traces, keys, bounds, witnesses)
    try:
        write_atomically(path, found.page)
    except OSError as error:
        raise ConfigError(f"cannot write the page {path}: {reason_of(error)}; choose another path") from error
    others = len(traces.runs) - len(keys)
    sentence = f"{path}: {counted(found.shown, 'event')} of {counted(len(keys), 'run')}"
    if found.left_out:
        sentence += f"; {counted(found.left_out, 'event')} of them not in the file: --max-events, --begin, --end"
    if others:
        sentence += f"; {counted(others, 'other run')} not in the file: --run"
    typer.echo(f"ordercast: {sentence}", err=True)
