"""Writes docs/reference/cli.md from the commands themselves: `make docs` runs it, and a test compares."""

import inspect
import sys
from enum import Enum
from pathlib import Path
from typing import Any

import typer

from ordercast.cli.app import COMMANDS, app

PAGE = Path(__file__).parent / "reference/cli.md"
_HEAD = """\
# Command line

Every command and option. This page is written by `python docs/cli_reference.py` from the commands themselves;
`ordercast COMMAND --help` prints the same. Exit statuses of all commands are in [errors and exit statuses](errors.md).

"""


def page() -> str:
    """The whole page."""
    group: Any = typer.main.get_command(app)
    commands = {name: group.get_command(None, name) for name in COMMANDS}
    rows = [f"| [`{name}`](#ordercast-{name}) | {_cell(_summary(command))} |" for name, command in commands.items()]
    listed = "\n".join(["| command | |", "|---|---|", *rows])
    return _HEAD + "\n\n".join([listed, *(_command(name, command) for name, command in commands.items())]) + "\n"


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
    kind = parameter.type_descriptor.annotation
    if isinstance(kind, type) and issubclass(kind, Enum):
        return f" One of: {', '.join(str(each.value) for each in kind)}."
    return ""


def _default(parameter: Any) -> str:
    value = parameter.default
    if parameter.required:
        return "required"
    if value in (None, False, (), []) or callable(value) or "Sentinel" in repr(value):
        return ""
    if value is True:
        return "on"
    if isinstance(value, Enum):
        value = value.value
    return f"`{value}`" if str(value) else ""


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "\\<")


if __name__ == "__main__":
    written = page()
    if not PAGE.exists() or PAGE.read_text() != written:
        PAGE.write_text(written)
    sys.exit()
