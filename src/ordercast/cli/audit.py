"""`ordercast audit`: whether traces keep the promises of their service."""

from contextlib import nullcontext
from functools import partial
from pathlib import Path
from signal import SIGINT, SIGTERM, signal
from threading import Event
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ordercast.cli.shared.printing import counted
from ordercast.cli.shared.progress import progress_bar
from ordercast.cli.shared.spark_session import CONF, MASTER, pipeline_extra, spark_session
from ordercast.cli.shared.viewing import serve, viewer_packages
from ordercast.model.config import require
from ordercast.model.errors import TraceError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager

    from rich.console import Console

    from ordercast.audit.names import Names
    from ordercast.audit.profiles import Asked
    from ordercast.audit.verdict import Verdict, Witness

    OpenSpark = Callable[[], AbstractContextManager[Any]]
from ordercast.trace.schema import SUFFIX
from ordercast.trace.small_files import write_atomically
from ordercast.trace.storage import Location, location
from ordercast.trace.working_folder import read_here

_SHOWN = 3  # witnesses of each property that are printed; the JSON file has more


def audit_command(
    folders: Annotated[
        list[Any] | None,
        typer.Argument(
            help="Traces, also as URLs; those of the members of one live group are audited together.",
            parser=location,
            metavar="TRACE...",
        ),
    ] = None,
    service: Annotated[
        str | None,
        typer.Option(
            help="What to check: a service, a profile, or the TOML file of one (default: what each run promises).",
            metavar="NAME|FILE.toml",
        ),
    ] = None,
    json: Annotated[Path | None, typer.Option(help="Write the verdict to this JSON file.")] = None,
    report: Annotated[Path | None, typer.Option(help="Write the verdict as a page to this HTML file.")] = None,
    junit: Annotated[
        Path | None, typer.Option(help="Write it as JUnit XML, a test case for each property, for CI systems.")
    ] = None,
    sarif: Annotated[Path | None, typer.Option(help="Write it as SARIF, a result for each witness.")] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Print what each property means, and all that was found, as text.")
    ] = False,
    spark: Annotated[
        bool | None,
        typer.Option("--spark/--no-spark", help="Audit on Spark, or on this machine alone (default)."),
    ] = None,
    master: Annotated[str | None, MASTER] = None,
    conf: Annotated[list[str] | None, CONF] = None,
    processes: Annotated[
        int | None, typer.Option(help="Processes of this machine (default: one per core for large traces).", min=1)
    ] = None,
    follow: Annotated[
        bool,
        typer.Option(
            "--follow",
            help="Audit while it is written, up to the first violation: a trace; or the durable logs of a running "
            "group, given as folders or by --members.",
        ),
    ] = False,
    members: Annotated[
        str | None,
        typer.Option(
            help="With --follow: logs of a running group, with commas: DIR, or the URL of an `ordercast log serve`; or "
            "NAME=DIR, NAME=URL."
        ),
    ] = None,
    metrics: Annotated[
        str | None,
        typer.Option(
            help="With --follow on logs: PORT or HOST:PORT to serve Prometheus metrics at; it then stays after a "
            "disagreement, until interrupted."
        ),
    ] = None,
    until_idle: Annotated[
        float | None, typer.Option(help="With --follow: seconds without a new file after which the trace is complete.")
    ] = None,
    checkpoint: Annotated[
        Any,
        typer.Option(
            help="With --follow: folder of its checkpoint, also as a URL (default: in the trace).",
            parser=location,
            metavar="FOLDER",
        ),
    ] = None,
    history: Annotated[
        bool,
        typer.Option(
            "--history", help="The arguments are histories of replicated objects: check that they are linearizable."
        ),
    ] = False,
    view: Annotated[
        bool, typer.Option("--view", help="Show the witnesses in the browser, until interrupted; see `ordercast view`.")
    ] = False,
    open_browser: Annotated[
        bool, typer.Option("--open/--no-open", help="With --view: open the browser, or only print the address.")
    ] = True,
) -> None:
    """Check that recorded traces keep the promises of their service.

    With --history the arguments are files, or folders of files, of `ordercast.replicated.History`. With --follow on
    durable logs, the orders, running hashes and views of all members are compared while they grow.
    Exit 0: every property of the service holds; 1: one is violated, with witnesses; 2: unreadable input.
    """
    from rich.console import Console

    folders = folders or []
    asked = _asked(service)
    opened = partial(spark_session, master, conf)
    others = {"--report": report, "--junit": junit, "--sarif": sarif}
    written = [name for name, path in {**others, "--explain": explain or None}.items() if path is not None]
    require(
        not (written and (history or (follow and until_idle is None))),
        f"{' and '.join(written)}: only for the verdict on complete traces; omit it, or --history or --follow",
    )
    require(bool(folders) != (members is not None), "give the folders of traces, or, with --follow, logs by --members")
    require(follow or (members is None and metrics is None), "--members and --metrics have no effect without --follow")
    on_spark = bool(spark or master is not None)
    if history and on_spark:
        _require_here(folders, "--history on Spark")
    if follow and _are_logs(members, folders):
        _require_logs_only(asked, spark, master, checkpoint, until_idle)
        from ordercast.cli.shared.log_audit import follow_logs

        places = members if members is not None else ",".join(str(each) for each in folders)
        raise typer.Exit(follow_logs(places, until_idle, metrics, json))
    require(metrics is None, "--metrics is for --follow on durable logs, and these are traces")
    if history:
        require(not follow and asked is None, "--history takes histories, which have no service and are not followed")
        with read_here(folders, SUFFIX) as paths:
            raise typer.Exit(0 if _audit_histories(paths, json, opened if on_spark else None) else 1)
    require(
        follow or (until_idle is None and checkpoint is None),
        "--until-idle and --checkpoint have no effect without --follow",
    )
    require(not (view and follow), "--view and --follow cannot be given together; audit the complete trace with --view")
    require(view or open_browser, "--no-open has no effect without --view")
    if follow:
        _require_followable(folders, until_idle)
        if found := _follow(folders[0], asked, opened if on_spark else None, until_idle, checkpoint):
            _write_all(_so_far(found, folders), folders, json, others)
            raise typer.Exit(1)
        if until_idle is None:
            raise typer.Exit(0)
        # It is complete now: check the properties that only the end decides, on the master that was named.
    require(master is None or spark is not False, "--master and --no-spark contradict each other; give one")
    verdict = _audited(folders, asked, opened if on_spark else None, processes)
    _write_all(verdict, folders, json, others)
    if explain:
        typer.echo(verdict.explain())
    else:
        print_verdict(verdict, Console())
    if view:
        with read_here(folders, SUFFIX) as paths:
            _show(paths, verdict, open_browser=open_browser)
    raise typer.Exit(0 if verdict.holds else 1)


