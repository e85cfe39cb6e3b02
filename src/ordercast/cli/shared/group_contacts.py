"""Where those ask that want to know about a running group without being members."""

import asyncio
from typing import Literal

from ordercast.live.local_groups import contacts_of, local_groups
from ordercast.live.resolution import look_up
from ordercast.live.transport.addresses import Address, place_of
from ordercast.model.errors import JoinError


def contact_addresses(group: str, contacts: list[str] | Literal["local"]) -> list[Address]:
    """Raises `JoinError` if no member runs on this machine, and no address is given."""
    if not isinstance(contacts, str):
        named = {text: place_of(text) for text in contacts}
        known = asyncio.run(look_up(named))
        if not known:
            raise JoinError(f"no address is known for {', '.join(named)}")
        return list(known.values())
    found = contacts_of(group)
    if not found:
        others = local_groups()
        running = f"groups that have some: {', '.join(others)}" if others else "no other group has any, either"
        raise JoinError(
            f"the group {group} has no member on this machine that this user started ({running}); "
            "give addresses of members: --join HOST:PORT,HOST:PORT"
        )
    return found
