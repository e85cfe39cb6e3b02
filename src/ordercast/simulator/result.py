"""What a run came to."""

from dataclasses import dataclass

from ordercast.model.runs import RunConfig
from ordercast.simulator.counters import Counters


@dataclass(frozen=True, slots=True)
class RunResult:
    """The outcome of one run."""

    config: RunConfig
    counters: Counters
    virtual_time: int
    """When something last moved; what came later was only silence falling."""
    complete: bool
    """Every message was delivered at every destination; of nodes that are left, all that they sent, and all alike."""
    stalled: bool
    """Nothing moved any more although timers went on."""
    aborted: bool
    """A node gave the group up."""
    left: tuple[int, ...]
    """Nodes without which the others went on: they crashed, or were shut out. Where nobody goes on without, none."""
    waits: tuple[tuple[str, ...], ...]
    """What each node still waits for, in words; even a complete run may leave a source without word of it."""
