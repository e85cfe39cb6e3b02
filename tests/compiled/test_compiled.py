"""Compiled modules: what is listed can be compiled, and what was compiled gives the same as the sources."""

import importlib
import json
import os
import subprocess
import sys
import tomllib
import zipfile
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any, get_type_hints

import msgspec
import pytest
from hatch_build import CompiledModules, compiled_modules, modules_with_structs

import ordercast
from ordercast.model import declared_state
from ordercast.model.compiled import is_compiled, use_sources
from ordercast.model.declared_state import DeclaredState

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "ordercast"
SEEDS = 20


def configured() -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
    custom: dict[str, Any] = found["tool"]["hatch"]["build"]["targets"]["wheel"]["hooks"]["custom"]
    return custom


@cache
def listed() -> list[str]:
    return compiled_modules(ROOT, configured())


def name_of(place: str) -> str:
    return "ordercast." + place.removesuffix(".py").replace("/", ".")


def classes_of(module: ModuleType) -> list[type]:
    return [each for each in vars(module).values() if isinstance(each, type) and each.__module__ == module.__name__]


def declared_classes(base: type[DeclaredState] = DeclaredState) -> list[type[DeclaredState]]:
    below = [each for kind in base.__subclasses__() for each in declared_classes(kind)]
    return [base, *(each for each in below if each.__module__.startswith("ordercast."))]


def test_the_simulator_and_every_protocol_are_compiled() -> None:
    assert {"model/declared_state.py", "simulator/simulation.py", "explorer/state_space.py"} <= set(listed())
    assert {place.split("/")[1] for place in listed() if place.startswith("protocols/")} >= {
        "spo",
        "st",
        "to",
        "shared",
    }


def test_what_the_list_names_is_there() -> None:
    for place in [*configured()["compile"], *configured()["leave-out"]]:
        assert (PACKAGE / place).exists(), f"pyproject.toml: there is no {place}"


def test_what_is_compiled_defines_no_structs_and_has_compiled_bases() -> None:
    names = [name_of(place) for place in listed()]
    for kind in [each for name in names for each in classes_of(importlib.import_module(name))]:
        assert not issubclass(kind, msgspec.Struct), f"{kind}: mypyc cannot compile it; hatch_build.py should see that"
        for base in kind.__mro__:
            ours = base.__module__.startswith("ordercast.")
            assert not ours or base.__module__ in names, f"{kind} has the base {base}: compile it, too"


def test_modules_with_structs_are_known_by_their_sources() -> None:
    found = modules_with_structs(PACKAGE)
    assert {"model/machine.py", "protocols/spo/units.py", "protocols/membership/joiner.py"} <= found
    assert not {"simulator/simulation.py", "model/declared_state.py"} & found


def test_only_states_that_are_declared_are_subclassed_by_what_is_not_compiled() -> None:
    names = {name_of(place) for place in listed()}
    kinds = [each for name in sorted(names) for each in classes_of(importlib.import_module(name))]
    for module in ("protocols.membership.by_node", "protocols.restart.durable_node", "live.session.machine"):
        importlib.import_module(f"ordercast.{module}")
    for kind in kinds:
        below: list[type] = kind.__subclasses__()
        theirs = [each for each in below if each.__module__.startswith("ordercast.")]
        others = [each for each in theirs if each.__module__ not in names]
        assert not others or kind is DeclaredState, (
            f"{others}: a class that is not compiled cannot have a compiled base"
        )


def test_annotations_are_read_from_the_source_as_they_are() -> None:
    kinds = [each for each in declared_classes() if each.__qualname__ == each.__name__]
    kinds = [each for each in kinds if not each.__name__.endswith("ByNode") or each.__name__ == "ByNode"]
    assert len(kinds) > 40
    for kind in kinds:
        own = type("Own", (), {"__annotations__": vars(kind).get("__annotations__", {}), "__module__": kind.__module__})
        read = declared_state._as_in_source(kind)
        assert get_type_hints(read, include_extras=True) == get_type_hints(own, include_extras=True), kind


def test_a_class_that_was_compiled_from_another_source_is_an_error() -> None:
    stranger = type("Stranger", (), {"__module__": "ordercast.model.nodes"})
    with pytest.raises(TypeError, match=r"has no class Stranger.*build it again"):
        declared_state._as_in_source(stranger)


def test_sources_are_taken_where_that_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    library = str(PACKAGE / "model" / f"nodes{EXTENSION_SUFFIXES[0]}")

    def compiled(name: str, *_: object) -> ModuleSpec:
        return ModuleSpec(name, ExtensionFileLoader(name, library), origin=library)

    monkeypatch.setattr(PathFinder, "find_spec", compiled)
    use_sources()
    use_sources()  # once is enough
    finder, *rest = sys.meta_path
    assert type(finder) not in map(type, rest)
    found = finder.find_spec("ordercast.model.nodes", ordercast.__path__)
    assert found is not None
    assert found.origin == str(PACKAGE / "model" / "nodes.py")
    assert finder.find_spec("msgspec", None) is None, "other packages stay as they are"


def hook() -> CompiledModules:
    return CompiledModules(str(ROOT), configured(), None, None, "", "wheel")  # type: ignore[arg-type]


def test_without_a_compiler_it_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda _: None)
    with pytest.raises(RuntimeError, match=r"a C compiler: .*Install it, or do without"):
        hook().initialize("standard", {})


def test_without_mypy_it_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hatch_build.find_spec", {"setuptools": object()}.get)
    with pytest.raises(RuntimeError, match=r"the Python package mypy \(pip install mypy\)"):
        hook().initialize("standard", {})


def test_an_editable_install_is_not_compiled() -> None:
    with pytest.raises(RuntimeError, match="an editable install runs the sources: build a wheel"):
        hook().initialize("editable", {})


def results(folder: Path, **environment: str) -> dict[str, Any]:
    environment = {**os.environ, "PYTHONPATH": str(folder), **environment}
    program = [sys.executable, "-m", "tests.compiled.results", str(SEEDS)]
    run = subprocess.run(program, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)  # noqa: S603
    assert run.returncode == 0, run.stderr
    found: dict[str, Any] = json.loads(run.stdout)
    return found


@pytest.mark.soak
def test_a_compiled_wheel_gives_the_same_traces_searches_and_bytes(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    environment = {**os.environ, "HATCH_BUILD_HOOK_ENABLE_CUSTOM": "true"}
    run = subprocess.run(build, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)  # noqa: S603
    assert run.returncode == 0, run.stdout + run.stderr
    [wheel] = tmp_path.glob("*.whl")
    assert "-none-any" not in wheel.name, "it runs on this kind of machine only"
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(tmp_path / "site")
    compiled, pure = results(tmp_path / "site"), results(tmp_path / "site", ORDERCAST_PURE="1")
    assert (compiled["compiled"], pure["compiled"], is_compiled()) == (True, False, False)
    assert compiled["results"] == pure["results"]
