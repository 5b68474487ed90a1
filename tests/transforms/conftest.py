"""What holds for all tests of transforms."""

from collections.abc import Iterator

import pytest
import torch


@pytest.fixture(autouse=True)
def _pillow(request: pytest.FixtureRequest) -> None:
    if "jpeg" in request.node.name:
        pytest.importorskip("PIL")


@pytest.fixture(autouse=True, scope="module")
def _one_thread() -> Iterator[None]:
    # On small images threads only wait for each other: eight times as long on a busy machine.
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
