"""Every shift keeps its promises, and each follows the published one where there is one."""

import colorsys
from collections.abc import Callable, Iterator
from io import BytesIO

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from scipy import ndimage
from torch import Tensor

from rightly.transforms.image_tensors import check_images
from rightly.transforms.shifts import SHIFTS, rotation, shift
from rightly.transforms.shifts.blur import disc
from rightly.transforms.shifts.severities import CIFAR_10_C, IMAGENET_C, OWN

RANDOM = [
    *("gaussian_noise", "shot_noise", "impulse_noise", "motion_blur", "rotation"),
    *("glass", "haze", "elastic", "shear", "snow", "occlusion"),
]
every_shift = pytest.mark.parametrize("name", SHIFTS)
every_severity = pytest.mark.parametrize("severity", [1, 2, 3, 4, 5])


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


def photos(n: int = 8, h: int = 32, w: int = 32, seed: int = 0) -> Tensor:
    """Smooth 8-bit images with some texture, which photographs resemble more than noise does."""
    generator = torch.Generator().manual_seed(seed)
    shapes = F.interpolate(torch.rand(n, 3, 5, 5, generator=generator), (h, w), mode="bicubic")
    texture = 0.05 * torch.randn(n, 3, h, w, generator=generator)
    return ((shapes + texture).clamp(0, 1) * 255).round() / 255


def pixel_by_pixel(images: Tensor, change: Callable[..., tuple[float, ...]]) -> np.ndarray:
    """Each colour changed by a function of its hue, saturation and value."""
    colours = images.permute(0, 2, 3, 1).double().numpy().reshape(-1, 3)
    changed = [colorsys.hsv_to_rgb(*change(*colorsys.rgb_to_hsv(*colour))) for colour in colours]
    n, _, h, w = images.shape
    return np.array(changed).reshape(n, h, w, 3).transpose(0, 3, 1, 2)


def random_states() -> list[object]:
    # Not Python's own: beartype draws from it, to pick which items of a tuple it checks.
    return [torch.get_rng_state().tolist(), str(np.random.get_state())]  # noqa: NPY002


@every_shift
@every_severity
@pytest.mark.parametrize("size", [(32, 32), (33, 47), (65, 71)])
def test_a_shift_keeps_shape_range_and_type(
    name: str, severity: int, size: tuple[int, int]
) -> None:
    images = photos(2, *size)
    shifted = SHIFTS[name](images, severity, 0)
    assert shifted.shape == images.shape
    assert shifted.dtype == images.dtype
    assert shifted.is_contiguous()
    assert shifted.isfinite().all()
    assert shifted.min() >= 0
    assert shifted.max() <= 1
    assert not torch.equal(shifted, images)


@every_shift
def test_a_shift_works_at_the_size_of_imagenet(name: str) -> None:
    shifted = SHIFTS[name](photos(1, 224, 224), 5, 0)
    assert shifted.shape == (1, 3, 224, 224)
    assert ((shifted >= 0) & (shifted <= 1)).all()


@every_shift
@pytest.mark.parametrize("size", [(32, 32), (70, 90)])
def test_each_image_is_shifted_alone(name: str, size: tuple[int, int]) -> None:
    images = photos(8, *size)
    together = SHIFTS[name](images, 3, 0)
    assert torch.equal(together, SHIFTS[name](images, 3, 0))
    alone = torch.cat([SHIFTS[name](image[None], 3, 0) for image in images])
    assert torch.allclose(together, alone, rtol=0, atol=1e-6)
    order = torch.randperm(8, generator=torch.Generator().manual_seed(1))
    assert torch.allclose(SHIFTS[name](images[order], 3, 0), together[order], rtol=0, atol=1e-6)


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
    assert all(less <= more * (1 + 1e-3) for less, more in zip(damage, damage[1:], strict=False))


@every_shift
@pytest.mark.parametrize("severity", [0, 6, -1])
def test_a_severity_outside_one_to_five_is_refused(name: str, severity: int) -> None:
    with pytest.raises(ValueError, match=f"1, 2, 3, 4 or 5, got {severity}"):
        SHIFTS[name](photos(1), severity, 0)


