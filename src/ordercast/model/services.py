"""What each protocol promises to the application."""

from enum import Enum


class Service(Enum):
    """A service, as the papers define it; what an audit asks of a run."""

    SELECTIVE_PARTIAL = "spo"
    """SPO: all and only what is addressed to me, each sender's order kept."""
    SELECTIVE_TOTAL = "st"
    """ST: SPO, and one order for all common destinations, without cycles."""
    PRIORITY = "prio"
    """PriO: everything to everybody, by priority within runs that are the same everywhere."""
    PRIORITY_TOTAL = "prito"
    """PriTO: PriO in one order."""
    TOTAL = "to"
    """TO: everything to everybody in one order."""
    PARTIAL = "po"
    """PO: everything to everybody, each sender's order kept."""
    SEQUENCED = "sequencer"
    """The sequencer's broadcast: everything to everybody in one order."""


SELECTIVE = frozenset({Service.SELECTIVE_PARTIAL, Service.SELECTIVE_TOTAL})
"""The services that heed destinations; the others bring everything to everybody."""
BROADCASTS = frozenset(service.value for service in Service if service not in SELECTIVE)
"""The names of those others."""
PRIORITISED = frozenset({Service.PRIORITY.value, Service.PRIORITY_TOTAL.value})
"""The names of those that heed priorities."""
