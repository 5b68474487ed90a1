"""How fast collecting is, as a share of the bare forward passes it needs.

    python benchmarks/collect.py [--device cpu|cuda] [--images 96] [--batch-size 32]
                                 [--precision float32|bfloat16|float16] [--views 3]

The bare rate is that of (views + 1) forward passes of the same model over the same batches,
already on the device and normalised: nothing is decoded, viewed, copied or kept. Collecting
starts from decoded 8-bit images. Both run in one process, in turns; the best of each counts. Also
printed: what the views themselves cost, as a share of one forward pass. The model is a ResNet-50
with random weights, 224 px, channels last.
"""

import argparse
import time
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

from rightly.classifiers import Preprocessing, open_model
from rightly.collection import DEFAULT_VIEWS, Plan
from rightly.collection.forward import compute_blocks
from rightly.collection.plan import PRECISIONS
from rightly.datasets import ImageDataset
from rightly.transforms.views import VIEWS


def convolution(inputs: int, outputs: int, kernel: int, stride: int = 1) -> nn.Sequential:
    layer = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False)
    return nn.Sequential(layer, nn.BatchNorm2d(outputs))


class Bottleneck(nn.Module):
    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        outputs = 4 * width
        self.body = nn.Sequential(
            convolution(inputs, width, 1),
            nn.ReLU(True),
            convolution(width, width, 3, stride),
            nn.ReLU(True),
            convolution(width, outputs, 1),
        )
        same = inputs == outputs and stride == 1
        self.skip = nn.Identity() if same else convolution(inputs, outputs, 1, stride)

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.body(x) + self.skip(x))


def resnet50() -> nn.Module:
    torch.manual_seed(0)
    layers: list[nn.Module] = [convolution(3, 64, 7, 2), nn.ReLU(True), nn.MaxPool2d(3, 2, 1)]
    inputs = 64
    for stage, (width, depth) in enumerate([(64, 3), (128, 4), (256, 6), (512, 3)]):
        for i in range(depth):
            layers.append(Bottleneck(inputs, width, 2 if stage and not i else 1))
            inputs = 4 * width
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000)]
    return nn.Sequential(*layers, *head).eval()


def timed(work: Callable[[], object], device: torch.device) -> float:
    start = time.perf_counter()
    work()
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--images", type=int, default=96)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--precision", default="float32")
    parser.add_argument("--views", type=int, default=3)
    parser.add_argument("--workers", type=int)
    parser.add_argument("--rounds", type=int, default=3)
    chosen = parser.parse_args()
    rng = np.random.default_rng(0)
    pictures = rng.integers(0, 256, (min(chosen.images, 1024), 224, 224, 3), np.uint8)
    images = ImageDataset(
        [str(i) for i in range(chosen.images)], lambda i: pictures[i % len(pictures)]
    )
    names = (*DEFAULT_VIEWS, *(name for name in VIEWS if name not in DEFAULT_VIEWS))[: chosen.views]
    plan = Plan(names, precision=chosen.precision)
    normal = Preprocessing((224, 224), mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225))
    model = resnet50()
    classifier = open_model(model, device=chosen.device, preprocessing=normal)
    device = classifier.device
    size = chosen.batch_size
    batch = torch.from_numpy(pictures[:size]).to(device).permute(0, 3, 1, 2).float() / 255
    count = -(-chosen.images // size)
    ready = normal.normalise(batch).to(PRECISIONS[plan.precision] or torch.float32)
    ready = ready.contiguous(memory_format=torch.channels_last)

    def bare() -> None:
        prepared = classifier.prepare(PRECISIONS[plan.precision], True)
        with prepared, torch.inference_mode():
            for i in range(count):
                rows = min(size, chosen.images - i * size)
                for _ in range(len(names) + 1):
                    model(ready[:rows])

    def collected() -> None:
        shards = range(-(-chosen.images // 1024))
        for _ in compute_blocks(classifier, images, plan, shards, size, chosen.workers):
            pass

    bare(), collected()
    best = {
        work: min(timed(work, device) for _ in range(chosen.rounds)) for work in (bare, collected)
    }
    rates = {work: chosen.images / seconds for work, seconds in best.items()}
    print(
        f"{device} {plan.precision}, {torch.get_num_threads()} threads, {chosen.images} images of "
        f"224 px, batches of {size}, {len(names)} views"
    )
    print(f"bare {len(names) + 1} passes   {rates[bare]:8.1f} images/s")
    print(f"collect          {rates[collected]:8.1f} images/s")
    print(f"share            {rates[collected] / rates[bare]:8.1%}   (target 85 %)")
    forward = best[bare] / count / (len(names) + 1)
    with torch.inference_mode():
        for name in names:

            def look(name: str = name) -> None:
                for _ in range(5):
                    VIEWS[name](batch)

            look()
            cost = min(timed(look, device) for _ in range(chosen.rounds)) / 5
            print(f"view {name:16} {cost / forward:8.1%} of one forward pass")


if __name__ == "__main__":
    main()
