"""Random groups whose members change, each drawn from one seed and checked."""

from dataclasses import dataclass
from random import Random
from typing import Any

import msgspec

from ordercast.model.config import PriorityConfig, RecoveryPolicy, SequencerConfig
from ordercast.model.machine import Submit
from ordercast.model.nodes import everybody, members
from ordercast.protocols.membership.epoch import Cut, moved
from tests.protocols.membership.changing_group import PRIORITIES, SELECTIVE, Node, View, quorums
from tests.protocols.membership.properties import check_excluded, check_left_over, check_logs, check_view, log_of


@dataclass
class Tally:
    """What a campaign has seen."""

    runs: int = 0
    views: int = 0
    recovering: int = 0
    between_rounds: int = 0
    deliveries: int = 0
    left_over: int = 0


def settings(protocol: str, chance: Random) -> dict[str, Any]:
    """The parameters of a group, not those that depend on its size."""
    drawn: dict[str, Any] = {"window": chance.choice([1, 2, 4, 32]), "quota": chance.choice([1, 2, 4, 256])}
    if protocol == "st":
        drawn["log_limit"] = chance.choice([8, 20, 400])  # what is under way must fit in: going back to the same again
        drawn["recovery"] = chance.choice(
            [RecoveryPolicy.SELECTIVE, RecoveryPolicy.SELECTIVE, RecoveryPolicy.GO_BACK_N]
        )
        drawn["quota"] = max(drawn["quota"], 2)
    elif protocol == "sequencer":
        drawn["sequencer"] = SequencerConfig(
            resilience=chance.choice([0, 1, 2]),
            history=chance.choice([2, 8, 1024]),
            direct_from=chance.choice([0, 2, 1400]),
            suspect_after=2,
        )
    elif protocol in PRIORITIES:
        drawn["priority"] = PriorityConfig(synchronises=chance.random() < 0.8)
    return drawn


