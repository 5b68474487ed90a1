"""Files that several modules test, exported once."""

import pytest

from tests.deployment.tiny_models import exported


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    """The same model in both kinds of files, and one with a budget."""
    folder = tmp_path_factory.mktemp("exported")
    (folder / "budget").mkdir()
    return {
        ".onnx": exported(folder, ".onnx", threshold=0.6),
        ".pt2": exported(folder, ".pt2", threshold=0.6),
        "budget": exported(folder / "budget", ".onnx", budget=1.8),
    }
