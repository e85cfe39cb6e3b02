"""The story of JP Figure 4: who sends what in each step, and that E3 does not hear h."""

from typing import Any

from tests.audit.figures import golden
from tests.protocols.spo_paper.group import E3, Group, M

FIGURE = golden("golden-spo-st.json")["spo_fig4"]
STEPS: list[dict[str, Any]] = FIGURE["steps"]
HEARD = ["", "a", "bc", "d", "ef", "g", "h", "i", "j"]
"""What everybody hears in each step, before anything is sent; only E3 does not hear h."""


def receipts(group: Group[M], step: int) -> None:
    for letter in HEARD[step - 1]:
        for node in group.nodes:
            if (letter, node) == ("h", E3):
                group.lose(node, letter)
            else:
                group.hear(node, letter)


def transmissions(group: Group[M], step: int) -> None:
    for unit in STEPS[step - 1]["sent"]:
        group.submit(int(unit["SRC"][1]) - 1, unit["id"], "".join(name[1] for name in unit["DST"]))


def told(group: Group[M], steps: int, *, sends_in_the_last: bool = True) -> Group[M]:
    """The story up to a step, with or without what is sent in it."""
    for step in range(1, steps + 1):
        receipts(group, step)
        if step < steps or sends_in_the_last:
            transmissions(group, step)
    return group
