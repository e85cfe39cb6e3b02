"""A new sequencer as the paper imagines it: histories are replicated, and the node with the highest number takes over.

From: Kaashoek, Tanenbaum, Flynn Hummel and Bal, "An Efficient Reliable Broadcast Protocol" (1989), sections 2.1 and 5,
which give the idea in three sentences and no rule. What is filled in is the least that makes it run: whoever suspects
the sequencer says its number, all who hear that say theirs, and after a while whoever has the highest of those that it
heard (of several the first node) says that it goes on from there. Nobody asks how many took part, nobody stops, and
nothing tells what the old sequencer sends from what the new one does (S8).
"""

from ordercast.model.machine import CancelTimer, Output, Send, SetTimer
from ordercast.protocols.sequencer.paper.state import SequencerPaperState
from ordercast.protocols.sequencer.paper.units import PaperElected, PaperElection, PaperRetransmit


def claim(node: SequencerPaperState, unit: PaperElection, out: list[Output]) -> None:
    """Somebody, perhaps this node, says its number in an election; the first time this node says its own."""
    if not node.in_election:
        node.in_election = True
        node.claims = [-1] * len(node.claims)
        node.claims[node.me] = node.expected
        out.append(Send(PaperElection(node.me, node.expected)))
        out.append(SetTimer("election", node.config.timing.poll))
    node.claims[unit.source] = unit.number


def decide(node: SequencerPaperState, out: list[Output]) -> None:
    """The election is over: the first node with the highest number takes over."""
    node.in_election = False
    if node.claims.index(max(node.claims)) != node.me:
        return
    node.sequencer, node.next_number = node.me, node.expected
    node.phase, node.sync_through = 0, -1
    node.acknowledged = [-1] * len(node.claims)
    node.acknowledged[node.me] = node.said()
    for stored in node.history:
        source = stored.packet.source
        node.last_message[source] = max(node.last_message[source], stored.message)
    node.held.clear()
    node.heard_below = node.expected
    out.append(CancelTimer("request"))
    out.append(Send(PaperElected(node.me, node.next_number - 1)))


def give_way(node: SequencerPaperState, unit: PaperElected, out: list[Output]) -> None:
    """Another node is the sequencer, and brings this one up to date; what was heard beyond its number was nothing."""
    node.sequencer, node.in_election = unit.source, False
    node.phase, node.sync_through = 0, -1
    node.held.clear()
    node.heard_below = max(node.expected, unit.number + 1)
    out += [CancelTimer("election"), CancelTimer("request")]
    if node.expected < node.heard_below:
        out.append(Send(PaperRetransmit(node.me, node.said()), to=node.sequencer))
        out.append(SetTimer("request", node.config.timing.repeat))