@every_shift
def test_images_outside_zero_to_one_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="lie in .0, 1., got values from 0 to 255"):
        SHIFTS[name](torch.linspace(0, 255, 3 * 64).reshape(1, 3, 8, 8), 1, 0)
    with pytest.raises(ValueError, match="before normalisation"):
        SHIFTS[name](torch.full((1, 3, 8, 8), float("nan")), 1, 0)


def test_images_of_another_type_or_shape_are_refused() -> None:
    with pytest.raises(ValueError, match="got torch.uint8; divide 8-bit images by 255"):
        check_images(torch.zeros(1, 3, 8, 8, dtype=torch.uint8))
    for shape in [(3, 8, 8), (1, 8, 8, 3), (1, 1, 8, 8), (2, 1, 3, 8, 8)]:
        with pytest.raises(ValueError, match=r"shape \(n, 3, h, w\), got \("):
            check_images(torch.zeros(shape))
    check_images(torch.zeros(0, 3, 8, 8))


def test_an_unknown_shift_is_refused_with_the_known_names() -> None:
    with pytest.raises(ValueError, match="no shift 'fog'; there are gaussian_noise, shot_noise"):
        shift("fog")
    assert shift("rotation") is rotation


def test_every_shift_has_its_severities_once() -> None:
    assert CIFAR_10_C.keys() == IMAGENET_C.keys()
    assert sorted([*CIFAR_10_C, *OWN]) == sorted(SHIFTS)


@every_severity
@pytest.mark.parametrize("size", [(32, 32), (80, 96)])
def test_noise_has_its_published_variance(severity: int, size: tuple[int, int]) -> None:
    n = 40_000 // size[0] ** 2 + 1
    grey = torch.full((n, 3, *size), 0.5)
    grey[:, 0, 0, 0] = torch.arange(n) / 255  # so that no two images draw alike
    table = CIFAR_10_C if size == (32, 32) else IMAGENET_C
    (deviation,) = table["gaussian_noise"][severity - 1]
    noisy = SHIFTS["gaussian_noise"](grey, severity, 0)[:, 1:]
    clipped = np.random.default_rng(0).normal(0.5, deviation, 200_000).clip(0, 1)
    assert noisy.std().item() == pytest.approx(clipped.std(), rel=0.02)
    (photons,) = table["shot_noise"][severity - 1]
    counts = SHIFTS["shot_noise"](grey, severity, 0)[:, 1:] * photons
    assert torch.allclose(counts, counts.round(), atol=1e-3)
    expected = np.random.default_rng(0).poisson(photons / 2, 200_000).clip(0, photons)
    assert counts.mean().item() == pytest.approx(expected.mean(), rel=0.02)
    assert counts.var().item() == pytest.approx(expected.var(), rel=0.05)
    (share,) = table["impulse_noise"][severity - 1]
    sprinkled = SHIFTS["impulse_noise"](grey, severity, 0)[:, 1:]
    assert (sprinkled == 0).float().mean().item() == pytest.approx(share / 2, rel=0.1)
    assert (sprinkled == 1).float().mean().item() == pytest.approx(share / 2, rel=0.1)


def test_noise_differs_between_images() -> None:
    images = photos(6) * 0.2 + 0.4
    noise = SHIFTS["gaussian_noise"](images, 3, 0) - images
    assert (torch.corrcoef(noise.flatten(1)) - torch.eye(6)).abs().max() < 0.1


@every_severity
@pytest.mark.parametrize("size", [(32, 40), (72, 65)])
def test_gaussian_blur_is_scipys(severity: int, size: tuple[int, int]) -> None:
    images = photos(2, *size)
    (sigma,) = (CIFAR_10_C if size[0] == 32 else IMAGENET_C)["gaussian_blur"][severity - 1]
    expected = ndimage.gaussian_filter(
        images.double().numpy(), (0, 0, sigma, sigma), mode="nearest", truncate=4
    )
    assert np.abs(SHIFTS["gaussian_blur"](images, severity, 0).numpy() - expected).max() < 1e-6


