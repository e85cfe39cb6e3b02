"""PriO is the machine of PriTO, held to less: here is why that loses nothing."""

import msgspec
import pytest

from ordercast.model.config import GroupConfig, Rules
from ordercast.model.units import Packet
from ordercast.protocols.prito.machine import Prito
from ordercast.protocols.prito.prio import Prio
from ordercast.protocols.registry import machine_class
from ordercast.simulator import simulate
from ordercast.swarm.draw import draw_config
from ordercast.trace.schema import EventRow
from tests.protocols.driver import E1, E2, played_by
from tests.protocols.prio.watching import WatchesItsFreedom
from tests.protocols.to import test_to_machine


def test_it_is_a_protocol_of_its_own_name() -> None:
    assert machine_class("prio", Rules.SOUND) is Prio


@pytest.mark.parametrize("number", range(12))
def test_it_does_what_prito_does_to_the_last_unit(number: int) -> None:
    rows: dict[str, list[EventRow]] = {"prio": [], "prito": []}
    for protocol, found in rows.items():
        config = draw_config(number, protocol=protocol, receipts=300)
        simulate(msgspec.structs.replace(config, protocol=protocol), rows=found)
    assert rows["prio"] == rows["prito"]
    assert rows["prio"]


def test_what_watches_sees_a_packet_that_is_acknowledged_out_of_turn() -> None:
    machine = WatchesItsFreedom(E1, GroupConfig(nodes=2))
    p, q = (Packet(source, 3, 0, (), 0, (1,), b"x", 5) for source in (E1, E2))
    machine.reception.preacknowledged.entries.extend([(E1, 0, p), (E2, 0, q)])
    machine.look()
    machine.reception.preacknowledged.acknowledged_below[:] = [(0, 1), (1, 0)]
    machine.look()
    machine.reception.preacknowledged.acknowledged_below[:] = [(0, 1), (1, 1)]
    with pytest.raises(AssertionError, match="could go before its equals"):
        machine.look()


def test_it_sees_nothing_of_the_kind_in_groups_that_go_back() -> None:
    with played_by(WatchesItsFreedom, instead_of=Prito):
        for seed in range(1, 20):
            test_to_machine.Walk(seed).run(400)
