"""Addresses that others name in units: whether anything can be sent there."""

from ipaddress import ip_address

from ordercast.live.transport.addresses import address_of, reachable
from ordercast.model.errors import ConfigError
from ordercast.protocols.membership.units import (
    Apply,
    ControlUnit,
    Found,
    Install,
    OutsideUnit,
    Propose,
    Report,
    Welcome,
)


def is_address(text: str) -> bool:
    """Whether something can be sent there; said by somebody else."""
    try:
        address = ip_address(reachable(address_of(text)).host.partition("%")[0])
    except ConfigError:
        return False
    return not address.is_multicast


def has_addresses(unit: ControlUnit | OutsideUnit) -> bool:
    """Whether all that a unit names as members, or as joining, can be sent to."""
    if isinstance(unit, Propose | Install):
        people = unit.value.joined
    elif isinstance(unit, Report):
        people = () if unit.accepted is None else unit.accepted[1].joined
    elif isinstance(unit, Apply):
        people = (unit.applicant,)
    elif isinstance(unit, Welcome):
        people = unit.view.members
        if not all(map(is_address, unit.founders)):
            return False
    else:
        return not isinstance(unit, Found) or all(map(is_address, unit.addresses))
    return all(is_address(person.address) for person in people)