@pytest.mark.parametrize("strength", [*CIFAR_10_C["defocus_blur"], *IMAGENET_C["defocus_blur"]])
def test_the_disc_of_defocus_sums_to_one_and_is_round(strength: tuple[float, ...]) -> None:
    kernel = disc(*strength)
    assert kernel.sum().item() == pytest.approx(1, abs=1e-12)
    assert torch.allclose(kernel, kernel.T)
    assert torch.allclose(kernel, kernel.flip(0))
    radius = strength[0]
    middle = kernel.shape[0] // 2
    if radius >= 3:  # well inside all weights are alike, and outside there are none
        inner = kernel[middle, middle - int(radius) + 3 : middle + int(radius) - 2]
        assert torch.allclose(inner, inner[:1])
        assert 1 / inner[0].item() == pytest.approx(np.pi * radius**2, rel=0.1)
        assert kernel[0, 0] == 0


def test_defocus_blur_is_a_convolution_with_the_disc() -> None:
    images = photos(1, 70, 80)
    kernel = disc(*IMAGENET_C["defocus_blur"][2]).numpy()
    expected = ndimage.convolve(images.double().numpy(), kernel[None, None], mode="mirror")
    assert np.abs(SHIFTS["defocus_blur"](images, 3, 0).numpy() - expected).max() < 1e-6


def test_motion_blur_smears_points_along_a_line_within_45_degrees_of_level() -> None:
    images = torch.zeros(20, 3, 100, 100)
    images[:, :, 50, 50] = 1
    images[:, 0, 0, 0] = torch.arange(20) / 255
    smeared = SHIFTS["motion_blur"](images, 3, 0)[:, 1].double()
    assert torch.allclose(smeared.sum((1, 2)), torch.ones(20, dtype=torch.float64), atol=1e-5)
    # The weights of half a bell of deviation 8 over 31 pixels.
    bell = np.exp(-0.5 * (np.arange(31) / 8) ** 2)
    slopes, matched = [], 0
    for one in smeared:
        lit = one.nonzero().double() - 50
        weights = one[one > 0].sort(descending=True).values.numpy()
        if len(weights) == 31:  # in some directions two steps fall on one pixel
            matched += 1
            assert np.abs(weights - bell / bell.sum()).max() < 1e-6
        far = lit[lit.norm(dim=1).argmax()]
        slopes.append((far[0] / far[1]).item())
        assert (lit - lit[:, 1:] * far / far[1]).abs().max() < 1.5
    assert matched > 2
    assert max(np.abs(slopes)) <= 1.05
    assert max(slopes) - min(slopes) > 1


@every_severity
def test_contrast_brightness_and_saturation_follow_their_formulas(severity: int) -> None:
    images = photos(2, 24, 20)
    images[0, :, 0, :4] = torch.tensor([0.0, 0.5, 1.0, 0.25])  # black, greys and white
    (kept,) = CIFAR_10_C["contrast"][severity - 1]
    mean = images.double().mean((2, 3), keepdim=True)
    expected = (mean + kept * (images - mean)).numpy()
    assert np.abs(SHIFTS["contrast"](images, severity, 0).numpy() - expected).max() < 1e-6
    (added,) = CIFAR_10_C["brightness"][severity - 1]
    expected = pixel_by_pixel(images, lambda h, s, v: (h, s, min(1, v + added)))
    assert np.abs(SHIFTS["brightness"](images, severity, 0).numpy() - expected).max() < 1e-6
    scale, more = CIFAR_10_C["saturation"][severity - 1]
    expected = pixel_by_pixel(images, lambda h, s, v: (h, min(1, s * scale + more), v))
    assert np.abs(SHIFTS["saturation"](images, severity, 0).numpy() - expected).max() < 1e-6


@every_severity
@pytest.mark.parametrize("size", [(32, 32), (91, 224)])
def test_jpeg_is_pillows(severity: int, size: tuple[int, int]) -> None:
    from PIL import Image

    images = photos(1, *size)
    file = BytesIO()
    pixels = (images[0] * 255).byte().permute(1, 2, 0).numpy()
    (quality,) = (CIFAR_10_C if size[0] == 32 else IMAGENET_C)["jpeg"][severity - 1]
    Image.fromarray(pixels).save(file, "JPEG", quality=int(quality))
    expected = np.asarray(Image.open(file)).transpose(2, 0, 1) / 255
    assert np.abs(SHIFTS["jpeg"](images, severity, 0)[0].numpy() - expected).max() < 1e-6


