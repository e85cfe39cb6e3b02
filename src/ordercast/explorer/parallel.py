"""A search on all cores: each state is owned by one process, which alone decides whether it is new.

All processes advance level by level: successors of the states of one level are sent to their owners, which expand them
in the next. The result does not depend on the number of processes: an exhaustive search, or one that is cut off, has
the same states and transitions, and a counterexample is found at the same level, though not always the same one. The
owner of a state is derived from the state of one of its nodes, so that most successors stay with their process.
"""

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from multiprocessing import get_all_start_methods, get_context
from multiprocessing.connection import Connection
from signal import SIG_DFL, SIGTERM, signal

from ordercast.explorer.actions import EXPANDED
from ordercast.explorer.distributed import SearchCounts, counterexample_of, path_of_failure
from ordercast.explorer.expansion import EXPANDED_BEFORE, SAMPLE, TO_EXPAND, Expansion, KnownStates
from ordercast.explorer.explore import SearchProgress, SearchReport
from ordercast.explorer.portable import Portable, PortablePath
from ordercast.explorer.scenario import Scenario
from ordercast.explorer.state_space import State
from ordercast.model.errors import ConfigError

ReachedState = tuple[PortablePath, int]
"""A state on its way to its owner: a path to it, and its sleep set."""


class Share:
    """The states that one process owns."""

    def __init__(self, scenario: Scenario, number: int, of: int, *, reduced: bool) -> None:
        self.expansion, self.reduced = Expansion(scenario, reduced=reduced), reduced
        self.broken: PortablePath | None = None
        """See `SearchCounts.broken`."""
        self._number, self._of = number, of
        self._portable = Portable(self.expansion.space)
        start = self.expansion.space.initial_state()
        self._known = KnownStates(start)
        self.frontier: list[tuple[PortablePath, State, bytes]] = []
        if self._owner(start) == number:
            self._arrive(b"", start, self._known.pack(*start), 0)

    def states(self) -> int:
        """How many states it owns."""
        return len(self._known.sleep_sets)

    def take_in(self, rows: Iterable[ReachedState]) -> None:
        """Takes in what other processes reached, in the order of paths, so that their common steps are taken once."""
        for path, sleep_set in sorted(rows):
            state = self._portable.state(path)
            self._arrive(path, state, self._known.pack(*state), sleep_set)

    def level(self) -> list[list[ReachedState]]:
        """Expands all states of the frontier; returns the successors by owner."""
        reached: list[dict[bytes, tuple[PortablePath, State, int]]] = [{} for _ in range(self._of)]
        expansion, known, portable = self.expansion, self._known, self._portable
        frontier, self.frontier = self.frontier, []
        for path, state, here in frontier:
            for step, after, sleep_set in expansion.expand(state, known.begin_expansion(here)):
                key, owner = known.pack(*after), self._owner(after)
                ours = known.sleep_sets.get(key)
                if ours is not None and not ours & ~sleep_set & ~EXPANDED:  # the owner knows it already
                    if ours & EXPANDED and expansion.is_endless(step, after):
                        self.broken = portable.longer(path, state, step)
                    continue
                before = reached[owner].get(key)
                if before is None:
                    reached[owner][key] = (portable.longer(path, state, step), after, sleep_set)
                else:
                    reached[owner][key] = (*before[:2], before[2] & sleep_set)
            if expansion.failure is not None:
                self.broken = path_of_failure(portable, path, state, expansion.failure)
            if self.broken is not None:
                break
        mine, reached[self._number] = reached[self._number], {}
        for key, (path, state, sleep_set) in mine.items():  # now, as the other processes do with theirs
            self._arrive(path, state, key, sleep_set)
        return [[(path, sleep_set) for path, _, sleep_set in rows.values()] for rows in reached]

    def counts(self) -> SearchCounts:
        """The counts so far."""
        continuations = self.expansion.continuations
        return SearchCounts(
            edges=self.expansion.edges,
            continued=continuations.runs,
            longest=continuations.longest,
            node_states=len(self.expansion.space.nodes.states),
            broken=self.broken,
        )

    def portable_states(self) -> Iterator[tuple[bytes, int, PortablePath | None]]:
        """All states: the digest and the sleep set of each, and a path to those still to be expanded."""
        paths = {key: path for path, _, key in self.frontier}
        for key, sleep_set in self._known.sleep_sets.items():
            yield self._portable.digest(self._known.unpack(key)), sleep_set & ~EXPANDED, paths.get(key)

    def continue_frontier(self) -> None:
        """Checks liveness in a sample of the frontier."""
        for path, state, _ in self.frontier[::SAMPLE]:
            if not self.expansion.reaches_goal(state):
                self.broken = path
                return

    def _owner(self, state: State) -> int:
        return self._portable.home(state) % self._of

    def _arrive(self, path: PortablePath, state: State, key: bytes, sleep_set: int) -> None:
        arrival = self._known.arrive(key, sleep_set)
        if arrival & EXPANDED_BEFORE and self.expansion.is_endless(self._portable.last_step(path), state):
            self.broken = path
        if arrival & TO_EXPAND:
            self.frontier.append((path, state, key))


