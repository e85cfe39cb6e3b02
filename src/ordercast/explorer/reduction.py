"""Leaves out interleavings that differ only in the order of steps that have nothing to do with each other.

Two rules work together. Both look at nothing but a state and how the search came to it; so what is searched does not
depend on who searches, and the same states are visited each time.

A *action* is all steps of one kind at one place: what may be disturbed on a link, what may be received from it, the
timers of a node, its submissions, its crash. A step belongs to the node that takes it, or to which its link leads.

**What slept sleeps on** (sleep sets). From a state the actions are searched one after another. If a and then b were
searched, and a step of b does not bear on a, then behind that step a need not be searched: a before b has been. a is
*asleep* there, and stays so behind each step that does not bear on it. A state that is reached in several ways sleeps
as far as it does by all of them; should it be reached anew with actions awake that slept when it was expanded, these
are searched then. Disturbances and timers come first: so a unit is lost as soon as it can be, and a timer fires
right behind the last step of its node.

A step t bears on a action if

- both belong to the machine of one node; or both to one link, or one of them is the crash of the node of the other;
- t sends into the action's link, and that was empty, or is in no order: then there is something new to it;
- t sends, and so do steps of the action, on a channel of one order;
- units may yet come again behind all that is under way, and one of the two does this, the other sends into the link;
- timers wait until nothing is under way, and one of the two fires: all bears on that;
- only those that go on are judged, and t delivers, or changes who does otherwise than by a crash.

**One node goes first** (stubborn sets). Near its end a schedule consists of receipts that make nobody speak. What a
node can do *alone*, if no other does anything, follows from its own state, the queues to it, and the disturbances that
are left; it is worked out once for each such combination. In a state s let T be all steps of a node r. Only T is
searched if

1. alone, no node other than r would ever send: nothing new comes to r before r acts;
2. T has a *key* that is awake: a submission of r, or a receipt at r in which it sends nothing;
3. the keys bring about nothing that another node, alone, would claim of r: that an item is accepted or pre-acknowledged
   there (and, where only those that go on are judged, not both r and another change who does, or deliver);
4. while units may yet come again behind all that is under way, no step in T sends;
5. if timers wait until nothing is under way, something is under way to r.

**Nothing is lost.** Take a schedule w from a state s to a final state, in which everything is submitted and delivered,
or to a step that breaks a promise, and let no action that sleeps in s be able to begin w: be the action of a step in
w that could be moved to its front. Nothing sleeps in the first state, so all schedules are such there. By induction
over the length of w: the search comes to the same end.

*Some step t of w that can begin it is searched.* If all actions that are awake are, that is so of its first step. If
only T is, and w has a step of r, let t be the first of these and u what stands before it. Then t could have come
before u: by (1) nothing new came to r in u, and leave to lose, to fire or to crash only dwindles. And t u leads where u
t leads: they touch different nodes, and take units from different queues; what r sends in t is put behind what others
take out, by (1) nobody else sends, by (4) nothing else is put behind, where a queue is a bag there is no behind; both
use up the same leave, whose sum sufficed for u t; and by (5) no timer fires in u.

*What is left of w can be found from there.* Let t be of the action that was searched first among all that can begin w
(if the state was expanded several times: at the last of these times). A action that sleeps behind t slept before it or
was searched before it, and t does not bear on it. Could it begin the rest of w, it could begin w: either it would
sleep in s, or have been chosen in place of t. The rest is shorter than w.

*If w has no step of r* it does not end in a final state, since there the key has been used up; so it breaks a promise.
A key k that is awake is searched, it stays possible throughout w, and w is possible behind it, with no more actions
asleep than in s. There is an end to this: submissions use up scripts, receipts without a sending use up units.

*The promise is broken all the same.* Most are judged by one machine, its input and its past, which are the same in any
order. That orders of delivery have a cycle, or logs that must be equal differ, stays true once it is. A claim about
others is untrue if it comes before what it claims. The last step of w makes it; before it come no other steps than
in w, and so what was untrue remains so; and keys, which are not in w, bring about nothing of it, by (3). Where only the
logs of those that go on are judged, the steps that matter keep their order, by the last of the conditions above, and
by (3); all but crashes, and who has not crashed yet is one more that is judged.

*Nor is a circle of receipts lost*, by which no final state is ever reached. What was said of w holds of every beginning
of a way round and round it. So there are searched schedules of any length in which nothing uses up leave, and among
finitely many states these go round in a circle too.
"""

