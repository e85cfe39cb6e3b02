"""The result of a run."""

from dataclasses import dataclass

from ordercast.model.runs import RunConfig
from ordercast.simulator.counters import Counters


@dataclass(frozen=True, slots=True)
class RunResult:
    """The outcome of one run."""

    config: RunConfig
    counters: Counters
    virtual_time: int
    """The time of the last progress."""
    complete: bool
    """Every message was delivered at every destination; if nodes left, see `Completion.is_complete`."""
    stalled: bool
    """There was no progress although timers went on firing."""
    aborted: bool
    """A node aborted."""
    crashed: tuple[int, ...]
    """Nodes that crashed."""
    aborted_nodes: tuple[int, ...]
    """Nodes that aborted."""
    view: int
    """The number of the latest view that a node installed; 0: the membership did not change."""
    view_time: int
    """The time at which a node first installed that view; 0 if the membership did not change."""
    members: tuple[int, ...]
    """The members of that view; all nodes if the membership did not change."""
    left: tuple[int, ...]
    """Nodes without which the others went on, because they crashed or were excluded; empty without views."""
    blocked: bool
    """With views: too few members remain of the latest view, or of that of the others, to agree on a next one."""
    waits: tuple[tuple[str, ...], ...]
    """What each node still waits for; even in a complete run a source may lack acknowledgments."""
    silent: bool
    """The group fell silent: no unit was under way any more, and no timer set. Groups with views never do."""
    kept: tuple[int, ...]
    """By node: packets in its logs at the end; none of one that crashed, and without what crashed nodes sent that was
    not delivered there."""
