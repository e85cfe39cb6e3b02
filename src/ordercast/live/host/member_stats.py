"""The statistics of a member, put together from those of its parts."""

import msgspec

from ordercast.live.host.member import Member
from ordercast.live.stats import Stats, counted
from ordercast.model.config import SECOND


def stats_of(member: Member, group: str) -> Stats:
    """Counters and sizes of a member whose session is, or was, open; `group`: its name."""
    host, counts, endpoint = member.host, member.counts, member.transport.endpoint
    assert host is not None, "there is no group before it is open"
    measured, log = member.session.round_trips.typical(), member.log
    return Stats(
        group=group,
        me=member.name,
        protocol=member.parameters.protocol,
        members=member.membership.members,
        view=member.membership.number,
        uptime=member.start.uptime(),
        round_trip=None if measured is None else measured / SECOND,
        messages_sent=counts.sent,
        messages_delivered=member.inbox.delivered,
        units_sent=counts.transmitted,
        retransmissions=counts.retransmitted,
        retransmission_requests=counts.requests,
        recoveries=counts.recoveries,
        units_discarded=dict(counts.discarded),
        units_overrun=counts.overrun,
        datagrams_received=endpoint.datagrams_in,
        datagrams_sent=endpoint.datagrams_out,
        bytes_received=endpoint.bytes_in,
        bytes_sent=endpoint.bytes_out,
        packets_repeated=0 if endpoint.links is None else endpoint.links.repeated,
        state_bytes_received=member.state.bytes_received,
        state_bytes_sent=member.state.bytes_sent,
        datagrams_rejected=counted(
            member.transport.dropped, incomplete=endpoint.incomplete, oversized=member.inbox.too_large
        ),
        send_errors=counted(endpoint.not_sent, oversized=member.transport.too_large),
        receive_errors=dict(endpoint.not_received),
        pending_bytes=member.outbox.pending_bytes,
        unread_bytes=member.inbox.bytes,
        logs=msgspec.structs.asdict(host.machine.log_sizes()),
        recording_error=host.recorder.failed,
        log_bytes=0 if log is None else log.disk_use,
        durable_position=0 if log is None else log.durability.majority,
        log_error=None if log is None else log.failed,
    )
