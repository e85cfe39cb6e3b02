"""An encoding of states and schedules that is valid in every process.

A `StateSpace` numbers states, units and timers as they are met, so the numbers are valid in one process only. A *path*
is valid everywhere: a schedule from the initial state, eight bytes for each step, which identifies timers by name and
the units of a bag by content. A state is sent as a path that leads to it, and identified by a digest of 16 bytes: a
collision, which would hide a state, has a probability of 10^-20 among a billion states.
"""

from array import array
from functools import cache
from hashlib import blake2b
from zlib import crc32

from ordercast.explorer.state_space import KIND, KIND_BITS, WHERE, State, StateSpace, StepKind
from ordercast.model.runs import Channel

PortablePath = bytes
"""A path, encoded."""

_WIDTH = 8  # bytes of a step


class Portable:
    """Encodes and decodes paths and states of one state space."""

    def __init__(self, space: StateSpace) -> None:
        self._space = space
        self._bags = space.scenario.channel is Channel.ANY
        self._of_node = cache(lambda number: _digest(repr(space.nodes.states[number]).encode()))
        self._of_unit = cache(lambda number: _digest(repr(space.nodes.units[number]).encode()))
        self._of_queue = cache(self._digest_of_queue)
        self._busiest = max(range(space.size), key=lambda node: len(space.scenario.scripts[node]))
        self._previous = array("q")
        self._states = [space.initial_state()]

    def digest(self, state: State) -> bytes:
        """The digest that identifies a state."""
        space = self._space
        parts = [self._of_node(number) for number in state[: space.size]]
        parts += [self._of_queue(number) for number in state[space.first_link : space.past_links]]
        parts.append(repr(state[space.past_links :]).encode())
        return _digest(b"".join(parts))

    def home(self, state: State) -> int:
        """A number derived from the state of the node that sends most; most steps do not change it."""
        return int.from_bytes(self._of_node(state[self._busiest])[:2], "little")

    def longer(self, path: PortablePath, state: State, step: int) -> PortablePath:
        """The path with one more step, from the state that it leads to."""
        return path + self._portable(state, step).to_bytes(_WIDTH, "little")

    def last_step(self, path: PortablePath) -> int:
        """The last step of a path, as it is encoded: only its kind is valid in this state space."""
        return int.from_bytes(path[-_WIDTH:], "little")

    def steps(self, path: PortablePath) -> list[int]:
        """The steps of a path, as numbers of this state space."""
        state, steps = self._space.initial_state(), []
        for step in _split(path):
            steps.append(self._local(state, step))
            state, _ = self._space.successor(state, steps[-1])
        return steps

    def state(self, path: PortablePath) -> State:
        """The state that a path leads to. Steps shared with the previous path are not repeated."""
        wanted, taken = _split(path), self._previous
        shared = 0
        for one, other in zip(wanted, taken, strict=False):
            if one != other:
                break
            shared += 1
        del self._states[shared + 1 :]
        for step in wanted[shared:]:
            state = self._states[-1]
            self._states.append(self._space.successor(state, self._local(state, step))[0])
        self._previous = wanted
        return self._states[-1]

    def _portable(self, state: State, step: int) -> int:
        what, which = step & WHERE, step >> 16
        if step & KIND == StepKind.FIRE:
            which = crc32(self._space.nodes.timer_names[which].encode())
        elif self._bags and step & KIND in {StepKind.RECEIVE, StepKind.LOSE, StepKind.TWICE}:
            which = self._by_contents(state[what >> KIND_BITS]).index(which)
        return what | which << 16

    def _local(self, state: State, step: int) -> int:
        what, which = step & WHERE, step >> 16
        if step & KIND == StepKind.FIRE:
            nodes = self._space.nodes
            timers = nodes.timers[state[what >> KIND_BITS]]
            which = next(timer for timer in timers if crc32(nodes.timer_names[timer].encode()) == which)
        elif self._bags and step & KIND in {StepKind.RECEIVE, StepKind.LOSE, StepKind.TWICE}:
            which = self._by_contents(state[what >> KIND_BITS])[which]
        return what | which << 16

    def _by_contents(self, queue: int) -> list[int]:
        """The places of a bag in an order that is the same in every process."""
        units = self._space.queues.contents[queue]
        return sorted(self._space.queues.places(queue), key=lambda place: self._of_unit(units[place]))

    def _digest_of_queue(self, number: int) -> bytes:
        units = [self._of_unit(unit) for unit in self._space.queues.contents[number]]
        return _digest(b"".join(sorted(units) if self._bags else units))


def _split(path: PortablePath) -> "array[int]":
    steps = array("q")
    steps.frombytes(path)
    return steps


def _digest(text: bytes) -> bytes:
    return blake2b(text, digest_size=16).digest()
