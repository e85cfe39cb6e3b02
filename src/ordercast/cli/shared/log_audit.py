"""`ordercast audit --follow` on the logs of a running group."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from signal import SIGINT, SIGTERM, signal
from threading import Event
from typing import TYPE_CHECKING

import typer

from ordercast.cli.shared.live_options import address_or_port
from ordercast.cli.shared.printing import counted
from ordercast.cli.shared.spark_session import pipeline_extra
from ordercast.model.errors import ConfigError, TraceError, reason_of
from ordercast.trace.small_files import write_atomically

if TYPE_CHECKING:
    from ordercast.pipeline.log_stream.audit_logs import LogAudit, Unreadable
    from ordercast.pipeline.log_stream.comparison import Disagreement, LeftBehind


def are_logs(folders: list[Path]) -> bool:
    """Whether the first folder is a durable log, or has some; else it is a trace."""
    from ordercast.pipeline.log_stream.places import is_log

    first = folders[0]
    return is_log(first) or (first.is_dir() and any(is_log(each) for each in first.iterdir() if each.is_dir()))


def follow_logs(places: str, until_idle: float | None, metrics: str | None, json: Path | None) -> int:
    """The exit status. With metrics it stays after a disagreement, so that it is seen, until it is interrupted."""
    with pipeline_extra():
        from ordercast.pipeline.log_stream.audit_logs import LogAudit, run_audit
        from ordercast.pipeline.log_stream.options import options_of
    audit, stop = LogAudit(options_of({"members": places})), Event()
    with _stopping(stop), _served(metrics, audit):
        audit.step()
        if audit.group:
            _note(f"follows {_logs_of(audit)}")
        found = run_audit(
            audit, until_idle=until_idle, stop=stop, stays=metrics is not None, tell=_tell, note=_tell_besides
        )
    if json is not None:
        _write(json, audit)
    if not found:
        _note(f"{_logs_of(audit)}: no disagreement up to position {audit.agreed}")
    return 1 if found else 0


def _logs_of(audit: "LogAudit") -> str:
    """So many of the group, of those that were given."""
    readable = sum(each.why_away is None for each in audit.members.values())
    given = counted(len(audit.members), "log")
    return f"{f'{readable} of ' if readable < len(audit.members) else ''}{given} of the group {audit.group}"


@contextmanager
def _stopping(stop: Event) -> Iterator[None]:
    before = {number: signal(number, lambda *_: stop.set()) for number in (SIGINT, SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal(number, handler)


@contextmanager
def _served(metrics: str | None, audit: "LogAudit") -> Iterator[None]:
    if metrics is None:
        yield
        return
    from ordercast.pipeline.log_stream.audit_metrics import served_metrics

    host, port = address_or_port(metrics)
    with ExitStack() as serving:
        try:
            port = serving.enter_context(served_metrics((host, port), audit))
        except OSError as error:
            raise ConfigError(f"--metrics: cannot listen at {metrics}: {reason_of(error)}") from error
        _note(f"metrics at http://{host}:{port}/metrics")
        yield


def _tell(found: "Disagreement") -> None:
    typer.echo(f"{found.kind}: {found.sentence}")


def _tell_besides(found: "LeftBehind | Unreadable") -> None:
    from ordercast.pipeline.log_stream.audit_logs import Unreadable

    member = found.member
    if not isinstance(found, Unreadable):
        _note(
            f"the group went on to view {found.view} without {member}, and without what it has from position "
            f"{found.position} on: that is dropped when {member} comes back, and is no disagreement"
        )
    elif found.why is not None:
        _note(f"cannot read the log of {member}: {found.why}")
    else:
        _note(f"reads the log of {member} again")


def _note(sentence: str) -> None:
    typer.echo(f"ordercast: {sentence}", err=True)


def _write(path: Path, audit: "LogAudit") -> None:
    import msgspec

    document = {
        "group": audit.group,
        "agreed": audit.agreed,
        "members": audit.members,
        "disagreements": audit.found,
    }
    try:
        write_atomically(path, msgspec.json.encode(document))
    except OSError as error:
        raise TraceError(f"cannot write {path}: {reason_of(error)}; choose another path") from error
