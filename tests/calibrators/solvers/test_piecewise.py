"""Piecewise linear maps, against NumPy."""

import numpy as np
import pytest
import torch

from rightly.calibrators.solvers.execution import Scratch
from rightly.calibrators.solvers.piecewise import LineTable, count_below, interpolate


def test_interpolation_is_numpys():
    rng = np.random.default_rng(0)
    xs, ys = np.sort(rng.random(9)), rng.random(9)
    x = np.concatenate([xs, rng.uniform(-0.5, 1.5, 200)])
    values = interpolate(*(torch.from_numpy(array) for array in (x, xs, ys)))
    np.testing.assert_allclose(values, np.interp(x, xs, ys), atol=1e-12)


def test_one_point_is_a_constant():
    values = interpolate(torch.rand(3, 2).double(), torch.ones(1).double(), torch.ones(1).double())
    assert torch.equal(values, torch.ones(3, 2).double())


def test_a_graph_counts_as_torch_does(monkeypatch):
    for length in (1, 2, 5, 8, 13):
        xs = torch.arange(length).double()
        x = torch.linspace(-1, length, 40).double().round(decimals=1)
        expected = count_below(xs, x)
        np.testing.assert_array_equal(expected, np.searchsorted(xs.numpy(), x.numpy()))
        with monkeypatch.context() as patch:
            patch.setattr(torch.compiler, "is_exporting", lambda: True)
            assert torch.equal(count_below(xs, x), expected)


@pytest.mark.parametrize("k", [2, 3, 40, 2000])
def test_a_table_of_lines_gives_the_interpolated_values(k):
    generator = torch.Generator().manual_seed(k)
    xs, ys = (torch.rand(k, generator=generator).double().pow(6).sort().values for _ in range(2))
    xs[1:] = torch.where(torch.arange(1, k) % 2 == 0, xs[:-1] + 1e-9, xs[1:])  # a jump every second
    xs = xs.sort().values
    x = torch.rand(100_000, generator=generator).double().pow(8)
    x = torch.cat([x, xs, xs.float().double(), torch.tensor([0.0, 1.0, 1 + 2e-16])]).double()
    expected = interpolate(x, xs, ys)
    found = LineTable(xs, ys)(x[:, None], Scratch())
    assert found.dtype == torch.float32 and found.shape == (len(x), 1)
    miss = (found[:, 0].double() - expected).abs()
    assert bool((miss <= 5e-7 * expected + 2e-10).all())
