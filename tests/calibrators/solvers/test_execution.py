"""Slices cover every row once, in order."""

import pytest
import torch

from rightly.calibrators.solvers import execution


@pytest.mark.parametrize(("n", "c"), [(1, 3), (7, 3), (8, 3), (9, 3), (5, 100)])
def test_every_row_is_in_one_slice(n, c, monkeypatch):
    monkeypatch.setattr(execution, "CHUNK", 24)
    monkeypatch.setattr(execution, "BLOCK", 4)
    rows = torch.arange(n)
    x = torch.zeros(n, c)
    for slices in (list(execution.iterate_chunks(x)), list(execution.iterate_blocks(x))):
        assert torch.equal(torch.cat([rows[part] for part in slices]), rows)
    sizes = [len(rows[part]) for part in execution.iterate_chunks(x)]
    assert max(sizes) == min(n, max(1, 24 // c))
    assert max(len(rows[part]) for part in execution.iterate_blocks(x)) == min(n, 4)
