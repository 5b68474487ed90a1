"""Images of the CIFAR-10 kit as tensors, and the logits of a classifier for images and views."""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn

Transform = Callable[[Tensor], Tensor]


def read_test_images(module: Any, device: str) -> tuple[Tensor, Any]:
    """The test images in [0, 1] on a device and their labels, from the kit's cifar10.py."""
    pixels, labels = module.images("test")
    return torch.from_numpy(pixels).permute(0, 3, 1, 2).float().div(255).to(device), labels


@torch.inference_mode()
def compute_logits(model: nn.Module, images: Tensor) -> Tensor:
    """Logits on the CPU; small batches are fastest there."""
    batches = images.split(1000 if images.is_cuda else 32)
    return torch.cat([model(batch) for batch in batches]).cpu()


def compute_view_logits(model: nn.Module, images: Tensor, views: Iterable[Transform]) -> Tensor:
    """Logits of each view of each image, (n, m, c), in blocks that bound the memory of views."""
    transforms = list(views)
    return torch.cat(
        [
            torch.stack([compute_logits(model, view(block)) for view in transforms], 1)
            for block in images.split(500)
        ]
    )
