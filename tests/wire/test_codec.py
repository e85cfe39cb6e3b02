"""Every unit that a protocol really sends survives the wire; what makes no sense in a group does not get through."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ordercast.explorer.scenarios import default_scripts, scenario
from ordercast.explorer.state_space import StateSpace
from ordercast.model.errors import ConfigError
from ordercast.model.units import Packet, Unit
from ordercast.protocols.membership.epoch import Cut, EpochReport
from ordercast.protocols.membership.units import CONTROL_UNITS, OUTSIDE_UNITS
from ordercast.protocols.membership.view import GroupView, Incarnation
from ordercast.protocols.membership.view import NextView as NextMembership
from ordercast.protocols.sequencer.units import Acknowledgment, Broadcast, NextView, Offer, Propose
from ordercast.protocols.spo.units import Data, Ready, Status
from ordercast.protocols.to.units import Heading, OrderedData
from ordercast.wire.codec import KINDS, Codec, Malformed
from ordercast.wire.control import CONTROL
from ordercast.wire.outside import Outside
from ordercast.wire.unit_validation import CHECKS, is_valid

NODES = 3


def units_of(protocol: str, seed: int) -> list[Unit]:
    """All units of a schedule drawn at random, with losses, timers and, where nodes may, crashes."""
    crashes = 1 if protocol == "sequencer" else 0
    chosen = scenario(
        protocol, default_scripts(protocol, NODES), losses=6, duplicates=2, firings=60, crashes=crashes, drained=True
    )
    space, chance = StateSpace(chosen), Random(seed)
    state = space.initial_state()
    for _ in range(400):
        possible = space.steps(state)
        if not possible:
            break
        state, _ = space.successor(state, chance.choice(possible))
    return space.nodes.units


@pytest.mark.parametrize("protocol", KINDS)
def test_what_is_really_sent_survives_the_wire(protocol: str) -> None:
    codec, kinds = Codec(protocol, CONTROL), set()
    for seed in range(12):
        for unit in units_of(protocol, seed):
            assert codec.decode(codec.encode(unit)) == unit
            assert is_valid(unit, NODES), unit
            kinds.add(type(unit))
    assert kinds <= set(KINDS[protocol])
    assert len(kinds) > 1


def test_every_kind_has_a_number_of_its_own_and_a_check() -> None:
    every = {kind for kinds in KINDS.values() for kind in kinds}
    tags = [kind.__struct_config__.tag for kind in (*every, *CONTROL, Outside, *CONTROL_UNITS, *OUTSIDE_UNITS)]
    assert len(tags) == len(set(tags))
    assert every == CHECKS.keys()


def test_a_unit_is_an_array_of_its_kind_and_its_fields() -> None:
    unit = Acknowledgment(2, 1, 7, ((3, 5),), wants_status=True)
    assert msgspec.msgpack.decode(Codec("sequencer").encode(unit)) == [43, 2, 1, 7, [[3, 5]], True]


def test_the_documents_have_every_kind_and_field() -> None:
    text = (Path(__file__).parents[2] / "docs" / "wire.md").read_text()
    of: dict[type[msgspec.Struct], list[str]] = {
        kind: [name for name, kinds in KINDS.items() if kind in kinds] for kinds in KINDS.values() for kind in kinds
    }
    every: list[type[msgspec.Struct]] = [*of, *CONTROL, Outside]
    for kind in every:
        fields = ", ".join(kind.__struct_fields__)
        protocols = ", ".join(of.get(kind, ["all"]))
        assert f"| {kind.__struct_config__.tag} | {kind.__name__} | {protocols} | {fields} |" in text
    for kinds, of_whom in ((CONTROL_UNITS, "membership"), (OUTSIDE_UNITS, "outside")):
        for unit in kinds:
            fields = ", ".join(unit.__struct_fields__)
            assert f"| {unit.__struct_config__.tag} | {unit.__name__} | {of_whom} | {fields} |" in text
    for part in (Packet, Status, Heading, NextView, Incarnation):
        assert f"| {part.__name__} | {', '.join(part.__struct_fields__)} |" in text
    for inner, where in ((EpochReport, "Report"), (Cut, "NextView"), (GroupView, "Welcome")):
        assert f"| {inner.__name__}, in `{where}` | {', '.join(inner.__struct_fields__)} |" in text
    assert f"| NextView, of membership | {', '.join(NextMembership.__struct_fields__)} |" in text


COSTS = {
    100: {"selective": (29, 45, 226), "ordered": (23, 29, 94), "broadcast": (18, 19, 26), "offer": (16, 17, 24)},
    1 << 31: {"selective": (77, 153, 1006), "ordered": (51, 77, 366), "broadcast": (38, 39, 46), "offer": (28, 29, 36)},
}


@pytest.mark.parametrize("number", COSTS)
def test_headers_cost_what_the_documents_say(number: int) -> None:
    """A number below 128 has 1 byte, one below 2**32 has 5, an array of up to 15 has 1 more than its members."""
    for place, nodes in enumerate((3, 8, 64)):
        vector, everybody, payload = (number,) * nodes, (1 << nodes) - 1, bytes(65)
        packet = Packet(1, everybody, number, (), number, (64,), payload)
        to_some = msgspec.structs.replace(packet, seq_to=vector)
        units: dict[str, Unit] = {
            "selective": Data(to_some, Status(number, vector, vector, 200, 0)),
            "ordered": OrderedData(packet, Heading(1, 3, number, vector, number)),
            "broadcast": Broadcast(packet, 0, 0, number, number, number),
            "offer": Offer(packet, 0, number),
        }
        for name, unit in units.items():
            assert len(msgspec.msgpack.encode(unit)) - len(payload) == COSTS[number][name][place], name


def test_units_of_other_protocols_are_not_read() -> None:
    with pytest.raises(Malformed):
        Codec("spo").decode(Codec("sequencer").encode(Acknowledgment(0, 1, 2)))
    with pytest.raises(ConfigError, match="unknown protocol 'x'"):
        Codec("x")


@given(st.sampled_from(list(KINDS)), st.binary(max_size=200))
def test_whatever_comes_is_read_or_malformed(protocol: str, record: bytes) -> None:
    try:
        unit = Codec(protocol, CONTROL).decode(record)
    except Malformed:
        return
    assert isinstance(unit, (Unit, *CONTROL))


@settings(deadline=None)
@given(st.sampled_from(["spo", "st", "to", "sequencer"]), st.integers(0, 30), st.data())
def test_a_changed_unit_is_read_or_malformed(protocol: str, seed: int, data: st.DataObject) -> None:
    codec = Codec(protocol, CONTROL)
    record = bytearray(codec.encode(data.draw(st.sampled_from(units_of(protocol, seed)))))
    for _ in range(data.draw(st.integers(1, 4))):
        record[data.draw(st.integers(0, len(record) - 1))] = data.draw(st.integers(0, 255))
    try:
        unit = codec.decode(bytes(record[: data.draw(st.integers(1, len(record)))]))
    except Malformed:
        return
    if isinstance(unit, Unit):
        is_valid(unit, NODES)  # says yes or no, and raises nothing


def data_unit(**changes: Any) -> Data:
    whole: dict[str, Any] = {
        "source": 1,
        "destinations": 0b101,
        "seq": 4,
        "seq_to": (1, 2, 3),
        "first": 9,
        "lengths": (1, 2),
        "payload": b"\0abc",
    }
    return Data(Packet(**{**whole, **changes}), Status(3, (1, 2, 3), (1, 2, 3)))


SENSELESS = [
    data_unit(source=3),
    data_unit(source=-1),
    data_unit(destinations=0),
    data_unit(destinations=8),
    data_unit(destinations=-1),
    data_unit(seq=-1),
    data_unit(seq=1 << 60),
    data_unit(seq_to=(1, 2)),
    data_unit(seq_to=()),
    data_unit(seq_to=(1, 2, -3)),
    data_unit(first=-1),
    data_unit(lengths=()),
    data_unit(lengths=(-1, 2)),
    data_unit(lengths=(3, 2)),
    data_unit(priority=256),
    msgspec.structs.replace(data_unit(), status=Status(3, (1, 2), (1, 2, 3))),
    msgspec.structs.replace(data_unit(), status=Status(-1, (1, 2, 3), (1, 2, 3))),
    msgspec.structs.replace(data_unit(), status=Status(3, (1, 2, 3), (1,))),
    msgspec.structs.replace(data_unit(), status=Status(3, (1, 2, 3))),
    Ready(1, 0, (0, 0), Status(1, (0, 0, 0), (0, 0, 0))),
    Ready(1, 0, (0, 0, 0), Status(1, (0, 0, 0), (0, 0, 0)), wants=8),
    Ready(1, 0, (0, 0, 0), Status(1, (0, 0, 0), (0, 0, 0)), missing=((3, ((0, 1),)),)),
    Ready(1, 0, (0, 0, 0), Status(1, (0, 0, 0), (0, 0, 0)), missing=((0, ((1, 1),)),)),
    Acknowledgment(0, 3, 0),
    Acknowledgment(0, 1, -1),
    Acknowledgment(0, 1, 0, ((2, 1),)),
    Broadcast(data_unit().packet, 0, 0, 1 << 61, 0, 0),
    Propose(0, 1, (1, 3), NextView(1, 7, 0, 0, ""), 0),
    Propose(0, 1, (1, 1), NextView(1, 6, 0, 0, ""), 0),
    Propose(0, 1, (1, 1), NextView(1, 15, 0, 0, ""), 0),
]


@pytest.mark.parametrize("unit", SENSELESS, ids=repr)
def test_what_makes_no_sense_in_the_group_does_not_get_through(unit: Unit) -> None:
    assert is_valid(data_unit(), NODES)
    assert not is_valid(unit, NODES)


def with_one_number_changed(value: Any, numbers: tuple[int, ...]) -> Iterator[Any]:
    """Copies of a value in which one number, wherever it is, is one of these."""
    if isinstance(value, msgspec.Struct):
        for field in value.__struct_fields__:
            for changed in with_one_number_changed(getattr(value, field), numbers):
                yield msgspec.structs.replace(value, **{field: changed})
    elif isinstance(value, tuple):
        for index, item in enumerate(value):
            for changed in with_one_number_changed(item, numbers):
                yield (*value[:index], changed, *value[index + 1 :])
    elif isinstance(value, int) and not isinstance(value, bool):
        yield from numbers


@pytest.mark.parametrize("protocol", KINDS)
def test_no_number_of_any_unit_may_be_negative_or_very_large(protocol: str) -> None:
    tried: Counter[type[Unit]] = Counter()
    for unit in (unit for seed in range(12) for unit in units_of(protocol, seed)):
        if tried[type(unit)] < 40:
            tried[type(unit)] += 1
            for changed in with_one_number_changed(unit, (-1, 1 << 60)):
                assert not is_valid(changed, NODES), changed
    assert len(tried) > 1
