"""Leaves out of a plan that fails whatever is not needed for its failure."""

from collections.abc import Callable, Iterator

from msgspec.structs import replace

from tests.live_harness.plan import Plan, Setup, Weather

_DROPPED = "ABCDE"


def shrunk(plan: Plan, kind_of: Callable[[Plan], str | None], tries: int = 400) -> Plan:
    """The smallest plan that was found to fail alike; `kind_of`: how one fails, None if it does not."""
    wanted = kind_of(plan)
    assert wanted is not None, "the plan does not fail"
    left = tries
    changed = True
    while changed and left > 0:
        changed = False
        for smaller in _smaller(plan):
            left -= 1
            if left < 0:
                break
            if kind_of(smaller) == wanted:
                plan, changed = smaller, True
                break
    return plan


def _smaller(plan: Plan) -> Iterator[Plan]:
    """The largest steps first."""
    steps = plan.steps
    size = len(steps)
    while size:
        for start in range(0, len(steps), size):
            yield replace(plan, steps=steps[:start] + steps[start + size :])
        size //= 2
    for name in Weather.__struct_fields__:
        yield from _default(plan, "weather", plan.weather, Weather(), name)
    for name in Setup.__struct_fields__:
        if name not in {"order", "founders"}:
            yield from _default(plan, "setup", plan.setup, Setup(), name)
    for number, step in enumerate(steps):
        words = step.split()
        if "sends" in words:
            plain = " ".join(words[:3]) + " 20"
            if plain != step:
                yield replace(plan, steps=(*steps[:number], plain, *steps[number + 1 :]))


def _default(plan: Plan, part: str, value: Weather | Setup, default: Weather | Setup, name: str) -> Iterator[Plan]:
    if getattr(value, name) != getattr(default, name):
        yield replace(plan, **{part: replace(value, **{name: getattr(default, name)})})
