"""Libraries that only some users need, loaded when they are."""

import importlib
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