@every_severity
@pytest.mark.parametrize("size", [(32, 32), (224, 224), (91, 75), (33, 47)])
def test_pixelate_posterise_and_solarise_are_pillows(severity: int, size: tuple[int, int]) -> None:
    image = pytest.importorskip("PIL.Image")
    operations = pytest.importorskip("PIL.ImageOps")
    images = photos(1, *size)
    picture = image.fromarray((images[0] * 255).byte().permute(1, 2, 0).numpy())
    h, w = size
    (kept,) = (CIFAR_10_C if min(size) <= 64 else IMAGENET_C)["pixelate"][severity - 1]
    few = picture.resize((int(w * kept), int(h * kept)), image.Resampling.BOX)
    expected = np.asarray(few.resize((w, h), image.Resampling.BOX)).transpose(2, 0, 1) / 255
    # Pillow rounds to 8 bits after each of its two passes.
    difference = SHIFTS["pixelate"](images, severity, 0)[0].numpy() - expected
    assert np.abs(difference).max() <= 1.01 / 255
    (bits,) = OWN["posterise"][severity - 1]
    expected = np.asarray(operations.posterize(picture, int(bits))).transpose(2, 0, 1) / 255
    assert np.abs(SHIFTS["posterise"](images, severity, 0)[0].numpy() - expected).max() < 1e-6
    (least,) = OWN["solarise"][severity - 1]
    expected = np.asarray(operations.solarize(picture, int(least))).transpose(2, 0, 1) / 255
    assert np.abs(SHIFTS["solarise"](images, severity, 0)[0].numpy() - expected).max() < 1e-6


@every_severity
def test_rotation_is_scipys_to_the_left_or_to_the_right(severity: int) -> None:
    images = photos(8, 61, 51)
    (degrees,) = OWN["rotation"][severity - 1]
    shifted = SHIFTS["rotation"](images, severity, 0).numpy()
    inside = (..., slice(18, -18), slice(14, -14))
    left, right = (
        np.abs(
            shifted - ndimage.rotate(images.numpy(), angle, axes=(2, 3), reshape=False, order=1)
        )[inside].max((1, 2, 3))
        for angle in (degrees, -degrees)
    )
    assert np.minimum(left, right).max() < 1e-4
    assert 0 < (left < right).sum() < 8


def test_zoom_out_shrinks_towards_the_middle() -> None:
    ramp = torch.linspace(0, 1, 80).expand(1, 3, 80, 80)
    seen = SHIFTS["zoom_out"](ramp, 5, 0)[0, 0, 40]
    assert torch.allclose(seen[22:58], 0.5 + 2 * (ramp[0, 0, 0, 22:58] - 0.5), atol=1e-5)
    assert torch.allclose(seen[:20], seen[21:41].flip(0), atol=1e-6)


def test_sketch_draws_dark_lines_on_white() -> None:
    images = torch.full((1, 3, 32, 32), 0.2)
    images[..., 16:] = 0.8
    drawing = SHIFTS["sketch"](images, 5, 0)
    assert torch.allclose(drawing[..., 15:17], torch.tensor(0.0), atol=1e-6)
    assert torch.allclose(drawing[..., :15], torch.tensor(1.0), atol=1e-6)
    assert torch.equal(
        SHIFTS["sketch"](torch.full((1, 3, 9, 9), 0.3), 5, 0), torch.ones(1, 3, 9, 9)
    )


def places(h: int, w: int, n: int = 6) -> Tensor:
    """Images that tell in red how far right and in green how far down a pixel is, from 0 to 1."""
    down, right = ((torch.arange(side) + 0.5) / side for side in (h, w))
    image = torch.stack([right.expand(h, w), down[:, None].expand(h, w), torch.zeros(h, w)])
    images = image.repeat(n, 1, 1, 1)
    images[:, 2, 0, 0] = torch.arange(n) / 255  # so that no two draw alike
    return images