def _asked(service: str | None) -> "Asked | None":
    from ordercast.audit.profiles import asked_by

    return asked_by(service) if service is not None else None


def _require_here(folders: list[Location], option: str) -> None:
    """Raises `ConfigError` for URLs where only folders of this machine are read."""
    for folder in folders:
        require(isinstance(folder, Path), f"{option} takes folders of this machine, not {folder}; copy it here")


def _are_logs(members: str | None, folders: list[Location]) -> bool:
    from ordercast.cli.shared.log_audit import are_logs

    if members is not None:
        return True
    return isinstance(folders[0], Path) and are_logs([folder for folder in folders if isinstance(folder, Path)])


def _require_logs_only(
    service: "Asked | None",
    spark: bool | None,
    master: str | None,
    checkpoint: Location | None,
    until_idle: float | None,
) -> None:
    given = {"--service": service, "--spark": spark, "--master": master, "--checkpoint": checkpoint}
    wrong = [name for name, value in given.items() if value is not None]
    require(
        not wrong, f"{' and '.join(wrong)}: of durable logs, orders and views are compared in this process; omit it"
    )
    require(
        until_idle is None or 0 < until_idle < 1e9,
        f"--until-idle must be a positive number of seconds, not {until_idle}",
    )


def _require_followable(folders: list[Location], until_idle: float | None) -> None:
    require(len(folders) == 1, f"--follow takes one folder, not {len(folders)}; follow each by itself")
    require(
        until_idle is None or 0 < until_idle < 1e9,
        f"--until-idle must be a positive number of seconds, not {until_idle}",
    )


