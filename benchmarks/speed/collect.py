"""How fast collecting is, as a share of the bare forward passes it needs.

    python -m benchmarks.speed.collect [--device cpu|cuda] [--images 96] [--batch-size 32] \
        [--precision float32|bfloat16|float16] [--views 3]

The bare rate is that of (views + 1) forward passes of the same model over the same batches,
already on the device and normalised: nothing is decoded, viewed, copied or kept. Collecting
starts from decoded 8-bit images. Both run in one process, in turns; the best of each counts. Also
printed: what the views themselves cost, as a share of one forward pass. The model is a ResNet-50
with random weights, 224 px, channels last.
"""

import argparse

import numpy as np
import torch

from benchmarks.speed.resnet50 import build_resnet50
from benchmarks.speed.timing import time_call
from rightly.classifiers import Preprocessing, open_model
from rightly.collection import DEFAULT_VIEWS, Plan
from rightly.collection.forward import compute_blocks
from rightly.collection.plan import PRECISIONS
from rightly.datasets import ImageDataset
from rightly.transforms.views import VIEWS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--images", type=int, default=96)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--precision", default="float32")
    parser.add_argument("--views", type=int, default=3)
    parser.add_argument("--workers", type=int)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    pictures = rng.integers(0, 256, (min(options.images, 1024), 224, 224, 3), np.uint8)
    images = ImageDataset(
        [str(i) for i in range(options.images)], lambda i: pictures[i % len(pictures)]
    )
    names = (*DEFAULT_VIEWS, *(name for name in VIEWS if name not in DEFAULT_VIEWS))[
        : options.views
    ]
    plan = Plan(names, precision=options.precision)
    preprocessing = Preprocessing((224, 224), mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225))
    model = build_resnet50()
    classifier = open_model(model, device=options.device, preprocessing=preprocessing)
    device = classifier.device
    size = options.batch_size
    batch = torch.from_numpy(pictures[:size]).to(device).permute(0, 3, 1, 2).float() / 255
    count = -(-options.images // size)
    ready = preprocessing.normalise(batch).to(PRECISIONS[plan.precision] or torch.float32)
    ready = ready.contiguous(memory_format=torch.channels_last)

    def pass_forward() -> None:
        prepared = classifier.prepare(PRECISIONS[plan.precision], True)
        with prepared, torch.inference_mode():
            for i in range(count):
                rows = min(size, options.images - i * size)
                for _ in range(len(names) + 1):
                    model(ready[:rows])

    def collect() -> None:
        shards = range(-(-options.images // 1024))
        for _ in compute_blocks(classifier, images, plan, shards, size, options.workers):
            pass

    pass_forward(), collect()
    best = {
        work: min(time_call(work, device) for _ in range(options.rounds))
        for work in (pass_forward, collect)
    }
    rates = {work: options.images / seconds for work, seconds in best.items()}
    print(
        f"{device} {plan.precision}, {torch.get_num_threads()} threads, {options.images} images of "
        f"224 px, batches of {size}, {len(names)} views"
    )
    print(f"bare {len(names) + 1} passes   {rates[pass_forward]:8.1f} images/s")
    print(f"collect          {rates[collect]:8.1f} images/s")
    print(f"share            {rates[collect] / rates[pass_forward]:8.1%}   (target 85 %)")
    forward = best[pass_forward] / count / (len(names) + 1)
    with torch.inference_mode():
        for name in names:

            def compute_view(name: str = name) -> None:
                for _ in range(5):
                    VIEWS[name](batch)

            compute_view()
            cost = min(time_call(compute_view, device) for _ in range(options.rounds)) / 5
            print(f"view {name:16} {cost / forward:8.1%} of one forward pass")


if __name__ == "__main__":
    main()