from dataclasses import dataclass
from operator import itemgetter
from typing import Protocol

from ordercast.explorer.actions import Actions
from ordercast.explorer.links import EMPTY
from ordercast.explorer.node_states import Effect
from ordercast.explorer.state_space import State, StateSpace, StepKind
from ordercast.model.config import require
from ordercast.model.runs import Channel

_WHO_GOES_ON = 1
"""The bit, beside those of items at levels, of all that is judged by who goes on."""


class Selection(Protocol):
    """What is searched from a state."""

    def steps(self, state: State, free: list[int], asleep: int) -> list[tuple[int, int]]:
        """The steps to search, each with its action as a bit; actions are whole, and in the order of their bits."""
        ...

    def sleep_set_after(self, state: State, step: int, action: int, effect: Effect | None, asleep: int) -> int:
        """What sleeps behind a step of a action, of what slept before it or was searched before it."""
        ...


class NoReduction:
    """All interleavings."""

    def __init__(self, space: StateSpace) -> None:
        self._space = space

    def steps(self, state: State, free: list[int], asleep: int) -> list[tuple[int, int]]:
        """All steps."""
        del asleep
        return [(step, 0) for step in self._space.steps(state, free)]

    def sleep_set_after(self, state: State, step: int, action: int, effect: Effect | None, asleep: int) -> int:
        """Nothing."""
        del state, step, action, effect, asleep
        return 0


@dataclass(slots=True)
class LocalFuture:
    """What a node can do if no other does anything."""

    sends: bool = False
    """It may send, sooner or later; the rest of its future is then not known."""
    sending: int = 0
    """The actions in which it may send now."""
    keys: int = 0
    """The actions that have a key now."""
    brings: int = 0
    """What a key may bring about, and any step that bears on who goes on, as bits."""
    claims: int = 0
    """What it may ever claim of others, as bits."""


