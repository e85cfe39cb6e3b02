"""Claims: comparisons of measured series with published ones, each with a sentence on the agreement.

A claim is a function from the series of a result, by name, to a `ClaimResult`. Where it does not hold, the sentence
ends with the reason that the experiment gives for that case. Values of the x axis are named by its symbol.
"""

from collections.abc import Mapping
from math import isfinite
from typing import Protocol

from ordercast.evaluation.results import ClaimResult, Point, Series
from ordercast.evaluation.statistics import exponent

SeriesByName = Mapping[str, Series]

_MANY_TIMES = 3.0
_VAGUE_EXPONENT = 1.0  # an interval that is wider says nothing
_EQUAL = 0.0005  # what is less is printed as 0.0 %


class Claim(Protocol):
    """A comparison. `x`: the symbol of the x axis, such as n."""

    def __call__(self, series: SeriesByName, x: str = "x") -> ClaimResult:
        """What was found, with a sentence."""
        ...


def follows(name: str, reference: str, *, within: float, otherwise: str = "") -> Claim:
    """Each measured value differs from the reference by at most `within` (relative), or has it in its interval."""
    asked = f"each value within {_percent(within)} of {{}}, or with it in its 95 % interval"

    def claim(series: SeriesByName, x: str = "x") -> ClaimResult:
        measured, published = series[name], series[reference]
        pairs = [(point, value) for point in measured.points if (value := _finite(published.at(point.x))) is not None]
        pairs = [(point, value) for point, value in pairs if point.y is not None]
        if not pairs:
            return _missing(measured, published)
        apart = [(_apart(point, value), point.x) for point, value in pairs]
        worst, where = max(apart, key=lambda found: abs(found[0]))
        inside = sum(_is_inside(point, value) for point, value in pairs)
        agrees = all(abs(_apart(point, value)) <= within or _is_inside(point, value) for point, value in pairs)
        far = f"{1 + worst:,.0f} times" if worst >= _MANY_TIMES else _signed(worst)
        difference = f"largest difference {far}, at {x} = {where:g}" if abs(worst) >= _EQUAL else "no difference"
        if inside == len(pairs):
            difference = f"within the 95 % interval everywhere; {difference}"
        if agrees and any(abs(_apart(point, value)) > within and _is_vague(point) for point, value in pairs):
            return ClaimResult(
                None,
                f"{_start(measured.label)}: too few runs to compare with {published.label} ({difference}).",
                asked.format(published.label),
            )
        if agrees:
            sentence = f"{_start(measured.label)}: agrees with {published.label} ({difference})."
            return ClaimResult(agrees=True, sentence=sentence, asked=asked.format(published.label))
        difference = _span([found for found, _ in apart])
        side = _side([found for found, _ in apart])
        because = f" {otherwise}" if otherwise else ""
        sentence = f"{_start(measured.label)}: differs from {published.label} ({difference}{side}).{because}"
        return ClaimResult(agrees=False, sentence=sentence, asked=asked.format(published.label))

    return claim


def stays_below(name: str, bound: str, *, otherwise: str = "") -> Claim:
    """Each measured value is at most the bound."""

    def claim(series: SeriesByName, x: str = "x") -> ClaimResult:
        measured, published = series[name], series[bound]
        pairs = [(point.y, point.x, _finite(published.at(point.x))) for point in measured.points]
        shares = [(y / value, at) for y, at, value in pairs if y is not None and value]
        if not shares:
            return _missing(measured, published)
        worst, where = max(shares)
        asked = f"each value at most {published.label}"
        if worst <= 1:
            share = f"at most {100 * worst:.0f} % of it (at {x} = {where:g})"
            sentence = f"{_start(measured.label)}: stays below {published.label}, {share}."
            return ClaimResult(agrees=True, sentence=sentence, asked=asked)
        because = f" {otherwise}" if otherwise else ""
        far = f"{worst:.1f} times at {x} = {where:g}"
        sentence = f"{_start(measured.label)}: exceeds {published.label}, {far}.{because}"
        return ClaimResult(agrees=False, sentence=sentence, asked=asked)

    return claim


def grows_like(name: str, power: float, *, within: float, of: str, otherwise: str = "") -> Claim:
    """The measured values grow like a power of x."""

    def claim(series: SeriesByName, x: str = "x") -> ClaimResult:
        del x  # it is named by `of`
        measured = series[name]
        points = [(point.x, point.y) for point in measured.points if point.y is not None and point.y > 0]
        if len(points) < 3:
            return ClaimResult(None, f"{_start(measured.label)}: too few points to say how it grows.")
        found = exponent([at for at, _ in points], [y for _, y in points])
        value, low, high = (_plain(each) for each in (found.value, found.low, found.high))
        difference = f"grows like {of}^{value} ({low} to {high})"
        asked = f"an exponent within {within:g} of {power:g}, or {power:g} in its 95 % interval"
        near, inside = abs(found.value - power) <= within, found.low <= power <= found.high
        if inside and not near and found.high - found.low >= _VAGUE_EXPONENT:
            return ClaimResult(None, f"{_start(measured.label)}: {difference}: too few runs to say how.", asked)
        verb = "as" if near or inside else "not as"
        because = f" {otherwise}" if otherwise and not (near or inside) else ""
        sentence = f"{_start(measured.label)}: {difference}, {verb} O({_power(of, power)}) says.{because}"
        return ClaimResult(near or inside, sentence, asked)

    return claim


