"""Partial-order reduction: leaves out interleavings that differ only in the order of independent steps.

Two techniques work together: sleep sets and persistent sets. Both depend on nothing but a state and how the search
reached it, so the same states are visited each time, whichever process expands them.

An *action* is all steps of one kind at one place: the faults of a link, the receipts from it, the timers of a node, its
submissions, its crash, its suspicions, its departure. A step belongs to the node that takes it, or to which its link
leads.

**Sleep sets.** The actions of a state are explored one after another. If a and then b were explored, and a step of b
is independent of a, then a need not be explored after that step: a before b has been. Action a is *asleep* there, and
stays so after each step that is independent of it. A state that is reached in several ways has the intersection of
their sleep sets; if it is reached again with actions awake that slept when it was expanded, these are explored then.
Faults and timers come first: so a unit is lost as soon as possible, and a timer fires right after the last step of its
node.

A step t is *dependent* on an action if

- both belong to the machine of one node; or both to one link; or one of them is the crash of the node of the other, or
  of the incarnation whose return the other is;
- t sends into the link of the action, and the link was empty, or has no order: then it offers a new step;
- t sends, and so do steps of the action, on a channel of one order;
- one of them is the first step of a node that joins, and the other sends: what is sent to that node before is lost;
- units may yet be duplicated behind all that is in flight, and one of the two does this, the other sends into the link;
- timers wait until no unit is in flight, and one of the two fires: it depends on everything;
- only survivors are checked, and t delivers, or changes who survives otherwise than by a crash.

**Persistent sets.** Near its end a schedule consists of receipts that cause no sending. What a node can do on its own,
while no other node takes a step, is its *local future*: it follows from its own state, the queues to it, and the
budget of faults that is left, and is computed once for each such combination. (A node that may yet return, when another
one has crashed, counts as one that sends, and its return is no key step.) In a state s let T be all steps of a node r.
Only T is explored if

1. in their local futures no node other than r ever sends: nothing new arrives at r before r acts;
2. T has a *key* step that is awake: a submission of r, or a receipt at r in which it sends nothing;
3. key steps cause nothing that another node, in its local future, would claim of r: that an item is accepted or
   pre-acknowledged there (and, where only survivors are checked, not both r and another change who survives, or
   deliver);
4. while units may yet be duplicated behind all that is in flight, no step in T sends;
5. if timers wait until no unit is in flight, some unit is in flight to r.

**Why nothing is missed.** Take a schedule w from a state s to a final state, in which everything is submitted and
delivered, or to a step that breaks a promise, such that no action asleep in s can begin w: is the action of a step in
w that could be moved to its front. In the initial state nothing is asleep, so all schedules are such there. By
induction over the length of w: the search reaches the same end.

*Some step t of w that can begin it is explored.* If all actions that are awake are explored, that is true of its first
step. If only T is, and w has a step of r, let t be the first of these and u the steps before it. Then t could have come
before u: by (1) nothing new arrived at r in u, and the budget of losses, timers and crashes only shrinks. And t u leads
to the same state as u t: they touch different nodes, and take units from different queues; what r sends in t is put
behind what others take out, by (1) no other node sends, by (4) nothing else is put behind, and a bag has no order; both
use the same budget, which sufficed for u t; and by (5) no timer fires in u.

*The rest of w can be found from there.* Let t be of the action that was explored first among all that can begin w (if
the state was expanded several times: at the last of these times). An action that is asleep after t was asleep before it
or explored before it, and t is independent of it. If it could begin the rest of w, it could begin w: either it would
be asleep in s, or have been chosen in place of t. The rest is shorter than w.

*If w has no step of r* it does not end in a final state, since there the key step has been taken; so it breaks a
promise. A key step k that is awake is explored, it stays enabled throughout w, and w is possible after it, with no more
actions asleep than in s. This ends: submissions use up scripts, receipts without a sending use up units.

*The promise is broken all the same.* Most promises are checked by one machine, its input and its past, which are the
same in any order. That orders of delivery have a cycle, logs that must be equal differ, or what views promise is broken
(`view_promises`), stays true once it is. A claim about others is untrue if it comes before what it claims. The last
step of w makes it; before it come no other steps than in w, so what was untrue remains so; and key steps, which are not
in w, cause nothing of it, by (3). Where only the logs of survivors are checked, the steps that matter keep their order,
by the last of the conditions above, and by (3); all but crashes, and a node that has not crashed yet is one more that
is checked.

*Nor is a cycle of receipts missed*, by which no final state is ever reached. What was said of w holds of every prefix
of a run around the cycle. So there are explored schedules of any length in which nothing uses up the budget, and
among finitely many states these run in a cycle too.
"""

