"""Space-time diagrams of small runs: one lane for each node, one arrow for each arrival, a cross for each loss.

`draw_text` is for a terminal, time downwards; `draw_svg` is for documents, time to the right. Both take event rows in
the column order of a trace and return a string; `paint` adds colour to the first. Nothing here audits a run or reads a
file.
"""

from ordercast.drawing.scene import MOST_NODES, MOST_TRANSMISSIONS, Row, require_drawable
from ordercast.drawing.svg import draw_svg
from ordercast.drawing.text import draw_text, paint

__all__ = ["MOST_NODES", "MOST_TRANSMISSIONS", "Row", "draw_svg", "draw_text", "paint", "require_drawable"]
