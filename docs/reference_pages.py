"""Writes docs/reference/cli.md and api.md from the code: `make docs` runs it, and a test compares."""

import inspect
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import Any

from ordercast.cli.app import COMMANDS, load_command

FOLDER = Path(__file__).parent / "reference"

_CLI_HEAD = """\
# Command line

Every command and option. This page is written by `python docs/reference_pages.py` from the commands themselves;
`ordercast COMMAND --help` prints the same. Exit statuses of all commands are in [errors and exit statuses](errors.md).

"""


def cli_page() -> str:
    """Every command and option."""
    commands = {name: load_command(name) for name in COMMANDS}
    rows = [f"| [`{name}`](#ordercast-{name}) | {_cell(_summary(command))} |" for name, command in commands.items()]
    listed = "\n".join(["| command | |", "|---|---|", *rows])
    return _CLI_HEAD + "\n\n".join([listed, *(_command(name, command) for name, command in commands.items())]) + "\n"


def _summary(command: Any) -> str:
    return str(inspect.cleandoc(command.help)).partition("\n\n")[0].replace("\n", " ").partition(". ")[0].rstrip(".")


def _command(name: str, command: Any) -> str:
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    written = " ".join([_argument(each) for each in arguments])
    parts = [f"## ordercast {name}", f"`ordercast {name} {written}`" if written else f"`ordercast {name}`"]
    parts.append(inspect.cleandoc(command.help))
    panels: dict[str, list[Any]] = {}
    for each in command.params:
        if "--help" not in each.opts:
            panels.setdefault(getattr(each, "rich_help_panel", None) or "", []).append(each)
    for panel, parameters in panels.items():
        rows = [_row(each) for each in parameters]
        title = panel or ("Arguments and options" if arguments else "Options")
        parts.append("\n".join([f"**{title}**", "", "| | | default |", "|---|---|---|", *rows]))
    return "\n\n".join(parts)


def _argument(parameter: Any) -> str:
    name = parameter.name.upper()
    many = "..." if parameter.nargs == -1 else ""
    return f"{name}{many}" if parameter.required else f"[{name}{many}]"


def _row(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        name = f"`{_argument(parameter)}`"
    else:
        name = ", ".join(f"`{opt}`" for opt in (*parameter.opts, *parameter.secondary_opts))
    return f"| {name} | {_cell((parameter.help or '') + _choices(parameter))} | {_default(parameter)} |"


def _choices(parameter: Any) -> str:
    choices = [each.value if isinstance(each, Enum) else each for each in getattr(parameter.type, "choices", ())]
    return f" One of: {', '.join(map(str, choices))}." if choices else ""


def _default(parameter: Any) -> str:
    value = parameter.default
    if parameter.required:
        return "required"
    if (
        value is None
        or value is False
        or (isinstance(value, list | tuple) and not value)
        or callable(value)
        or "Sentinel" in repr(value)
    ):
        return ""
    if value is True:
        return "on"
    if isinstance(value, Enum):
        value = value.value
    return f"`{value}`" if str(value) else ""


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "\\<")


_API_HEAD = """\
# Python API

The public names: those of `ordercast`, `ordercast.simulation`, `ordercast.log`, `ordercast.replicated`,
`ordercast.gateway` and `ordercast.pipeline`. Everything else may change without notice. On the site each name has a
page of its own, made from its docstring. The lists are written by `python docs/reference_pages.py` from `__all__` of
these modules.
"""
_SECTIONS: dict[str, tuple[str, dict[str, str]]] = {
    "ordercast": (
        "Live groups",
        {
            "Joining, sending, receiving": "join Joining Settings Order Group SyncGroup Message View Excluded Blocked "
            "Unblocked Receipt Level State GroupKeys",
            "Monitoring": "Stats serve_metrics",
        },
    ),
    "ordercast.simulation": (
        "Simulation",
        {
            "Running and auditing": "simulate RunResult EventRow EventField Sink Progress audit Verdict Names "
            "ByProtocol Service",
            "What is run": "RunConfig GroupConfig Timing Rules RecoveryPolicy Network Channel Workload Pattern "
            "ScriptedSend TraceDetail",
            "Faults": "Fault Loss Bursts Duplicates Miss Twice Pause Split Crash Join Leave Quit Return Suspicion "
            "UnitKind",
            "Single protocols, and readings of the papers": "PriorityConfig SequencerConfig LossInference PaperRules "
            "PriorityReadings SequencerReadings",
        },
    ),
    "ordercast.log": (
        "The durable log",
        {
            "Reading": "read Message read_batches latest_snapshot Snapshot",
            "Verifying": "check LogReport SegmentReport",
            "Writing": "Log Options Retention Usage Place Context View Tail Disk File",
        },
    ),
    "ordercast.replicated": (
        "Replicated objects",
        {
            "Joining": "join Member Answers CommandId History",
            "Blocks": "Dict Change Counter Set Queue Assignment Lock Holder Leader Barrier",
            "Classes of your own": "Replicated command query Query Context Call",
        },
    ),
    "ordercast.gateway": (
        "Batches from outside",
        {
            "Handing over": "Gateway Batch Committed",
            "Taking each once": "Batches batches_in recover",
        },
    ),
    "ordercast.pipeline": (
        "Spark",
        {
            "Sweeps": "sweep SweepResult Progress require_sweepable read_grid measure register",
            "Audits": "audit audit_to_tables audit_tables VerdictTables Profile read_profile RunRow Engine "
            "choose_engine follow",
            "Logs of other systems": "from_log from_client_logs LogTables write_trace",
            "Soaks": "soak Soak Limits Round Soaked Tally",
            "Searches": "explore_on_spark scenario Scenario Promise SearchReport Counterexample SearchProgress",
        },
    ),
}


def api_page() -> str:
    """Every public name, in groups; what has no group comes last, errors apart."""
    return "\n".join([_API_HEAD, *(_module(name, *about) for name, about in _SECTIONS.items())])


def _module(module: str, title: str, groups: dict[str, str]) -> str:
    loaded = import_module(module)
    left = [name for name in loaded.__all__ if name != "__version__"]
    found: dict[str, list[str]] = {}
    for group, names in groups.items():
        found[group] = [name for name in names.split() if name in left]
        left = [name for name in left if name not in found[group]]
    errors = [name for name in left if _is_error(getattr(loaded, name))]
    found["More" if groups else ""] = [name for name in left if name not in errors]
    found["Errors"] = errors
    parts = [f"## {title}: `{module}`\n"]
    for group, members in found.items():
        if members:
            parts += [f"### {group}\n"] if group else []
            listed = "".join(f"   {name}\n" for name in members)
            listing = (
                f".. currentmodule:: {module}\n\n.. autosummary::\n   :toctree: api\n   :nosignatures:\n\n{listed}"
            )
            parts.append(f"```{{eval-rst}}\n{listing}```\n")
    return "\n".join(parts)


def _is_error(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, Exception)


PAGES = {"cli.md": cli_page, "api.md": api_page}

if __name__ == "__main__":
    for file, made in PAGES.items():
        text = made()
        if not (FOLDER / file).exists() or (FOLDER / file).read_text() != text:
            (FOLDER / file).write_text(text)
    listed = set(api_page().split())
    for page in (FOLDER / "api").glob("*.rst"):  # made by Sphinx: a name that is gone would stay
        if page.stem.rpartition(".")[2] not in listed:
            page.unlink()
