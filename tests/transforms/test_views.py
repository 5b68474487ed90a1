"""Every view keeps its promises, and each does what its name says."""

import math
import random
import warnings

import numpy as np
import pytest
import torch
from scipy import ndimage
from torch import Tensor

from rightly.transforms.views import VIEWS
from rightly.transforms.views.colour import (
    _colour_matrix,
    autocontrast,
    color_jitter,
    grayscale,
    hflip_autocontrast,
)
from rightly.transforms.views.detail import (
    blur,
    gaussian_noise,
    hflip_sharpen,
    low_resolution,
    random_erasing,
    sharpen,
)
from rightly.transforms.views.geometry import (
    hflip,
    hflip_translation,
    rotation,
    rotation_90,
    rotation_back,
    translation,
    translation_back,
    zoom,
)
from tests.transforms.example_images import photos

RANDOM = {
    "color_jitter": color_jitter,
    "gaussian_noise": gaussian_noise,
    "random_erasing": random_erasing,
}
every_view = pytest.mark.parametrize("name", VIEWS)


def random_states() -> list[object]:
    return [torch.get_rng_state().tolist(), str(np.random.get_state()), random.getstate()]  # noqa: NPY002


@every_view
def test_a_view_has_the_shape_and_range_of_its_images(name: str) -> None:
    for size in ((32, 32), (33, 47), (224, 224), (7, 5)):
        images = photos(2, *size)
        seen = VIEWS[name](images)
        assert seen.shape == images.shape, size
        assert seen.dtype == images.dtype, size
        assert seen.is_contiguous(), size
        assert ((seen >= 0) & (seen <= 1)).all(), size  # and neither NaN nor infinity
        assert not torch.equal(seen, images), size


@every_view
def test_a_view_is_the_same_every_time(name: str) -> None:
    assert torch.equal(VIEWS[name](photos()), VIEWS[name](photos()))


@every_view
def test_each_image_is_seen_alone(name: str) -> None:
    order = torch.randperm(4, generator=torch.Generator().manual_seed(1))
    for size in ((32, 32), (75, 130)):
        images = photos(4, *size)
        together = VIEWS[name](images)
        alone = torch.cat([VIEWS[name](image[None]) for image in images])
        assert torch.allclose(together, alone, rtol=0, atol=1e-6), size
        shuffled = VIEWS[name](images[order])
        assert torch.allclose(shuffled, together[order], rtol=0, atol=1e-6), size


@every_view
def test_a_view_leaves_its_input_and_the_global_generators_untouched(name: str) -> None:
    images = photos()
    copy, states = images.clone(), random_states()
    VIEWS[name](images).zero_()
    assert torch.equal(images, copy)
    assert random_states() == states


@every_view
def test_a_view_has_the_precision_of_its_images(name: str) -> None:
    images = photos()
    seen = VIEWS[name](images)
    double = VIEWS[name](images.double())
    assert double.dtype == torch.float64
    assert torch.allclose(double.float(), seen, atol=1e-5)
    half = VIEWS[name](images.half())
    assert half.dtype == torch.float16
    # 8-bit levels survive in float16, so the draws are those of the float32 images.
    assert torch.allclose(half.float(), seen, atol=5e-3)
    assert VIEWS[name](images.bfloat16()).dtype == torch.bfloat16


@every_view
def test_a_view_of_no_images_is_no_images(name: str) -> None:
    assert VIEWS[name](photos()[:0]).shape == (0, 3, 32, 32)


@pytest.mark.parametrize("name", RANDOM)
def test_another_seed_gives_another_draw(name: str) -> None:
    images = photos()
    assert torch.equal(RANDOM[name](images), RANDOM[name](images, seed=0))
    changed = (RANDOM[name](images) != RANDOM[name](images, seed=1)).flatten(1).any(1)
    assert changed.all()


