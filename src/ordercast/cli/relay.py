"""`ordercast relay`: passes the datagrams of a group on in one order, as a process of its own."""

import asyncio
from pathlib import Path
from signal import SIGINT, SIGTERM
from typing import Annotated

import typer

from ordercast.cli.shared.live_options import INSECURE, KEY, MEMBERS, MTU, MULTICAST, UVLOOP, members_from, run
from ordercast.live.host.parameters import parameters_for
from ordercast.live.join import keys_for
from ordercast.live.relay_process import RelayProcess
from ordercast.live.settings import Settings
from ordercast.live.transport.addresses import address_of, members_of, multicast_of, require_one_network


def relay_command(
    address: Annotated[str, typer.Argument(help="Address of the relay, such as 10.0.0.9:7100; members give the same.")],
    group: Annotated[str, typer.Option(help="Name of the group.")],
    member_list: Annotated[str, MEMBERS],
    settings: Annotated[
        Path | None, typer.Option("--settings", help="TOML file with the group's settings; the members have the same.")
    ] = None,
    key: Annotated[Path | None, KEY] = None,
    insecure: Annotated[bool, INSECURE] = False,
    multicast: Annotated[str | None, MULTICAST] = None,
    mtu: Annotated[int | None, MTU] = None,
    uvloop: Annotated[bool, UVLOOP] = True,
) -> None:
    """Relay the datagrams of a live group in one order, until interrupted.

    The orders total and priority need a relay: a member, or this process, which members name by --relay. It may be
    stopped and started again: the group continues if it is back within two failure timeouts.
    """
    shared = Settings.from_toml(settings) if settings is not None else Settings()
    multicast, mtu = multicast or shared.multicast, shared.mtu if mtu is None else mtu
    members = members_of(group, members_from(member_list))
    place = address_of(address)
    require_one_network({**members, "the relay": place})
    keys = keys_for([place, *members.values()], key, insecure=insecure)
    relayed_to = multicast_of(multicast, place) if multicast else None
    addresses = list(members.values())
    loopback = all(each.is_loopback() for each in addresses)
    parameters = parameters_for(Settings(mtu=mtu), len(addresses), loopback=loopback)

    async def serve() -> int:
        relay = RelayProcess(group, place, addresses, keys=keys, multicast=relayed_to, mtu=parameters.mtu)
        stopped = asyncio.Event()
        for signal in (SIGINT, SIGTERM):
            asyncio.get_running_loop().add_signal_handler(signal, stopped.set)
        relay.start()
        typer.echo(f"ordercast: relaying for the group {group} at {place}", err=True)
        await stopped.wait()
        relay.close()
        dropped = ", ".join(f"{count:,} {reason}" for reason, count in relay.dropped.items()) or "none"
        summary = f"{relay.passed:,} datagrams relayed, {relay.late:,} too late, dropped: {dropped}"
        typer.echo(f"ordercast: {summary}", err=True)
        return 0

    raise typer.Exit(run(serve(), uvloop=uvloop))
