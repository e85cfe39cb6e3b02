"""A search on all cores: each state has an owner, who alone decides whether it is new.

All processes go from level to level together: what is reached from states of one level is handed to its owners, and
they expand it in the next. So it does not matter how many processes there are: states and edges of what is exhausted or
cut are the same, and something broken is found at the same level, though not always the same thing. The owner of a
state goes with the state of one of its nodes, so that most steps stay at home.
"""

import struct
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from multiprocessing import get_all_start_methods, get_context
from multiprocessing.connection import Connection
from signal import SIG_DFL, SIGTERM, signal

from ordercast.explorer.actions import EXPANDED
from ordercast.explorer.expansion import Expansion, Tally, counterexample_of
from ordercast.explorer.explore import SAMPLE, Progress, Report
from ordercast.explorer.portable import Path
from ordercast.explorer.scenario import Scenario
from ordercast.explorer.state_space import State
from ordercast.model.errors import ConfigError

Row = tuple[Path, int]
"""A state on its way to its owner: a path to it, and what sleeps in it."""


class Share:
    """The states that one process owns."""

    def __init__(self, scenario: Scenario, number: int, of: int, *, reduced: bool) -> None:
        self.expansion, self.reduced = Expansion(scenario, reduced=reduced), reduced
        self._number, self._of = number, of
        self._portable = self.expansion.portable
        start = self.expansion.space.initial_state()
        self._packing = struct.Struct(f"{len(start)}I")
        self._pack = self._packing.pack
        self.asleep: dict[bytes, int] = {}
        """By state what sleeps there, and whether it has been expanded. Keys are the states themselves, not digests."""
        self.frontier: list[tuple[Path, State, bytes]] = []
        if self._owner(start) == number:
            self._arrive(b"", start, self._pack(*start), 0)

    def take_in(self, rows: Iterable[Row]) -> None:
        """Takes in what others reached; paths that are alike come one after another."""
        for path, asleep in sorted(rows):
            state = self._portable.state(path)
            self._arrive(path, state, self._pack(*state), asleep)

    def level(self) -> list[list[Row]]:
        """Expands all that has arrived; gives by owner what was reached."""
        reached: list[dict[bytes, tuple[Path, State, int]]] = [{} for _ in range(self._of)]
        frontier, self.frontier = self.frontier, []
        for path, state, here in frontier:
            asleep = self.asleep[here]
            self.asleep[here] = asleep | EXPANDED
            for step, after, behind in self.expansion.expand(path, state, asleep):
                key, owner = self._pack(*after), self._owner(after)
                ours = self.asleep.get(key)
                if ours is not None and not ours & ~behind & ~EXPANDED:  # this is nothing new to it
                    if ours & EXPANDED:
                        self.expansion.comes_back(self._portable.longer(path, state, step), after)
                    continue
                known = reached[owner].get(key)
                if known is None:
                    reached[owner][key] = (self._portable.longer(path, state, step), after, behind)
                else:
                    reached[owner][key] = (*known[:2], known[2] & behind)
            if self.expansion.tally.broken is not None:
                break
        for key, (path, state, asleep) in reached[self._number].items():  # now, as others take in what is theirs
            self._arrive(path, state, key, asleep)
        reached[self._number] = {}
        return [[(path, asleep) for path, _, asleep in rows.values()] for rows in reached]

    def portable_states(self) -> Iterator[tuple[bytes, int, Path | None]]:
        """All states: a digest of each, what sleeps in it, and, of those to be expanded, a path."""
        paths = {key: path for path, _, key in self.frontier}
        for key, asleep in self.asleep.items():
            yield self._portable.digest(self._packing.unpack(key)), asleep & ~EXPANDED, paths.get(key)

    def continue_frontier(self) -> None:
        """Sees whether some of what is not searched would end well."""
        for path, state, _ in self.frontier[::SAMPLE]:
            if not self.expansion.ends_well(path, state):
                return

    def _owner(self, state: State) -> int:
        return self._portable.home(state) % self._of

    def _arrive(self, path: Path, state: State, key: bytes, asleep: int) -> None:
        known = self.asleep.get(key)
        woken = 0 if known is None else known & ~asleep & ~EXPANDED
        if known is None:
            self.asleep[key] = asleep
        elif woken:
            self.asleep[key] = known & ~woken & ~EXPANDED
        if known is not None and known & EXPANDED:
            self.expansion.comes_back(path, state)
        if known is None or (woken and known & EXPANDED):
            self.frontier.append((path, state, key))


def explore_on(
    processes: int,
    scenario: Scenario,
    max_states: int = 1_000_000,
    *,
    reduced: bool = True,
    progress: Progress | None = None,
) -> Report:
    """Searches a scenario on so many processes; see `Report` for what comes back.

    Raises `ConfigError` if one of them dies.
    """
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
        return _conducted(pipes, scenario, max_states, began, progress)
    except (EOFError, ConnectionError) as error:
        raise ConfigError(
            "a worker process of the search died, probably out of memory; lower --max-states, or search on Spark"
        ) from error
    finally:
        for worker in workers:
            worker.terminate()  # it holds nothing but memory
            worker.join()


def _conducted(
    pipes: list[Connection], scenario: Scenario, max_states: int, began: float, progress: Progress | None
) -> Report:
    """Goes from level to level until nothing is left, something is broken, or it is enough."""
    letters: list[list[Row]] = [[] for _ in pipes]
    depth, last = 0, False
    while True:
        for pipe, letter in zip(pipes, letters, strict=True):
            pipe.send((letter, last))
        answers = [pipe.recv() for pipe in pipes]
        if not last:
            states, left = (sum(answer[place] for answer in answers) for place in (0, 1))
        tallies: list[Tally] = [answer[2] for answer in answers]
        broken = [tally.broken for tally in tallies if tally.broken is not None]
        if progress is not None:
            progress(states, time.perf_counter() - began)
        if last or broken or not left:
            break
        letters = [[row for answer in answers for row in answer[3][owner]] for owner in range(len(pipes))]
        last = states >= max_states  # some of what is left is continued
        depth += 1
    return Report(
        states=states,
        edges=sum(tally.edges for tally in tallies),
        exhausted=not left and not broken,
        seconds=time.perf_counter() - began,
        node_states=max(tally.node_states for tally in tallies),
        continued=sum(tally.continued for tally in tallies),
        longest=max(tally.longest for tally in tallies),
        depth=depth,
        counterexample=counterexample_of(scenario, min(broken, key=lambda path: (len(path), path))) if broken else None,
    )


def _work(
    pipe: Connection, scenario: Scenario, number: int, of: int, *, reduced: bool, inherited: Sequence[Connection]
) -> None:
    """What a process does until nobody tells it anything any more.

    `inherited` are the other ends, which a fork copies: while somebody holds one, no pipe says that its owner is gone.
    """
    signal(SIGTERM, SIG_DFL)  # whatever whoever began the search does when told to end, we end at once
    with suppress(EOFError, KeyboardInterrupt, ConnectionError, MemoryError):  # whoever conducts knows, or is told
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
            pipe.send((len(share.asleep), left, share.expansion.tally, outgoing))