@pytest.mark.parametrize("name", RANDOM)
def test_different_images_are_changed_differently(name: str) -> None:
    images = torch.full((2, 3, 32, 32), 0.5)
    images[1, 0, 3, 4] += 2 / 255
    first, second = RANDOM[name](images)
    assert (first != second).sum() > 10


def test_an_unknown_view_is_refused_with_the_known_names() -> None:
    with pytest.raises(ValueError, match="is not known: did you mean rotation"):
        VIEWS.find("rotate")


@pytest.mark.long  # a file with views is made and read in tests/deployment
@every_view
@pytest.mark.filterwarnings("ignore")  # the exporter's own
def test_a_view_exports_to_onnx_with_any_batch_size(name: str) -> None:
    pytest.importorskip("onnx")
    pytest.importorskip("onnxscript")
    runtime = pytest.importorskip("onnxruntime")

    class Module(torch.nn.Module):
        def forward(self, images: Tensor) -> Tensor:
            return VIEWS[name](images)

    batch = {0: torch.export.Dim("n")}
    with warnings.catch_warnings(action="ignore"):
        program = torch.onnx.export(
            Module(), (photos(3),), dynamo=True, dynamic_shapes=(batch,), verbose=False
        )
    session = runtime.InferenceSession(program.model_proto.SerializeToString())
    for n in (1, 5):
        images = photos(n, seed=n)
        (seen,) = session.run(None, {session.get_inputs()[0].name: images.numpy()})
        assert np.abs(seen - VIEWS[name](images).numpy()).max() < 1e-5


@every_view
@pytest.mark.filterwarnings("ignore")  # the exporter's own
def test_a_view_is_traced_by_torch_export_with_any_batch_size(name: str) -> None:
    class Module(torch.nn.Module):
        def forward(self, images: Tensor) -> Tensor:
            return VIEWS[name](images)

    batch = {0: torch.export.Dim("n")}
    traced = torch.export.export(Module(), (photos(3),), dynamic_shapes=(batch,)).module()
    for n in (1, 5):
        images = photos(n, seed=n)
        assert torch.allclose(traced(images), VIEWS[name](images), rtol=0, atol=1e-6)


def test_rotation_turns_by_fifteen_degrees_anticlockwise() -> None:
    images = photos(2, 41, 61)
    turned = ndimage.rotate(images.numpy(), 15, axes=(2, 3), reshape=False, order=1)
    inside = (..., slice(8, -8), slice(8, -8))
    assert np.abs(rotation(images).numpy() - turned)[inside].max() < 1e-4
    arrow = torch.zeros(1, 3, 41, 41)
    arrow[..., 20, 30:] = 1  # pointing right; anticlockwise lifts its tip
    assert rotation(arrow)[..., :20, :].sum() > rotation(arrow)[..., 21:, :].sum()


def test_rotation_mirrors_the_border_instead_of_blackening_corners() -> None:
    assert torch.allclose(rotation(torch.full((1, 3, 32, 32), 0.7)), torch.tensor(0.7))


def test_rotation_back_is_rotation_in_the_mirror() -> None:
    images = photos(2, 41, 61)
    mirrored = hflip(rotation(hflip(images)))
    assert torch.allclose(rotation_back(images), mirrored, rtol=0, atol=1e-5)


def test_grayscale_is_pillows_luma() -> None:
    image = pytest.importorskip("PIL.Image")
    pixels = (photos(1)[0] * 255).byte().permute(1, 2, 0).numpy()
    luma = np.asarray(image.fromarray(pixels).convert("L")) / 255
    seen = grayscale(photos(1))[0]
    assert np.abs(seen.numpy() - luma).max() <= 0.51 / 255 + 1e-4
    assert torch.equal(seen[0], seen[1])
    assert torch.equal(seen[0], seen[2])


def test_four_quarter_turns_and_two_mirrors_are_nothing() -> None:
    images = photos(2, 33, 33)
    assert torch.equal(rotation_90(images), torch.rot90(images, 1, (2, 3)))
    assert torch.equal(rotation_90(rotation_90(rotation_90(rotation_90(images)))), images)
    assert torch.equal(hflip(hflip(images)), images)
    assert torch.equal(hflip(images)[..., 0], images[..., -1])  # left and right, not up and down


