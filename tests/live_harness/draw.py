"""Draws a plan: a number determines it, on every machine."""

from random import Random

from tests.live_harness.plan import Plan, Setup, Weather

ORDERS = ("partial", "total", "priority", "sequenced", "po", "to", "prio")
_FOUNDERS = "ABCDE"
_SIZES = [10, 10, 100, 100, 3000, 3000, 80_000]


def draw(number: int, orders: tuple[str, ...] = ORDERS) -> Plan:
    """The plan of this number."""
    rng = Random(f"live {number}")
    setup = _setup(rng, orders[number % len(orders)])
    kind = rng.choices(["short", "views", "long"], [6, 6, 1])[0]
    lasting, messages, faults = {
        "short": (0.4, [0, 2, 6, 12], [1, 1, 2, 3]),
        "views": (0.3, [2, 6], [3, 4, 5, 6]),
        "long": (2.5, [4, 12, 30], [0, 1, 2, 3, 5]),
    }[kind]
    found = _sendings(rng, setup, lasting, rng.choice(messages))
    kinds = _OF_VIEWS if kind == "views" else _KINDS
    steps = sorted(found + _faults(rng, setup, lasting, rng.choices(kinds, k=rng.choice(faults))), key=lambda at: at[0])
    return Plan(
        seed=number, setup=setup, weather=_weather(rng, setup), steps=tuple(f"{at:.4f} {what}" for at, what in steps)
    )


def _setup(rng: Random, order: str) -> Setup:
    founders = rng.choices([2, 3, 4, 5], [3, 10, 1, 1])[0]
    return Setup(
        order=order,
        founders=founders,
        place=rng.choice(["network", "network", "machine"]),
        resilience=rng.choice([0, 1]) if order == "sequenced" else 0,
        quorum=rng.choice(["last_view", "last_view", "static"]),
        window=rng.choice([None, None, 4]),
        encrypted=rng.random() < 0.1,
        ending=rng.choice(["leave", "close", "one by one"]),
    )


def _weather(rng: Random, setup: Setup) -> Weather:
    grain = rng.choice([0.0, 0.0005, 0.001, 0.001])
    if rng.random() < 0.3:
        return Weather(grain=grain)

    def sometimes(share: float, values: list[float]) -> float:
        return rng.choice(values) if rng.random() < share else 0.0

    return Weather(
        delay=0.0001 if setup.place == "machine" else rng.choice([0.0003, 0.003, 0.02]),
        jitter=rng.choice([0.0, 0.5, 3.0]),
        grain=grain,
        loss=sometimes(0.6, [0.01, 0.05, 0.2]),
        late=sometimes(0.3, [0.001, 0.02]),
        doubled=sometimes(0.3, [0.02, 0.3]),
        changed=sometimes(0.5, [0.01, 0.1]) if setup.encrypted else 0.0,
        truncated=sometimes(0.2, [0.01, 0.05]),
        rate=sometimes(0.2, [500_000.0, 5_000_000.0]),
        buffer=rng.choice([4 << 20, 4 << 20, 200_000]),
        unreachable=rng.random() < 0.5,
        refused=sometimes(0.3, [0.01, 0.2]),
        short_sends=sometimes(0.15, [0.01, 0.05]),
        short_reads=sometimes(0.15, [0.01, 0.05]),
        interrupted=sometimes(0.2, [0.01, 0.2]),
        no_segments=rng.random() < 0.3,
    )


def _sendings(rng: Random, setup: Setup, lasting: float, count: int) -> list[tuple[float, str]]:
    names = _FOUNDERS[: setup.founders]
    found = []
    for _ in range(count):
        size = rng.choice(_SIZES) if rng.random() < 0.2 else 20
        options = ""
        if setup.order in {"partial", "total"} and rng.random() < 0.4:
            chosen = sorted(rng.sample(names, rng.randrange(1, len(names) + 1)))
            options += f" to={','.join(chosen)}"
        if setup.order in {"priority", "prio"}:
            options += f" priority={rng.choice([0, 1, 7])}"
        if rng.random() < 0.1:
            options += f" count={rng.choice([5, 40 if size < 1000 else 2])}"
        found.append((rng.uniform(0.0, lasting), f"{rng.choice(names)} sends {size}{options}"))
    return found


