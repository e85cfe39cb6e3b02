"""The paper's entities, its example and how a story is told, to the printed rules and to the sound ones."""

from collections.abc import Callable
from typing import Any

from ordercast.model.config import PaperRules
from ordercast.protocols.st.machine import St
from ordercast.protocols.st.paper.machine import StPaper
from tests.protocols.one_channel import OneChannel

FIGURE_3 = "a1:23 x3:123 b1:2 c1:13 p2:1 y3:2 z3:13 q2:23"
"""What is sent in Figure 3, in an order of the channel that gives the logs of Figure 3(b)."""

PaperGroup = OneChannel[StPaper]
AnyGroup = OneChannel[Any]


def paper_group(*, keeps: bool = False, time_out: bool = True, **settings: Any) -> PaperGroup:
    """A group under the printed rules; numbers start at 1, as in the paper's examples."""
    nodes = settings.get("nodes", 3)
    paper = PaperRules(keeps_behind_gap=keeps, preacknowledged_time_out=time_out)
    return OneChannel(StPaper, **{"first_seq": (1,) * nodes, "paper": paper} | settings)


def sound_group(**settings: Any) -> OneChannel[St]:
    """A group under the sound rules."""
    return OneChannel(St, **settings)


def log_of(group: PaperGroup, node: int) -> str:
    """RRL of a node."""
    return " ".join(group.letter(unit.packet) for unit in group.machines[node].accepted)


def logs_of(group: PaperGroup) -> list[str]:
    """RRL of all nodes."""
    return [log_of(group, node) for node in group.nodes]


def whole_log(group: PaperGroup, node: int) -> str:
    """ARL, PRL and RRL of a node, one behind the other: all that it received, in the order in which it will have it."""
    machine = group.machines[node]
    held = [group.letter(unit.packet) for unit in (*machine.preacknowledged, *machine.accepted)]
    return " ".join([*group.delivered[node], *held])


def speak(group: AnyGroup, node: int) -> None:
    """A node is silent for a whole period, and so sends its RR, if it has anything to say."""
    for name in ("ready", "status") * 2:
        if name in group.timers[node] and group.labels()[-1:] != [f"RR E{node + 1}"]:
            group.fire(node, name)


def agree(group: AnyGroup, *nodes: int, until: str = "") -> None:
    """The nodes hear what is left of the channel in this order, again and again, until all of it, or this, is heard."""
    while any(place < len(group.channel) for place in group.places):
        for node in nodes:
            for label in group.labels()[group.places[node] :]:
                if until not in {group.label(unit) for unit in group.channel[: group.places[node]]}:
                    group.hear(node, label)
        if until in group.labels()[: min(group.places)]:
            return


def once(*losses: tuple[int, str]) -> Callable[[int, str], bool]:
    """Each of these units is lost the first time."""
    left = list(losses)

    def lost(node: int, label: str) -> bool:
        if (node, label) not in left:
            return False
        left.remove((node, label))
        return True

    return lost
