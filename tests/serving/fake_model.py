"""A tiny exported classifier for tests of the server, and a server of it in a process of its own.

The class is the brightest colour channel; the answer depends on nothing but the image, so a test
can tell from the answer which image was looked at.
"""

import argparse
import io
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from PIL import Image

from rightly import Decision
from rightly.classifiers.preprocessing import Preprocessing
from rightly.deployment.runtime import ExportedModel
from rightly.serving import Limits, make_app, open_socket, run_app
from rightly.serving.server import format_address
from tests.processes import PIPE, spawn

NAMES = ("red", "green", "blue")
VIEWS = ("rotation", "grayscale", "color_jitter")


class BrightestChannel(ExportedModel):
    def __init__(self, threshold=0.6, names=NAMES, views=VIEWS, delay_s=0.0, size=(8, 8)):
        self.decision = None if threshold is None else Decision(threshold, n=100, coverage=0.76)
        self.class_names, self.view_names = names, tuple(views)
        self.preprocessing = Preprocessing(size=size)
        self.delay_s = delay_s
        self.batches = []
        self.metadata = {
            "format": "rightly-deployed",
            "method": "ca_views",
            "class_names": names and list(names),
            "class_count": 3,
            "views": list(views),
            "preprocessing": self.preprocessing.as_dict(),
            "has_temperature": True,
            "classifier": {"name": "brightest_channel", "fingerprint": "0" * 8},
            "calibration": None,
            "decision": self.decision and self.decision.to_dict(),
            "spread": float("nan"),
        }

    def run(self, images, shift_estimate=None):
        self.batches.append(len(images))
        time.sleep(self.delay_s)
        logits = 255 * images.mean((2, 3)) / 32  # (n, 3)
        raw, calibrated = _softmax(logits), _softmax(logits / 2)
        confidence = calibrated.max(-1)
        view_classes, view_confidence = (
            self._views(logits, raw) if self.view_names else (None, None)
        )
        outputs = {
            "classes": calibrated.argmax(-1),
            "confidence": confidence,
            "raw_confidence": raw.max(-1),
            "temperature": np.full(len(images), 2.0),
            "accept": None if self.threshold is None else confidence >= self.threshold,
            "probabilities": calibrated,
            "view_classes": view_classes,
            "view_confidence": view_confidence,
        }
        return {name: values for name, values in outputs.items() if values is not None}

    def _views(self, logits, raw):
        """Every third view sees another class; the last is skipped where the classifier is sure,
        as a cascade does."""
        m = len(self.view_names)
        classes = np.stack([np.roll(logits, k // 2, -1).argmax(-1) for k in range(m)], -1)
        confidence = np.repeat(raw.max(-1)[:, None], m, 1)
        skipped = raw.max(-1) > 0.99
        classes[skipped, -1], confidence[skipped, -1] = -1, np.nan
        return classes, confidence


def _softmax(logits):
    powers = np.exp(logits - logits.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def make_file(colour=(200, 40, 30), size=(16, 16), kind="PNG", mode="RGB"):
    """A file of one colour, as bytes."""
    file = io.BytesIO()
    Image.new("RGB", size, tuple(colour)).convert(mode).save(file, kind)
    return file.getvalue()


@contextmanager
def serving_process(*arguments):
    """The address and the process number of a server in a process of its own."""
    command = [sys.executable, "-m", "tests.serving.fake_model", *arguments]
    root = Path(__file__).parents[2]
    with spawn(command, stdout=PIPE, cwd=root) as process:
        yield process.stdout.readline().strip(), process.pid


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--no-threshold", action="store_true")
    chosen = parser.parse_args()
    model = BrightestChannel(threshold=None if chosen.no_threshold else 0.6)
    with open_socket("127.0.0.1", 0) as listening:
        sys.stdout.write(format_address(listening) + "\n")
        sys.stdout.flush()
        run_app(make_app(model, Limits()), listening, 5.0)


if __name__ == "__main__":
    main()