def _audit_histories(paths: list[Path], json: Path | None, opened: "OpenSpark | None") -> bool:
    """Judges each key of each object alone, in this process or on Spark; whether all are linearizable."""
    import msgspec

    from ordercast.audit.linearizability import audit_history
    from ordercast.trace.history import read_history

    if opened is not None:
        with pipeline_extra():
            from ordercast.pipeline.audit.histories import audit_histories
        with opened() as session:
            verdicts = audit_histories(session, paths)
    else:
        verdicts = audit_history([each for path in paths for each in read_history(path)])
    wrong = [each for each in verdicts if not each.linearizable]
    if json is not None:
        write_atomically(json, msgspec.json.encode([each._asdict() for each in verdicts]))
    operations = sum(each.operations for each in verdicts)
    word = "linearizable" if not wrong else f"{counted(len(wrong), 'key')} not linearizable"
    typer.echo(f"{counted(len(verdicts), 'key')}, {counted(operations, 'operation')}: {word}")
    for each in wrong[:_SHOWN]:
        where = " ".join(filter(None, (each.run and f"run {each.run},", each.object_name, each.key)))
        typer.echo(
            f"  {each.model} {where}: after {each.ordered} of {each.operations} operations none of these can follow:"
        )
        for done in each.witness[:_SHOWN]:
            arguments = ", ".join(done.arguments)
            typer.echo(f"    {done.process}: {done.kind}({arguments}) = {done.result or 'it did not return'}")
    return not wrong


def _show(folders: list[Path], verdict: "Verdict", *, open_browser: bool) -> None:
    """The page at the first witness; at the first run if there is none."""
    with viewer_packages():
        from ordercast.viewer.rules import witnesses_in
        from ordercast.viewer.traces import Traces

        traces = Traces(folders)
    witnesses = witnesses_in(verdict.as_document())
    if not witnesses:
        _note("no property is violated; the page shows the trace")
    serve(traces, witnesses=witnesses, open_browser=open_browser)


def _follow(
    folder: Location,
    service: "Asked | None",
    opened: "OpenSpark | None",
    until_idle: float | None,
    checkpoint: Location | None,
) -> "list[Witness]":
    """Follows a trace until it ends, is interrupted, or a property is violated; returns the violations."""
    with pipeline_extra():
        from ordercast import pipeline
    stop = Event()
    with opened() if opened is not None else nullcontext() as session:
        # Not an exception: one within a call to Spark would leave its job running.
        before = {number: signal(number, lambda *_: stop.set()) for number in (SIGINT, SIGTERM)}
        try:
            found = pipeline.follow(
                session, folder, service, checkpoint=checkpoint, until_idle=until_idle, note=_note, stop=stop
            )
        finally:
            for number, handler in before.items():
                signal(number, handler)
    if stop.is_set() and not found:
        _note("interrupted; no violation so far. Audit the complete trace too: some properties are decided at its end")
        raise typer.Exit(0)
    verdict = _so_far(found, [folder])
    for witness in found[:_SHOWN]:
        typer.echo(_line(witness, verdict))
    return found


def _so_far(found: "list[Witness]", folders: list[Location]) -> "Verdict":
    """The verdict where following stopped, without the properties that only the end decides."""
    from ordercast.audit.verdict import Finding, Verdict

    verdict = Verdict(runs=len({witness.run for witness in found}), names=_names_in(found, folders))
    for witness in found:
        finding = verdict.findings.setdefault(witness.violation.breaks, Finding(runs=verdict.runs, at_least=True))
        finding.count(witness.violation)
        finding.witnesses.append(witness)
    verdict.incomplete_records.append(
        "followed up to the first violation only: later events were not audited or counted"
    )
    return verdict


def _names_in(witnesses: "list[Witness]", folders: list[Location]) -> "dict[str, Names]":
    """What the nodes are called in each run of the witnesses, if they have names."""
    from ordercast.audit.names import Names, member_names, merged_names, names_of_run
    from ordercast.trace.reader import read_runs
    from ordercast.trace.schema import RUN

    wanted = {witness.run for witness in witnesses}
    try:
        rows = read_runs(folders) if wanted else []
    except TraceError:  # a trace that is followed may have no such row yet
        return {}
    found: dict[str, Names] = {}
    for row in rows:
        if row[RUN] in wanted and (names := names_of_run(row)):
            known = found.get(row[RUN], Names(()))
            found[row[RUN]] = names._replace(nodes=merged_names(known.nodes, member_names(row)))
    return found


