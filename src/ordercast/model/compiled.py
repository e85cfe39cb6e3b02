"""Whether this process runs modules that were compiled, if there are any. pyproject.toml lists them."""

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ExtensionFileLoader, ModuleSpec, PathFinder
from importlib.util import find_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mypy_extensions import mypyc_attr
else:  # the compiler reads it in the source; when the code runs, it means nothing

    def mypyc_attr(**_):
        """Leaves a class as it is."""
        return lambda kind: kind


__all__ = ["is_compiled", "mypyc_attr", "use_sources"]


def is_compiled() -> bool:
    """Whether this process takes compiled modules."""
    found = find_spec("ordercast.model.declared_state")
    return found is not None and isinstance(found.loader, ExtensionFileLoader)


def use_sources() -> None:
    """From now on modules of ordercast are imported from their sources, though they are compiled."""
    if not any(isinstance(finder, _Sources) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Sources())


class _Sources(MetaPathFinder):
    """Finds the source of a compiled module."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not fullname.startswith("ordercast."):
            return None
        found = PathFinder.find_spec(fullname, path, target)
        if found is None or not isinstance(found.loader, ExtensionFileLoader):
            return found
        source = Path(str(found.origin)).with_name(f"{fullname.rpartition('.')[2]}.py")
        return spec_from_file_location(fullname, source)
