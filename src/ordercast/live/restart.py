"""How a process that was a member goes on with its log: it finds the running group, or those that begin it anew."""

import asyncio
from dataclasses import replace
from typing import NamedTuple

from ordercast.live.host.durable.exchange import LogExchange
from ordercast.live.host.durable.member_log import MemberLog
from ordercast.live.host.durable.restart_host import RestartHost
from ordercast.live.host.group_terms import read_terms
from ordercast.live.join_options import JoinOptions
from ordercast.live.local_groups import contacts_of
from ordercast.live.transport.addresses import Address, address_of, seen_from
from ordercast.live.why_not_open import notify_if_slow
from ordercast.model.config import SECOND
from ordercast.model.errors import ConfigError, JoinError
from ordercast.protocols.restart.standing import Plan
from ordercast.wire.seal import seal_for

_ADVICE = ("join with", "move the folder", "could not load the state")  # of errors that another attempt does not mend
_MIN_PATIENCE = 2.0  # seconds
_TIMEOUTS = 1.5  # failure timeouts that an attempt takes at most: whoever was found may have become blocked


class Found(NamedTuple):
    """How to go on."""

    options: JoinOptions
    plan: Plan | None
    """None: the group is running."""
    patience: float
    """Seconds for an attempt: then it looks again, since others may have failed meanwhile."""

    def is_final(self, error: JoinError) -> bool:
        """Whether another attempt would end in the same way."""
        return self.plan is None and any(advice in str(error) for advice in _ADVICE)


async def find_or_restart(options: JoinOptions, log: MemberLog, why: str) -> Found:
    """Returns when the group is found, or begins anew; raises `JoinError`. `why`: the last attempt failed."""
    standing = log.standing
    assert standing is not None, "it was a member"
    name = str(options.name)
    parameters = read_terms(standing.terms).parameters if standing.terms else options.parameters
    own = _own_address(options, log)
    others = [str(each) for each in (*options.members.values(), *(options.contacts or contacts_of(options.group)))]
    host = RestartHost(
        *(log, LogExchange(log, None), own, name),
        bind=options.bind if options.bind is not None and options.bind.port else own,
        others=others,
        seal=seal_for(options.group, options.keys),
        keys=options.keys,
        least=1 if log.settings.force else parameters.least_members,
        failure_timeout=parameters.failure_timeout / SECOND,
    )
    try:
        with notify_if_slow(options.on_waiting, lambda: host.waits_for or f"the other members of {options.group}"):
            async with asyncio.timeout(options.timeout):
                found = await host.run()
    except TimeoutError:
        missing = "; ".join(each for each in (host.waits_for, why) if each)
        raise JoinError(
            f"{name} could not go on with its log within {options.timeout:.3g} s: {missing}. If the missing disks are "
            "lost, start with --force (LogSettings(force=True)): what only they had is lost then, though it may have "
            "been told durable"
        ) from None
    patience = max(_MIN_PATIENCE, _TIMEOUTS * parameters.failure_timeout / SECOND)
    if found.plan is None:
        contacts = tuple(seen_from(own, address_of(each)) for each in found.contacts)
        apart = options.bind is not None and options.bind.port != 0
        bind, advertise = (options.bind, own) if apart else (own, None)
        return Found(replace(options, contacts=contacts, bind=bind, advertise=advertise), None, patience)
    members = {one.name: seen_from(own, address_of(one.address)) for one in found.plan.members}
    bind = options.bind if options.bind is not None and options.bind.port else None
    begins = replace(
        options, members=members, bind=bind, advertise=None, contacts=None, named=None, parameters=parameters
    )
    return Found(begins, found.plan, patience)


def _own_address(options: JoinOptions, log: MemberLog) -> Address:
    """The one that is given, or the one that this member had: the others look for it there."""
    if options.members:
        return options.members[str(options.name)]
    if options.bind is not None and options.bind.port:
        return options.own_address(options.bind.port)
    assert log.standing is not None, "it was a member"
    for one in log.standing.view.members:
        if one.name == options.name:
            return address_of(one.address)
    if options.bind is None:
        raise ConfigError("give the address of this member (bind): the others look for it there")
    return options.bind