def _line(witness: "Witness", verdict: "Verdict") -> str:
    return f"{witness.violation.breaks}, run {witness.run}: {verdict.told(witness)}"


def _audited(
    folders: list[Path], service: "Asked | None", opened: "OpenSpark | None", processes: int | None
) -> "Verdict":
    """Audits on this machine by the engine that suits the size, or on Spark if asked to."""
    from ordercast.pipeline.audit.engine import audit_opened, choose_engine
    from ordercast.pipeline.audit.plan import open_trace

    trace = open_trace(folders)  # input that is not a trace is refused before Spark starts
    if opened is None:
        return audit_opened(trace, service, engine=choose_engine(trace.events), note=_note, processes=processes)
    with opened() as session, progress_bar("parts") as progress:
        return audit_opened(trace, service, spark=session, note=_note, progress=progress)


def _write_all(
    verdict: "Verdict", folders: "list[Location]", json: Path | None, others: "Mapping[str, Path | None]"
) -> None:
    """Writes the verdict in all forms that were asked for.

    In the JSON sentences and nodes stay numbers and E1, E2, …, which scripts rely on; `members` has the names.
    """
    import msgspec

    from ordercast import __version__
    from ordercast.audit.ci_results import junit, sarif
    from ordercast.audit.page import page

    trace = ", ".join(map(str, folders))
    if json is not None:
        _write(json, msgspec.json.encode(verdict.as_document()))
    if (path := others["--report"]) is not None:
        _write(path, page(verdict, trace).encode())
    if (path := others["--junit"]) is not None:
        _write(path, junit(verdict, trace))
    if (path := others["--sarif"]) is not None:
        _write(path, sarif(verdict, trace, __version__))


def _write(path: Path, content: bytes) -> None:
    try:
        if path.exists() and not path.is_file():  # a pipe, or a terminal
            path.write_bytes(content)
        else:
            write_atomically(path, content)
    except OSError as error:
        reason = error.strerror or error
        raise TraceError(f"cannot write the verdict {path}: {reason}; choose another path") from error


def _note(sentence: str) -> None:
    typer.echo(f"ordercast: {sentence}", err=True)


def print_verdict(verdict: "Verdict", console: "Console") -> None:
    """Prints the verdict as a table, and the first witnesses."""
    from rich.table import Table

    table = Table("property", "verdict", "runs", "violations", box=None, pad_edge=False, padding=(0, 3, 0, 0))
    for name, finding in verdict.findings.items():
        if not finding.holds:
            word = "[bold red]violated[/]"
        else:
            word = "[yellow]none seen[/]" if finding.at_least else "[green]holds[/]"
        at_least = "at least " if finding.at_least else ""
        table.add_row(name, word, f"{finding.runs:,}", f"{at_least}{finding.violations:,}")
    for name, runs in verdict.not_recorded.items():
        table.add_row(name, "[yellow]not recorded[/]", f"{runs:,}", "")
    deliveries = "1 delivery" if verdict.deliveries == 1 else f"{verdict.deliveries:,} deliveries"
    console.print(f"{counted(verdict.runs, 'run')}, {deliveries}")
    console.print(table)
    if any(finding.at_least for finding in verdict.findings.values()):
        console.print("  at least, none seen: only some partitions of long runs were audited in detail", style="yellow")
    if verdict.excused_runs > _SHOWN:
        console.print(f"  nodes are excused in {verdict.excused_runs:,} runs; of the first:", style="yellow")
    for sentence in (*verdict.told_excused()[:_SHOWN], *verdict.incomplete_records):
        console.print(f"  {sentence}", soft_wrap=True, markup=False, style="yellow")
    for finding in verdict.findings.values():
        for witness in finding.witnesses[:_SHOWN]:
            console.print(f"  {_line(witness, verdict)}", soft_wrap=True, markup=False)