def needs_less(name: str, other: str, *, what: str, otherwise: str = "") -> Claim:
    """One measured series lies below another everywhere."""

    def claim(series: SeriesByName, x: str = "x") -> ClaimResult:
        less, more = series[name], series[other]
        pairs = [(point.y, _finite(more.at(point.x)), point.x) for point in less.points]
        factors = [(above / y, at) for y, above, at in pairs if y and above is not None]
        if not factors:
            return _missing(less, more)
        least, where = min(factors)
        most, _ = max(factors)
        asked = f"less {what} than {more.label} at each {x}"
        if _cannot_be_told_apart(less, more):
            sentence = f"{_start(less.label)}: too few runs to compare its {what} with that of {more.label}."
            return ClaimResult(None, sentence, asked)
        if least >= 1:
            span = f"{least:.1f} times" if f"{least:.1f}" == f"{most:.1f}" else f"{least:.1f} to {most:.1f} times"
            sentence = f"{_start(more.label)}: {span} the {what} of {less.label}."
            return ClaimResult(agrees=True, sentence=sentence, asked=asked)
        because = f" {otherwise}" if otherwise else ""
        where_more = f"at {x} = {where:g} ({1 / least:.2f} times)"
        sentence = f"{_start(less.label)}: not less {what} than {more.label} {where_more}.{because}"
        return ClaimResult(agrees=False, sentence=sentence, asked=asked)

    return claim


def _percent(part: float) -> str:
    return f"{100 * part:g} %"


def _cannot_be_told_apart(less: Series, more: Series) -> bool:
    """True if at some place intervals overlap of which one is as wide as its value: so any of them may be less."""
    others = {point.x: point for point in more.points}
    for point in less.points:
        other = others.get(point.x)
        if other is None or point.estimate is None or other.estimate is None:
            continue
        overlap = other.estimate.low <= point.estimate.high and point.estimate.low <= other.estimate.high
        if overlap and (_is_vague(point) or _is_vague(other)):
            return True
    return False


def _apart(point: Point, value: float) -> float:
    assert point.y is not None
    if value == 0:
        return 0.0 if point.y == 0 else float("inf")
    return point.y / value - 1


def _is_inside(point: Point, value: float) -> bool:
    found = point.estimate
    return found is not None and found.low < found.high and found.low <= value <= found.high


def _is_vague(point: Point) -> bool:
    """True if the interval is as wide as the value: then everything agrees with it."""
    found = point.estimate
    return found is not None and point.y is not None and found.high - point.y >= abs(point.y)


def _missing(measured: Series, published: Series) -> ClaimResult:
    return ClaimResult(
        None, f"{_start(measured.label)}: nothing was measured that could be compared with {published.label}."
    )


def _finite(value: float | None) -> float | None:
    return value if value is not None and isfinite(value) else None


def _signed(part: float) -> str:
    return f"{part:+.1%}".replace("-", "−").replace("%", " %")


def _plain(number: float) -> str:
    """Two digits, with a minus sign only where they are not 0."""
    return f"{round(number, 2) + 0.0:.2f}".replace("-", "−")


def _span(parts: list[float]) -> str:
    """The range of relative differences: in percent, or as factors if they are large."""
    least, most = min(parts, key=abs), max(parts, key=abs)
    if most > _MANY_TIMES:
        ends = [f"{1 + part:,.0f}" if 1 + part >= 100 else f"{1 + part:.2g}" for part in (least, most)]
        return f"{ends[0]} times" if ends[0] == ends[1] else f"{ends[0]} to {ends[1]} times"
    ends = [f"{abs(part):.0%}" for part in (least, most)]
    return f"{ends[0].replace('%', ' %')} off" if ends[0] == ends[1] else f"{ends[0][:-1]} to {ends[1][:-1]} % off"


def _side(parts: list[float]) -> str:
    if all(part > 0 for part in parts):
        return ", above it everywhere"
    if all(part < 0 for part in parts):
        return ", below it everywhere"
    return ""


def _power(of: str, power: float) -> str:
    named = {0.0: "1", 1.0: of, 2.0: f"{of}²"}
    return named.get(power, f"{of}^{power:g}")


def _start(label: str) -> str:
    return label[:1].upper() + label[1:]
