"""`ordercast channel`: the one channel that total and priority orders need, as a process of its own."""

import asyncio
from pathlib import Path
from signal import SIGINT, SIGTERM
from typing import Annotated

import typer

from ordercast.cli.joined import INSECURE, KEY, MEMBERS, MTU, MULTICAST, UVLOOP, members_from, run
from ordercast.live.joining import keys_for
from ordercast.live.relay_process import RelayProcess
from ordercast.live.settings import Wishes, agreement
from ordercast.live.transport.addresses import address_of, members_of, multicast_of, require_one_network


def channel_command(
    address: Annotated[str, typer.Argument(help="Where it is, such as 10.0.0.9:7100: members give the same.")],
    group: Annotated[str, typer.Option(help="The name of the group.")],
    member_list: Annotated[str, MEMBERS],
    key: Annotated[Path | None, KEY] = None,
    insecure: Annotated[bool, INSECURE] = False,
    multicast: Annotated[str | None, MULTICAST] = None,
    mtu: Annotated[int | None, MTU] = None,
    uvloop: Annotated[bool, UVLOOP] = True,
) -> None:
    """Gives everything that a group says one order, until it is interrupted.

    Members name it by --channel. It may be killed and started again at any time: the group goes on, if it is back
    within twice the silence after which members take each other for dead.
    """
    members = members_of(group, members_from(member_list))
    place = address_of(address)
    require_one_network({**members, "the channel": place})
    keys = keys_for([place, *members.values()], key, insecure=insecure)
    relayed_to = multicast_of(multicast, place) if multicast else None
    addresses = list(members.values())
    loopback = all(each.is_loopback() for each in addresses)
    agreed = agreement("st", len(addresses), Wishes(mtu=mtu), loopback=loopback)

    async def serve() -> int:
        channel = RelayProcess(group, place, addresses, keys=keys, multicast=relayed_to, mtu=agreed.mtu)
        stopped = asyncio.Event()
        for signal in (SIGINT, SIGTERM):
            asyncio.get_running_loop().add_signal_handler(signal, stopped.set)
        channel.start()
        typer.echo(f"ordercast: the channel of {group} is at {place}", err=True)
        await stopped.wait()
        channel.close()
        dropped = ", ".join(f"{count:,} {reason}" for reason, count in channel.dropped.items()) or "none"
        told = f"{channel.passed:,} datagrams passed on, {channel.late:,} too late, dropped: {dropped}"
        typer.echo(f"ordercast: {told}", err=True)
        return 0

    raise typer.Exit(run(serve(), uvloop=uvloop))
