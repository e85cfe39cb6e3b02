"""What each property means, in a sentence: for explanations, report pages and the results of CI gates."""

DEFINITIONS: dict[str, str] = {
    "complete": "Every receiver was handed all that is for it, once, and nothing else; nothing before it was sent, "
    "and nothing after the receiver crashed.",
    "all_delivered": "Every receiver was handed all that is for it.",
    "delivered_once": "No receiver was handed a message twice.",
    "nothing_extra": "No receiver was handed what nobody sent, what was not for it, or one name for two messages.",
    "sent_first": "Nothing was handed out before it was sent.",
    "nothing_after_crash": "A node does nothing after it crashed.",
    "sender_order_kept": "Each receiver was handed the messages of each source in the order in which they were sent.",
    "key_order_kept": "Each receiver was handed the messages of each source that have the same key in the order in "
    "which they were sent.",
    "numbers_dense": "The numbers of each source rise by one: none is missing between its first and its last.",
    "same_order": "Any two receivers were handed the messages that they have in common in the same order.",
    "no_cycle": "All orders fit into one: together they have no cycle.",
    "same_runs": "All receivers have the same priority runs, in each of which priorities do not rise.",
    "sender_order_kept_by_priority": "Each receiver was handed the messages of one source and one priority in the "
    "order in which they were sent.",
    "priority_order_kept": "Nothing was delivered while something more urgent, known to be everywhere, waited, "
    "unless a marker had ended the run.",
    "accepted_truthfully": "A node accepted a message only when it had it, and all that its source sent to the node "
    "before.",
    "preacknowledged_truthfully": "A node pre-acknowledged a message only when every destination had accepted it.",
    "acknowledged_truthfully": "A node acknowledged a message only when every destination had pre-acknowledged it.",
    "delivered_truthfully": "A node delivered only what it had acknowledged, or pre-acknowledged when it gave up.",
    "delivered_uniformly": "What any node delivered, even one that then stopped, every node that goes on delivers.",
    "same_views": "All nodes that installed a view of one number have the same members in it.",
    "views_in_order": "The numbers of a node's views rise by one; it does nothing before the first or after it left.",
    "self_inclusion": "A node is a member of each view that it installs.",
    "primary": "Each view was agreed on by a majority of the view before.",
    "one_epoch": "A message is delivered in one view, at all nodes.",
    "same_set": "Nodes that go from one view to the next together have delivered the same in it.",
    "uniform": "What a node delivered that failed or was excluded, all that go on delivered in the same view.",
    "sender_inside": "A message is delivered in views of which its sender is a member.",
    "no_hole": "Of what a source sent to a node, nothing is missing between the first and the last delivered.",
    "kept": "What members of the latest view sent was delivered at all destinations that stayed.",
    "state_complete": "The state of one that joined has all that was delivered before it joined, and nothing twice.",
    "acknowledged_stays": "What anybody acknowledged in a view, all destinations that close it delivered in it.",
    "durable_survives": "A process that is started again has in its log all that was on its disk.",
    "one_log": "The logs of those that go on have the same message at the same position.",
    "majority_survives": "What a majority had on its disks when a view ended is in the log of each later member.",
}
"""By the name of the property."""
