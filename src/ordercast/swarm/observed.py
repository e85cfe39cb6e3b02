"""What was seen of a run beside its trace, and should not be: sentences."""

from collections.abc import Collection, Iterator

from ordercast.model.config import Rules
from ordercast.model.faults import Bursts, Crash, Join, Leave, Loss, Restart, Return, nodes_named
from ordercast.model.machine import Level
from ordercast.model.nodes import name_of
from ordercast.model.services import Service
from ordercast.simulator import RunResult
from ordercast.simulator.watch import Observed

_MOST_VALUES, _VALUES_BY_PAIR = 1_000, 10
"""What a node without work may keep of numbers and the like: vectors and tables of nodes, and answers of a while."""


def unsaid_copies(observed: Observed) -> Iterator[str]:
    """Who sent something again, and did not say so."""
    for node, count in enumerate(observed.unsaid_copies):
        if count:
            yield f"{name_of(node)} sent {count:,} units again and did not say so"


def beyond_window(result: RunResult, observed: Observed) -> Iterator[str]:
    """Who had more packets in flight than its window lets it; with views each view has a window of its own."""
    group = result.config.group
    if not group.views and group.rules is Rules.SOUND:
        for node, most in enumerate(observed.in_flight):
            if most > group.window:
                yield f"{name_of(node)} had {most:,} packets in flight, and a window of {group.window:,}"


def untold_with_views(
    result: RunResult, observed: Observed, gone: Collection[int], due: Collection[Level]
) -> Iterator[str]:
    """Whose application was not told all levels, of a group with views in which nobody waits."""
    if result.config.group.views:
        yield from observed.receipts.lacking([node for node in result.members if node not in gone], due)


def unsent(result: RunResult, observed: Observed, gone: Collection[int]) -> Iterator[str]:
    """Who did not send what was submitted to it, though its destinations were members all the time."""
    if result.config.group.views:
        yield from observed.contents.unsent([node for node in result.members if node not in gone])


def lost_members(result: RunResult) -> Iterator[str]:
    """Who is not in the group any more, though nothing was lost and no fault is the reason.

    Not with logs: a process that is killed once more before it is back is never seen as the node that it was then.
    """
    config = result.config
    harmless = all(
        isinstance(fault, Join | Leave | Crash | Return | Restart | Loss | Bursts) for fault in config.faults
    )
    if not config.group.views or config.logs or result.counters.lost or not harmless:
        return
    named = {node for fault in config.faults if not isinstance(fault, Join) for node in nodes_named(fault)}
    for node in sorted({*result.left, *result.aborted_nodes} - named):
        yield f"the group went on without {name_of(node)}, and nothing was lost"


def kept_elsewhere(result: RunResult, observed: Observed, gone: Collection[int]) -> Iterator[str]:
    """What nodes keep that is in none of their logs, when nobody waits.

    With views, a sequencer's history of one view is kept for members that enter the next one late.
    """
    group = result.config.group
    allowed = 2 * group.sequencer.history if group.views and result.config.protocol == Service.SEQUENCED.value else 0
    most = _MOST_VALUES + _VALUES_BY_PAIR * group.nodes**2
    unnoticed = set(result.members).intersection(result.crashed)  # what these sent may wait for ever
    for node, kept in enumerate(observed.kept):
        if node in gone:
            continue
        packets = [packet for packet in kept.packets if packet[0] not in unnoticed]
        if len(packets) > allowed:
            yield f"{name_of(node)} keeps {len(packets):,} packets outside of its logs"
        if not result.config.logs and max(kept.values, kept.content) > most:  # a log has a place for each message
            what = f"{kept.values:,} values, and {kept.content:,} bytes outside of packets"
            yield f"{name_of(node)} keeps {what}: more than {most:,}, whatever was sent"
