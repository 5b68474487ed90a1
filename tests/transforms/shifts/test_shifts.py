"""Every shift keeps its promises."""

from itertools import product

import numpy as np
import pytest
import torch
from torch import Tensor

from rightly.transforms.shifts import SHIFTS, STANDARD_SHIFTS, Shift, kind
from tests.transforms.example_images import SEVERITIES, photos

RANDOM = [
    *("gaussian_noise", "shot_noise", "impulse_noise", "motion_blur", "rotation"),
    *("glass", "haze", "elastic", "shear", "snow", "occlusion"),
]


every_shift = pytest.mark.parametrize("name", SHIFTS)


def random_states() -> list[object]:
    # Not Python's own: beartype draws from it, to pick which items of a tuple it checks.
    return [torch.get_rng_state().tolist(), str(np.random.get_state())]  # noqa: NPY002


@every_shift
def test_a_shift_keeps_shape_range_and_type(name: str) -> None:
    for size, severity in product([(32, 32), (33, 47), (65, 71)], SEVERITIES):
        images, case = photos(2, *size), (size, severity)
        shifted = SHIFTS[name](images, severity, 0)
        assert shifted.shape == images.shape, case
        assert shifted.dtype == images.dtype, case
        assert shifted.is_contiguous(), case
        assert ((shifted >= 0) & (shifted <= 1)).all(), case  # and neither NaN nor infinity
        assert not torch.equal(shifted, images), case


@every_shift
def test_a_shift_works_at_the_size_of_imagenet(name: str) -> None:
    shifted = SHIFTS[name](photos(1, 224, 224), 5, 0)
    assert shifted.shape == (1, 3, 224, 224)
    assert ((shifted >= 0) & (shifted <= 1)).all()


@every_shift
def test_each_image_is_shifted_alone(name: str) -> None:
    order = torch.randperm(4, generator=torch.Generator().manual_seed(1))
    for size in ((32, 32), (70, 90)):
        images = photos(4, *size)
        together = SHIFTS[name](images, 3, 0)
        assert torch.equal(together, SHIFTS[name](images, 3, 0)), size
        alone = torch.cat([SHIFTS[name](image[None], 3, 0) for image in images])
        assert torch.allclose(together, alone, rtol=0, atol=1e-6), size
        shuffled = SHIFTS[name](images[order], 3, 0)
        assert torch.allclose(shuffled, together[order], rtol=0, atol=1e-6), size


@every_shift
def test_a_shift_leaves_its_input_and_the_global_generators_untouched(name: str) -> None:
    images = photos()
    copy, states = images.clone(), random_states()
    SHIFTS[name](images, 3, 0).zero_()
    assert torch.equal(images, copy)
    assert random_states() == states


@every_shift
def test_a_shift_has_the_precision_of_its_images(name: str) -> None:
    images = photos()
    shifted = SHIFTS[name](images, 3, 0)
    double = SHIFTS[name](images.double(), 3, 0)
    assert double.dtype == torch.float64
    # A rate that differs in its last bit can change a photon count, but hardly any.
    assert (double.float() - shifted).abs().mean() < 1e-4
    assert SHIFTS[name](images.half(), 3, 0).dtype == torch.float16
    assert SHIFTS[name](images.bfloat16(), 3, 0).dtype == torch.bfloat16


@every_shift
def test_a_shift_of_no_images_is_no_images(name: str) -> None:
    assert SHIFTS[name](photos()[:0], 3, 0).shape == (0, 3, 32, 32)


@every_shift
def test_only_random_shifts_depend_on_the_seed(name: str) -> None:
    images = photos()
    same = torch.equal(SHIFTS[name](images, 3, 0), SHIFTS[name](images, 3, 1))
    assert same == (name not in RANDOM)


@every_shift
@pytest.mark.parametrize("size", [(32, 32), (96, 96)])
def test_a_higher_severity_does_more_damage(name: str, size: tuple[int, int]) -> None:
    images = photos(16, *size)
    damage = [(SHIFTS[name](images, s, 0) - images).square().mean().item() for s in range(1, 6)]
    if name == "saturation":  # published so: 1 and 2 fade colours, 3 to 5 strengthen them
        assert damage[0] <= damage[1]
        damage = damage[2:]
    if name == "pixelate" and size == (32, 32):  # in Pillow too, 27 pixels fit 32 better than 28
        del damage[2]
    if name == "glass" and size == (96, 96):  # published so: more blur, less displacement
        damage = [damage[0], max(damage[2:])]
    assert all(less <= more * (1 + 1e-3) for less, more in zip(damage, damage[1:], strict=False))


@every_shift
def test_a_severity_outside_one_to_five_is_refused(name: str) -> None:
    for severity in (0, 6, -1):
        with pytest.raises(ValueError, match=f"1, 2, 3, 4 or 5, got {severity}"):
            SHIFTS[name](photos(1), severity, 0)


@every_shift
def test_images_outside_zero_to_one_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="lie in .0, 1., got values from 0 to 255"):
        SHIFTS[name](torch.linspace(0, 255, 3 * 64).reshape(1, 3, 8, 8), 1, 0)
    with pytest.raises(ValueError, match="before normalisation"):
        SHIFTS[name](torch.full((1, 3, 8, 8), float("nan")), 1, 0)


def test_an_unknown_shift_is_refused_with_the_known_names() -> None:
    with pytest.raises(ValueError, match="is not known: did you mean glass"):
        SHIFTS.find("glas")


def test_strengths_follow_severity_and_size_of_the_image() -> None:
    calls = []

    def transform(images: Tensor, *strength: float, seed: int) -> Tensor:
        calls.append((strength, seed))
        return images

    shift = Shift("dust", transform, (1, (2.0, 0.5), 3, 4, 5), (10, 20, 30, 40, 50))
    shift(photos(1, 64, 90), 1)
    shift(photos(1, 64, 64), 2, 7)
    shift(photos(1, 65, 70), 2)
    Shift("dust", transform, (0.1, 0.2, 0.3, 0.4, 0.5))(photos(1, 100, 100), 5)
    assert calls == [((1,), 0), ((2.0, 0.5), 7), ((20,), 0), ((0.5,), 0)]


def test_a_shift_without_strengths_is_given_the_severity() -> None:
    def fog(images: Tensor, severity: int, seed: int = 0) -> Tensor:
        return images + (1 - images) * severity / 10

    images = photos(1)
    assert torch.equal(Shift("fog", fog)(images, 4), fog(images, 4))


def test_standard_shifts_are_registered_and_of_different_kinds() -> None:
    kinds = [kind(name) for name in STANDARD_SHIFTS]
    assert set(kinds) <= set(SHIFTS) and len(set(kinds)) == len(kinds)
