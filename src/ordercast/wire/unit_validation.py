"""Validation of decoded units: what hosts guarantee to their machines.

Types are right already. Here sets hold members only, vectors have an entry for each, numbers are not negative and so
small that sums stay below 64 bits, and the lengths of messages fit their packet. Whether what a unit *says* can be true
is for the protocols to decide.
"""

from collections.abc import Callable, Sequence
from typing import Any

from ordercast.model.units import Packet, Unit
from ordercast.protocols.membership import units as membership
from ordercast.protocols.membership.epoch import Cut, EpochReport
from ordercast.protocols.membership.view import GroupView
from ordercast.protocols.membership.view import NextView as NextMembership
from ordercast.protocols.prito.units import RunMarker
from ordercast.protocols.sequencer.units import (
    Accepted,
    Acknowledgment,
    Ballot,
    Broadcast,
    Fetch,
    Flush,
    Flushed,
    Install,
    NextView,
    NumberAnnouncement,
    Offer,
    Propose,
    Refused,
    SequencerStatus,
    Supply,
    Synchronise,
    Synchronised,
    ViewRequest,
)
from ordercast.protocols.spo.units import Data, Ready
from ordercast.protocols.st.units import (
    PacketPosition,
    PlacedCopy,
    PlacedData,
    PlacedReady,
    PlacedStatus,
    ResetDone,
    ResetNeed,
    ResetReply,
)
from ordercast.protocols.to.units import (
    CarryingVector,
    EpochVector,
    Heading,
    OrderedData,
    OrderedReady,
    UnorderedReady,
)

_MAX_NUMBER = 1 << 60
"""A power of two: several numbers are below it, and none is negative, if that is so of their bitwise "or"."""
_MAX_PRIORITY = 255
_MAX_NAME = 64


def is_valid(unit: Unit, nodes: int) -> bool:
    """True if a machine in a group of this size may be given the unit."""
    check = CHECKS.get(type(unit))
    return check is not None and 0 <= unit.source < nodes and check(unit, nodes)


# --- parts of units ---


def _numbers(*values: int) -> bool:
    return min(values) >= 0 and max(values) < _MAX_NUMBER


def _vector(values: Sequence[int], nodes: int) -> bool:
    return len(values) == nodes and min(values) >= 0 and max(values) < _MAX_NUMBER


def _is_set(mask: int, nodes: int) -> bool:
    return 0 <= mask < 1 << nodes


def _ranges(ranges: Sequence[tuple[int, int]]) -> bool:
    return all(0 <= start < stop < _MAX_NUMBER for start, stop in ranges)


def _names(names: Sequence[tuple[int, int]], nodes: int) -> bool:
    return all(0 <= source < nodes and 0 <= seq < _MAX_NUMBER for source, seq in names)


def _packet(packet: Packet, nodes: int) -> bool:
    return _without_vector(packet, nodes) and (not packet.seq_to or _vector(packet.seq_to, nodes))


def _without_vector(packet: Packet, nodes: int) -> bool:
    lengths, source, priority, numbers = packet.lengths, packet.source, packet.priority, packet.seq | packet.first
    return (
        source < nodes
        and priority <= _MAX_PRIORITY
        and numbers < _MAX_NUMBER
        and source | priority | numbers >= 0
        and 0 < packet.destinations < 1 << nodes
        and bool(lengths)
        and min(lengths) >= 0
        and sum(lengths) <= len(packet.payload)
    )


def _heading(heading: Heading, nodes: int) -> bool:
    return (
        0 <= heading.epoch | heading.seq | heading.delivered < _MAX_NUMBER
        and len(heading.expects) == nodes
        and min(heading.expects) >= 0
        and max(heading.expects) < _MAX_NUMBER
        and 0 <= heading.wants < 1 << nodes
    )


def _ballot(ballot: Ballot, nodes: int) -> bool:
    return 0 <= ballot[0] < _MAX_NUMBER and 0 <= ballot[1] < nodes


def _next_view(view: NextView, nodes: int) -> bool:
    return (
        _numbers(view.number, view.cut_below)
        and _is_set(view.members, nodes)
        and view.sequencer >= 0
        and bool(view.members >> view.sequencer & 1)  # so that it is below `nodes`
    )


# --- SPO and ST ---


def _data(unit: Data, nodes: int) -> bool:
    # A group receives more of these, and of those below, than of anything else: all numbers are compared at once.
    packet, status = unit.packet, unit.status
    seq_to, expects, below = packet.seq_to, status.expects, status.preacknowledged_below
    numbers = (*seq_to, *expects, *below, status.stamp, status.free, status.epoch)
    return (
        len(seq_to) == len(expects) == len(below) == nodes  # `below` is empty under the printed rules, never live
        and min(numbers) >= 0
        and max(numbers) < _MAX_NUMBER
        and _without_vector(packet, nodes)
    )


