"""A breadth-first search of all that a small group of members can do, over the real `MembershipMachine`.

Units are never taken off the network: loss, delay, duplication and reordering are included. Nobody ever has to act:
crashes are included. Any member may begin a ballot at any moment: wrong suspicions are included. A coordinator chooses
as soon as a quorum has reported, or later. Each step of each member is computed once for each of its states.

Not on the network, since nothing unsafe follows from losing them: Entered and Overruled. Installs are the same whoever
sends them. A member sees of another what that one has now, or had when it left the view.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from ordercast.model.config import MILLISECOND, GroupConfig
from ordercast.model.machine import Deliver, Receive, Send, Submit, TimerFired
from ordercast.model.nodes import mask_of
from ordercast.protocols.membership.applicants import Application
from ordercast.protocols.membership.events import (
    Begin,
    ChangeView,
    Excluded,
    InstallView,
    LeaveGroup,
    LeftGroup,
    ReceiveControl,
    ReceiveOutside,
    SendControl,
    SendOutside,
    StateLoaded,
)
from ordercast.protocols.membership.machine import MembershipMachine
from ordercast.protocols.membership.order import Order
from ordercast.protocols.membership.units import (
    Accepted,
    Apply,
    Fetch,
    Flush,
    Install,
    Leave,
    Propose,
    Report,
    Supply,
    Welcome,
)
from ordercast.protocols.membership.view import Incarnation, MembershipConfig, founding_view, is_quorum
from tests.protocols.membership.orders import ChannelData

SETTINGS = MembershipConfig(
    repeat=MILLISECOND, failure_timeout=100 * MILLISECOND, patience=1, suspected_patience=1, gather=MILLISECOND
)
ON_THE_NETWORK = (Flush, Report, Propose, Accepted, Fetch, Supply, Leave)


class Message(NamedTuple):
    """Something on the network."""

    tag: bytes
    to: int | None
    """A place; None: all."""
    unit: Any


class Text(NamedTuple):
    """A message of an application."""

    name: str
    sender: int
    """The number of a process."""
    to: tuple[int, ...] | None
    """Numbers of processes; None: all."""


class State(NamedTuple):
    nodes: tuple[int, ...]
    """By process: the number of its state; 0: it is no member yet."""
    network: frozenset[int]
    logs: tuple[int, ...]
    submitted: int
    """Texts that were submitted, in their order."""
    ballots: int
    """That were begun."""
    left: int
    """Processes that were told to leave."""


class Interned:
    """Values by number."""

    def __init__(self) -> None:
        self.numbers: dict[Any, int] = {}
        self.values: list[Any] = []

    def number(self, value: Any) -> int:
        found = self.numbers.get(value)
        if found is None:
            found = self.numbers[value] = len(self.values)
            self.values.append(value)
        return found


class Violation(AssertionError):  # noqa: N818 (it says what it is)
    """With the steps that lead to it."""


class Search:
    """All states of a group."""

    def __init__(
        self,
        order: Order,
        founders: int,
        *,
        texts: tuple[Text, ...] = (),
        ballots: int = 1,
        coordinators: tuple[int, ...] | None = None,
        joiners: int = 0,
        leavers: tuple[int, ...] = (),
        views: int = 1,
        kind: type[MembershipMachine] = MembershipMachine,
    ) -> None:
        """`views`: ballots are begun only in views below this number; `coordinators`: who begins any."""
        self.order, self.texts, self.ballots, self.leavers, self.views = order, texts, ballots, leavers, views
        count = founders + joiners
        self.coordinators = tuple(range(count)) if coordinators is None else coordinators
        self.config = GroupConfig(nodes=max(founders, 1), views=True)
        self.people = [Incarnation(f"n{number}", number, f"{number}") for number in range(count)]
        self.kind = kind
        self.founding = founding_view(tuple(self.people[:founders]), b"founding")
        self.states = Interned()
        self.states.number(None)
        self.messages = Interned()
        self.logs = Interned()
        self.cache: dict[Any, tuple[int, tuple[int, ...], tuple[Any, ...]]] = {}
        self.facts: dict[int, Any] = {}
        self.objects: list[MembershipMachine | None] = []
        first: list[int] = []
        for me in self.people:
            if me.number < founders:
                member = kind(me, self.founding, order, self.config, SETTINGS)
                for other in self.people[founders:]:
                    member.applicants.applications[other.name, other.number] = Application(other, None, other.number, 0)
                member.handle(Begin())
                self.objects.append(member)
                first.append(self.states.number(member.snapshot()))
            else:
                self.objects.append(None)
                first.append(0)
        begun = [self.logs.number((("view", self.founding, None),) if node else ()) for node in first]
        self.initial = State(tuple(first), frozenset(), tuple(begun), 0, 0, 0)

    # --- one step of one process ---

    def step(self, process: int, node: int, event: Any) -> tuple[int, tuple[int, ...], tuple[Any, ...]]:
        """The state after, what is sent, what the application is told."""
        key = (process, node, event)
        found = self.cache.get(key)
        if found is None:
            found = self.cache[key] = self._step(process, node, event)
        return found

    def _step(self, process: int, node: int, event: Any) -> tuple[int, tuple[int, ...], tuple[Any, ...]]:
        if isinstance(event, Welcome):
            member = self.kind.joins(self.people[process], event, self.order, self.config, SETTINGS)
            self.objects[process] = member
            outputs: list[Any] = member.handle(Begin())
        else:
            known = self.objects[process]
            assert known is not None
            known.restore(self.states.values[node])
            member, outputs = known, known.handle(event)
        self._forget_times(member)
        sent: list[int] = []
        told: list[Any] = []
        tag = self.fact(node).tag if node else None
        for output in outputs:
            match output:
                case Send(unit=unit):
                    assert tag is not None
                    sent.append(self.messages.number(Message(tag, None, unit)))
                case SendControl(unit=unit, to=to) if isinstance(unit, ON_THE_NETWORK):
                    assert tag is not None
                    sent.append(self.messages.number(Message(tag, to, unit)))
                case SendControl(unit=Install(view=view, value=value)):
                    assert tag is not None
                    sent.append(self.messages.number(Message(tag, None, Install(view, 0, value))))
                case SendOutside(unit=Welcome() as unit):
                    sent.append(self.messages.number(Message(b"", None, unit)))
                case Deliver(packet=packet):
                    told.append(("deliver", packet.payload.decode()))
                case InstallView(view=view, value=value):
                    if node:
                        sent.append(self.messages.number(Message(tag or b"", None, self.fact(node).status)))
                    tag = view.tag
                    told.append(("view", view, value))
                case Excluded():
                    told.append(("excluded",))
                case LeftGroup():
                    told.append(("left",))
        return self.states.number(member.snapshot()), tuple(sent), tuple(told)

    @staticmethod
    def _forget_times(member: MembershipMachine) -> None:
        """What only decides when something is repeated, and nothing else, is no part of the state here."""
        member.acceptor.reached = member.installer.entered = member.installer.rounds = 0
        member.installer.installs = member.coordinator.guided = False

    def fact(self, node: int) -> Any:
        """What others can see of a state."""
        found = self.facts.get(node)
        if found is None:
            snapshot = self.states.values[node]
            process = next(
                index
                for index, known in enumerate(self.objects)
                if known is not None and self.owner(snapshot) == self.people[index]
            )
            member = self.objects[process]
            assert member is not None
            member.restore(snapshot)
            machine: Any = member.machine
            found = self.facts[node] = Fact(
                member.current.view.number,
                member.current.view.tag,
                member.current.place,
                machine.status(),
                self._may_choose(member),
                member.current.has_state,
                member.phase.value == "member",
            )
        return found

    def owner(self, snapshot: Any) -> Incarnation:
        """The process whose snapshot it is."""
        for value in snapshot[0]:
            if isinstance(value, tuple) and value and type(value[0]).__name__ == "GroupView":
                place: int = value[1]
                found: Incarnation = value[0].members[place]
                return found
        raise AssertionError("a snapshot has the current view")

    @staticmethod
    def _may_choose(member: MembershipMachine) -> bool:
        coordinator = member.coordinator
        if not coordinator.is_active or coordinator.proposed is not None or member.acceptor.proposal is not None:
            return False
        return is_quorum(mask_of(coordinator.reports), member.current.size)

    # --- steps of the group ---

    def steps(self, state: State) -> Iterator[tuple[str, int, Any]]:
        """What may happen: a description, the process, the event."""
        facts = [self.fact(node) if node else None for node in state.nodes]
        for process, fact in enumerate(facts):
            if fact is None:
                yield from self._welcomes(state, process)
                continue
            for number in state.network:
                message = self.messages.values[number]
                if message.tag == fact.tag and self._is_for(message, fact):
                    event = Receive(message.unit) if self._is_data(message) else ReceiveControl(message.unit)
                    yield "receives", process, event
            if fact.is_member:
                yield from self._member_steps(state, process, facts)
        if state.submitted < len(self.texts):
            text = self.texts[state.submitted]
            fact = facts[text.sender]
            if fact is not None and fact.is_member and not state.left >> text.sender & 1:
                yield "submits", text.sender, self._submission(text, state)

    def _member_steps(self, state: State, process: int, facts: list[Any]) -> Iterator[tuple[str, int, Any]]:
        fact = facts[process]
        for other, seen in enumerate(facts):
            if seen is not None and other != process and seen.tag == fact.tag:
                yield "sees", process, Receive(seen.status)
        if state.ballots < self.ballots and process in self.coordinators and fact.view < self.views:
            yield "begins", process, ChangeView("")
        if fact.may_choose:
            yield "chooses", process, TimerFired("view.round")
        if process in self.leavers and not state.left >> process & 1:
            yield "leaves", process, LeaveGroup(drain=False)
        if not fact.has_state:
            yield "loads", process, StateLoaded()
        if fact.place == 0 and fact.view:  # those that wait apply again in each view
            for other, seen in enumerate(facts):
                if seen is None:
                    yield "hears of", process, self._application(other, process, fact)

    def _application(self, applicant: int, to: int, fact: Any) -> ReceiveOutside:
        person = self.people[applicant]
        apply = Apply(person, self.people[to].number, fact.view, (), None, (1 << 64) - 1, 0)
        return ReceiveOutside(apply, person.address)

    def _welcomes(self, state: State, process: int) -> Iterator[tuple[str, int, Any]]:
        for number in state.network:
            unit = self.messages.values[number].unit
            if isinstance(unit, Welcome) and unit.incarnation == process:
                yield "is welcomed", process, unit

    @staticmethod
    def _is_for(message: Message, fact: Any) -> bool:
        if isinstance(message.unit, Install | ChannelData):
            return True
        return message.to == fact.place or (message.to is None and message.unit.source != fact.place)

    @staticmethod
    def _is_data(message: Message) -> bool:
        return not isinstance(message.unit, (*ON_THE_NETWORK, Install))

    def _submission(self, text: Text, state: State) -> Submit:
        """To those of its destinations that are in the sender's view."""
        if text.to is None:
            return Submit(0, (1,), text.name.encode(), to_all=True)
        self.objects[text.sender].restore(self.states.values[state.nodes[text.sender]])  # type: ignore[union-attr]
        view = self.objects[text.sender].current.view  # type: ignore[union-attr]
        places = [place for place, member in enumerate(view.members) if member.number in text.to]
        return Submit(mask_of(places), (1,), text.name.encode())

    def after(self, state: State, what: str, process: int, event: Any) -> State:
        """The group after a step."""
        if isinstance(event, ReceiveControl) and isinstance(event.unit, Install):
            other = int(self.fact(state.nodes[process]).place == 0)
            event = ReceiveControl(Install(event.unit.view, other, event.unit.value))
        if isinstance(event, Submit) and not (event.destinations or event.to_all):
            return state._replace(submitted=state.submitted + 1)
        node, sent, told = self.step(process, state.nodes[process], event)
        nodes = (*state.nodes[:process], node, *state.nodes[process + 1 :])
        network = state.network
        for number in sent:
            network |= {self._on_channel(number, network)}
        logs = state.logs
        if told:
            log = self.logs.number((*self.logs.values[logs[process]], *told))
            logs = (*logs[:process], log, *logs[process + 1 :])
        return State(
            nodes,
            network,
            logs,
            state.submitted + (what == "submits"),
            state.ballots + (what == "begins"),
            state.left | (1 << process if what == "leaves" else 0),
        )

    def _on_channel(self, number: int, network: frozenset[int]) -> int:
        """A unit of the one channel gets its position."""
        message = self.messages.values[number]
        if not isinstance(message.unit, ChannelData):
            return number
        held = [self.messages.values[other] for other in network]
        count = sum(isinstance(other.unit, ChannelData) and other.tag == message.tag for other in held)
        return self.messages.number(Message(message.tag, None, ChannelData(message.unit.packet, count)))

    # --- the search ---

    def run(self, limit: int = 10_000_000) -> int:
        """How many states there are; raises `Violation` with the shortest way to a broken promise."""
        came: dict[State, tuple[State, str] | None] = {self.initial: None}
        level = [self.initial]
        checked: set[tuple[int, ...]] = set()
        while level:
            following: list[State] = []
            for state in level:
                for what, process, event in self.steps(state):
                    after = self.after(state, what, process, event)
                    if after in came:
                        continue
                    came[after] = (state, f"{process} {what} {self._name(event)}")
                    if after.logs not in checked:
                        checked.add(after.logs)
                        problem = self.problem(after)
                        if problem:
                            raise Violation("\n".join([problem, *self._way(came, after)]))
                    following.append(after)
                    assert len(came) <= limit, "the search is too large"
            level = following
        return len(came)

    @staticmethod
    def _name(event: Any) -> str:
        unit = getattr(event, "unit", None)
        return repr(event if unit is None else unit)[:300]

    @staticmethod
    def _way(came: dict[State, tuple[State, str] | None], state: State) -> list[str]:
        steps = []
        while (found := came[state]) is not None:
            state, step = found
            steps.append(step)
        return steps[::-1]

    # --- promises ---

    def problem(self, state: State) -> str | None:
        """What is wrong with what the applications were told; None if nothing is."""
        try:
            self._check([self.logs.values[log] for log in state.logs])
        except AssertionError as error:
            return str(error)
        return None

    def _check(self, logs: list[tuple[Any, ...]]) -> None:
        views: dict[int, Any] = {}
        epochs: dict[int, list[tuple[int, list[str], bool]]] = {}
        for process, log in enumerate(logs):
            number, delivered = -1, []
            for row in log:
                if row[0] == "deliver":
                    delivered.append(row[1])
                elif row[0] in {"view", "left"}:
                    if number >= 0:
                        epochs.setdefault(number, []).append((process, delivered, True))
                    if row[0] == "left":
                        number = -1
                        continue
                    assert number < 0 or row[1].number == number + 1, "a view was skipped"
                    number, delivered = row[1].number, []
                    assert views.setdefault(number, row[1:]) == row[1:], f"two views {number}"
                    assert self.people[process] in row[1].members, "told a view without itself"
            if number >= 0:
                epochs.setdefault(number, []).append((process, delivered, False))
        self._check_sets(epochs, views)
        self._check_senders(logs)

    def _check_sets(self, epochs: dict[int, list[tuple[int, list[str], bool]]], views: dict[int, Any]) -> None:
        texts = {text.name: text for text in self.texts}
        seen: dict[str, int] = {}
        for number, told in epochs.items():
            people = [member.number for member in views[number][0].members]
            for process, delivered, _ in told:
                for name in delivered:
                    assert seen.setdefault(name, number) == number, f"{name} in two views"
                    assert texts[name].sender in people, f"the sender of {name} is no member"
                    assert self._for(texts[name], process), f"{name} is not for {process}"
                for other, more, closed in told:
                    if closed:
                        missing = [n for n in delivered if n not in more and self._for(texts[n], other)]
                        assert not missing, f"{process} was delivered {missing} in view {number}, {other} was not"
                    if self.order.to_all:
                        common = min(len(delivered), len(more))
                        assert delivered[:common] == more[:common], f"two orders in view {number}"

    @staticmethod
    def _for(text: Text, process: int) -> bool:
        return text.to is None or process in text.to

    def _check_senders(self, logs: list[tuple[Any, ...]]) -> None:
        for process, log in enumerate(logs):
            delivered = [row[1] for row in log if row[0] == "deliver"]
            assert len(set(delivered)) == len(delivered), f"{process} was delivered something twice"
            for sender in {text.sender for text in self.texts}:
                mine = [text.name for text in self.texts if text.sender == sender and self._for(text, process)]
                got = [name for name in delivered if name in mine]
                first = mine.index(got[0]) if got else 0
                assert got == mine[first : first + len(got)], f"{process} was delivered {got} of {mine}"


class Fact(NamedTuple):
    view: int
    tag: bytes
    place: int
    status: Any
    may_choose: bool
    has_state: bool
    is_member: bool
