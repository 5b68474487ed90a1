"""A small data set in a folder."""

import pytest

from rightly.predictions.store import Store
from tests.predictions.shards import asked, block_of


@pytest.fixture
def store(tmp_path):
    """Five images in two shards, of which the second was written first."""
    made = Store.begin(tmp_path / "preds", asked())
    made.write(1, block_of([3, 4], skipped=[("bad.png", "it is empty")]))
    made.write(0, block_of([0, 1, 2]))
    return made
