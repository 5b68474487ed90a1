"""Slices cover every row once, in order; memory is used again; exponentials are exponentials."""

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


def test_memory_is_used_again_from_chunk_to_chunk():
    scratch = execution.Scratch()
    first = scratch.take("gaps", torch.zeros(7, 3))
    shorter = scratch.take("gaps", torch.zeros(2, 3))
    assert shorter.shape == (2, 3) and shorter.data_ptr() == first.data_ptr()
    other = scratch.take("other", torch.zeros(7, 3), torch.float64)
    assert other.dtype == torch.float64 and other.data_ptr() != first.data_ptr()


def test_memory_is_new_where_nothing_can_be_written_in_place(monkeypatch):
    scratch, rows = execution.Scratch(), torch.ones(4, 3)
    assert scratch.take("gaps", rows.clone().requires_grad_()) is None
    monkeypatch.setattr(torch.compiler, "is_exporting", lambda: True)
    assert scratch.take("gaps", rows) is None
    copies = [scratch.copy("gaps", rows, torch.float64) for _ in range(2)]
    assert copies[0].data_ptr() != copies[1].data_ptr() and copies[0].dtype == torch.float64


def test_memory_is_dense_whatever_the_layout_of_a_chunk():
    columns = torch.rand(5, 8).T
    copied = execution.Scratch().copy("rows", columns)
    assert copied.is_contiguous() and torch.equal(copied, columns)


@pytest.mark.parametrize("c", [2, 63, 64, 1000])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_exponentials_of_a_row_share_one_factor(c, dtype):
    generator = torch.Generator().manual_seed(c)
    exponents = -torch.rand(40, c, generator=generator, dtype=dtype) * 60
    exponents[:, 0] = 0
    expected = exponents.double().exp()
    found = execution.exp_up_to_scale(exponents.clone())
    ratio = found.double() / expected
    torch.testing.assert_close(ratio, ratio[:, :1].expand_as(ratio), rtol=3e-6, atol=0)
    # In place, as in an array of its own: nothing that is still to be read is overwritten.
    if c >= execution.MANY_CLASSES:
        assert torch.equal(found, exponents.softmax(-1))


@pytest.mark.parametrize("c", [10, 100])
def test_exponentials_are_finite_where_classes_are_masked_or_far_off(c):
    exponents = torch.full((3, c), -1e9)
    exponents[:, 0] = 0
    exponents[1, 1:] = -torch.inf
    exponents[2, 1:] = -95.0  # whose exponential is subnormal in float32
    found = execution.exp_up_to_scale(exponents)
    assert torch.isfinite(found).all() and (found[:, 0] > 0).all()
    assert float((found[:, 1:].sum(-1) / found[:, 0]).max()) < 1e-30
