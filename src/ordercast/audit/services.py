"""The properties that each service promises."""

from collections.abc import Callable

from ordercast.audit.completeness import complete
from ordercast.audit.durability import durable_survives, majority_survives, one_log
from ordercast.audit.levels import (
    accepted_truthfully,
    acknowledged_truthfully,
    delivered_truthfully,
    preacknowledged_truthfully,
)
from ordercast.audit.logs import RunLogs
from ordercast.audit.membership import primary, same_views, self_inclusion, views_in_order
from ordercast.audit.order import no_cycle, same_order, sender_order_kept
from ordercast.audit.priorities import same_runs, sender_order_kept_by_priority
from ordercast.audit.urgency import priority_order_kept
from ordercast.audit.views import delivered_uniformly
from ordercast.audit.violations import Violations
from ordercast.audit.virtual_synchrony import (
    acknowledged_stays,
    kept,
    no_hole,
    one_epoch,
    same_set,
    sender_inside,
    state_complete,
    uniform,
)
from ordercast.model.services import Service

Property = Callable[[RunLogs], Violations]
"""Finds the violations of a property in a run. The name of the property is that of the function."""

LEVEL_SOUNDNESS: tuple[Property, ...] = (
    accepted_truthfully,
    preacknowledged_truthfully,
    acknowledged_truthfully,
    delivered_truthfully,
)
"""Level soundness: a node claims a level of a message only if what the level says of other nodes is true. Promised by
all protocols that have levels; checked only where the levels were recorded."""

PROMISES: dict[Service, tuple[Property, ...]] = {
    Service.SELECTIVE_PARTIAL: (sender_order_kept, complete, *LEVEL_SOUNDNESS),
    Service.SELECTIVE_TOTAL: (sender_order_kept, complete, same_order, no_cycle, *LEVEL_SOUNDNESS),
    Service.PRIORITY: (complete, same_runs, priority_order_kept, *LEVEL_SOUNDNESS),
    Service.PRIORITY_TOTAL: (
        complete,
        same_runs,
        sender_order_kept_by_priority,
        priority_order_kept,
        same_order,
        no_cycle,
        *LEVEL_SOUNDNESS,
    ),
    Service.TOTAL: (sender_order_kept, complete, same_order, no_cycle, *LEVEL_SOUNDNESS),
    Service.PARTIAL: (sender_order_kept, complete, *LEVEL_SOUNDNESS),
    # The sequencer's nodes deliver what is ordered, whatever they know of others; and there is no acknowledged level.
    Service.SEQUENCED: (
        sender_order_kept,
        complete,
        same_order,
        no_cycle,
        delivered_uniformly,
        accepted_truthfully,
        preacknowledged_truthfully,
    ),
}

BY_PRIORITY: tuple[Property, ...] = (same_runs, sender_order_kept_by_priority)
"""Checked only where the priority of every message is known; so is `priority_order_kept`, which asks for more."""

ORDERS: tuple[Property, ...] = (same_order, no_cycle)
"""Checked without the tails of stopped nodes, if the service has views and is not uniform."""


OF_VIEWS: tuple[Property, ...] = (
    same_views,
    views_in_order,
    self_inclusion,
    primary,
    one_epoch,
    same_set,
    uniform,
    sender_inside,
    no_hole,
    kept,
    state_complete,
    acknowledged_stays,
)
"""What every service promises besides, in runs whose views have numbers: whose members may join, leave and be
excluded while the group goes on."""


OF_SHRINKING_VIEWS: tuple[Property, ...] = (same_views, primary)
"""What is asked of views without numbers, whose members only go: they excuse those that are not in them."""

OF_LOGS: tuple[Property, ...] = (durable_survives, one_log, majority_survives)
"""What runs promise besides whose nodes have durable logs."""


def promised(
    service: Service, *, uniform: bool, views: bool = False, shrinking: bool = False, logs: bool = False
) -> tuple[Property, ...]:
    """The properties that a run of a service promises.

    `uniform`: its configuration promises uniform delivery; `views`: its views have numbers; `shrinking`: it has views
    without numbers; `logs`: its nodes have durable logs.
    """
    always = tuple(
        promise for promise in PROMISES[service] if promise is not delivered_uniformly or (uniform and not views)
    )
    of_views = OF_VIEWS if views else OF_SHRINKING_VIEWS if shrinking else ()
    return (*always, *of_views, *(OF_LOGS if logs else ()))