def _ready(unit: Ready, nodes: int) -> bool:
    status, next_seq_to = unit.status, unit.next_seq_to
    expects, below = status.expects, status.preacknowledged_below
    numbers = (*next_seq_to, *expects, *below, unit.next_seq, status.stamp, status.free, status.epoch)
    return (
        len(next_seq_to) == len(expects) == len(below) == nodes
        and min(numbers) >= 0
        and max(numbers) < _MAX_NUMBER
        and 0 <= unit.wants < 1 << nodes
        and (not unit.missing or all(0 <= source < nodes and _ranges(ranges) for source, ranges in unit.missing))
    )


def _reset_reply(unit: ResetReply, nodes: int) -> bool:
    return (
        _numbers(unit.epoch, unit.next_seq)
        and _vector(unit.next_seq_to, nodes)
        and all(0 <= seq < _MAX_NUMBER and _is_set(mask, nodes) for seq, mask in unit.sent)
        and all(0 <= who < nodes and 0 <= seq < _MAX_NUMBER and _is_set(mask, nodes) for who, seq, mask in unit.log)
        and 0 <= unit.preacknowledged <= len(unit.log)
    )


def _reset_need(unit: ResetNeed, nodes: int) -> bool:
    return (
        _numbers(unit.epoch, unit.backoff)
        and _is_set(unit.has, nodes)
        and _is_set(unit.done, nodes)
        and _names(unit.missing, nodes)
    )


def _placed_status(status: PlacedStatus, nodes: int) -> bool:
    return (
        _numbers(status.stamp, status.free, status.generation)
        and _vector(status.expects, nodes)
        and _vector(status.preacknowledged_below, nodes)
        and _vector(status.generations, nodes)
        and all(_numbers(generation, first) for generation, first in status.starts)
    )


def _placed_data(unit: PlacedData, nodes: int) -> bool:
    return len(unit.packet.seq_to) == nodes and _packet(unit.packet, nodes) and _placed_status(unit.status, nodes)


def _placed_ready(unit: PlacedReady, nodes: int) -> bool:
    return (
        _numbers(unit.next_seq)
        and _vector(unit.next_seq_to, nodes)
        and _placed_status(unit.status, nodes)
        and _is_set(unit.wants, nodes)
        and -1 <= unit.witness < nodes
        and all(
            0 <= source < nodes and _numbers(generation) and _ranges(ranges)
            for source, generation, ranges, _ in unit.missing
        )
    )


def _between(unit: PlacedCopy | PacketPosition, nodes: int) -> bool:
    return (
        _numbers(unit.stamp)
        and _vector(unit.generations, nodes)
        and _vector(unit.low, nodes)
        and len(unit.high) == nodes
        and -1 <= min(unit.high) <= max(unit.high) < _MAX_NUMBER
    )


def _placed_copy(unit: PlacedCopy, nodes: int) -> bool:
    packet = unit.packet
    return (
        len(packet.seq_to) == nodes and _packet(packet, nodes) and _numbers(unit.generation) and _between(unit, nodes)
    )


# --- TO, PriTO and PriO ---


def _vector_unit(unit: EpochVector, nodes: int) -> bool:
    return _numbers(unit.epoch) and _vector(unit.expects, nodes) and _is_set(unit.wants, nodes)


def _carrying(unit: CarryingVector, nodes: int) -> bool:
    return (
        _vector_unit(unit.vector, nodes)
        and _numbers(unit.seq)
        and unit.packet.source == unit.source
        and _packet(unit.packet, nodes)
    )


def _ordered_data(unit: OrderedData, nodes: int) -> bool:
    return unit.packet.source == unit.source and _heading(unit.heading, nodes) and _packet(unit.packet, nodes)


# --- the sequencer ---


def _broadcast(unit: Broadcast, nodes: int) -> bool:
    numbers = unit.view | unit.number | unit.commit_below | unit.stable_below
    return 0 <= numbers < _MAX_NUMBER and _packet(unit.packet, nodes)


def _number_announcement(unit: NumberAnnouncement, nodes: int) -> bool:
    numbers = _numbers(unit.view, unit.number, unit.commit_below, unit.stable_below)
    return numbers and _names(unit.packets, nodes)


def _sequencer_status(unit: SequencerStatus, nodes: int) -> bool:
    numbers = _numbers(unit.view, unit.next_number, unit.commit_below, unit.stable_below)
    return numbers and _is_set(unit.reply_from, nodes)


def _synchronise(unit: Synchronise, nodes: int) -> bool:
    numbers = _numbers(unit.view, unit.round, unit.next_number, unit.stable_below)
    return numbers and unit.phase in {1, 2} and _is_set(unit.reply_from, nodes)