class Reduction:
    """The interleavings that are not equivalent, or some of each kind."""

    def __init__(self, space: StateSpace) -> None:
        self._space = space
        self._actions = Actions(space)
        promise, size = space.scenario.promise, space.size
        require(
            not promise.most_under_way,
            "how much is under way at once depends on what a reduced search leaves out: search without reduction",
        )
        self._claims_levels = promise.ladder or promise.views
        self._judged_by_who_goes_on = promise.views and not promise.uniform
        self._items = len(space.scenario.items)
        self._one, self._bags = (space.scenario.channel is channel for channel in (Channel.ONE, Channel.ANY))
        self._patient = space.scenario.patient
        receivers = enumerate(space.links.receivers)
        links: list[list[int]] = [[] for _ in range(size)]
        for link, receiver in receivers:
            links[receiver].append(space.first_link + link)
        self._links = links
        self._budgets = range(space.past_links, space.past_links + 4)
        self._local = [itemgetter(node, *links[node], *self._budgets) for node in range(size)]
        self._known: list[dict[tuple[int, ...], LocalFuture]] = [{} for _ in range(size)]

    def steps(self, state: State, free: list[int], asleep: int) -> list[tuple[int, int]]:
        """The steps to search."""
        strand_of = self._actions.of_step
        found = [(strand_of[step & 0xFFFF], step) for step in self._space.steps(state, free)]
        first = self._goes_first(state, asleep) if free else None
        searched = ~asleep if first is None else ~asleep & self._actions.of_node[first]
        return [(step, action) for action, step in sorted(found) if action & searched]

    def sleep_set_after(self, state: State, step: int, action: int, effect: Effect | None, asleep: int) -> int:
        """Whatever the step does not bear on."""
        space, actions = self._space, self._actions
        asleep &= actions.apart_from[action]
        if not asleep or effect is None:
            return asleep if step & 7 != StepKind.LATER else asleep & ~self._sending(state)
        if effect.sends:
            first_link, again = space.first_link, state[space.duplicates]
            for _, links in effect.sends:
                for link in links:
                    if self._bags or state[first_link + link] == EMPTY:
                        asleep &= ~actions.of_link[link]
                    elif again:
                        asleep &= ~actions.disturbing[link]
            if self._one and asleep:
                asleep &= ~self._sending(state)
        if self._judged_by_who_goes_on and asleep:
            node = space.nodes.states[effect.next].node
            if self._changes_who_goes_on(state[node], effect.next):
                return 0
        return asleep

    def _sending(self, state: State) -> int:
        """The actions of which a step would send."""
        found = 0
        for alone in self._all_alone(state):
            found |= alone.sending
        return found

    def _all_alone(self, state: State) -> list[LocalFuture]:
        found = []
        for node, local in enumerate(self._local):
            known = self._known[node].get(local(state))
            found.append(self._work_out(node, self._isolated(node, state)) if known is None else known)
        return found

    def _goes_first(self, state: State, asleep: int) -> int | None:
        """The node whose steps suffice, if there is one."""
        space = self._space
        everybody = self._all_alone(state)
        speakers = [node for node, alone in enumerate(everybody) if alone.sends]
        if len(speakers) > 1:
            return None
        for node in speakers or range(space.size):
            alone = everybody[node]
            if not alone.keys & ~asleep or (alone.sending and state[space.duplicates] and not self._bags):
                continue
            if self._patient and all(state[link] == EMPTY for link in self._links[node]):
                continue
            if not any(alone.brings & other.claims for other in everybody if other is not alone):
                return node
        return None

    def _isolated(self, node: int, state: State) -> State:
        """The same state, if nothing were under way to others; timers that wait for silence are not thought of."""
        space = self._space
        mine = {*range(space.size), *self._links[node], *self._budgets} - ({space.firings} if self._patient else set())
        return tuple(value if place in mine else 0 for place, value in enumerate(state))

    def _work_out(self, node: int, state: State) -> LocalFuture:
        """What a node can do, from a state in which nothing is under way to others."""
        key = self._local[node](state)
        known = self._known[node].get(key)
        if known is None:
            known = self._known[node][key] = LocalFuture()  # what a step that changes nothing leads back to
            for step in self._space.steps(state):
                action = self._actions.of_step[step & 0xFFFF]
                if action & self._actions.of_node[node]:
                    self._follow(known, node, state, step, action)
        return known

    def _follow(self, alone: LocalFuture, node: int, state: State, step: int, action: int) -> None:
        after, effect = self._space.successor(state, step)
        kind = step & 7
        if effect is not None and (effect.sends or effect.problem):
            alone.sends = True
            alone.sending |= action
        if effect is not None and effect.problem:
            return
        brings, claims = self._visible(state[node], after[node], effect)
        if kind == StepKind.SUBMIT or (kind == StepKind.RECEIVE and effect is not None and not effect.sends):
            alone.keys |= action
            alone.brings |= brings
        alone.brings |= brings & _WHO_GOES_ON
        alone.claims |= claims
        if not alone.sends:
            later = self._work_out(node, after)
            alone.sends |= later.sends
            alone.claims |= later.claims

    def _visible(self, before: int, after: int, effect: Effect | None) -> tuple[int, int]:
        """What a step brings about that others may claim, and what it claims of others; both as bits."""
        nodes, brings, claims = self._space.nodes, 0, 0
        if self._claims_levels and effect is not None:
            for level in (1, 2):
                brings |= (nodes.reached[after][level] & ~nodes.reached[before][level]) << 1 + self._items * level
            for level, item in effect.risen:
                claims |= 1 << 1 + self._items * (level - 1) + item
        if self._judged_by_who_goes_on and self._changes_who_goes_on(before, after):
            brings, claims = brings | _WHO_GOES_ON, claims | _WHO_GOES_ON
        return brings, claims

    def _changes_who_goes_on(self, before: int, after: int) -> bool:
        was, now = (self._space.nodes.states[state] for state in (before, after))
        return (was.log, was.view, was.left, was.crashed) != (now.log, now.view, now.left, now.crashed)
