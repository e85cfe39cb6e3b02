"""The properties of §14 of the membership rules, over what the processes of a group told their applications.

D(p, k) is what p was delivered in view k; p closes k if it was told view k + 1, or left after k.
"""

from functools import partial
from itertools import pairwise
from typing import NamedTuple

from tests.protocols.membership.group import Group, Process


class Epoch(NamedTuple):
    """What one process was told in one view."""

    address: str
    number: int
    delivered: tuple[str, ...]
    closed: bool


def epochs_of(process: Process) -> list[Epoch]:
    """By view; the process closes all but the last, and that if it left."""
    found: list[Epoch] = []
    number, delivered = -1, []
    for row in process.log:
        if row[0] == "deliver":
            delivered.append(row[1])
        elif row[0] == "view":
            if number >= 0:
                found.append(Epoch(process.me.address, number, tuple(delivered), closed=True))
                assert row[1] == number + 1, "views are never skipped"
            number, delivered = row[1], []
            assert process.me.address in row[2], "a member is in each of its views"
        elif row[0] == "left":
            found.append(Epoch(process.me.address, number, tuple(delivered), closed=True))
            number = -1
    if number >= 0:
        found.append(Epoch(process.me.address, number, tuple(delivered), closed=False))
    return found


def check(group: Group) -> None:
    """Safety, at any moment."""
    by_view: dict[int, list[Epoch]] = {}
    for process in group.processes.values():
        for epoch in epochs_of(process):
            if epoch.closed or is_uniform(group) or epoch.number == max(group.views):
                by_view.setdefault(epoch.number, []).append(epoch)
    in_view: dict[str, int] = {}
    for number, epochs in sorted(by_view.items()):
        members = {member.address for member in group.views[number].members}
        for epoch in epochs:
            assert len(set(epoch.delivered)) == len(epoch.delivered), f"twice in view {number} at {epoch.address}"
            for message in epoch.delivered:
                assert in_view.setdefault(message, number) == number, f"{message} is in two epochs"
                assert message.split(":")[0] in members, f"{message}: its sender is no member of view {number}"
        _check_same_set(group, number, epochs)
        if group.is_total:
            _check_one_order(epochs)
    _check_quorums(group)
    for process in group.processes.values():
        if is_uniform(group) or (process.is_member and process.view and process.view.number == max(group.views)):
            _check_senders(group, process, in_view)
    if group.is_total and group.settings.has_state:
        _check_state(group)


def is_for(group: Group, message: str, address: str) -> bool:
    to = group.destinations[message]
    return to is None or address in to


def _check_same_set(group: Group, number: int, epochs: list[Epoch]) -> None:
    """Virtual synchrony, and uniform: what anybody was delivered, all are that close the view and are addressed."""
    anybody = {message: epoch.address for epoch in epochs for message in epoch.delivered}
    if not is_uniform(group):
        anybody = {message: epoch.address for epoch in epochs if epoch.closed for message in epoch.delivered}
    for epoch in epochs:
        for message in epoch.delivered:
            assert is_for(group, message, epoch.address), f"{message} at {epoch.address}"
        if epoch.closed:
            missing = [message for message in anybody if message not in epoch.delivered]
            missing = [message for message in missing if is_for(group, message, epoch.address)]
            assert not missing, f"view {number}: {epoch.address} was not delivered {missing}: {anybody}"


def is_uniform(group: Group) -> bool:
    """The sequencer only with enough resilience: r = 0, those that are gone may have been delivered more."""
    return not runs(group, "sequencer") or group.config.sequencer.resilience >= 8


def runs(group: Group, *protocols: str) -> bool:
    """Whether the group's order is of one of these protocols: made by its name, or by a class of its package."""
    machine = group.order.machine
    if isinstance(machine, partial):
        return machine.args[0] in protocols
    return any(protocol in getattr(machine, "__module__", "") for protocol in protocols)


def _check_one_order(epochs: list[Epoch]) -> None:
    """All sequences of a view agree: one is the beginning of the other, or they are equal where both have it."""
    longest = max(epochs, key=lambda epoch: (epoch.closed, len(epoch.delivered)))
    place = {message: index for index, message in enumerate(longest.delivered)}
    for epoch in epochs:
        common = [place[message] for message in epoch.delivered if message in place]
        assert common == sorted(common), f"{epoch} and {longest}"


def _check_quorums(group: Group) -> None:
    for number, value in group.decided.items():
        if number - 1 in group.views:
            old = group.views[number - 1].members
            heard = value.heard.bit_count()
            assert 2 * heard > len(old) or (2 * heard == len(old) and value.heard & 1)


def _check_senders(group: Group, process: Process, in_view: dict[str, int]) -> None:
    """No hole, in the sender's order: what was delivered of a sender is, from the first on, all that was for us."""
    if getattr(group.order, "by_priority", False):
        return
    seen: dict[str, list[str]] = {}
    for row in process.log:
        if row[0] == "deliver":
            seen.setdefault(row[1].split(":")[0], []).append(row[1])
    prioritised = runs(group, "prito", "prio")
    for sender, delivered in seen.items():
        submitted = group.processes[sender].submitted
        mine = [message for message in submitted if is_for(group, message, process.me.address)]
        first = mine.index(delivered[0])
        if prioritised:
            assert len(set(delivered)) == len(delivered)
            continue
        assert delivered == mine[first : first + len(delivered)], f"{process.me.address} of {sender}"
        for one, other in pairwise(delivered):
            assert in_view[one] <= in_view[other]


def _check_state(group: Group) -> None:
    """To all: the state and what follows is the log of all that were in all views."""
    full = [process for process in group.processes.values() if process.state is not None and process.member]
    last = max(group.views)
    full = [process for process in full if is_uniform(group) or (process.view and process.view.number == last)]
    logs = [group.history(process) for process in full if is_uniform(group) or not process.ended]
    for one, other in pairwise(sorted(logs, key=len)):
        assert other[: len(one)] == one, "a state is neither twice nor missing"


def check_end(group: Group) -> None:
    """All living members are in one view: what they sent was delivered to all that stayed since."""
    check(group)
    living = [process for process in group.processes.values() if process.is_member]
    for sender in living:
        for message in sender.submitted:
            to = group.destinations[message]
            for process in living:
                if to is not None and process.me.address not in to:
                    continue
                history = group.history(process)
                if process is sender or group.order.to_all:
                    assert message in history, f"{message} is lost at {process.me.address}"
                elif process.me.number < 20 and process.state == ():
                    first = next(row for row in process.log if row[0] == "view")
                    if first[1] == 0 and sender.log[0][1] == 0:
                        assert message in history, f"{message} is lost at {process.me.address}"
