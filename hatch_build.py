"""Compiles the modules of pyproject.toml's list with mypyc, for a wheel that runs on one kind of machine only.

    make compiled

Without it nothing is compiled: hatchling runs this hook only where HATCH_BUILD_HOOK_ENABLE_CUSTOM is set.
"""

import ast
import shutil
import sysconfig
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SOURCE = "src/ordercast"
PACKAGES = ("setuptools", "mypy")
"""What must be installed to compile, beside a C compiler."""


class CompiledModules(BuildHookInterface[Any]):
    """Adds compiled modules to a wheel, each beside the source that it was made of."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compiles; hatchling then packs what `build_data` names."""
        if version == "editable":
            raise RuntimeError("an editable install runs the sources: build a wheel, see `make compiled`")
        require_what_compiles()
        self._folder = folder = Path(tempfile.mkdtemp(prefix="ordercast-compiled-"))
        for library in built(Path(self.root), compiled_modules(Path(self.root), self.config), folder):
            build_data["force_include"][str(library)] = str(library.relative_to(folder / "wheel"))
        build_data["pure_python"], build_data["infer_tag"] = False, True

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Forgets what is packed now."""
        del version, build_data, artifact_path
        shutil.rmtree(self._folder)

    def dependencies(self) -> list[str]:
        """What the build installs first, where it may."""
        return list(PACKAGES)


def require_what_compiles() -> None:
    """Raises `RuntimeError` if something is missing."""
    compiler = (sysconfig.get_config_var("CC") or "cc").split()[0]
    header = Path(sysconfig.get_path("include"), "Python.h")
    missing = [f"the Python package {name} (pip install {name})" for name in PACKAGES if find_spec(name) is None]
    if shutil.which(compiler) is None:
        missing.append(f"a C compiler: {compiler} (on Debian: apt install gcc)")
    if not header.exists():
        missing.append(f"Python's headers: {header} (on Debian: apt install python3-dev)")
    if missing:
        raise RuntimeError(
            f"what compiles the machines is not installed: {', '.join(missing)}. Install it, or do without: "
            "ordercast runs everywhere from its sources, with the same results"
        )


def compiled_modules(root: Path, config: dict[str, Any]) -> list[str]:
    """The modules to compile, by their places below the package."""
    package = root / SOURCE
    files = [path for place in config["compile"] for path in _modules(package / place)]
    structs, left_out = modules_with_structs(package), set(config["leave-out"])
    places = [path.relative_to(package).as_posix() for path in files]
    return [place for place in places if not (place in structs or place in left_out or place.endswith("__init__.py"))]


def modules_with_structs(package: Path) -> set[str]:
    """Modules that define msgspec structs, which are compiled code already, and which mypyc cannot compile."""
    bases: dict[str, set[str]] = {}
    where: list[tuple[str, str]] = []
    for path in _modules(package):
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.ClassDef):
                where.append((node.name, path.relative_to(package).as_posix()))
                names = {ast.unparse(base).rpartition(".")[2] for base in node.bases}
                bases.setdefault(node.name, set()).update(names)
    found, before = {"Struct"}, 0
    while len(found) > before:
        before = len(found)
        found |= {name for name, theirs in bases.items() if theirs & found}
    return {place for name, place in where if name in found}


def built(root: Path, places: list[str], folder: Path) -> Iterator[Path]:
    """Compiles modules; the libraries, below the folder `wheel`, as they lie below site-packages."""
    import setuptools  # noqa: PLC0415 - first, since mypyc takes from it what Python has no more
    from mypyc.build import mypycify  # noqa: PLC0415

    modules = [f"{SOURCE}/{place}" for place in places]
    options = ["--config-file", str(root / "pyproject.toml"), "--no-warn-unused-ignores", *modules]
    extensions = mypycify(options, target_dir=str(folder / "c"), opt_level="2", debug_level="0", multi_file=True)
    command = setuptools.Distribution({"name": "ordercast", "ext_modules": extensions}).get_command_obj("build_ext")
    command.build_lib, command.build_temp = str(folder / "wheel"), str(folder / "objects")
    command.ensure_finalized()
    command.run()
    yield from (folder / "wheel").rglob(f"*{sysconfig.get_config_var('EXT_SUFFIX')}")


def _modules(place: Path) -> list[Path]:
    return sorted(place.rglob("*.py")) if place.is_dir() else [place]
