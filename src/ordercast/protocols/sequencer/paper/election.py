"""Electing a new sequencer as the paper sketches it: histories are replicated, the node with the highest number wins.

From: Kaashoek, Tanenbaum, Flynn Hummel and Bal, "An Efficient Reliable Broadcast Protocol" (1989), sections 2.1 and 5,
which give the idea in three sentences and no rule. What is filled in is the least that makes it run: a node that
suspects the sequencer announces its number, all that receive this announce theirs, and after a timeout the node with
the highest number that it knows of (of several the first) announces that it continues from there. There is no quorum,
no node stops, and units of the old sequencer cannot be distinguished from those of the new one (S8).
"""

from ordercast.model.machine import CancelTimer, Output, Send, SetTimer
from ordercast.protocols.sequencer.paper.state import SequencerPaperState
from ordercast.protocols.sequencer.paper.units import PaperElected, PaperElection, PaperRetransmit


def claim(node: SequencerPaperState, unit: PaperElection, out: list[Output]) -> None:
    """A node, perhaps this one, announces its number in an election; the first time this node announces its own."""
    if not node.in_election:
        node.in_election = True
        node.claims = {node.me: node.expected}
        out.append(Send(PaperElection(node.me, node.expected)))
        out.append(SetTimer("election", node.config.timing.poll))
    node.claims[unit.source] = unit.number


def decide(node: SequencerPaperState, out: list[Output]) -> None:
    """The election is over: the first node with the highest number becomes the sequencer."""
    node.in_election = False
    if max(node.claims, key=lambda claimant: (node.claims[claimant], -claimant)) != node.me:
        return
    node.sequencer, node.next_number = node.me, node.expected
    node.phase, node.sync_through = 0, None
    node.acknowledged = [-1] * node.config.nodes
    node.acknowledged[node.me] = node.acknowledgment()
    for stored in node.history:
        source = stored.packet.source
        node.last_message[source] = max(node.last_message[source], stored.message)
    node.ahead.clear()
    node.known_below = node.expected
    out.append(CancelTimer("request"))
    out.append(Send(PaperElected(node.me, node.next_number - 1)))


def give_way(node: SequencerPaperState, unit: PaperElected, out: list[Output]) -> None:
    """Another node is the sequencer; numbers beyond its own are void, and what is missing is requested from it."""
    node.sequencer, node.in_election = unit.source, False
    node.phase, node.sync_through = 0, None
    node.ahead.clear()
    node.known_below = max(node.expected, unit.number + 1)
    out += [CancelTimer("election"), CancelTimer("request")]
    if node.expected < node.known_below:
        out.append(Send(PaperRetransmit(node.me, node.acknowledgment()), to=node.sequencer))
        out.append(SetTimer("request", node.config.timing.repeat))
