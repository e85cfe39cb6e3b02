"""Service profiles: what a system promises, property by property, in a file.

    title = "Kafka: the order of each partition, at least once"
    destinations = "named"        # or "everybody": every message is for every receiver
    base = "spo"                  # begin with what this service promises; without it, with nothing

    [properties]
    sender_order_kept = true
    delivered_once = false

A property that is off is not judged. Some profiles are part of the package: see `SHIPPED`.
"""

import tomllib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from ordercast.audit.completeness import PARTS, all_delivered, complete
from ordercast.audit.numbering import key_order_kept, numbers_dense
from ordercast.audit.order import no_cycle, same_order, sender_order_kept
from ordercast.audit.services import OF_LOGS, OF_SHRINKING_VIEWS, OF_VIEWS, PROMISES, Property, promised
from ordercast.audit.verdict import Finding, Verdict
from ordercast.audit.views import delivered_uniformly
from ordercast.model.config import require
from ordercast.model.errors import ConfigError
from ordercast.model.services import SELECTIVE, Service
from ordercast.trace.small_files import read_toml

SUFFIX = ".toml"
_NAMED, _EVERYBODY = "named", "everybody"
_KEYS = frozenset({"title", "base", "destinations", "properties"})
_OF_CHANGE = (*OF_VIEWS, *OF_LOGS)
_IN_PARTS: tuple[Property, ...] = (*PARTS, sender_order_kept, key_order_kept, same_order, no_cycle, numbers_dense)
PROPERTIES: dict[str, Property] = {
    promise.__name__: promise
    for promise in (
        *PARTS,
        *(promise for service in Service for promise in PROMISES[service] if promise is not complete),
        key_order_kept,
        numbers_dense,
        *_OF_CHANGE,
    )
}
"""All properties that a profile may switch on or off, by name; `complete` stands for its five parts."""


@dataclass(frozen=True)
class Profile:
    """What a system promises."""

    name: str
    title: str
    selective: bool
    """True if a message is for the nodes that its `send` names; False: for all."""
    on: tuple[str, ...]
    """Properties that are judged, in order."""
    off: frozenset[str]
    """Properties that were switched off by name, also such that only runs with views or durable logs have."""
    base: Service | None = None

    @property
    def service(self) -> Service:
        """The service whose special cases hold: the base, or one of the same destinations."""
        return self.base or (Service.SELECTIVE_TOTAL if self.selective else Service.TOTAL)

    @property
    def judged_in_parts(self) -> bool:
        """True if all that it asks can be told from some messages at a time, and the order of these at each node."""
        return {promise.__name__ for promise in _IN_PARTS}.issuperset(self.on)

    @property
    def implied_by(self) -> Service | None:
        """A service that promises at least the same; None if there is none."""
        total = {"same_order", "no_cycle"} & set(self.on)
        if self.selective:
            service = Service.SELECTIVE_TOTAL if total else Service.SELECTIVE_PARTIAL
        else:
            service = Service.TOTAL if total else Service.PARTIAL
        covered = {promise.__name__ for promise in (*PARTS, key_order_kept, *PROMISES[service])}
        return service if covered.issuperset(self.on) else None

    def as_document(self) -> dict[str, Any]:
        """As its file says it, in full."""
        return {
            "title": self.title,
            "destinations": _NAMED if self.selective else _EVERYBODY,
            **({"base": self.base.value} if self.base else {}),
            "properties": {name: name in self.on for name in PROPERTIES if name in {*self.on, *self.off}},
        }


Asked = Service | Profile
"""What a run is judged by."""


def asked_in(service: str, profile: Mapping[str, Any] | None) -> Asked:
    """What `service_and_profile` made, for example in another process."""
    return Service(service) if profile is None else profile_of(service, profile, service)


def service_and_profile(asked: Asked) -> tuple[str, dict[str, Any] | None]:
    """As text and numbers."""
    return (asked.value, None) if isinstance(asked, Service) else (asked.name, asked.as_document())


def promised_by(
    asked: Asked, *, uniform: bool, views: bool = False, shrinking: bool = False, logs: bool = False
) -> tuple[Property, ...]:
    """The properties that are judged in a run; the arguments are those of `promised`.

    Where members join or have durable logs, a profile has the properties of these too, unless it switches them off.
    """
    if isinstance(asked, Service):
        return promised(asked, uniform=uniform, views=views, shrinking=shrinking, logs=logs)
    of_views = OF_VIEWS if views else OF_SHRINKING_VIEWS if shrinking else ()
    more = [promise.__name__ for promise in (*of_views, *(OF_LOGS if logs else ()))]
    skipped = set() if uniform and not views else {delivered_uniformly.__name__}
    names = dict.fromkeys([*(name for name in asked.on if name not in skipped), *more])
    return tuple(PROPERTIES[name] for name in names if name not in asked.off)


