"""A ResNet-50 (He et al., 2016) with random weights, to time."""

import torch
from torch import Tensor, nn


def build_convolution(inputs: int, outputs: int, kernel: int, stride: int = 1) -> nn.Sequential:
    """A convolution and its batch norm."""
    layer = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False)
    return nn.Sequential(layer, nn.BatchNorm2d(outputs))


class Bottleneck(nn.Module):
    """Three convolutions beside a skip connection."""

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        outputs = 4 * width
        self.body = nn.Sequential(
            build_convolution(inputs, width, 1),
            nn.ReLU(True),
            build_convolution(width, width, 3, stride),
            nn.ReLU(True),
            build_convolution(width, outputs, 1),
        )
        same = inputs == outputs and stride == 1
        self.skip = nn.Identity() if same else build_convolution(inputs, outputs, 1, stride)

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.body(x) + self.skip(x))


def build_resnet50() -> nn.Module:
    """The network for 1,000 classes, in evaluation mode."""
    torch.manual_seed(0)
    layers: list[nn.Module] = [build_convolution(3, 64, 7, 2), nn.ReLU(True), nn.MaxPool2d(3, 2, 1)]
    inputs = 64
    for stage, (width, depth) in enumerate([(64, 3), (128, 4), (256, 6), (512, 3)]):
        for i in range(depth):
            layers.append(Bottleneck(inputs, width, 2 if stage and not i else 1))
            inputs = 4 * width
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000)]
    return nn.Sequential(*layers, *head).eval()
