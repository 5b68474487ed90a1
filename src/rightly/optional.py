"""Imports that wait until they are needed: optional libraries, and names of lazy packages."""

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any


def require(module: str, extra: str | None = None) -> Any:
    """An optional library, loaded now, or an error that says what to install."""
    package = module.partition(".")[0]
    target = package if extra is None else f"'rightly[{extra}]'"
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != package:
            raise  # the library is there, but not what it needs
        raise ImportError(f"this needs the package {package}: pip install {target}") from error
    except RuntimeError as error:  # how torchvision answers a torch it was not built for
        raise ImportError(f"{package} is installed but cannot be loaded: {error}") from error


def lazy_names(
    package: str, exports: Mapping[str, Sequence[str]]
) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """`__all__`, `__getattr__` and `__dir__` of a package that loads its modules when used.

    `exports` maps modules of the package to the names that it takes from each (PEP 562); those of
    the module "" are modules themselves. The package repeats them as imports under TYPE_CHECKING,
    for type checkers.
    """
    modules = {name: module for module, names in exports.items() for name in names}

    def load(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if not modules[name]:
            return importlib.import_module(f"{package}.{name}")
        return getattr(importlib.import_module(f"{package}.{modules[name]}"), name)

    return list(modules), load, lambda: sorted(modules)
