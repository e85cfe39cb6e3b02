"""Where a group stands: who is in which view, and whether enough members live to go on."""

from collections.abc import Sequence

from ordercast.protocols.membership.view import GroupView
from tests.live_harness.application import Life
from tests.live_harness.plan import Plan, names_of


def view_of(life: Life) -> GroupView | None:
    """The last view that it took part in."""
    member = life.member
    return None if member is None or member.host is None else member.host.member.current.view


def is_settled(lives: Sequence[Life]) -> bool:
    """All that live and want to be members are in one view of exactly these, which nobody is about to change."""
    alive = [life for life in lives if life.alive]
    wanting = [life for life in alive if not life.wants_to_leave]
    if len(alive) > len(wanting) or not wanting:
        return not alive
    first = view_of(wanting[0])
    names = {life.name for life in wanting}
    if first is None or {each.name for each in first.members} != names or len(first.members) != len(names):
        return False
    return all(_is_in(life, first) for life in wanting)


def _is_in(life: Life, view: GroupView) -> bool:
    member = life.member
    if member is None or member.host is None or member.host.closed:
        return False
    machine = member.host.member
    is_about_to_change = machine.stopped or machine.coordinator.suspects
    stays = member.arrivals.returning is None and not member.reachability.is_blocked and not is_about_to_change
    return stays and machine.current.view.tag == view.tag


def expects_all(lives: Sequence[Life], plan: Plan) -> bool:
    """Whether all that live should be members of one view in time: of the last view enough live, or none was ever."""
    if any(life.asked_to_abort for life in lives):
        return False
    latest: dict[int, GroupView] = {}
    for life in lives:
        view, member = view_of(life), life.member
        if view is not None and member is not None:
            session = member.terms.session
            if session not in latest or latest[session].number < view.number:
                latest[session] = view
    if not latest:
        founders = {life.name for life in lives if life.alive and not life.wants_to_leave}
        return len(founders) >= plan.setup.founders and all(life.alive for life in lives)
    return any(_has_quorum(view, lives, plan) and _all_reach(view, lives, plan) for view in latest.values())


def _all_reach(view: GroupView, lives: Sequence[Life], plan: Plan) -> bool:
    """Whether each that lives outside of this view knows one that lives in it, and can ask it."""
    founders = set(names_of(plan)[: plan.setup.founders])
    alive = [life for life in lives if life.alive]
    members = {each.name for each in view.members} & {life.name for life in alive}
    for life in alive:
        last = view_of(life)
        known = founders if last is None else {each.name for each in last.members} | founders
        if life.name not in members and not known & members:
            return False
    return True


def _has_quorum(view: GroupView, lives: Sequence[Life], plan: Plan) -> bool:
    living = {
        (me.name, me.number)
        for life in lives
        if life.alive and life.member is not None and life.member.host is not None
        for current in [life.member.host.member.current]
        for me in [current.view.members[current.place]]
    }
    there = [place for place, each in enumerate(view.members) if (each.name, each.number) in living]
    least = plan.setup.founders // 2 + 1 if plan.setup.quorum == "static" else 1
    resilience = min(plan.setup.resilience, len(view.members) - 1)
    if resilience:
        least = max(least, len(view.members) - resilience)
    half = 2 * len(there) == len(view.members) and 0 in there
    return len(there) >= least and (2 * len(there) > len(view.members) or half)
