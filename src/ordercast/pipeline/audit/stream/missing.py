"""What nodes of a growing run lack: remembered one by one, told as lags, and as violations if it comes after all."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

import msgspec
import numpy as np

from ordercast.audit.order import no_cycle, same_order, sender_order_kept
from ordercast.audit.services import PROMISES
from ordercast.audit.violations import Violation, message_name
from ordercast.model.nodes import name_of
from ordercast.model.services import Service
from ordercast.pipeline.audit.kernel.columns import Flags, RunColumns
from ordercast.pipeline.audit.stream.deliveries import delivered, due, known_deliveries

MOST_MISSING = 10_000
"""Messages that nodes lack: more are not remembered one by one."""


class Missing(msgspec.Struct, frozen=True):
    """A message that a node lacks although it has delivered something that comes behind it."""

    node: int
    source: int
    seq: int
    since: int
    """How many messages had been sent when it was retired."""
    too_late: Violation | None
    """What a delivery would violate; None: that depends on what else happens."""


def lags(
    missing: Sequence[Missing], waiting: Mapping[int, tuple[int, int, int]], messages: int, behind: Collection[int]
) -> dict[int, tuple[int, str]]:
    """By node that lacks something: for how many messages it has, and a sentence that says what.

    `waiting`: by node, the first message that it lacks of those that are kept, and how many had been sent when that was
    seen; `messages`: how many were sent so far; `behind`: nodes that are not waited for any more.
    """
    first = {node: (since, (source, seq)) for node, (source, seq, since) in waiting.items()}
    for one in missing:
        this = one.since, (one.source, one.seq)
        first[one.node] = min(first.get(one.node, this), this)
    counts = Counter(one.node for one in missing)
    found: dict[int, tuple[int, str]] = {}
    for node, (since, message) in sorted(first.items()):
        age = messages - since
        others = f" and {counts[node] - 1:,} others" if counts[node] > 1 else ""
        more = "; it is not waited for any more" if node in behind else ""
        found[node] = age, f"{name_of(node)} has lacked {message_name(message)}{others} for {age:,} messages{more}"
    return found


def slowest_node(run: RunColumns, service: Service, waits_for: Flags) -> int | None:
    """The node that lacks most, of those that are waited for."""
    lacking = due(run, service) & ~delivered(run)
    counts = np.where(waits_for, lacking.sum(axis=1), 0)
    return int(counts.argmax()) if counts.max(initial=0) > 0 and waits_for.sum() > 1 else None


def too_late(run: RunColumns, service: Service, node: int, index: int) -> Violation | None:
    """What a node would violate by delivering a message now, as the audit of the complete trace would say it."""
    logs, sends = known_deliveries(run), run.sends
    message = int(sends.source[index]), int(sends.seq[index])
    log = logs.message[logs.node == node]
    if sender_order_kept in PROMISES[service]:
        later = log[(sends.source[log] == message[0]) & (log > index)]
        if later.size:
            before = message[0], int(sends.seq[later[-1]])
            sentence = (
                f"{name_of(node)} delivered {message_name(before)} before {message_name(message)}, "
                f"but {name_of(message[0])} sent {message_name(message)} first"
            )
            return Violation(sender_order_kept.__name__, sentence, (before, message), (node,))
    if service is Service.SEQUENCED or no_cycle not in PROMISES[service]:
        return None
    for other in np.unique(logs.node[logs.message == index]).tolist():
        theirs = logs.message[logs.node == other]
        behind = theirs[np.flatnonzero(theirs == index)[0] + 1 :]
        common = behind[np.isin(behind, log)]
        if common.size:
            before = int(sends.source[common[0]]), int(sends.seq[common[0]])
            sentence = (
                f"{name_of(node)} delivered {message_name(before)} before {message_name(message)}, "
                f"{name_of(other)} in the opposite order"
            )
            return Violation(same_order.__name__, sentence, (before, message), (node, other))
    return None
