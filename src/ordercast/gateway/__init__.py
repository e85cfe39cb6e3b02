"""Batches of rows from outside, ordered in a live group: each at most once, whatever is sent again.

A stream of Spark hands its micro-batches to a gateway, which is a member; `Batches` at every member drops those that it
has had, by a rule that depends on nothing but the order. The public names are those of `__all__`.
"""

from ordercast.gateway.deduplication import Batch, Batches
from ordercast.gateway.gateway import Committed, Gateway
from ordercast.gateway.replay import batches_in, recover

__all__ = ["Batch", "Batches", "Committed", "Gateway", "batches_in", "recover"]
