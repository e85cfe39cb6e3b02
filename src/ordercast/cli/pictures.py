"""Pictures of what happened, in the terminal and as files."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console

from ordercast.drawing import draw_svg, draw_text, paint
from ordercast.model.errors import ConfigError, reason_of
from ordercast.trace.schema import EventRow


def show_picture(
    rows: Sequence[EventRow],
    nodes: int,
    console: Console | None,
    svg: Path | None,
    *,
    names: Mapping[tuple[int, int], str] | None = None,
    steps: bool = False,
) -> None:
    """Draws rows on the console, if there is one, and into the file, if one is named."""
    if svg is not None:
        try:
            svg.write_text(draw_svg(rows, nodes, names=names, steps=steps), encoding="utf-8")
        except OSError as error:
            raise ConfigError(f"cannot write the picture {svg}: {reason_of(error)}; choose another place") from error
    if console is not None:
        width = max(console.width, 80)
        console.print(paint(draw_text(rows, nodes, width=width, names=names, steps=steps)), soft_wrap=True)
