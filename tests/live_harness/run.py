"""Carries out a plan: its steps, then an end without faults, in which the group must do what it promises."""

from typing import NamedTuple

from tests.live_harness.application import Life, place_of
from tests.live_harness.doors import installed
from tests.live_harness.judge import Failure, of_ends, of_groups, of_records, of_settling
from tests.live_harness.network import Network
from tests.live_harness.plan import Plan, names_of
from tests.live_harness.records import Records
from tests.live_harness.rest import of_rest
from tests.live_harness.standing import expects_all, is_settled
from tests.live_harness.world import SECOND, EndlessError, World

_LOOK = SECOND // 20
_FREED = 2.0  # failure timeouts until a process that has ended has no timer and no task left
_WEATHER = {"split", "storm", "deaf"}
_SILENCES = {"dies", "pauses", *_WEATHER}
_NOTICED = 1.5  # failure timeouts after the last silence: by then somebody has suspected whoever was silent
_UNEXPECTED = 6.0
"""Failure timeouts that a group may take to settle of which too few are left, or which has hardly begun."""
_RESTS = 4
"""Of so many runs one is watched when it has come to rest: others end at once."""
SETTLES = 40.0
"""Failure timeouts within which all are in one view, when nothing is lost any more."""
ENDS = 40.0
"""Failure timeouts within which all processes end that were told to."""


class Result(NamedTuple):
    """What came of a run."""

    failures: list[Failure]
    deliveries: int
    views: int
    turns: int
    datagrams: int
    virtual: float
    """Seconds of virtual time."""
    settled: bool
    """Enough were left, and all were in one view in the end."""