def _flushed(unit: Flushed, nodes: int) -> bool:
    accepted = unit.accepted
    return (
        _numbers(unit.view, unit.received_below)
        and _ballot(unit.ballot, nodes)
        and (accepted is None or (_ballot(accepted[0], nodes) and _next_view(accepted[1], nodes)))
    )


def _propose(unit: Propose, nodes: int) -> bool:
    balloted = _ballot(unit.ballot, nodes) and _is_set(unit.answered, nodes)
    return _numbers(unit.view) and balloted and _next_view(unit.value, nodes)


CHECKS: dict[type[Unit], Callable[[Any, int], bool]] = {
    Data: _data,
    Ready: _ready,
    ResetReply: _reset_reply,
    ResetNeed: _reset_need,
    ResetDone: lambda unit, _: _numbers(unit.epoch),
    PlacedData: _placed_data,
    PlacedReady: _placed_ready,
    PlacedCopy: _placed_copy,
    PacketPosition: lambda unit, nodes: _names((unit.of,), nodes) and _between(unit, nodes),
    OrderedData: _ordered_data,
    OrderedReady: lambda unit, nodes: _heading(unit.heading, nodes),
    RunMarker: lambda unit, nodes: _heading(unit.heading, nodes) and _numbers(unit.covered_below),
    UnorderedReady: lambda unit, nodes: _heading(unit.heading, nodes),
    EpochVector: _vector_unit,
    CarryingVector: _carrying,
    Offer: lambda unit, nodes: _numbers(unit.view, unit.received_below) and _packet(unit.packet, nodes),
    Broadcast: _broadcast,
    NumberAnnouncement: _number_announcement,
    Acknowledgment: lambda unit, _: _numbers(unit.view, unit.received_below) and _ranges(unit.missing),
    SequencerStatus: _sequencer_status,
    Synchronise: _synchronise,
    Synchronised: lambda unit, _: _numbers(unit.view, unit.round, unit.received_below),
    Flush: lambda unit, nodes: _numbers(unit.view) and _ballot(unit.ballot, nodes) and _is_set(unit.answered, nodes),
    Flushed: _flushed,
    Refused: lambda unit, nodes: _numbers(unit.view) and _ballot(unit.ballot, nodes) and _ballot(unit.promised, nodes),
    Propose: _propose,
    Accepted: lambda unit, nodes: _numbers(unit.view) and _ballot(unit.ballot, nodes),
    Install: lambda unit, nodes: _numbers(unit.view) and _next_view(unit.value, nodes),
    ViewRequest: lambda unit, _: _numbers(unit.view),
    Fetch: lambda unit, nodes: _numbers(unit.view) and _ballot(unit.ballot, nodes) and _ranges(unit.missing),
    Supply: lambda unit, nodes: _numbers(unit.view, unit.number) and _packet(unit.packet, nodes),
}
"""The check of each kind of unit."""


# --- membership ---


def is_valid_in_view(unit: membership.ControlUnit, view: GroupView) -> bool:
    """True if a member of this view may be given the membership unit: a correct member of it can have sent it."""
    return 0 <= unit.view < _MAX_NUMBER and membership.problem_of(unit, view) is None and _is_bounded(unit, view)


def is_valid_outside(unit: membership.OutsideUnit) -> bool:
    """The same for a unit from or to one that is in no view."""
    numbers: tuple[int, ...] = ()
    if isinstance(unit, membership.Find):
        texts = unit.group, unit.name
        if isinstance(unit, membership.Found):
            numbers = unit.view, unit.to
        if not all(0 < len(text) <= _MAX_NAME for text in texts) or unit.nonce < 0:
            return False
    elif isinstance(unit, membership.Apply):
        numbers = unit.view, unit.to, unit.nonce, unit.ticket, 0 if unit.old is None else unit.old
    return min(numbers, default=0) >= 0 and membership.problem_of_outside(unit) is None


def _is_bounded(unit: membership.ControlUnit, view: GroupView) -> bool:
    """Sums stay below 64 bits."""
    if isinstance(unit, membership.Report):
        value = unit.accepted[1] if unit.accepted else None
        return _ends(unit.report) and (value is None or _next_membership(value))
    if isinstance(unit, membership.Propose | membership.Install):
        return _next_membership(unit.value)
    if isinstance(unit, membership.Fetch):
        return _ranges(unit.ranges)
    if isinstance(unit, membership.Supply):
        return _numbers(unit.number) and _packet(unit.packet, len(view.members))
    return True


def _ends(found: EpochReport | Cut) -> bool:
    vectors = (found.expected, found.stable) if isinstance(found, EpochReport) else (found.ends,)
    every = [number for vector in (*vectors, found.base, found.units) for number in vector]
    return _numbers(found.round, found.numbered_below, *every)


def _next_membership(value: NextMembership) -> bool:
    return _numbers(value.number, value.next_node) and _ends(value.cut)