@every_severity
def test_shear_moves_rows_sideways_in_proportion_to_their_height(severity: int) -> None:
    images = places(40, 60)
    (slant,) = OWN["shear"][severity - 1]
    slanted = SHIFTS["shear"](images, severity, 0)
    inside = (slice(None), slice(None), slice(10, 30), slice(25, 35))
    moved = (slanted - images)[inside]
    assert moved[:, 1].abs().max() < 1e-5
    expected = slant * (images[inside][:, 1] - 0.5)
    sides = (moved[:, 0] * expected).sum((1, 2)).sign()
    torch.testing.assert_close(moved[:, 0], expected * sides[:, None, None], rtol=0.0, atol=1e-5)
    assert set(sides.tolist()) == {-1.0, 1.0}


@every_severity
def test_elastic_moves_places_smoothly_and_no_farther_than_it_may(severity: int) -> None:
    images = places(64, 64)
    (reach,) = OWN["elastic"][severity - 1]
    moved = (SHIFTS["elastic"](images, severity, 0) - images)[:, :2, 16:48, 16:48]
    # Bicubic curves overshoot what they pass through, by an eighth in each direction.
    assert reach / 3 < moved.abs().max() < 1.3 * reach
    assert moved.diff(dim=3).abs().max() < 0.2 * reach


@every_severity
def test_glass_moves_each_pixel_on_its_own(severity: int) -> None:
    images = places(64, 64)
    (reach,) = OWN["glass"][severity - 1]
    moved = (SHIFTS["glass"](images, severity, 0) - images)[:, :2, 16:48, 16:48]
    assert moved.abs().max() <= reach + 1e-5
    assert moved.std().item() == pytest.approx(reach / 3**0.5, rel=0.05)  # of a uniform draw
    beside = torch.corrcoef(torch.stack([moved[..., :-1].flatten(), moved[..., 1:].flatten()]))
    assert abs(beside[0, 1]) < 0.05


@every_severity
def test_haze_takes_its_share_of_the_light(severity: int) -> None:
    black = torch.zeros(6, 3, 40, 50)
    black[:, 2, 0, 0] = torch.arange(6) / 255
    white = 1 - black
    (scattered,) = OWN["haze"][severity - 1]
    for images in (black, white):
        hazy = SHIFTS["haze"](images, severity, 0)
        banks = (hazy - (1 - scattered) * images) / scattered
        torch.testing.assert_close(banks[:, 0], banks[:, 1])  # grey
        assert 0.3 < banks.mean() < 0.7 and banks.std() > 0.1
        assert banks.diff(dim=3)[:, 0].abs().max() < 0.2  # without edges


@every_severity
@pytest.mark.parametrize("side", [32, 96])
def test_snow_covers_its_share_before_a_veil(severity: int, side: int) -> None:
    black = torch.zeros(20, 3, side, side)
    black[:, 2, 0, 0] = torch.arange(20) / 255
    share, veil = OWN["snow"][severity - 1]
    snowy = SHIFTS["snow"](black, severity, 0)[:, 0]
    assert snowy.min().item() == pytest.approx(veil)
    flakes = ((snowy - veil) / (1 - veil)).mean().item()
    assert flakes == pytest.approx(1 - (1 - share) ** 2, rel=0.1)  # each falls on the place below


@every_severity
def test_occlusion_hides_one_rectangle_somewhere(severity: int) -> None:
    images = places(40, 60, 12)
    (share,) = OWN["occlusion"][severity - 1]
    hidden = SHIFTS["occlusion"](images, severity, 0)[:, 2] == 0.5
    assert hidden.double().mean((1, 2)).numpy() == pytest.approx(share, rel=0.1)
    firsts = set()
    for one in hidden:
        rows, columns = (one.any(axis).nonzero()[:, 0] for axis in (1, 0))
        assert one[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1].all()
        assert one.sum() == len(rows) * len(columns)
        firsts.add((int(rows[0]), int(columns[0])))
    assert len(firsts) > 6
