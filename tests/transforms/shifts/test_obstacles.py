"""Obstacles cover what they say."""

import pytest
import torch

from rightly.transforms.shifts import SHIFTS
from tests.transforms.example_images import every_severity, places


@every_severity
@pytest.mark.parametrize("side", [32, 96])
def test_snow_covers_its_share_before_a_veil(severity: int, side: int) -> None:
    black = torch.zeros(20, 3, side, side)
    black[:, 2, 0, 0] = torch.arange(20) / 255
    share, veil = SHIFTS["snow"].strength(severity, side)
    snowy = SHIFTS["snow"](black, severity, 0)[:, 0]
    assert snowy.min().item() == pytest.approx(veil)
    flakes = ((snowy - veil) / (1 - veil)).mean().item()
    assert flakes == pytest.approx(1 - (1 - share) ** 2, rel=0.1)  # each falls on the place below


@every_severity
def test_occlusion_hides_one_rectangle_somewhere(severity: int) -> None:
    images = places(40, 60, 12)
    (share,) = SHIFTS["occlusion"].strength(severity, 32)
    hidden = SHIFTS["occlusion"](images, severity, 0)[:, 2] == 0.5
    assert hidden.double().mean((1, 2)).numpy() == pytest.approx(share, rel=0.1)
    firsts = set()
    for one in hidden:
        rows, columns = (one.any(axis).nonzero()[:, 0] for axis in (1, 0))
        assert one[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1].all()
        assert one.sum() == len(rows) * len(columns)
        firsts.add((int(rows[0]), int(columns[0])))
    assert len(firsts) > 6
