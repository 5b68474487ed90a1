"""How strong each shift is at severities 1 to 5."""

from rightly.transforms.image_tensors import Images, check_images

Strength = tuple[float, ...]
Five = tuple[Strength, Strength, Strength, Strength, Strength]

# Published values: Hendrycks and Dietterich, "Benchmarking Neural Network Robustness to Common
# Corruptions and Perturbations", ICLR 2019, and the authors' code for CIFAR-10-C and ImageNet-C.
CIFAR_10_C: dict[str, Five] = {
    "gaussian_noise": ((0.04,), (0.06,), (0.08,), (0.09,), (0.10,)),  # sigma
    "shot_noise": ((500.0,), (250.0,), (100.0,), (75.0,), (50.0,)),  # photons at full brightness
    "impulse_noise": ((0.01,), (0.02,), (0.03,), (0.05,), (0.07,)),  # share of values replaced
    "gaussian_blur": ((0.4,), (0.6,), (0.7,), (0.8,), (1.0,)),  # sigma in pixels
    "defocus_blur": ((0.3, 0.4), (0.4, 0.5), (0.5, 0.6), (1.0, 0.2), (1.5, 0.1)),  # radius, edge
    "motion_blur": ((6.0, 1.0), (6.0, 1.5), (6.0, 2.0), (8.0, 2.0), (9.0, 2.5)),  # radius, sigma
    "contrast": ((0.75,), (0.5,), (0.4,), (0.3,), (0.15,)),  # share of the contrast kept
    "brightness": ((0.05,), (0.1,), (0.15,), (0.2,), (0.3,)),  # added to V of HSV
    "saturation": ((0.3, 0.0), (0.1, 0.0), (1.5, 0.0), (2.0, 0.1), (2.5, 0.2)),  # scale, add
    "pixelate": ((0.95,), (0.9,), (0.85,), (0.75,), (0.65,)),  # share of the side kept
    "jpeg": ((80.0,), (65.0,), (58.0,), (50.0,), (40.0,)),  # quality
}
IMAGENET_C: dict[str, Five] = {
    "gaussian_noise": ((0.08,), (0.12,), (0.18,), (0.26,), (0.38,)),
    "shot_noise": ((60.0,), (25.0,), (12.0,), (5.0,), (3.0,)),
    "impulse_noise": ((0.03,), (0.06,), (0.09,), (0.17,), (0.27,)),
    "gaussian_blur": ((1.0,), (2.0,), (3.0,), (4.0,), (6.0,)),
    "defocus_blur": ((3.0, 0.1), (4.0, 0.5), (6.0, 0.5), (8.0, 0.5), (10.0, 0.5)),
    "motion_blur": ((10.0, 3.0), (15.0, 5.0), (15.0, 8.0), (15.0, 12.0), (20.0, 15.0)),
    "contrast": ((0.4,), (0.3,), (0.2,), (0.1,), (0.05,)),
    "brightness": ((0.1,), (0.2,), (0.3,), (0.4,), (0.5,)),
    "saturation": ((0.3, 0.0), (0.1, 0.0), (2.0, 0.0), (5.0, 0.1), (20.0, 0.2)),
    "pixelate": ((0.6,), (0.5,), (0.4,), (0.3,), (0.25,)),
    "jpeg": ((25.0,), (18.0,), (15.0,), (10.0,), (7.0,)),
}
# Our own choice, for lack of published ones: relative to the image, so one row serves all sizes.
OWN: dict[str, Five] = {
    "rotation": ((10.0,), (20.0,), (30.0,), (45.0,), (60.0,)),  # degrees
    "zoom_out": ((0.9,), (0.8,), (0.7,), (0.6,), (0.5,)),  # side of the shrunken image
    "posterise": ((5.0,), (4.0,), (3.0,), (2.0,), (1.0,)),  # bits kept of 8
    "glass": ((0.02,), (0.03,), (0.04,), (0.055,), (0.07,)),  # share of the side a pixel may stray
    "haze": ((0.25,), (0.35,), (0.45,), (0.55,), (0.65,)),  # share of the light that is the haze's
    "solarise": ((224.0,), (192.0,), (160.0,), (128.0,), (0.0,)),  # 8-bit value, inverted above
    "elastic": ((0.04,), (0.06,), (0.09,), (0.12,), (0.15,)),  # share of the side a place may move
    "shear": ((0.15,), (0.3,), (0.45,), (0.6,), (0.8,)),  # width gained for each height
    "snow": ((0.01, 0.05), (0.02, 0.1), (0.03, 0.15), (0.05, 0.2), (0.08, 0.25)),  # flakes, veil
    "occlusion": ((0.1,), (0.15,), (0.2,), (0.3,), (0.4,)),  # share of the area covered
    "sketch": ((0.2,), (0.4,), (0.6,), (0.8,), (1.0,)),  # from photograph to drawing
}

SMALL_SIDE = 64  # CIFAR has 32, Tiny ImageNet 64; ImageNet-C was made at 224


def strength(name: str, images: Images, severity: int) -> Strength:
    """What the shift of that name needs at this severity, after a check of its input."""
    check_images(images)
    if severity not in range(1, 6):
        raise ValueError(f"severity must be 1, 2, 3, 4 or 5, got {severity}")
    published = CIFAR_10_C if min(images.shape[2:]) <= SMALL_SIDE else IMAGENET_C
    return (OWN | published)[name][severity - 1]
