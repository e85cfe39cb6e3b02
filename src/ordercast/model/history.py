"""What an application did with a replicated object, and when: a row of a history."""

import msgspec


class Operation(msgspec.Struct, frozen=True):
    """An operation, from its call to its return, by one clock."""

    process: str
    """Who did it: its operations do not overlap, if it waits for each."""
    model: str
    """What the object is: "register", "counter", "element", "lock", "queue" or "barrier"."""
    object_name: str
    key: str
    """Operations of different keys do not depend on each other."""
    kind: str
    """What was done, as the object calls it."""
    arguments: tuple[str, ...]
    """As JSON, without the key."""
    result: str
    """As JSON; empty if it did not return."""
    called: int
    """Nanoseconds."""
    returned: int | None
    """Nanoseconds; None: it is not known whether it was done."""
    run: str = ""
    """Histories of different runs do not depend on each other."""