def as_profiled(verdict: Verdict, profile: Profile, service: Service) -> Verdict:
    """The verdict by a profile on one run which has all that a service promises that implies the profile."""
    known = {promise.__name__ for promise in PROMISES[service]}
    more = [name for name in (*verdict.findings, *verdict.not_recorded) if name not in known]
    names = dict.fromkeys([*(name for name in profile.on if name != delivered_uniformly.__name__), *more])
    found = replace(verdict, findings={}, not_recorded=Counter())
    for name in names:
        if name in verdict.not_recorded:
            found.not_recorded[name] = 1
        elif name not in profile.off:
            found.findings[name] = Finding(runs=1)
    return found


def completeness_of(asked: Asked) -> str:
    """The property that a message violates which is missing altogether; it may not be asked."""
    return complete.__name__ if isinstance(asked, Service) else all_delivered.__name__


def is_selective(asked: Asked) -> bool:
    """True if messages have destinations; False: all are for all."""
    return asked in SELECTIVE if isinstance(asked, Service) else asked.selective


def asked_by(text: str) -> Asked:
    """A service or profile by its name, or a profile by its file, whose name ends in `.toml`."""
    if text in {service.value for service in Service}:
        return Service(text)
    if text in SHIPPED:
        return shipped(text)
    if text.endswith(SUFFIX):
        return read_profile(Path(text))
    services = ", ".join(service.value for service in Service)
    raise ConfigError(
        f"there is no service {text!r}; choose one of {services}; a profile, {', '.join(SHIPPED)}; "
        f"or the file of a profile, *{SUFFIX}"
    )


def read_profile(path: Path) -> Profile:
    """Reads the file of a profile. Raises `ConfigError` if it cannot be read, or says what no profile says."""
    return profile_of(path.stem, read_toml(path, "the profile"), str(path))


def profile_of(name: str, document: Mapping[str, Any], where: str) -> Profile:
    """A profile from its document; `where` it was found, for errors."""
    for key in document:
        require(
            key in _KEYS, f"{where}: a profile has no key {key!r}{_near(key, _KEYS)}; it has {', '.join(sorted(_KEYS))}"
        )
    title, destinations = document.get("title", name), document.get("destinations", _NAMED)
    require(isinstance(title, str), f"{where}: title must be text, not {title!r}")
    require(
        destinations in (_NAMED, _EVERYBODY),
        f'{where}: destinations must be "{_NAMED}" or "{_EVERYBODY}", not {destinations!r}',
    )
    base = _base(document.get("base"), where)
    said = _switches(document.get("properties", {}), where)
    if base is not None and "destinations" in document:
        require(
            (destinations == _NAMED) == (base in SELECTIVE),
            f'{where}: the base {base.value} has the destinations "{_NAMED if base in SELECTIVE else _EVERYBODY}"; '
            "leave destinations out, or the base",
        )
    begin = () if base is None else (promise.__name__ for promise in PROMISES[base])
    on = {part: True for name in begin for part in _parts(name)} | said
    asked = tuple(name for name in PROPERTIES if on.get(name))
    require(asked, f"{where}: no property is on, so everything would hold; switch one on under [properties]")
    selective = destinations == _NAMED if base is None else base in SELECTIVE
    return Profile(name, title, selective, asked, frozenset(name for name in on if not on[name]), base)


def _base(value: object, where: str) -> Service | None:
    try:
        return None if value is None else Service(value)
    except ValueError:
        known = ", ".join(service.value for service in Service)
        raise ConfigError(f"{where}: there is no service {value!r} to begin with; base is one of: {known}") from None


def _switches(table: object, where: str) -> dict[str, bool]:
    """Which properties are on and off by name."""
    require(isinstance(table, Mapping), f"{where}: properties must be a table: write [properties] above them")
    assert isinstance(table, Mapping)
    found: dict[str, bool] = {}
    for name, value in table.items():
        require(
            name in PROPERTIES or name == complete.__name__,
            f"{where}: there is no property {name!r}{_near(name, PROPERTIES)}; the properties are "
            f"{complete.__name__}, {', '.join(PROPERTIES)}",
        )
        require(isinstance(value, bool), f"{where}: {name} must be true or false, not {value!r}")
        for part in _parts(name):
            require(
                part == name or part not in table,
                f"{where}: {name} and {part} are both given; {name} stands for all of its parts, so give one",
            )
            found[part] = value
    return found


def _parts(name: str) -> tuple[str, ...]:
    return tuple(part.__name__ for part in PARTS) if name == complete.__name__ else (name,)


def _near(word: str, known: Any) -> str:
    near = get_close_matches(word, known, 1)
    return f" (did you mean {near[0]!r}?)" if near else ""


SHIPPED = (
    "at-least-once",
    "at-most-once",
    "exactly-once",
    "per-key",
    "per-partition",
    "per-partition-once",
    "total",
    "total-at-least-once",
    "total-dense",
)
"""The names of the profiles that are part of the package."""


@cache
def shipped(name: str) -> Profile:
    """A profile of the package."""
    file = files("ordercast.audit") / "shipped_profiles" / f"{name}{SUFFIX}"
    return profile_of(name, tomllib.loads(file.read_text(encoding="utf-8")), str(file))