def explore_on(
    processes: int,
    scenario: Scenario,
    max_states: int = 1_000_000,
    *,
    reduced: bool = True,
    progress: SearchProgress | None = None,
) -> SearchReport:
    """Searches a scenario with this number of processes. Raises `ConfigError` if one of them dies."""
    began = time.perf_counter()
    forks = "fork" in get_all_start_methods()
    context = get_context("fork" if forks else None)
    pipes: list[Connection] = []
    workers = []
    for number in range(processes):
        ours, theirs = context.Pipe()
        pipes.append(ours)
        worker = context.Process(
            target=_work,
            args=(theirs, scenario, number, processes),
            kwargs={"reduced": reduced, "inherited": pipes if forks else ()},
            daemon=True,
        )
        worker.start()
        theirs.close()
        workers.append(worker)
    try:
        return _coordinate(pipes, scenario, max_states, began, progress)
    except (EOFError, ConnectionError) as error:
        raise ConfigError(
            "a worker process of the search died, probably out of memory; lower --max-states, or search on Spark"
        ) from error
    finally:
        for worker in workers:
            worker.terminate()  # it has nothing to clean up
            worker.join()


def _coordinate(
    pipes: list[Connection], scenario: Scenario, max_states: int, began: float, progress: SearchProgress | None
) -> SearchReport:
    """Runs level by level until no state is left, a promise is broken, or a level exceeds the limit."""
    batches: list[list[ReachedState]] = [[] for _ in pipes]
    depth, last = 0, False
    while True:
        for pipe, batch in zip(pipes, batches, strict=True):
            pipe.send((batch, last))
        answers = [pipe.recv() for pipe in pipes]
        if not last:
            states, left = (sum(answer[place] for answer in answers) for place in (0, 1))
        counts: list[SearchCounts] = [answer[2] for answer in answers]
        broken = [each.broken for each in counts if each.broken is not None]
        if progress is not None:
            progress(states, time.perf_counter() - began)
        if last or broken or not left:
            break
        batches = [[row for answer in answers for row in answer[3][owner]] for owner in range(len(pipes))]
        last = states > max_states  # liveness is then checked in a sample of the frontier
        depth += 1
    return SearchReport(
        states=states,
        edges=sum(each.edges for each in counts),
        exhausted=not left and not broken,
        seconds=time.perf_counter() - began,
        node_states=max(each.node_states for each in counts),
        continued=sum(each.continued for each in counts),
        longest=max(each.longest for each in counts),
        depth=depth,
        counterexample=counterexample_of(scenario, min(broken, key=lambda path: (len(path), path))) if broken else None,
    )


def _work(
    pipe: Connection, scenario: Scenario, number: int, of: int, *, reduced: bool, inherited: Sequence[Connection]
) -> None:
    """The main function of a worker process; it ends when its pipe is closed.

    `inherited`: the coordinator's ends of pipes, which a fork copies; a pipe reports its end only when all copies are
    closed.
    """
    signal(SIGTERM, SIG_DFL)  # the handler of the parent is inherited
    with suppress(EOFError, KeyboardInterrupt, ConnectionError, MemoryError):  # the coordinator notices the closed pipe
        for end in inherited:
            end.close()
        share = Share(scenario, number, of, reduced=reduced)
        while True:
            rows, last = pipe.recv()
            share.take_in(rows)
            if last:
                share.continue_frontier()
            outgoing = [] if last else share.level()
            left = len(share.frontier) + sum(map(len, outgoing))
            pipe.send((share.states(), left, share.counts(), outgoing))
