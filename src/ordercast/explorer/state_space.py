"""The state space of a group: global states and the transitions between them.

A state is a tuple of numbers: the state of each node, the queue of each link, and the budget of losses, duplicates,
timer firings, crashes, suspicions, departures, damaged disks and hosts that give up. A step (transition) is a number
too: what happens, where, and which timer, which unit of a bag, who is suspected, or what a crash leaves on a disk.
"""

from enum import IntEnum
from graphlib import CycleError, TopologicalSorter
from itertools import combinations, compress, pairwise

from ordercast.explorer.links import EMPTY, Links, Queues
from ordercast.explorer.node_disk import LOST
from ordercast.explorer.node_state import JOINS
from ordercast.explorer.node_states import (
    DRAINED,
    GIVE_UP,
    LEAVE,
    SUBMIT,
    SYNCED,
    Effect,
    NodeInput,
    NodeStates,
    suspicion_code,
)
from ordercast.explorer.scenario import Scenario
from ordercast.explorer.view_promises import ViewPromises
from ordercast.model.machine import Level
from ordercast.model.nodes import members, name_of
from ordercast.model.runs import Channel

State = tuple[int, ...]


class StepKind(IntEnum):
    """The kind of a step."""

    SUBMIT = 0
    """The application of a node submits the next item of its script."""
    RECEIVE = 1
    """The next unit of a link is received."""
    LOSE = 2
    """It is lost."""
    TWICE = 3
    """It will be received twice in a row."""
    LATER = 4
    """It will be received again, after all that is in flight now."""
    FIRE = 5
    """A timer of a node fires."""
    DRAIN = 6
    """A node gets the input `Drained`: no unit is waiting for it."""
    CRASH = 7
    """A node stops permanently, and the units in flight to it are lost."""
    SUSPECT = 8
    """A member suspects others, rightly or not."""
    LEAVE = 9
    """The application of a member leaves the group."""
    SYNC = 10
    """What a node has written to its log is on its disk, and it is told so."""
    GIVE_UP = 11
    """The host of a node gives the group up: what is certain is delivered, and it takes part no more."""


_SUBMIT, _RECEIVE, _LOSE, _TWICE, _LATER, _FIRE, _DRAIN, _CRASH, _SUSPECT, _LEAVE, _SYNC, _GIVE_UP = map(int, StepKind)
# plain integers are faster

_OWN = {StepKind.SUBMIT, StepKind.FIRE, StepKind.DRAIN, StepKind.SUSPECT, StepKind.LEAVE, StepKind.SYNC}
_OWN |= {StepKind.GIVE_UP}  # inputs but receipts

KIND_BITS = 4
"""Bits of a step that are its kind; those above them, up to the sixteenth, are its place."""
KIND = (1 << KIND_BITS) - 1
WHERE = 0xFFFF
"""The bits of a step that are its kind and its place."""


def decode(step: int) -> tuple[StepKind, int, int]:
    """The kind of a step, its node or link, and its timer, the unit of the link, who is suspected, or what is left."""
    return StepKind(step & KIND), (step & WHERE) >> KIND_BITS, step >> 16


def fire_step(node: int, timer: int) -> int:
    """The step in which a timer of a node fires."""
    return _FIRE | node << KIND_BITS | timer << 16


