"""What a process needs to be a member, whether it opens a group or joins one."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from ordercast.live.group import Group
from ordercast.live.host.member import Member
from ordercast.live.host.parameters import Parameters
from ordercast.live.host.recording import NewRecorder, no_recorder
from ordercast.live.host.state_transfer import StateOptions
from ordercast.live.join_options import JoinOptions
from ordercast.live.local_groups import register
from ordercast.live.settings import RELAYED_PROTOCOLS
from ordercast.live.transport.addresses import Address
from ordercast.live.transport.endpoint import Endpoint
from ordercast.live.transport.relay import Relay
from ordercast.model.errors import ConfigError
from ordercast.model.services import PRIORITISED, SELECTIVE
from ordercast.wire.seal import Seal

if TYPE_CHECKING:
    from ordercast.live.host.durable.member_log import MemberLog

RECORDER = "ordercast.live.host.trace_recorder"
"""The module that records, which needs pyarrow."""


def group_of(name: str, member: Member) -> Group:
    """A group as the application uses it."""
    protocol = member.parameters.protocol
    selective = protocol in {service.value for service in SELECTIVE}
    return Group(name, member, selective=selective, prioritised=protocol in PRIORITISED)


def note_address(group: str, member: Member) -> None:
    """Until this member ends, others on this machine find it by the name of its group."""
    if member.address.is_loopback():
        registration = register(group, member.name, member.address)
        member.left.add_done_callback(lambda _: registration.remove())


def recorder_for(options: JoinOptions) -> NewRecorder:
    """How to record a session here."""
    if options.record is None:
        return no_recorder
    from ordercast.live.host.trace_recorder import trace_recorders  # noqa: PLC0415 (it needs pyarrow)

    return trace_recorders(
        *(options.record, options.group, options.parameters),
        one_clock=options.one_clock,
        deliveries_only=options.deliveries_only,
    )


async def log_of(options: JoinOptions) -> "MemberLog | None":
    """The log, open, if this member has one; raises `ConfigError` if it cannot be opened."""
    if options.log is None:
        return None
    if options.name is None:
        raise ConfigError("a log is that of one member, which is found again by its name: give its name (name)")
    from ordercast.live.host.durable.member_log import MemberLog  # noqa: PLC0415 (it needs what only logs need)

    log = MemberLog(options.log, options.group, options.name)
    await log.open(options.parameters.max_message_size)
    return log


def state_of(options: JoinOptions, log: "MemberLog | None") -> StateOptions | None:
    """The application's state, and the log, if it has any."""
    if options.state is None and log is None:
        return None
    exchange = None
    if log is not None:
        from ordercast.live.host.durable.exchange import LogExchange  # noqa: PLC0415 (as above)

        exchange = LogExchange(log, options.state)
    return StateOptions(options.state, options.state_timeout, options.timeout, options.keys, exchange, options.bind)


def relay_for(
    parameters: Parameters, address: Address | None, seal: Seal, endpoint: Endpoint
) -> Callable[[], Relay] | Address | None:
    """The relay: a process of its own, or made by whoever is the first member of a view; None: there is none.

    Where only acknowledgments go by it, multicast does without.
    """
    if not (parameters.protocol in RELAYED_PROTOCOLS or (parameters.gathers and not parameters.multicast)):
        return None
    if address is not None:
        return address
    return lambda: Relay(
        seal, time.time_ns(), endpoint.send_to_all_by_links if endpoint.packet_size else endpoint.send_to_all
    )