class Campaign:
    """One group, from its first view to its last."""

    def __init__(self, protocol: str, seed: int, **more: Any) -> None:
        self.protocol, self.chance = protocol, Random(f"{protocol} {seed}")
        chance = self.chance
        self.loss = chance.choice([0.0, 0.05, 0.15, 0.3, 0.4])
        self.settings = {**settings(protocol, chance), **more}
        self.nodes: dict[int, Node] = {}
        self.awaited = None  # a moment of the order's own recovery at which the view is to end
        if protocol not in {"spo", "po", "sequencer"}:
            self.awaited = chance.choice([None, View.recovers, View.is_between_rounds, View.has_carried])
        self.tally = Tally(runs=1)
        self.view = self.make_view(0, self.new_nodes(chance.choice([1, 2, 3, 3, 4, 5])))

    def new_nodes(self, count: int) -> list[Node]:
        made = [Node(len(self.nodes) + number) for number in range(count)]
        self.nodes |= {node.number: node for node in made}
        return made

    def make_view(self, number: int, nodes: list[Node]) -> View:
        self.tally.views += 1
        return View(self.protocol, number, nodes, self.chance, **self.settings)

    # --- within a view ---

    def submit(self, place: int) -> None:
        chance, count = self.chance, len(self.view.nodes)
        to = everybody(count)
        if self.protocol in SELECTIVE:
            to = chance.randint(1, to)
        lengths = (2,) * chance.choice([1, 1, 2])
        payload = chance.randbytes(4)
        priority = chance.randint(0, 3) if self.protocol in PRIORITIES else 0
        self.view.submit(place, Submit(to, lengths, payload, priority))

    def go_on(self, steps: int) -> None:
        """Members that have not stopped send, receive, lose and wait."""
        for _ in range(steps):
            running = self.view.running()
            if not running:
                return
            if self.chance.random() < 0.08:
                self.submit(self.chance.choice(running))
            else:
                self.view.step(self.loss)

    # --- from one view to the next ---

    def quorum(self) -> tuple[int, ...]:
        view = self.view
        needed = type(view.flushes[0]).reports_needed(view.config)
        return self.chance.choice([places for places in quorums(len(view.nodes)) if len(places) >= needed])

    def end_view(self) -> tuple[tuple[int, ...], Cut]:
        """Some members stop one after the other; then they finish, while the others go on."""
        chance, view = self.chance, self.view
        self.go_on(chance.randint(0, 150))
        for _ in range(400):
            if self.awaited is None or self.awaited(view):
                break
            self.go_on(1)
        self.tally.recovering += view.recovers()
        self.tally.between_rounds += view.is_between_rounds()
        places = self.quorum()
        for place in chance.sample(places, len(places)):
            view.stopped.add(place)
            self.go_on(chance.choice([0, 0, 3, 30]))
        cut = view.cut_of(places)
        if chance.random() < 0.5:
            self.go_on(chance.randint(0, 60))
        view.finish(places, cut)
        self.go_on(chance.randint(0, 60))
        return places, cut

    def check_end(self, places: tuple[int, ...], cut: Cut) -> None:
        view = self.view
        uniform = self.is_uniform()
        check_view(view, places, uniform=uniform)
        for place in range(len(view.nodes)):
            if place in places:
                check_left_over(view, place, cut)
            elif uniform:
                check_excluded(view, place, places, cut)

    def next_view(self, places: tuple[int, ...], cut: Cut) -> None:
        """Those that finished go on, but for some that leave; others join."""
        chance, old = self.chance, self.view
        stay = (
            sorted(places) if chance.random() < 0.6 else sorted(chance.sample(places, chance.randint(1, len(places))))
        )
        joiners = self.new_nodes(chance.choice([0, 0, 1, 2]) if len(stay) < 5 else 0)
        self.view = self.make_view(old.number + 1, [*(old.nodes[place] for place in stay), *joiners])
        new_places = {place: at for at, place in enumerate(stay)}
        self.view.stopped = set(new_places.values())
        for place, at in chance.sample(list(new_places.items()), len(new_places)):
            left, skips = moved(old.flushes[place].left_over(cut), new_places)
            self.tally.left_over += len(left)
            if self.protocol not in SELECTIVE:
                left = [msgspec.structs.replace(each, destinations=everybody(len(self.view.nodes))) for each in left]
            self.view.enter(at, old.flushes[place].next_message(cut), left, skips + old.skips[place])
            self.go_on(chance.choice([0, 0, 5, 20]))

    def run(self) -> Tally:
        for _ in range(self.chance.randint(1, 3)):
            ended = self.view
            places, cut = self.end_view()
            self.check_end(places, cut)
            self.next_view(places, cut)
            assert ended is not self.view
        self.go_on(self.chance.randint(0, 60))
        self.view.settle()
        self.check_all_given()
        self.check_logs()
        self.tally.deliveries = sum(len(node.deliveries) for node in self.nodes.values())
        return self.tally

    def check_logs(self) -> None:
        """Without resilience, those that are gone may have been given what nobody else was."""
        if not self.is_uniform():
            living = {node.number for node in self.view.nodes}
            for node in self.nodes.values():
                ended = node.closed | ({self.view.number} if node.number in living else set())
                node.deliveries = [(view, message) for view, message in node.deliveries if view in ended]
        check_logs(self.protocol, self.nodes)

    def is_uniform(self) -> bool:
        return self.protocol != "sequencer" or self.view.config.sequencer.resilience > 0

    def check_all_given(self) -> None:
        """`kept`: whatever a living member submitted, all its destinations that live were given."""
        living = {node.number: set(log_of(node)) for node in self.view.nodes}
        for node in self.view.nodes:
            for number, event in node.submitted.items():
                for to in members(event.destinations):
                    assert to not in living or (node.number, number) in living[to], (
                        f"{to} was never given {(node.number, number)}"
                    )


def campaign(protocol: str, seeds: range, **more: Any) -> Tally:
    """As many groups as there are seeds; `more`: parameters of all of them."""
    total = Tally()
    for seed in seeds:
        try:
            tally = Campaign(protocol, seed, **more).run()
        except Exception as error:
            error.add_note(f"{protocol}, seed {seed}")
            raise
        for name, value in vars(tally).items():
            setattr(total, name, getattr(total, name) + value)
    return total