class StateSpace:
    """The states and transitions of one scenario."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.size = scenario.group.nodes
        self.links = Links(scenario.channel, scenario.echo(), self.size)
        self.queues = Queues(bags=scenario.channel is Channel.ANY)
        self.nodes = NodeStates(scenario, self.links)
        self.first_link = self.size
        self.past_links = self.size + len(self.links)
        self.budgets = range(self.past_links, self.past_links + 8)
        self.losses, self.duplicates, self.firings, self.crashes, *others = self.budgets
        self.suspicions, self.leaves, self.damages, self.give_ups = others
        self._one_order: dict[tuple[tuple[int, ...], ...], bool] = {}
        self._one_log: dict[tuple[int, ...], bool] = {}
        # For speed, what every step asks for: each is a list or a dictionary of the parts above.
        self._receivers = [-1] * self.size + self.links.receivers
        self._receipts = [_RECEIVE | place << KIND_BITS for place in range(self.first_link, self.past_links)]
        self._submissions = [(_SUBMIT | node << KIND_BITS, node) for node in range(self.size)]
        loses = enumerate(self.links.loses, start=self.first_link)
        self._losses = [_LOSE | place << KIND_BITS if can_lose else 0 for place, can_lose in loses]
        self._firings: dict[int, list[int]] = {}
        self.views = ViewPromises(scenario) if scenario.group.views else None
        """With membership: what is promised of views."""
        self._in_views: dict[tuple[int, ...], str] = {}

    def initial_state(self) -> State:
        """The state before the first step."""
        scenario = self.scenario
        nodes = [self.nodes.start(node) for node in range(self.size)]
        return (
            *nodes,
            *[EMPTY] * len(self.links),
            scenario.losses,
            scenario.duplicates,
            scenario.firings,
            scenario.crashes,
            scenario.suspicions,
            scenario.leaves,
            scenario.damages,
            scenario.give_ups,
        )

    def steps(self, state: State, free: list[int] | None = None) -> list[int]:
        """All enabled steps; `free`: the progress steps, if they are known."""
        return [*(self.progress_steps(state) if free is None else free), *self.environment_steps(state)]

    def progress_steps(self, state: State) -> list[int]:
        """Receipts, submissions and syncs: they use no budget."""
        found = list(compress(self._receipts, state[self.first_link : self.past_links]))  # of all that are not empty
        if self.queues.bags:
            contents = [(step, self.queues.places(state[step >> KIND_BITS])) for step in found]
            found = [step | place << 16 for step, places in contents for place in places]
        can_submit = self.nodes.can_submit
        for step, node in self._submissions:
            if can_submit[state[node]]:
                found.append(step)
        if self.scenario.returns:
            found = [step for step in found if not self._is_early(state, step)]
        if self.scenario.logs:
            can_sync = self.nodes.can_sync
            found += [_SYNC | node << KIND_BITS for node in range(self.size) if can_sync[state[node]]]
        return self._promptly(state, found) if self.links.loop_backs else found

    def _is_early(self, state: State, step: int) -> bool:
        """A node would return whose incarnation before has not crashed."""
        node = (step & WHERE) >> KIND_BITS
        old = self.scenario.returning.get(node) if step & KIND == _SUBMIT else None
        return old is not None and not self.nodes.states[state[old]].crashed

    def echoes(self, state: State, node: int) -> list[int]:
        """The receipt of a node's own unit, which it must take before any other step."""
        place = self.first_link + self.links.loop_backs[node] if self.links.loop_backs else 0
        return [_RECEIVE | place << KIND_BITS] if place and state[place] != EMPTY else []

    def environment_steps(self, state: State) -> list[int]:
        """Losses, duplicates, timers, crashes, suspicions, departures, notices: steps of the environment."""
        losses, duplicates, firings, crashes, suspicions, leaves, _, give_ups = state[self.past_links :]
        found: list[int] = []
        if losses or duplicates:
            found = self._faults_of_links(state)
        if firings and not (self.scenario.patient and any(state[self.first_link : self.past_links])):
            for number in state[: self.size]:
                found += self._firings_in(number)
        if crashes or self.scenario.returns:
            found += self._crashes(state)
        if suspicions or leaves:
            found += self._membership_steps(state)
        if give_ups:
            can_give_up = self.nodes.can_give_up
            found += [_GIVE_UP | node << KIND_BITS for node in range(self.size) if can_give_up(state[node])]
        if self.scenario.drained:
            found += [
                _DRAIN | node << KIND_BITS for node in range(self.size) if not self.nodes.states[state[node]].crashed
            ]
        return self._promptly(state, found) if self.links.loop_backs else found

    def _firings_in(self, number: int) -> list[int]:
        """The timers of a node that may fire in one of its states."""
        found = self._firings.get(number)
        if found is None:
            node = self.nodes.states[number].node
            found = self._firings[number] = [fire_step(node, timer) for timer in self.nodes.early_timers[number]]
        return found

    def _faults_of_links(self, state: State) -> list[int]:
        """Units that are lost, or arrive twice."""
        losses = [step for step in compress(self._losses, state[self.first_link : self.past_links]) if step]
        if not (state[self.duplicates] or self.queues.bags or self.scenario.loses):
            return losses
        found: list[int] = []
        links = [(step & WHERE) >> KIND_BITS for step in losses]
        for link in links:
            for place in self.queues.places(state[link]):
                if state[self.losses] and self._may_lose(state[link], link, place):
                    found.append(_LOSE | link << KIND_BITS | place << 16)
                if state[self.duplicates]:
                    found.append(_TWICE | link << KIND_BITS | place << 16)
        if state[self.duplicates] and not self.queues.bags:
            found += [_LATER | link << KIND_BITS for link in links if len(self.queues.contents[state[link]]) > 1]
        return found

    def _crashes(self, state: State) -> list[int]:
        """Crashes of nodes, with anything that they may leave on their disks."""
        found: list[int] = []
        able = range(self.size) if state[self.crashes] else self.scenario.returning.values()
        for node in able:
            if not (self.nodes.states[state[node]].crashed or self._has_not_returned(state, node)):
                found += [_CRASH | node << KIND_BITS | left << 16 for left in self._left_on_disk(state, node)]
        return found

    def _has_not_returned(self, state: State, node: int) -> bool:
        """It is an incarnation that is not there yet, and has another one after it."""
        back = self.scenario.returning
        return node in back and node in back.values() and self.nodes.states[state[node]].submitted == JOINS

    def _left_on_disk(self, state: State, node: int) -> list[int]:
        """What a crash of a node may leave on its disk; one that nobody reads again matters not."""
        disk = self.nodes.states[state[node]].disk
        if disk is None or node not in self.scenario.returning.values():
            return [0]
        return [*disk.crashes(), *(disk.damages() if state[self.damages] else ())]

    def _membership_steps(self, state: State) -> list[int]:
        """Suspicions, and members that leave."""
        found: list[int] = []
        for node in range(self.size):
            if state[self.suspicions]:
                suspects = self.nodes.can_suspect(state[node])
                found += [_SUSPECT | node << KIND_BITS | others << 16 for others in suspects]
            if state[self.leaves] and self.nodes.can_leave(state[node]):
                found.append(_LEAVE | node << KIND_BITS)
        return found

    def _may_lose(self, queue: int, link: int, place: int) -> bool:
        if not self.scenario.loses:
            return True
        unit = self.nodes.units[self.queues.contents[queue][place]]
        return self.scenario.may_lose(unit, self.links.receivers[link - self.first_link])

    def _promptly(self, state: State, steps: list[int]) -> list[int]:
        """Leaves out the steps of nodes that must take their own echo first."""
        waiting = {node for node, link in enumerate(self.links.loop_backs) if state[self.first_link + link] != EMPTY}
        return [step for step in steps if not self._acting(step) & waiting] if waiting else steps

    def _acting(self, step: int) -> set[int]:
        """The node that takes an input other than its own echo in a step."""
        kind, place, _ = decode(step)
        if kind in _OWN:
            return {place}
        link = place - self.first_link
        return {self.links.receivers[link]} if kind is StepKind.RECEIVE and link not in self.links.loop_backs else set()

    def successor(self, state: State, step: int) -> tuple[State, Effect | None]:
        """The state after a step, and its effect on a node, if it has one."""
        kind, place = step & KIND, (step & WHERE) >> KIND_BITS
        if kind == _RECEIVE:
            queue, which, queues = state[place], step >> 16, self.queues
            node, code = self._receivers[place], queues.contents[queue][which] << 2
            after = list(state)
            after[place] = queues.without(queue, which) if which else queues.rest[queue]
        elif kind == _SUBMIT:
            node, code, after = place, self._submission(state, place), list(state)
        elif kind == _SYNC:
            node, code, after = place, SYNCED, list(state)
        elif kind == _FIRE:
            node, code, after = place, (step >> 16) << 2 | 1, list(state)
            after[self.firings] -= 1
        elif kind == _DRAIN:
            node, code, after = place, DRAINED, list(state)
        elif kind == _SUSPECT:
            node, code, after = place, suspicion_code(step >> 16), list(state)
            after[self.suspicions] -= 1
        elif kind == _LEAVE:
            node, code, after = place, LEAVE, list(state)
            after[self.leaves] -= 1
        elif kind == _GIVE_UP:
            node, code, after = place, GIVE_UP, list(state)
            after[self.give_ups] -= 1
        else:
            return self._environment(state, StepKind(kind), place, step >> 16), None
        return self._carry_out(after, node, code)

    def is_enabled(self, state: State, step: int) -> bool:
        """True if a step can be taken; an active timer may fire even beyond its budget."""
        kind, place, timer = decode(step)
        if kind is not StepKind.FIRE:
            return step in self.steps(state)
        return timer in self.nodes.timers[state[place]] and bool(self._promptly(state, [step]))

    def _submission(self, state: State, node: int) -> int:
        """The input of a node that submits, joins, or returns with a log."""
        if self.scenario.logs and node in self.scenario.returning:
            old = self.scenario.returning[node]
            if self.nodes.states[state[node]].submitted == JOINS:
                return self.nodes.recovery_of(state[old])
        return SUBMIT

    def input_of(self, state: State, step: int) -> tuple[int, NodeInput] | None:
        """The node and the input of a step; None if it is no input of a machine."""
        kind, place, timer = decode(step)
        if kind is StepKind.RECEIVE:
            unit = self.queues.contents[state[place]][timer]
            node, code = self.links.receivers[place - self.first_link], unit << 2
        elif kind is StepKind.SUBMIT:
            node, code = place, self._submission(state, place)
        elif kind in _OWN:
            node, code = place, _code(kind, timer)
        else:
            return None
        return node, self.nodes.event(state[node], code)

    def _carry_out(self, after: list[int], node: int, code: int) -> tuple[State, Effect]:
        nodes = self.nodes
        effect = nodes.known_effects[after[node]].get(code) or nodes.transition(after[node], code)
        if not effect.problem:
            after[node] = effect.next
            if effect.sends:
                self._put(after, effect.sends)
        return tuple(after), effect

    def _put(self, after: list[int], sends: tuple[tuple[int, tuple[int, ...]], ...]) -> None:
        """Puts units into the queues of links, except those to nodes that are not there."""
        is_deaf, receivers, queues = self.nodes.is_deaf, self._receivers, self.queues
        known, first = queues.longer_by, self.first_link
        for unit, links in sends:
            for link in links:
                place = first + link
                if not is_deaf[after[receivers[place]]]:
                    queue = after[place]
                    after[place] = known[queue].get(unit) or queues.longer(queue, unit)

    def _environment(self, state: State, kind: StepKind, place: int, which: int) -> State:
        after = list(state)
        if kind is StepKind.CRASH:
            after[self.crashes] -= place not in self.scenario.returning.values()
            damaged = self.nodes.states[state[place]].disk is not None and which >= LOST
            after[self.damages] -= damaged
            after[place] = self.nodes.crashed(state[place], which)
            for link, receiver in enumerate(self.links.receivers):
                if receiver == place:
                    after[self.first_link + link] = EMPTY
            return tuple(after)
        units = self.queues.contents[state[place]]
        if kind is StepKind.LOSE:
            after[self.losses] -= 1
            after[place] = self.queues.without(state[place], which)
        else:
            after[self.duplicates] -= 1
            more = (units[which], *units) if kind is StepKind.TWICE else (*units, units[0])
            after[place] = self.queues.of(more)
        return tuple(after)

    # --- promises that involve several nodes ---

    def problem(self, state: State, effect: Effect) -> str:
        """The promise that a step into this state breaks; empty if none."""
        if effect.problem:
            return effect.problem
        promise = self.scenario.promise
        if effect.risen and (promise.ladder or promise.views):
            group = self.nodes.states[effect.next].view[1]
            for level, number, destinations in effect.risen:
                for node in members(destinations & group if promise.views else destinations):
                    if not self.nodes.reached[state[node]][level - 1] >> number & 1:
                        return self._untrue(effect, level, number, node)
        if self.views is not None and (effect.delivers or effect.enters):
            broken = self._broken_in_views(self.views, state)
            if broken:
                return broken
        has_one_log = promise.views and self.views is None
        if effect.delivers and has_one_log and not self._has_one_log(state):
            logs = ", ".join(f"{name_of(node)} {self._log(state[node])}" for node in range(self.size))
            return f"those that go on have different logs: {logs}"
        if effect.delivers and promise.one_order and not has_one_log and not self._is_one_order(state):
            logs = ", ".join(f"{name_of(node)} {self._log(state[node])}" for node in range(self.size))
            return f"the orders of delivery have a cycle: {logs}"
        return self._too_many(state) if effect.sends and promise.most_under_way else ""

    def _broken_in_views(self, views: ViewPromises, state: State) -> str:
        key = tuple([self.nodes.records[state[node]] for node in range(self.size)])
        known = self._in_views.get(key)
        if known is None:
            known = self._in_views[key] = views.problem([self.nodes.states[state[node]] for node in range(self.size)])
        return known

    def _too_many(self, state: State) -> str:
        """The node to which more units are in flight than promised, as a sentence."""
        counts = [0] * self.size
        for link, receiver in enumerate(self.links.receivers):
            counts[receiver] += len(self.queues.contents[state[self.first_link + link]])
        for node, count in enumerate(counts):
            if count > self.scenario.promise.most_under_way:
                most = self.scenario.promise.most_under_way
                return f"{count} units are under way to {name_of(node)}, and never should there be more than {most}"
        return ""

    def _untrue(self, effect: Effect, level: int, number: int, node: int) -> str:
        claims, lacks = Level(level).name.lower(), Level(level - 1).name.lower()
        where = name_of(self.nodes.states[effect.next].node)
        what = self.scenario.items[number].describe()
        return f"{what} is {claims} at {where}, but not yet {lacks} at its destination {name_of(node)}"

    def _log(self, node_state: int) -> str:
        items = self.scenario.items
        return f"<{' '.join(str(items[number]) for number in self.nodes.states[node_state].log)}>"

    def survivors(self, state: State) -> list[int]:
        """The survivors: nodes in the latest view that have neither crashed nor left."""
        here = [self.nodes.states[state[node]] for node in range(self.size)]
        group = max(node.view for node in here)[1]
        return [node for node in range(self.size) if group >> node & 1 and not (here[node].crashed or here[node].left)]

    def _has_one_log(self, state: State) -> bool:
        """As `_is_one_log`, which depends on nodes only."""
        nodes = state[: self.size]
        known = self._one_log.get(nodes)
        if known is None:
            known = self._one_log[nodes] = self._is_one_log(nodes)
        return known

    def _is_one_log(self, state: State) -> bool:
        """True if each log is a prefix of the longest: the logs of all nodes, or of the survivors."""
        considered = range(self.size) if self.scenario.promise.uniform else self.survivors(state)
        logs = [self.nodes.states[state[node]].log for node in considered]
        longest = max(logs, key=len, default=())
        return all(log == longest[: len(log)] for log in logs)

    def _is_one_order(self, state: State) -> bool:
        logs = tuple(self.nodes.states[state[node]].log for node in range(self.size))
        known = self._one_order.get(logs)
        if known is None:
            groups = combinations(logs, 2) if self.scenario.promise.in_pairs else [logs]
            known = self._one_order[logs] = not any(map(_have_cycle, groups))
        return known


def _code(kind: StepKind, which: int) -> int:
    """The input of a step that is no receipt, as a number."""
    match kind:
        case StepKind.FIRE:
            return which << 2 | 1
        case StepKind.SUSPECT:
            return suspicion_code(which)
        case StepKind.DRAIN:
            return DRAINED
        case StepKind.LEAVE:
            return LEAVE
        case StepKind.GIVE_UP:
            return GIVE_UP
        case _:
            return SYNCED


def _have_cycle(logs: tuple[tuple[int, ...], ...]) -> bool:
    graph: dict[int, set[int]] = {}
    for log in logs:
        for earlier, later in pairwise(log):
            graph.setdefault(later, set()).add(earlier)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError:
        return True
    return False
