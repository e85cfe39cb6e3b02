"""What was seen of a run beside its trace, and should not be: sentences."""

from collections.abc import Collection, Iterator

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
