"""Where the numbers of a report come from: versions and digests of files."""

import os
import platform
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from rightly.files import digest_file as digest_file


def read_versions() -> dict[str, str]:
    """Of what computed the numbers."""
    import torch

    from rightly import __version__

    return {
        "rightly": __version__,
        "Python": platform.python_version(),
        "torch": torch.__version__,
        "NumPy": np.__version__,
    }


def digest_files(sources: Iterable[Any]) -> dict[str, str]:
    """SHA-256 of those data that are files or folders, by their paths."""
    paths = [Path(source) for source in sources if isinstance(source, str | os.PathLike)]
    return {str(path): digest_file(path) for path in paths}
