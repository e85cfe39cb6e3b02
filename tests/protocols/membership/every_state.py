"""A view ended in every state of a small search, with every quorum.

A state in which some members are behind the others is also one in which they stopped there and the others went on. So
it suffices to end the view in each state at once: those that are not in the quorum have gone on as far as they could.
"""

from dataclasses import dataclass

from msgspec.structs import replace

from ordercast.explorer.explore import Search
from ordercast.explorer.scenario import Scenario
from ordercast.model.config import GroupConfig
from ordercast.model.machine import Deliver, Machine, Reached
from ordercast.model.nodes import mask_of
from ordercast.model.units import Packet
from ordercast.protocols.membership.epoch import Flush
from ordercast.protocols.registry import flush_class, make_machine
from tests.protocols.membership.changing_group import quorums


@dataclass(frozen=True)
class EpochMachine:
    """Makes an order's machine as views have it: it knows what is settled."""

    protocol: str

    def __call__(self, node: int, group: GroupConfig) -> Machine:
        return make_machine(self.protocol, node, replace(group, views=True))


@dataclass(frozen=True)
class Ended:
    """What a quorum has when it has finished, by place: a set of items, and their order if the order promises one."""

    delivered: dict[int, int]
    logs: dict[int, tuple[int, ...]]


class EveryState:
    """One search, and the ends of its states."""

    def __init__(self, protocol: str, scenario: Scenario, max_states: int) -> None:
        self.make = flush_class(protocol)
        self.search = Search(scenario, max_states)
        self.report = self.search.run()
        self.scenario, self.nodes = scenario, self.search.space.nodes
        self.number = {(item.source, item.first): item.number for item in scenario.items}
        self.ended: dict[tuple[tuple[int, int], ...], Ended] = {}
        self.checked = 0

    def run(self) -> None:
        """Raises AssertionError at the first state whose end is wrong."""
        count = self.scenario.group.nodes
        found = quorums(count)
        needed = type(self.flush(self.search.space.initial_state()[0])).reports_needed(self.scenario.group)
        for state in self.search.states():
            for places in found:
                if len(places) >= needed:
                    self.check(state, places)
                    self.checked += 1

    def flush(self, node_state: int) -> Flush:
        here = self.nodes.states[node_state]
        return self.make(self.nodes.machine(here.node, here.snapshot))

    def check(self, state: tuple[int, ...], places: tuple[int, ...]) -> None:
        key = tuple([(place, state[place]) for place in places])
        if key not in self.ended:
            self.ended[key] = self.end(key)
        ended = self.ended[key]
        for place in range(self.scenario.group.nodes):
            here = self.nodes.states[state[place]]
            delivered = ended.delivered.get(place, here.delivered)
            for item in self.scenario.items:
                if delivered >> item.number & 1:
                    for to in item.destinations:
                        assert to not in ended.delivered or ended.delivered[to] >> item.number & 1, (
                            f"{place} was given {item}, {to} was not; {self.show(state, places)}"
                        )
            for log in ended.logs.values():
                common = [number for number in here.log if number in log]
                assert common == [number for number in log if number in here.log], self.show(state, places)
            if self.scenario.promise.one_order and place not in ended.logs and self.is_to_all():
                for log in ended.logs.values():
                    assert log[: len(here.log)] == here.log, self.show(state, places)

    def is_to_all(self) -> bool:
        return all(len(item.destinations) == self.scenario.group.nodes for item in self.scenario.items)

    def show(self, state: tuple[int, ...], places: tuple[int, ...]) -> str:
        here = [self.nodes.states[number] for number in state[: self.scenario.group.nodes]]
        return f"{places} of {[(node.log or bin(node.delivered)) for node in here]}"

    def end(self, key: tuple[tuple[int, int], ...]) -> Ended:
        """Finishes, and checks what each is given and what it sends again."""
        flushes = {place: self.flush(number) for place, number in key}
        kind = type(next(iter(flushes.values())))
        reports, nodes = {place: flush.report() for place, flush in flushes.items()}, self.scenario.group.nodes
        assert all(kind.is_report(report, nodes) for report in reports.values())
        assert kind.agree(reports)
        cut = kind.cut(reports, nodes)
        ended = Ended({}, {})
        for (place, number), flush in zip(key, flushes.values(), strict=True):
            here = self.nodes.states[number]
            supplied: dict[int, Packet] = {}
            assert flush.problem(cut) is None
            for start, stop in flush.lacks(cut):
                holders = [each.supply(((start, stop),)) for each in flushes.values()]
                supplied |= {at: packet for found in holders for at, packet in found}
            sent = self.scenario.scripts[place][: here.submitted]
            left, first = flush.left_over(cut), flush.next_message(cut)
            given = [item for item in self.scenario.items if item.source == place and item.first < first]
            assert [*(item.submission for item in given), *left] == list(sent)
            outputs = flush.finish(cut, supplied)
            assert all(isinstance(output, Deliver | Reached) for output in outputs)
            packets = [output.packet for output in outputs if isinstance(output, Deliver)]
            more = [self.number[packet.source, packet.first] for packet in packets]
            assert len(more) == len(set(more))
            assert not mask_of(more) & here.delivered
            ended.delivered[place] = here.delivered | mask_of(more)
            ended.logs[place] = (*here.log, *more)
        self.check_together(ended)
        return ended

    def check_together(self, ended: Ended) -> None:
        for item in self.scenario.items:
            has = [ended.delivered[to] >> item.number & 1 for to in item.destinations if to in ended.delivered]
            assert len(set(has)) <= 1, f"{item}: {ended}"
            for to in item.destinations:
                if ended.delivered.get(to, 0) >> item.number & 1 and not self.scenario.promise.urgent_first:
                    earlier = item.earlier_to[to]
                    assert ended.delivered[to] & earlier == earlier, f"before {item}, something of its source lacks"
        if self.scenario.promise.one_order:
            for one in ended.logs.values():
                for other in ended.logs.values():
                    common = set(one) & set(other)
                    assert [each for each in one if each in common] == [each for each in other if each in common]
