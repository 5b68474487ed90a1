"""What several shifts do with images: take pixels from elsewhere, spread a few numbers smoothly."""

import torch
import torch.nn.functional as F  # noqa: N812
from jaxtyping import Float
from torch import Tensor

from rightly.transforms.image_tensors import Images, promote, to_images


def interpolate_nodes(nodes: Float[Tensor, "n c k k"], images: Images) -> Float[Tensor, "n c h w"]:
    """The numbers at a few nodes spread over images, the corners at the corners."""
    size = tuple(images.shape[2:])
    return F.interpolate(nodes, size, mode="bicubic", align_corners=True)


def displace(images: Images, by: Float[Tensor, "n 2 h w"]) -> Images:
    """Every pixel taken from elsewhere: so many widths to the right, so many heights below."""
    values = promote(images)
    size = [1, 3, *images.shape[2:]]
    here = F.affine_grid(torch.eye(2, 3)[None].to(values), size, align_corners=False)
    there = here + 2 * by.to(values).permute(0, 2, 3, 1)  # coordinates run from -1 to 1
    moved = F.grid_sample(values, there, padding_mode="reflection", align_corners=False)
    return to_images(moved, images)
