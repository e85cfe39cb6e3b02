"""The properties that an audit checks, in words, for people who see one violated."""

from collections.abc import Mapping
from typing import Any

IN_WORDS = {
    "sender_order_kept": "Each member delivers the messages of one sender in the order in which they were sent.",
    "complete": "Each destination delivers each message exactly once: nothing is missing, nothing is extra, nothing "
    "comes before it was sent or after the member stopped.",
    "same_order": "Any two members deliver the messages that both have in the same order.",
    "no_cycle": "The orders of all members together have no cycle: no message is before itself by way of others.",
    "same_runs": "All members see the same runs of messages, each run ordered by priority.",
    "sender_order_kept_by_priority": "Messages of one sender with equal priorities are delivered as they were sent.",
    "priority_order_kept": "A member delivers nothing while something more urgent that all are known to have waits, "
    "unless a marker ends the run.",
    "delivered_uniformly": "What any member delivered, even one that then stopped, every surviving member delivers.",
    "accepted_truthfully": "A member accepts a message only after all that its source sent to the member before it.",
    "preacknowledged_truthfully": "A member pre-acknowledges a message only after every destination accepted it.",
    "acknowledged_truthfully": "A member acknowledges a message only after every destination pre-acknowledged it.",
    "delivered_truthfully": "A member delivers a message only when it has acknowledged it; or pre-acknowledged, if the "
    "group delivers what is stable.",
    "same_views": "All members that installed a view of one number have the same members in it, in the same places.",
    "views_in_order": "The numbers of a member's views rise by one; it does nothing before its first view and, after "
    "it left or was excluded, only receives, discards and answers.",
    "self_inclusion": "A member is in each view that it installs.",
    "primary": "Those whose reports decided a view are a quorum of the view before, and all that go on are among them.",
    "one_epoch": "A message is delivered in one view, at all members, and at most once there.",
    "same_set": "What one that closes a view delivered in it, all destinations that close it delivered in it.",
    "uniform": "What was delivered by one that failed or was excluded, all that close the view delivered too.",
    "sender_inside": "A message is delivered in views of which its sender is a member.",
    "no_hole": "Of what a source sent to a member, nothing is missing between the first and the last it delivered.",
    "kept": "What members of the latest view sent was delivered at all destinations that stayed.",
    "state_complete": "The state of one that joined has all that was delivered in earlier views, and none of it is "
    "delivered to it again.",
    "acknowledged_stays": "What anybody acknowledged in a view, all destinations that close the view delivered in it.",
}
"""By the name of the property."""


def witnesses_in(verdict: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The witnesses of a verdict, as `ordercast audit --json` writes it, each with its rule in words.

    Raises `KeyError`, `TypeError` or `AttributeError` for what is no verdict.
    """
    return [
        {
            "breaks": str(name),
            "rule": IN_WORDS.get(name, ""),
            "run": str(witness["run"]),
            "sentence": str(witness["sentence"]),
            "messages": [[int(source), int(seq)] for source, seq in witness["messages"]],
            "nodes": [int(node) for node in witness["nodes"]],
            "places": [int(place) for place in witness["places"]],
        }
        for name, found in verdict["properties"].items()
        for witness in found["witnesses"]
    ]