class Run:
    """One run of a plan."""

    def __init__(self, plan: Plan, *, remembers: bool = False) -> None:
        self.plan, self.world = plan, World(plan.seed)
        self.world.remembers, self.world.grain = remembers, max(1, int(plan.weather.grain * SECOND))
        self.world.network = Network(self.world, plan.weather, encrypted=plan.setup.encrypted)
        self.records = Records(self.world)
        self.lives: list[Life] = []
        self.settled = False

    def carry_out(self) -> Result:
        """All of it."""
        world = self.world
        failures: list[Failure] = []
        with installed(world, new_trace=self.records.new):
            try:
                for number, name in enumerate(names_of(self.plan)[: self.plan.setup.founders]):
                    world.at(world.now + number * 1000, self._start, name, "members")
                world.run(self._schedule())
                failures += self._settle()
                failures += self._end()
            except EndlessError as error:
                failures.append(Failure("endless", str(error)))
            finally:
                failures += of_groups(self.lives)
                self._dispose()
        failures += of_records(self.records)
        views = sum(len(life.views) for life in self.lives)
        deliveries = sum(len(life.received) for life in self.lives)
        seconds = world.now / SECOND
        return Result(failures, deliveries, views, world.turns, world.network.datagrams, seconds, self.settled)

    # --- steps ---

    def _schedule(self) -> int:
        begun = last = self.world.now
        for step in self.plan.steps:
            when, *words = step.split()
            at = begun + int(float(when) * SECOND)
            lasts = float(words[-1]) if words[1] == "pauses" or words[0] in _WEATHER else 0.0
            if _SILENCES.intersection(words):
                lasts += _NOTICED * self.plan.setup.failure_timeout
            last = max(last, at + int(lasts * SECOND))
            self.world.at(at, self._step, words)
        return last

    def _step(self, words: list[str]) -> None:
        name, *rest = words
        until = self.world.now + int(float(rest[-1]) * SECOND) if name in _WEATHER else 0
        match [name, *rest]:
            case ["split", side, _]:
                ours = {place_of(self.plan, each) for each in side.split(",")}
                others = {place_of(self.plan, each) for each in names_of(self.plan)} - ours
                self.world.network.cut(ours, others, until)
                self.world.network.cut(others, ours, until)
            case ["deaf", pair, _]:
                deaf, speaker = pair.split("<")
                self.world.network.cut([place_of(self.plan, speaker)], [place_of(self.plan, deaf)], until)
            case ["storm", loss, _]:
                self.world.network.storm(float(loss), until)
            case [_, "starts", how]:
                self._start(name, how)
            case _:
                life = self._life(name)
                if life is not None:
                    self._tell(life, rest)

    def _tell(self, life: Life, words: list[str]) -> None:
        match words:
            case ["dies"]:
                life.process.kill()
            case ["pauses", seconds]:
                life.process.pause(self.world.now + int(float(seconds) * SECOND))
            case ["leaves", *now]:
                life.process.call(lambda: life.leave(now=bool(now)))
            case ["suspects", other]:
                life.process.call(lambda: life.suspect(other))
            case ["aborts"]:
                life.process.call(life.abort)
            case ["sends", size, *options]:
                chosen = dict(option.split("=") for option in options)
                to = tuple(chosen["to"].split(",")) if "to" in chosen else ()
                priority = int(chosen.get("priority", 0))
                for _ in range(int(chosen.get("count", 1))):
                    life.process.call(lambda: life.send(int(size), to, priority))
            case _:
                raise ValueError(f"no such step: {life.name} {' '.join(words)}")

    def _start(self, name: str, how: str) -> None:
        if self._life(name) is None:
            self.lives.append(Life(self.world, self.plan, name, how, len(self.lives)))

    def _life(self, name: str) -> Life | None:
        return next((life for life in self.lives if life.name == name and life.alive), None)

    # --- the end ---

    def _wait(self, timeouts: float, is_done: "object") -> bool:
        """Whether it is so within so many failure timeouts."""
        world = self.world
        until = world.now + int(timeouts * self.plan.setup.failure_timeout * SECOND)
        while world.now < until:
            if is_done():  # type: ignore[operator]
                return True
            world.run(min(until, world.now + _LOOK))
        return bool(is_done())  # type: ignore[operator]

    def _settle(self) -> list[Failure]:
        """Nothing is lost any more: those that live are in one view, and hear each other."""
        self.world.network.heal()
        self.settled = self._wait(_UNEXPECTED, lambda: is_settled(self.lives))
        if not self.settled and expects_all(self.lives, self.plan):
            self.settled = self._wait(SETTLES, lambda: is_settled(self.lives))
            if not self.settled:
                return of_settling(self.lives)
        if not self.settled:
            return []
        wanting = [life for life in self.lives if life.alive and not life.wants_to_leave]
        for life in wanting:
            life.process.call(lambda life=life: life.send(40, (), 0))  # type: ignore[misc]
        last = {life.name: len(life.sent) for life in wanting}
        self.world.run(self.world.now + _LOOK // 5)

        def heard() -> bool:
            wanted = [life.sent[-1].payload for life in wanting if len(life.sent) > last[life.name]]
            return all(life.heard.issuperset(wanted) for life in wanting) and all(
                sent.done for life in wanting for sent in life.sent
            )

        if not self._wait(SETTLES, heard):
            return [Failure("stuck", "a message after the end of all faults is not delivered, or has no receipt")]
        if self.plan.seed % _RESTS:
            return []
        timeout = self.plan.setup.failure_timeout
        return of_rest(wanting, self.plan, lambda timeouts: self._run_for(timeouts * timeout))

    def _run_for(self, seconds: float) -> None:
        self.world.run(self.world.now + int(seconds * SECOND))

    def _end(self) -> list[Failure]:
        alive = [life for life in self.lives if life.alive]
        for number, life in enumerate(alive):
            if self.plan.setup.ending == "close":
                life.process.call(life.close)
            elif self.plan.setup.ending == "leave":
                life.process.call(lambda life=life: life.leave(now=False))  # type: ignore[misc]
            else:
                at = self.world.now + number * int(0.3 * SECOND)
                self.world.at(at, life.process.call, lambda life=life: life.leave(now=False))
        self._wait(ENDS, lambda: all(life.ended or not life.process.alive for life in self.lives))
        self._wait(_FREED, lambda: not of_ends(self.lives))
        return of_ends(self.lives)

    def _dispose(self) -> None:
        """What was killed in the middle of something is unwound, where it has no effect any more."""
        for life in self.lives:
            life.process.dispose()
            if life.member is not None and not life.member.left.done():
                life.member.left = life.process.loop.create_future()
                life.member.left.set_result(None)
            life.process.loop.close()


def run_plan(plan: Plan) -> Result:
    """Carries out a plan."""
    return Run(plan).carry_out()
