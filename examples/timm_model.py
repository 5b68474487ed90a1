"""Calibrates a classifier of timm on a folder of images with one folder per class.

    python examples/timm_model.py resnet50.tv_in1k --images imagenet/val --layout imagenet-val
    python examples/timm_model.py local-dir:MODEL_FOLDER --images photos

Needs timm (pip install timm), which is not among rightly's own requirements. Weights come from
the Hugging Face Hub, or from a folder that `timm.models.save_for_hf` wrote. Half of the images,
every second one, calibrate; the others test.
"""

import argparse
import importlib.util
import sys
from pathlib import Path

import rightly
from rightly.evaluation.measurement import measure


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", help="a name of timm, or local-dir:FOLDER")
    parser.add_argument("--images", required=True, metavar="FOLDER")
    parser.add_argument("--layout", default="auto", help="as for rightly collect")
    parser.add_argument("--out", type=Path, default=Path("timm-predictions"), metavar="FOLDER")
    parser.add_argument("--method", default="rightly")
    asked = parser.parse_args()
    if importlib.util.find_spec("timm") is None:
        print("timm_model.py needs timm, which is not installed: pip install timm", file=sys.stderr)
        return 2

    # The model's own size, crop, mean and std are used, and the default views: four passes an
    # image. A killed run goes on where it was.
    predictions, labels = rightly.collect(
        f"timm:{asked.model}",
        asked.images,
        batch_size=64,
        out=asked.out,
        layout=asked.layout,
    )
    if labels is None:
        print(f"{asked.images} says nothing about true classes", file=sys.stderr)
        return 2
    calibrator = rightly.calibrator(asked.method).fit(predictions[0::2], labels[0::2])
    test, truth = predictions[1::2], labels[1::2]
    own = rightly.calibrator("uncalibrated").fit(test, truth)
    print(f"{asked.model}: {float(test.correct(truth).double().mean()):.1%} of {len(test)} right")
    for name, one in (("before", own), ("after", calibrator)):
        values = measure(one, test, truth, ("ece", "brier", "auroc"))
        print(f"{name:8}" + "  ".join(f"{key} {100 * value:.2f}" for key, value in values.items()))
    calibrator.save(asked.out.with_suffix(".safetensors"))
    print(f"the calibrator is in {asked.out.with_suffix('.safetensors')}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