from dataclasses import dataclass
from operator import itemgetter
from typing import Protocol

from ordercast.explorer.actions import Actions
from ordercast.explorer.links import EMPTY
from ordercast.explorer.node_state import JOINS
from ordercast.explorer.node_states import Effect
from ordercast.explorer.state_space import KIND, KIND_BITS, WHERE, State, StateSpace, StepKind
from ordercast.model.config import require
from ordercast.model.runs import Channel

_SURVIVORS = 1
"""A bit beside those of items at levels: a delivery or a change of who survives, if only survivors are checked."""


class Selection(Protocol):
    """Which steps are explored from a state."""

    def steps(self, state: State, free: list[int], sleep_set: int) -> list[tuple[int, int]]:
        """The steps to explore, each with its action as a bit; actions are complete, in the order of their bits."""
        ...

    def sleep_set_after(self, state: State, step: int, action: int, effect: Effect | None, sleep_set: int) -> int:
        """The sleep set after a step: those actions, sleep_set or explored before it, that it is independent of."""
        ...


class NoReduction:
    """All interleavings."""

    def __init__(self, space: StateSpace) -> None:
        self._space = space

    def steps(self, state: State, free: list[int], sleep_set: int) -> list[tuple[int, int]]:
        """All steps."""
        del sleep_set
        return [(step, 0) for step in self._space.steps(state, free)]

    def sleep_set_after(self, state: State, step: int, action: int, effect: Effect | None, sleep_set: int) -> int:
        """Empty."""
        del state, step, action, effect, sleep_set
        return 0


@dataclass(slots=True)
class LocalFuture:
    """What a node can do while no other node takes a step."""

    sends: bool = False
    """It may send, sooner or later; the rest of its future is then unknown."""
    sending: int = 0
    """The actions in which it may send now."""
    keys: int = 0
    """The actions that have a key step now."""
    causes: int = 0
    """What a key step may cause, and any step that changes who survives, as bits."""
    claims: int = 0
    """What it may ever claim about others, as bits."""


