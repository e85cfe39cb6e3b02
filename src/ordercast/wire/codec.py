"""The codec: a unit is a MessagePack array of its kind and its fields, encoded and decoded by msgspec.

The decoder checks the type of each field; `checks` whether the values are valid in a group of this size. Bytes from a
network raise nothing but `Malformed` here.
"""

from functools import reduce
from operator import or_
from typing import Any

import msgspec

from ordercast.model.errors import ConfigError
from ordercast.model.units import Unit
from ordercast.protocols.prito.units import RunMarker
from ordercast.protocols.sequencer import units as sequencer_units
from ordercast.protocols.spo import units as spo_units
from ordercast.protocols.st import units as st_units
from ordercast.protocols.to import units as to_units

_TOTAL: tuple[type[Unit], ...] = (
    to_units.OrderedData,
    to_units.OrderedReady,
    to_units.UnorderedReady,
    to_units.EpochVector,
    to_units.CarryingVector,
)
_SELECTIVE: tuple[type[Unit], ...] = (spo_units.Data, spo_units.Ready)
KINDS: dict[str, tuple[type[Unit], ...]] = {
    "spo": _SELECTIVE,
    "po": _SELECTIVE,
    "st": (
        *_SELECTIVE,
        st_units.ResetReply,
        st_units.ResetNeed,
        st_units.ResetDone,
        st_units.PlacedData,
        st_units.PlacedReady,
        st_units.PlacedCopy,
        st_units.PacketPosition,
    ),
    "to": _TOTAL,
    "prito": (*_TOTAL, RunMarker),
    "prio": (*_TOTAL, RunMarker),
    "sequencer": (
        sequencer_units.Offer,
        sequencer_units.Broadcast,
        sequencer_units.NumberAnnouncement,
        sequencer_units.Acknowledgment,
        sequencer_units.SequencerStatus,
        sequencer_units.Synchronise,
        sequencer_units.Synchronised,
        sequencer_units.Flush,
        sequencer_units.Flushed,
        sequencer_units.Refused,
        sequencer_units.Propose,
        sequencer_units.Accepted,
        sequencer_units.Install,
        sequencer_units.ViewRequest,
        sequencer_units.Fetch,
        sequencer_units.Supply,
    ),
}
"""The units of each protocol's sound rules: no other is decoded in its groups."""


class Malformed(Exception):  # noqa: N818 (it says what the bytes are)
    """Bytes that are not a unit or message of this group."""


class Codec:
    """Encodes and decodes what the members of one group send to each other."""

    def __init__(self, protocol: str, others: tuple[type[msgspec.Struct], ...] = ()) -> None:
        """`others`: kinds of messages besides the protocol's units."""
        if protocol not in KINDS:
            raise ConfigError(f"unknown protocol {protocol!r}; choose one of: {', '.join(KINDS)}")
        self.encode = msgspec.msgpack.Encoder().encode
        kinds: Any = reduce(or_, (*KINDS[protocol], *others))
        self._decode = msgspec.msgpack.Decoder(kinds).decode

    def decode(self, record: bytes | memoryview) -> Any:
        """The unit or message; raises `Malformed`, and nothing else, if the bytes are not one."""
        try:
            return self._decode(record)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise Malformed(str(error)) from error
