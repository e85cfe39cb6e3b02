"""The results of an evaluation, stored as JSON: all that a report needs.

DIR/evaluation.json     how it was run, and the names of the experiments
DIR/NAME.json           the result of one experiment
"""

from enum import Enum
from typing import TypeVar

import msgspec

from ordercast.model.errors import ConfigError, reason_of
from ordercast.trace.storage import Location, write_whole

SUMMARY = "evaluation.json"


class Method(Enum):
    """How an interval was computed."""

    STUDENT = "Student's t over runs"
    WILSON = "Wilson's interval for a share of messages"
    SINGLE = "one run, no interval"


class Role(Enum):
    """What a series is."""

    MEASURED = "measured"
    PUBLISHED = "published"
    """Numbers printed in the paper."""
    PRINTED = "printed formula"
    CORRECTED = "corrected formula"
    BOUND = "bound"


class Estimate(msgspec.Struct, frozen=True):
    """A value and its 95 % confidence interval."""

    value: float
    low: float
    high: float
    samples: int
    method: Method


class Point(msgspec.Struct, frozen=True):
    """One point of a series."""

    x: float
    y: float | None
    """None: nothing could be measured at this point."""
    estimate: Estimate | None = None
    """If it was measured."""
    runs: int = 0
    incomplete: int = 0
    """Runs in which not every message was acknowledged everywhere; not counted for the printed rules."""
    stalled: int = 0
    """Runs that stalled: no progress although timers fired."""
    failed: int = 0
    """Runs that raised an error."""
    config: str = ""
    """Of a measured point: the configuration of its first run, enough to run it again."""


class Series(msgspec.Struct, frozen=True):
    """A curve of a figure, or a column of a table."""

    name: str
    label: str
    role: Role
    points: tuple[Point, ...]
    of: str = ""
    """The measured series that it refers to."""
    text: str = ""
    """The formula, or where it is printed."""

    def at(self, x: float) -> float | None:
        """Its value at x; None if it has none there."""
        return next((point.y for point in self.points if point.x == x), None)


class Axis(msgspec.Struct, frozen=True):
    """An axis of a figure."""

    label: str
    unit: str = ""
    log: bool = False

    @property
    def symbol(self) -> str:
        """What its values are called in a sentence: n, of "nodes, n"; else the first word."""
        return self.label.rpartition(", ")[2].split()[0]


class ClaimResult(msgspec.Struct, frozen=True):
    """The result of a comparison."""

    agrees: bool | None
    """None: there was nothing to compare."""
    sentence: str
    asked: str = ""
    """What had to be for it to agree: the tolerance."""


class Result(msgspec.Struct, frozen=True):
    """The result of one experiment."""

    name: str
    protocol: str
    source: str
    """The paper, and the number of the table or figure."""
    title: str
    x: Axis
    y: Axis
    series: tuple[Series, ...]
    findings: tuple[ClaimResult, ...]
    setting: str
    """What was simulated, in a sentence or two."""
    seeds: int
    configs: dict[str, str]
    """By series: the configuration of its first run, enough to run it again."""

    def measured(self) -> list[Series]:
        """The series that were measured."""
        return [series for series in self.series if series.role is Role.MEASURED]


class Evaluation(msgspec.Struct, frozen=True):
    """How the experiments of a folder were run."""

    command: str
    size: str
    versions: dict[str, str]
    experiments: tuple[str, ...]
    """All experiments, in order, whether they were run or not."""
    date: str = ""


Stored = TypeVar("Stored", Result, Evaluation)


def as_json(value: Result | Evaluation) -> str:
    """A value as it is stored."""
    return msgspec.json.format(msgspec.json.encode(value), indent=1).decode()


def store(folder: Location, name: str, value: Result | Evaluation) -> None:
    """Writes a value into a folder, atomically."""
    try:
        write_whole(folder / name, as_json(value).encode())
    except OSError as error:
        raise ConfigError(
            f"cannot write the results into {folder}: {reason_of(error)}; choose another folder"
        ) from error


def load(path: Location, kind: type[Stored]) -> Stored:
    """Reads a value that `store` wrote."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except OSError as error:
        raise ConfigError(
            f"cannot read {path}: {reason_of(error)}; make it with: ordercast evaluate --out DIR"
        ) from error
    except msgspec.MsgspecError as error:
        raise ConfigError(f"{path} is not a result of ordercast evaluate: {error}") from error
