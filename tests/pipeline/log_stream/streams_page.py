"""The blocks of the guide "From live groups into Spark and back"."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[3] / "docs/howto/spark-streams.md"


def blocks(heading: str, language: str) -> list[str]:
    """Those of a section, in one language."""
    [section] = re.findall(rf"^## {heading}\n(.*?)(?=^## )", PAGE.read_text(), flags=re.DOTALL | re.MULTILINE)
    return re.findall(rf"^```{language}\n(.*?)^```", section, flags=re.DOTALL | re.MULTILINE)