class Reduction:
    """Sleep sets and persistent sets: at least one of each class of equivalent interleavings."""

    def __init__(self, space: StateSpace) -> None:
        self._space = space
        self._actions = Actions(space)
        promise, size = space.scenario.promise, space.size
        require(
            not promise.most_under_way,
            "the promise `most_under_way` depends on interleavings that the reduction leaves out: use --no-reduction",
        )
        self._claims_levels = promise.ladder or promise.views
        self._checks_survivors = promise.views and not promise.uniform
        self._items = len(space.scenario.items)
        self._joiners = range(space.scenario.founders(), size) if space.scenario.group.views else range(0)
        self._one, self._bags = (space.scenario.channel is channel for channel in (Channel.ONE, Channel.ANY))
        self._patient = space.scenario.patient
        receivers = enumerate(space.links.receivers)
        links: list[list[int]] = [[] for _ in range(size)]
        for link, receiver in receivers:
            links[receiver].append(space.first_link + link)
        self._links = links
        self._budgets = space.budgets
        self._local = [itemgetter(node, *links[node], *self._budgets) for node in range(size)]
        self._known: list[dict[tuple[int, ...], LocalFuture]] = [{} for _ in range(size)]

    def steps(self, state: State, free: list[int], sleep_set: int) -> list[tuple[int, int]]:
        """The steps to explore."""
        action_of = self._actions.of_step
        found = [(action_of[step & WHERE], step) for step in self._space.steps(state, free)]
        node = self._persistent_node(state, sleep_set) if free else None
        explored = ~sleep_set if node is None else ~sleep_set & self._actions.of_node[node]
        return [(step, action) for action, step in sorted(found) if action & explored]

    def sleep_set_after(self, state: State, step: int, action: int, effect: Effect | None, sleep_set: int) -> int:
        """The actions that the step is independent of."""
        space, actions = self._space, self._actions
        sleep_set &= actions.independent_of[action]
        if not sleep_set or effect is None:
            return sleep_set if step & KIND != StepKind.LATER else sleep_set & ~self._sending(state)
        if effect.sends:
            first_link, again = space.first_link, state[space.duplicates]
            for _, links in effect.sends:
                for link in links:
                    if self._bags or state[first_link + link] == EMPTY:
                        sleep_set &= ~actions.of_link[link]
                    elif again:
                        sleep_set &= ~actions.faults[link]
            sleep_set &= ~self._joining(state)
            if (self._one or self._is_first(state, step)) and sleep_set:
                sleep_set &= ~self._sending(state)
        if self._checks_survivors and sleep_set:
            node = space.nodes.states[effect.next].node
            if self._changes_survivors(state[node], effect.next):
                return 0
        return sleep_set

    def _joining(self, state: State) -> int:
        """The actions of nodes that have not joined yet."""
        states, of_step = self._space.nodes.states, self._actions.of_step
        waiting = [node for node in self._joiners if states[state[node]].submitted == JOINS]
        return sum(of_step[StepKind.SUBMIT | node << KIND_BITS] for node in waiting)

    def _is_first(self, state: State, step: int) -> bool:
        """With it a node joins."""
        return step & KIND == StepKind.SUBMIT and bool(self._actions.of_step[step & WHERE] & self._joining(state))

    def _sending(self, state: State) -> int:
        """The actions of which a step would send."""
        found = 0
        for future in self._local_futures(state):
            found |= future.sending
        return found

    def _local_futures(self, state: State) -> list[LocalFuture]:
        found = []
        for node, local in enumerate(self._local):
            known = self._known[node].get(local(state))
            found.append(self._local_future(node, self._isolated(node, state)) if known is None else known)
        return found

    def _persistent_node(self, state: State, sleep_set: int) -> int | None:
        """The node whose steps form a persistent set, if there is one."""
        space = self._space
        futures = self._local_futures(state)
        senders = [node for node, future in enumerate(futures) if future.sends]
        if len(senders) > 1:
            return None
        for node in senders or range(space.size):
            future = futures[node]
            if not future.keys & ~sleep_set or (future.sending and state[space.duplicates] and not self._bags):
                continue
            if self._patient and all(state[link] == EMPTY for link in self._links[node]):
                continue
            if not any(future.causes & other.claims for other in futures if other is not future):
                return node
        return None

    def _isolated(self, node: int, state: State) -> State:
        """The same state with empty queues to other nodes, and without timers that wait until no unit is in flight."""
        space = self._space
        mine = {*range(space.size), *self._links[node], *self._budgets} - ({space.firings} if self._patient else set())
        return tuple(value if place in mine else 0 for place, value in enumerate(state))

    def _local_future(self, node: int, state: State) -> LocalFuture:
        """The local future of a node, from a state with empty queues to others."""
        key = self._local[node](state)
        known = self._known[node].get(key)
        if known is None:
            known = self._known[node][key] = LocalFuture()  # found by a step that leads back to the same state
            if node in self._space.scenario.returning and self._space.nodes.states[state[node]].submitted == JOINS:
                known.sends = True  # when another node has crashed, which is not known here
                known.sending = self._actions.of_step[StepKind.SUBMIT | node << KIND_BITS]
                return known
            for step in self._space.steps(state):
                action = self._actions.of_step[step & WHERE]
                if action & self._actions.of_node[node]:
                    self._follow(known, node, state, step, action)
        return known

    def _follow(self, future: LocalFuture, node: int, state: State, step: int, action: int) -> None:
        after, effect = self._space.successor(state, step)
        kind = step & KIND
        if effect is not None and (effect.sends or effect.problem):
            future.sends = True
            future.sending |= action
        if effect is not None and effect.problem:
            return
        causes, claims = self._visible(state[node], after[node], effect)
        if kind == StepKind.SUBMIT or (kind == StepKind.RECEIVE and effect is not None and not effect.sends):
            future.keys |= action
            future.causes |= causes
        future.causes |= causes & _SURVIVORS
        future.claims |= claims
        if not future.sends:
            later = self._local_future(node, after)
            future.sends |= later.sends
            future.claims |= later.claims

    def _visible(self, before: int, after: int, effect: Effect | None) -> tuple[int, int]:
        """What a step causes that others may claim, and what it claims about others; both as bits."""
        nodes, causes, claims = self._space.nodes, 0, 0
        if self._claims_levels and effect is not None:
            for level in (1, 2):
                causes |= (nodes.reached[after][level] & ~nodes.reached[before][level]) << 1 + self._items * level
            for level, item, _ in effect.risen:
                claims |= 1 << 1 + self._items * (level - 1) + item
        if self._checks_survivors and self._changes_survivors(before, after):
            causes, claims = causes | _SURVIVORS, claims | _SURVIVORS
        return causes, claims

    def _changes_survivors(self, before: int, after: int) -> bool:
        was, now = (self._space.nodes.states[state] for state in (before, after))
        return (was.log, was.view, was.left, was.crashed) != (now.log, now.view, now.left, now.crashed)
