"""Properties that logs of other systems may have, and the papers' services do not ask for: numbers and keys."""

from ordercast.audit.logs import RunLogs, Sent
from ordercast.audit.violations import Message, Violation, Violations, message_name
from ordercast.model.nodes import name_of


def numbers_dense(logs: RunLogs) -> Violations:
    """The numbers of each source rise by one: none is missing between its first and its last.

    So a message is missed that nobody delivered, if it was given a number.
    """
    before: Sent | None = None
    for sent in logs.sent.values():
        source, seq = sent.message
        if before is not None and before.message[0] == source and seq != before.message[1] + 1:
            sentence = f"{name_of(source)} sent {message_name(sent.message)} next after {message_name(before.message)}"
            yield Violation(numbers_dense.__name__, sentence, (before.message, sent.message), (source,))
        before = sent


def key_order_kept(logs: RunLogs) -> Violations:
    """A node delivers the messages of each key of a source in the order in which the source sent them.

    A message that came twice counts at its first position. The key of a message is the priority of its `send`: both
    divide what a source sends into classes that have orders of their own.
    """
    for node, places in enumerate(logs.first_places):
        latest: dict[tuple[int, int], Message] = {}
        for message in sorted(places, key=places.__getitem__):
            sent = logs.sent.get(message)
            if sent is None:
                continue
            key = (message[0], sent.priority)
            before = latest.get(key)
            if before is not None and sent.place < logs.sent[before].place:
                sentence = (
                    f"{name_of(node)} delivered {message_name(before)} before {message_name(message)}, "
                    f"but {name_of(message[0])} sent {message_name(message)} first, with the same key"
                )
                found = (places[before], places[message])
                yield Violation(key_order_kept.__name__, sentence, (before, message), (node,), found)
            latest[key] = message
