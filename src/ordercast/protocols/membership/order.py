"""An order as the membership protocol uses it, and the epoch that runs in the current view."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from ordercast.model.config import GroupConfig
from ordercast.model.machine import Machine
from ordercast.model.units import Packet
from ordercast.protocols.membership.epoch import Cut, Flush, Ranges
from ordercast.protocols.membership.units import MAX_COPIES
from ordercast.protocols.registry import flush_class, make_machine

SELECTIVE = frozenset({"spo", "st"})
"""Orders whose messages go to any members."""


class Order(NamedTuple):
    """An order: how the machine of an epoch is made, and how it is ended."""

    machine: Callable[[int, GroupConfig], Machine]
    flush: Callable[[Any], Flush]
    to_all: bool
    """Every message goes to all members."""


def order_of(protocol: str) -> Order:
    """The order of a protocol, with its sound rules."""
    return Order(partial(make_machine, protocol), flush_class(protocol), protocol not in SELECTIVE)


class Epoch:
    """The instance of the order's machine that runs in the current view."""

    order: Final[Order]
    config: Final[GroupConfig]
    machine: Machine
    flush: Flush

    def __init__(self, order: Order, config: GroupConfig) -> None:
        """`config`: of the founding view; its number of nodes becomes that of each view."""
        self.order, self.config = order, config

    def begin(self, place: int, size: int, next_message: int = 0) -> None:
        """A fresh machine for a view of this size."""
        self.machine = self.order.machine(place, self.config_of(size))
        self.flush = self.order.flush(self.machine)
        self.flush.start(next_message)

    def config_of(self, size: int) -> GroupConfig:
        """The parameters of the order in a view of this size."""
        return replace(self.config, nodes=size, first_seq=(), views=True)

    def reports_needed(self, size: int) -> int:
        """How many members must report, besides being a quorum."""
        return self.flush.reports_needed(self.config_of(size))

    def lacks(self, cut: Cut, supplied: Mapping[int, Packet]) -> Ranges:
        """What must be fetched below a cut, besides what was supplied: as much as one request asks for."""
        found: list[tuple[int, int]] = []
        count = 0
        for first, stop in self.flush.lacks(cut):
            for number in range(first, stop):
                if number in supplied:
                    continue
                if found and found[-1][1] == number:
                    found[-1] = (found[-1][0], number + 1)
                else:
                    found.append((number, number + 1))
                count += 1
                if count == MAX_COPIES:  # which are no more ranges than one request has room for
                    return tuple(found)
        return tuple(found)
