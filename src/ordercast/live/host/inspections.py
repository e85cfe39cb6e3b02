"""What a member tells one that watches the group: see `ordercast top`."""

from typing import TYPE_CHECKING

import msgspec

from ordercast.wire.control import truncated
from ordercast.wire.inspection import MAX_WAITS, Inspect, Inspected

if TYPE_CHECKING:
    from ordercast.live.host.member import Member

_LONGEST = 160  # characters of a sentence: an answer fits into a datagram


def inspected(member: "Member", question: Inspect) -> Inspected | None:
    """The answer; None: this member is not in the group yet, or not any more."""
    host, view = member.host, member.membership.view
    if host is None or view is None or host.closed:
        return None
    counts, endpoint, delivered = member.counts, member.transport.endpoint, member.inbox.delivered
    return Inspected(
        incarnation=question.incarnation,
        nonce=question.nonce,
        view=view.number,
        place=member.session.places[member.me],
        uptime=round(1000 * member.start.uptime()),
        sent=counts.sent,
        delivered=tuple(delivered.get(name, 0) for name in member.membership.members),
        transmitted=counts.transmitted,
        retransmitted=counts.retransmitted,
        requests=counts.requests,
        recoveries=counts.recoveries,
        dropped=counts.overrun + sum(member.transport.dropped.values()),
        bytes_received=endpoint.bytes_in,
        bytes_sent=endpoint.bytes_out,
        pending=member.outbox.pending_bytes,
        unread=member.inbox.bytes,
        held=sum(msgspec.structs.astuple(host.machine.log_sizes())),
        latencies=host.own.latencies.summary(),
        waits=tuple(sentence[:_LONGEST] for sentence in _waits(member))[:MAX_WAITS],
    )


def _waits(member: "Member") -> list[str]:
    """For whom it waits, in sentences with names."""
    assert member.host is not None
    found = [member.membership.with_names(sentence) for sentence in member.host.machine.waits_for()]
    closed = member.flow.names(member.name, member.membership.members)
    if closed:
        found.insert(0, f"sending waits: {', '.join(sorted(closed))} does not read")
    return [truncated(sentence) for sentence in found]
