"""The numbers of a packet that goes to some of a group's nodes."""

from ordercast.model.machine import Submit
from ordercast.model.nodes import members
from ordercast.model.units import Packet


def numbered(event: Submit, source: int, seq: int, next_seq_to: list[int], next_message: int) -> Packet:
    """The packet of a submission, with these numbers; its destinations' entries of `next_seq_to` are counted up."""
    first = next_message + event.skips
    destinations = event.destinations
    packet = Packet(source, destinations, seq, tuple(next_seq_to), first, event.lengths, event.payload, event.priority)
    for node in members(destinations):
        next_seq_to[node] += 1
    return packet