def test_translation_moves_right_and_down() -> None:
    images = photos(2, 40, 60)
    assert torch.equal(translation(images)[:, :, 4:, 6:], images[:, :, :-4, :-6])
    assert torch.equal(translation(images)[:, :, 3, 6:], images[:, :, 1, :-6])


@pytest.mark.parametrize("size", [(32, 32), (40, 67)])
def test_translation_back_moves_left_and_up(size: tuple[int, int]) -> None:
    images = photos(2, *size)
    down, right = (round(0.1 * side) for side in size)
    pixels = images.numpy()
    mirrored = pixels[:, :, -2 : -2 - down : -1]  # the last row itself is not seen twice
    pixels = np.concatenate([pixels[:, :, down:], mirrored], 2)
    mirrored = pixels[..., -2 : -2 - right : -1]
    expected = np.concatenate([pixels[..., right:], mirrored], 3)
    assert np.array_equal(translation_back(images).numpy(), expected)


def test_translation_back_is_translation_seen_from_the_other_corner() -> None:
    images = photos(2, 45, 61)
    turned = images.flip(2, 3)
    assert torch.equal(translation_back(images), translation(turned).flip(2, 3))


def test_hflip_translation_moves_right_and_up_then_mirrors() -> None:
    images = photos(2, 40, 60)
    seen = hflip(hflip_translation(images))
    assert torch.equal(seen[:, :, :-2, 3:], images[:, :, 2:, :-3])
    assert torch.equal(seen[:, :, -1, 3:], images[:, :, -3, :-3])


def test_mirrored_views_are_the_views_in_a_mirror() -> None:
    images = photos(2, 33, 47)
    assert torch.equal(hflip_autocontrast(images), hflip(autocontrast(images)))
    assert torch.equal(hflip_sharpen(images), hflip(sharpen(images)))


@pytest.mark.parametrize("size", [(32, 32), (60, 224)])
def test_low_resolution_keeps_slopes_and_loses_single_pixels(size: tuple[int, int]) -> None:
    h, w = size
    ramp = torch.linspace(0, 1, w).expand(1, 3, h, w)
    assert torch.allclose(low_resolution(ramp)[..., 2:-2], ramp[..., 2:-2], atol=1e-5)
    checks = ((torch.arange(h)[:, None] + torch.arange(w)) % 2).float().expand(1, 3, h, w)
    assert low_resolution(checks).std() < 0.6 * checks.std()


def test_zoom_keeps_the_middle_where_it_is() -> None:
    ramp = torch.linspace(0, 1, 50).expand(1, 3, 50, 50)
    expected = 0.5 + 0.8 * (ramp - 0.5)
    assert torch.allclose(zoom(ramp)[..., 2:-2], expected[..., 2:-2], atol=1e-6)


@pytest.mark.parametrize("size", [(32, 32), (160, 224)])
def test_blur_is_a_gaussian_filter(size: tuple[int, int]) -> None:
    images = photos(2, *size)
    sigma = max(0.4, min(size) / 80)
    expected = ndimage.gaussian_filter(
        images.double().numpy(), (0, 0, sigma, sigma), mode="reflect", truncate=8
    )
    assert np.abs(blur(images).numpy() - expected).max() < 1e-6


@pytest.mark.parametrize("size", [(32, 32), (224, 160)])
def test_sharpen_adds_what_a_gaussian_filter_takes_away(size: tuple[int, int]) -> None:
    images = photos(2, *size)
    sigma = max(0.7, min(size) / 60)
    pixels = images.double().numpy()
    soft = ndimage.gaussian_filter(pixels, (0, 0, sigma, sigma), mode="reflect", truncate=8)
    expected = np.clip(pixels + (pixels - soft), 0, 1)
    assert np.abs(sharpen(images).numpy() - expected).max() < 2e-6
    assert np.abs(expected - pixels).max() > 0.05


