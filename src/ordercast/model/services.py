"""What each protocol promises to the application."""

from enum import Enum


class Service(Enum):
    """A service, as the papers define it: what an audit checks in a run."""

    SELECTIVE_PARTIAL = "spo"
    """SPO: selective, partially ordered: each node delivers all and only what is addressed to it, FIFO by sender."""
    SELECTIVE_TOTAL = "st"
    """ST: SPO in total order: common destinations deliver in one order, without cycles."""
    PRIORITY = "prio"
    """PriO: broadcast, ordered by priority within runs that are the same at all nodes."""
    PRIORITY_TOTAL = "prito"
    """PriTO: PriO in total order."""
    TOTAL = "to"
    """TO: broadcast in total order."""
    PARTIAL = "po"
    """PO: broadcast, FIFO by sender."""
    SEQUENCED = "sequencer"
    """The sequencer's broadcast: total order."""


SELECTIVE = frozenset({Service.SELECTIVE_PARTIAL, Service.SELECTIVE_TOTAL})
"""The services with destinations; the others broadcast."""
BROADCASTS = frozenset(service.value for service in Service if service not in SELECTIVE)
"""The names of the services that broadcast."""
PRIORITISED = frozenset({Service.PRIORITY.value, Service.PRIORITY_TOTAL.value})
"""The names of the services with priorities."""
