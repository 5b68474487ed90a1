"""Runs code where torch and SciPy are missing, as in the environment of a server."""

from pathlib import Path

from tests.processes import run_python

SOURCE = Path(__file__).parents[1] / "src" / "rightly"


def run_without_torch(code: str) -> str:
    """What the code prints; `rightly/__init__.py` is not run, only the modules it imports."""
    start = (
        "import sys, types; sys.modules['torch'] = sys.modules['scipy'] = None; "
        f"rightly = types.ModuleType('rightly'); rightly.__path__ = [{str(SOURCE)!r}]; "
        "sys.modules['rightly'] = rightly\n"
    )
    return run_python("-c", start + code, check=True).stdout.strip()
