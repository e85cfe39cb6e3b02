"""An experiment as data: the runs of each point, how its value is computed, and what it is compared with.

The measurement is a parameter: a function from configurations to their rows of `runs`, in the same order.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from msgspec.structs import replace

from ordercast.evaluation.claims import Claim
from ordercast.evaluation.results import Axis, Estimate, Point, Result, Role, Series
from ordercast.evaluation.statistics import quotient
from ordercast.model.runs import RunConfig

MeasuredRun = Mapping[str, Any]
"""One row of the `runs` table of a trace."""
Measure = Callable[[Sequence[RunConfig]], Sequence[MeasuredRun]]
Value = Callable[[Sequence[MeasuredRun]], Estimate | None]
"""Computes the value of a point from the rows of its runs; None if they give none."""


class Size(Enum):
    """How many runs an experiment has."""

    FULL = "full"
    QUICK = "quick"
    """Few seeds: shows the shapes in a minute."""
    TINY = "tiny"
    """A minimum: for tests."""

    def pick(self, full: int, quick: int, tiny: int) -> int:
        """The number for this size."""
        return {Size.FULL: full, Size.QUICK: quick, Size.TINY: tiny}[self]


@dataclass(frozen=True)
class CurvePoint:
    """The runs of one point, with different seeds."""

    x: float
    configs: tuple[RunConfig, ...]
    value: Value | None = None
    """How their value is computed, if not as for the other points of the curve."""


@dataclass(frozen=True)
class Curve:
    """A series to be measured."""

    name: str
    label: str
    spots: tuple[CurvePoint, ...]
    value: Value | None = None
    may_be_incomplete: bool = False
    """True for the printed rules, which often do not finish."""


@dataclass(frozen=True)
class Experiment:
    """One table or figure."""

    name: str
    protocol: str
    source: str
    title: str
    x: Axis
    y: Axis
    curves: tuple[Curve, ...]
    references: tuple[Series, ...]
    claims: tuple[Claim, ...]
    setting: str
    relative_to: str = ""
    """A curve by whose values all others are divided."""

    def configs(self) -> list[RunConfig]:
        """All runs, each once."""
        found = {config.to_json(): config for curve in self.curves for spot in curve.spots for config in spot.configs}
        return list(found.values())

    def run(self, measure: Measure) -> Result:
        """Measures all points, and evaluates the claims."""
        configs = self.configs()
        rows = dict(zip([config.to_json() for config in configs], measure(configs), strict=True))
        measured = [_series(curve, rows) for curve in self.curves]
        if self.relative_to:
            measured = _relative(measured, self.relative_to)
        series = (*measured, *self.references)
        by_name = {one.name: one for one in series}
        return Result(
            name=self.name,
            protocol=self.protocol,
            source=self.source,
            title=self.title,
            x=self.x,
            y=self.y,
            series=series,
            findings=tuple(claim(by_name, self.x.symbol) for claim in self.claims),
            setting=self.setting,
            seeds=max(len(spot.configs) for curve in self.curves for spot in curve.spots),
            configs={curve.name: curve.spots[0].configs[0].to_json() for curve in self.curves},
        )


def reference(
    name: str,
    label: str,
    role: Role,
    values: Mapping[int, float] | Mapping[float, float],
    *,
    of: str = "",
    text: str = "",
) -> Series:
    """A series of published or computed values."""
    points = tuple(Point(float(x), float(y)) for x, y in values.items())
    return Series(name, label, role, points, of, text)


def _series(curve: Curve, rows: Mapping[str, MeasuredRun]) -> Series:
    points = []
    for spot in curve.spots:
        found = [rows[config.to_json()] for config in spot.configs]
        whole = [row for row in found if not row.get("error")]
        value_of = spot.value or curve.value
        assert value_of is not None, f"{curve.name}: no way to compute the value of a point"
        estimate = value_of(whole)
        incomplete = 0 if curve.may_be_incomplete else sum(not row["complete"] for row in whole)
        value = None if estimate is None else estimate.value
        stalled = sum(bool(row["stalled"]) for row in whole)
        counts = {"runs": len(found), "incomplete": incomplete, "stalled": stalled, "failed": len(found) - len(whole)}
        points.append(Point(spot.x, value, estimate, **counts, config=spot.configs[0].to_json()))
    return Series(curve.name, curve.label, Role.MEASURED, tuple(points))


def _relative(measured: list[Series], base: str) -> list[Series]:
    by_x = {point.x: point.estimate for one in measured if one.name == base for point in one.points}

    def divided(point: Point, *, is_base: bool) -> Point:
        lower = by_x.get(point.x)
        if point.estimate is None or lower is None or not lower.value:
            return replace(point, y=None, estimate=None)
        found = quotient(point.estimate, lower)
        if is_base:
            found = Estimate(1.0, 1.0, 1.0, found.samples, found.method)
        return replace(point, y=found.value, estimate=found)

    return [
        Series(one.name, one.label, one.role, tuple(divided(point, is_base=one.name == base) for point in one.points))
        for one in measured
    ]