def _faults(  # noqa: C901, PLR0912
    rng: Random, setup: Setup, lasting: float, kinds: list[str]
) -> list[tuple[float, str]]:
    found: list[tuple[float, str]] = []
    names = _FOUNDERS[: setup.founders]
    for kind in kinds:
        at, name, other = rng.uniform(0.05, lasting), rng.choice(names), rng.choice(names)
        length = rng.choice([0.05, 0.1, 0.4, 0.7, 1.5])
        if kind == "dies":
            found.append((at, f"{name} dies"))
            if rng.random() < 0.6:
                found.append((at + rng.choice([0.001, 0.2, 1.0]), f"{name} starts {rng.choice(_HOW)}"))
        elif kind == "joins":
            found.append((at, f"{rng.choice('VWX')} starts contacts"))
        elif kind == "leaves":
            found.append((at, f"{name} leaves{rng.choice(['', ' now'])}"))
            if rng.random() < 0.5:
                found.append((at + rng.choice([0.3, 1.0]), f"{name} starts {rng.choice(_HOW)}"))
        elif kind == "pauses":
            found.append((at, f"{name} pauses {length}"))
        elif kind == "split":
            side = sorted(rng.sample(names, rng.randrange(1, len(names))))
            found.append((at, f"split {','.join(side)} {length}"))
        elif kind == "deaf" and name != other:
            found.append((at, f"deaf {name}<{other} {length}"))
        elif kind == "storm":
            found.append((at, f"storm {rng.choice([0.3, 0.7, 1.0])} {length}"))
        elif kind == "suspects" and name != other:
            found.append((at, f"{name} suspects {other}"))
            if rng.random() < 0.5:
                found.append((at + rng.choice([0.0, 0.001, 0.01]), f"{other} suspects {name}"))
        elif kind == "aborts" and rng.random() < 0.3:
            found.append((at, f"{name} aborts"))
    return found


_OF_VIEWS = ("suspects", "suspects", "suspects", "dies", "leaves", "joins", "pauses", "deaf", "storm", "split")
_KINDS = ("dies", "dies", "joins", "leaves", "pauses", "split", "deaf", "storm", "suspects", "suspects", "aborts")
_HOW = ("members", "contacts")


def faults_apart(number: int, faults: int = 8, *, founders: int = 3, together: int = 1) -> Plan:
    """A group to which something is done, to so many members at once, and again when that could be settled.

    A process is killed and started again, pauses, or is cut off, in one direction or in both.
    """
    rng = Random(f"apart {number}")
    setup = Setup(order=rng.choice(ORDERS), place=rng.choice(["network", "machine"]), founders=founders)
    names, timeout, at = _FOUNDERS[:founders], setup.failure_timeout, 0.2
    steps: list[str] = []
    for _ in range(faults):
        steps += [f"{at + 0.01 * place:.4f} {name} sends 20" for place, name in enumerate(names)]
        longest = 0.0
        for name in rng.sample(names, together):
            lasting = rng.choice([0.3, 1.5, 3.5]) * timeout
            longest = max(longest, lasting)
            steps += _one_fault(rng, name, [each for each in names if each != name], at, lasting)
        at += longest + rng.uniform(3.0, 5.0) * timeout
    return Plan(seed=number, setup=setup, steps=tuple(sorted(steps, key=lambda step: float(step.split()[0]))))


def _one_fault(rng: Random, name: str, others: list[str], at: float, lasting: float) -> list[str]:
    match rng.choice(["dies", "pauses", "split", "deaf", "mute"]):
        case "dies":
            return [f"{at:.4f} {name} dies", f"{at + lasting:.4f} {name} starts members"]
        case "pauses":
            return [f"{at:.4f} {name} pauses {lasting}"]
        case "split":
            return [f"{at:.4f} split {name} {lasting}"]
        case "deaf":
            return [f"{at:.4f} deaf {name}<{other} {lasting}" for other in others]
        case _:
            return [f"{at:.4f} deaf {other}<{name} {lasting}" for other in others]
