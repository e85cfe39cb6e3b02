"""The machine that a run simulates: a protocol's own, or in a group with views a member that runs it."""

from ordercast.model.faults import founders_of, returned_nodes
from ordercast.model.machine import Machine
from ordercast.model.runs import RunConfig
from ordercast.protocols.registry import machine_class


def machine_of(config: RunConfig) -> type[Machine]:
    """The class of the machines of a run."""
    if not config.group.views:
        return machine_class(config.protocol, config.group.rules, config.group.recovery)
    from ordercast.protocols.membership.by_node import by_node, settings_for  # noqa: PLC0415 - only runs with views
    from ordercast.protocols.membership.silence import MANY_BEATS  # noqa: PLC0415

    nodes = config.group.nodes
    returns = tuple((node, fault.node) for node, fault in returned_nodes(config.faults, nodes).items())
    founders = founders_of(config.faults, nodes)
    settings = settings_for(config.group.timing)
    if config.logs:
        from ordercast.protocols.restart.durable_node import durable_node  # noqa: PLC0415

        return durable_node(config.protocol, founders, settings, returns, beats=MANY_BEATS)
    return by_node(config.protocol, founders, settings, returns, beats=MANY_BEATS)
