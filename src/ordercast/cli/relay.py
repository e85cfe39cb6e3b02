"""`ordercast relay`: passes the datagrams of a group on in one order, as a process of its own."""

import asyncio
from dataclasses import replace
from pathlib import Path
from signal import SIGINT, SIGTERM
from typing import Annotated, Any

import typer

from ordercast.cli.shared.live_options import (
    INSECURE,
    KEY,
    MEMBERS,
    MTU,
    MULTICAST,
    NETWORK,
    UVLOOP,
    members_from,
    read_keys_on_hangup,
    run,
    telling_options,
)
from ordercast.live.host.parameters import parameters_for
from ordercast.live.join import keys_for
from ordercast.live.relay_process import RelayProcess
from ordercast.live.settings import RELAYED_PROTOCOLS, Settings, protocol_of
from ordercast.live.transport.addresses import address_of, members_of, multicast_of, require_one_network
from ordercast.live.user_key import is_shared
from ordercast.model.config import require


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
    round_trip: Annotated[
        float | None,
        typer.Option(
            help="Seconds of a round trip between members; it limits how long the relay waits for datagrams that were "
            "overtaken. Default: 0.01, and 0.002 on one machine.",
            rich_help_panel=NETWORK,
        ),
    ] = None,
    uvloop: Annotated[bool, UVLOOP] = True,
) -> None:
    """Relay the datagrams of a live group in one order, until interrupted.

    The orders total and priority need a relay: a member, or this process, which members name by --relay. It may be
    stopped and started again: the group continues if it is back within two failure timeouts.
    Exit status 0: it was stopped, by SIGINT or SIGTERM; 2: an argument is wrong, or the address cannot be used.
    """
    given = {"multicast": multicast, "mtu": mtu, "round_trip": round_trip}
    overrides: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    shared = replace(Settings.from_toml(settings), **overrides) if settings else Settings(**overrides)
    place = address_of(address)
    _require_relayed(shared, settings)
    members = members_of(group, members_from(member_list), shared=is_shared(key, insecure=insecure))
    for name, each in members.items():
        require(not each.is_name, f"a relay sends to numbers: give the address of {name} as one, not {each}")
    require_one_network({**members, "the relay": place})
    with telling_options():
        keys = keys_for([place, *members.values()], key, insecure=insecure)
    relayed_to = multicast_of(shared.multicast, place) if shared.multicast else None
    addresses = list(members.values())
    loopback = all(each.is_loopback() for each in addresses)
    parameters = parameters_for(shared, len(addresses), loopback=loopback)

    if settings is not None and (shared.relay is None or address_of(shared.relay) != place):
        names = "no relay" if shared.relay is None else f"the relay {shared.relay}"
        _say(f"{settings} names {names}: only members that name {place} as their relay will use this one")

    async def serve() -> int:
        relay = RelayProcess(group, place, addresses, parameters, keys=keys, multicast=relayed_to)
        stopped = asyncio.Event()
        for signal in (SIGINT, SIGTERM):
            asyncio.get_running_loop().add_signal_handler(signal, stopped.set)
        if key is not None:
            read_keys_on_hangup(key, relay.rotate_keys, _say)
        relay.start()
        _say(f"relaying for the group {group} at {place}")
        await stopped.wait()
        relay.close()
        dropped = ", ".join(f"{count:,} {reason}" for reason, count in relay.dropped.items()) or "none"
        _say(f"{relay.passed:,} datagrams relayed, dropped: {dropped}")
        return 0

    raise typer.Exit(run(serve(), uvloop=uvloop))


def _require_relayed(shared: Settings, file: Path | None) -> None:
    require(
        protocol_of(shared.order) in RELAYED_PROTOCOLS,
        f"{file}: order {shared.order!r} needs no relay, only 'total' and 'priority' do; start its members without one",
    )


def _say(sentence: str) -> None:
    typer.echo(f"ordercast: {sentence}", err=True)
