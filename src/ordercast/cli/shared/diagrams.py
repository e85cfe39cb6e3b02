"""Space-time diagrams, printed in the terminal and written as SVG files."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ordercast.drawing import draw_svg, draw_text, paint
from ordercast.model.errors import ConfigError, reason_of
from ordercast.trace.schema import EventRow
from ordercast.trace.small_files import write_atomically

if TYPE_CHECKING:
    from rich.console import Console


def show_diagram(
    rows: Sequence[EventRow],
    nodes: int,
    console: "Console | None",
    svg: Path | None,
    *,
    names: Mapping[tuple[int, int], str] | None = None,
    steps: bool = False,
) -> None:
    """Draws rows on the console, if one is given, and into the SVG file, if one is named."""
    if svg is not None:
        try:
            write_atomically(svg, draw_svg(rows, nodes, names=names, steps=steps).encode())
        except OSError as error:
            raise ConfigError(f"cannot write the picture {svg}: {reason_of(error)}; choose another path") from error
    if console is not None:
        width = max(console.width, 80)
        console.print(paint(draw_text(rows, nodes, width=width, names=names, steps=steps)), soft_wrap=True)
