"""`ordercast view`: traces in the browser, or as a page in one file."""

from pathlib import Path
from typing import Annotated, Any

import typer

from ordercast.cli.shared.viewing import read_verdict, serve, viewer_packages, write_page
from ordercast.model.config import require
from ordercast.trace.schema import SUFFIX
from ordercast.trace.storage import location
from ordercast.trace.working_folder import read_here

EXPORTED = 200_000


def view_command(
    folders: Annotated[
        list[Any],
        typer.Argument(
            help="Traces, also as URLs; those of the members of one live group are shown together.",
            parser=location,
            metavar="FOLDERS...",
        ),
    ],
    run: Annotated[
        list[str] | None,
        typer.Option(
            "--run",
            help="The run to show first; given twice, two runs beside each other. "
            "Default: the first; of two traces of one run each, both.",
        ),
    ] = None,
    verdict: Annotated[
        Path | None, typer.Option(help="JSON file of `ordercast audit --json`: open at its violations.")
    ] = None,
    open_browser: Annotated[
        bool, typer.Option("--open/--no-open", help="Open the browser, or only print the address.")
    ] = True,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port on this machine; 0: any that is free.")] = 0,
    follow: Annotated[
        bool, typer.Option("--follow", help="Show the trace of a live member while it grows: each second what is new.")
    ] = False,
    export: Annotated[
        Path | None, typer.Option(help="Write one HTML file that opens without a server or a network, and exit.")
    ] = None,
    most: Annotated[
        int, typer.Option("--max-events", min=1, help="With --export: events of each run in the file, from --begin on.")
    ] = EXPORTED,
    begin: Annotated[float, typer.Option(min=0, help="With --export: from this second of the run.")] = 0.0,
    end: Annotated[float | None, typer.Option(min=0, help="With --export: until this second of the run.")] = None,
) -> None:
    """Look at traces in the browser: space-time, messages, latencies, violations.

    The page is served on this machine only, at an address with a random token, until interrupted; the trace is only
    read. Exit 0: interrupted, or the file is written; 2: unreadable input.
    """
    require(
        export is not None or (most == EXPORTED and not begin and end is None),
        "--max-events, --begin and --end have no effect without --export",
    )
    require(not (follow and export), "--follow and --export cannot be given together; export what is there")
    require(end is None or end > begin, f"--end must be later than --begin, not {end}")
    chosen = run or []
    require(len(chosen) <= 2, f"--run is for one or two runs, not {len(chosen)}")
    with viewer_packages():
        from ordercast.viewer.export import Range
        from ordercast.viewer.traces import Traces
    for folder in folders if follow else ():
        require(isinstance(folder, Path), f"--follow takes folders of this machine, not {folder}; copy it here")
    with read_here(folders, SUFFIX) as here:
        traces = Traces(here)
        witnesses = read_verdict(verdict) if verdict is not None else []
        for name in chosen:
            traces.run(name)
        if not chosen and not witnesses and len(folders) == len(traces.runs) == 2:
            chosen = list(traces.runs)
        if export is not None:
            bounds = Range(round(begin * 1e9), None if end is None else round(end * 1e9), most)
            write_page(export, traces, chosen, bounds, witnesses)
            return
        serve(traces, runs=chosen, witnesses=witnesses, port=port, open_browser=open_browser, follow=follow)