@pytest.mark.parametrize("contrast", [1, 0.3, 0.02])  # the last would be stretched too far
def test_autocontrast_spans_two_deviations_about_the_mean(contrast: float) -> None:
    images = contrast * photos(4, 33, 47) + 0.4 * (1 - contrast)
    for image, seen in zip(images.double().numpy(), autocontrast(images).numpy(), strict=True):
        low, high = image.mean() - 2 * image.std(), image.mean() + 2 * image.std()
        assert (high - low < 0.05) == (contrast == 0.02)
        expected = np.interp(image, [low, max(high, low + 0.05)], [0, 1])
        assert np.abs(seen - expected).max() < 1e-5


def test_autocontrast_sees_through_fog_and_weak_light() -> None:
    images = photos()
    clear = autocontrast(images)
    assert torch.allclose(autocontrast(0.3 * images + 0.6), clear, atol=1e-5)
    assert torch.allclose(autocontrast(0.2 * images), clear, atol=1e-5)


def test_autocontrast_of_a_flat_image_is_flat() -> None:
    seen = autocontrast(torch.full((1, 3, 32, 32), 0.7))
    assert seen.isfinite().all()
    assert seen.amax() - seen.amin() < 1e-6


def test_gaussian_noise_has_its_stated_deviation_and_no_pattern() -> None:
    images = photos(4, 224, 224) * 0.2 + 0.4  # far from the limits, so that nothing is clipped
    noise = gaussian_noise(images) - images
    assert torch.allclose(noise.std((2, 3)), torch.tensor(0.05), rtol=0.02)
    assert noise.mean((2, 3)).abs().max() < 1e-3
    correlations = torch.corrcoef(noise.flatten(0, 1).flatten(1)) - torch.eye(12)
    assert correlations.abs().max() < 0.03


def test_color_jitter_leaves_grey_grey() -> None:
    grey = photos()[:, :1].expand(-1, 3, -1, -1)
    seen = color_jitter(grey)
    assert (seen.amax(1) - seen.amin(1)).max() < 1e-5


def test_turning_hue_keeps_luma_and_comes_round_after_a_whole_turn() -> None:
    one, quarter = torch.ones(1), torch.full((1,), math.pi / 2)
    turn = _colour_matrix(one, one, quarter)[0]
    luma = torch.tensor([0.299, 0.587, 0.114])
    assert torch.allclose(luma @ turn, luma, atol=1e-5)
    assert torch.allclose(torch.linalg.matrix_power(turn, 4), torch.eye(3), atol=1e-4)
    assert torch.allclose(_colour_matrix(one, 0 * one, quarter)[0], luma.expand(3, 3), atol=1e-6)


def test_color_jitter_stays_within_its_strengths() -> None:
    levels = torch.arange(200).float()[:, None, None, None] / 255
    flat = levels.expand(-1, 3, 8, 8) * 0.5 + 0.1
    factor = (color_jitter(flat) / flat).mean((1, 2, 3))  # without contrast, brightness is left
    assert factor.min() >= 0.6 - 1e-4
    assert factor.max() <= 1.4 + 1e-4
    assert factor.max() - factor.min() > 0.6


def test_random_erasing_fills_one_rectangle_with_the_mean_colour() -> None:
    images = photos(64)
    seen = random_erasing(images)
    changed = (seen != images).any(1)
    share = changed.float().mean((1, 2))
    assert share.min() > 0.01
    assert share.max() < 0.36
    for one, image, where in zip(seen, images, changed, strict=True):
        rows, columns = where.any(1), where.any(0)
        assert torch.equal(where, rows[:, None] & columns)
        mean = image.mean((1, 2))[:, None]
        assert torch.allclose(one[:, where], mean.expand(-1, int(where.sum())), atol=1e-6)
