"""Cost of calibration at run time, as a share of the bare classifier's forward pass.

    python -m benchmarks.speed.deploy [--engine onnx|torch] [--device cpu|cuda] [--batches 1,64] \
        [--size 224] [--rounds 5]

The classifier is a ResNet-50 with random weights. Compared in one process, in turns, the median of
each counts: the classifier alone, the calibrated one without views (temperature scaling) and with
three (ca_views), and its head alone (evidence and calibrator on ready logits of all views). With m
views m + 1 forward passes are due; `over passes` is what comes on top of them. The target is a head
under 3 % of one forward pass.
"""

import argparse
import statistics
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

import rightly
from benchmarks.speed.fitting import build_predictions
from benchmarks.speed.resnet50 import build_resnet50
from benchmarks.speed.timing import time_call
from rightly.classifiers import Preprocessing
from rightly.deployment import export_classifier, open_exported
from rightly.deployment.onnx_graph import list_outputs
from rightly.deployment.onnx_tracing import silence_tracer, trace_module
from rightly.deployment.stages import StackedCalibration

VIEWS = ("rotation", "grayscale", "color_jitter")
Run = Callable[[], object]


def fit_calibrators() -> dict[str, rightly.Calibrator]:
    predictions, labels = build_predictions(2000, 1000)
    named = rightly.Predictions(predictions.logits, predictions.view_logits, view_names=VIEWS)
    return {
        "0 views": rightly.fit(named, labels, "temperature_scaling", threshold=0.9),
        "3 views": rightly.fit(named, labels, "ca_views", threshold=0.9),
    }


def build_runs(engine: str, device: str, batch: int, size: int, folder: Path) -> dict[str, Run]:
    """What is timed, by name: each a function that processes one batch."""
    network = build_resnet50()
    preprocessing = Preprocessing((size, size), mean=(0.5,) * 3, std=(0.2,) * 3)
    images = torch.rand(batch, 3, size, size)
    logits = 3 * torch.randn(4 * batch, 1000)
    models = {
        name: rightly.CalibratedClassifier(
            network, fitted, preprocessing=preprocessing, device=device
        )
        for name, fitted in fit_calibrators().items()
    }
    if engine == "torch":
        images_there, ready = images.to(device), logits.to(device)
        runs: dict[str, Run] = {"bare": lambda: network(preprocessing.normalise(images_there))}
        for name, model in models.items():
            runs[name] = lambda model=model: model(images_there)
        head = models["3 views"].calibration
        return {**runs, "head of 3 views": lambda: head(ready)}
    import onnxruntime

    with silence_tracer():
        look = models["0 views"].network
        graph = trace_module(
            look, {"images": (images[:1].repeat(2, 1, 1, 1), "n")}, ["look_logits"]
        )
        stage = StackedCalibration(models["3 views"].calibration)
        names = [f"outputs_{name}" for name in list_outputs(models["3 views"])]
        head = trace_module(stage, {"stacked": (logits, "stack")}, names)
    bare = onnxruntime.InferenceSession(graph.SerializeToString())
    alone = onnxruntime.InferenceSession(head.SerializeToString())
    pixels, stacked = images.numpy(), logits.numpy()
    runs = {"bare": lambda: bare.run(None, {"images": pixels})}
    for name, model in models.items():
        path = folder / f"{name[0]}.onnx"
        export_classifier(model, path)
        opened = open_exported(path)
        runs[name] = lambda opened=opened: opened.run(pixels)
    return {**runs, "head of 3 views": lambda: alone.run(None, {"stacked": stacked})}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--engine", default="onnx", choices=["onnx", "torch"])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--batches", default="1,64")
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    print(f"{'batch':>5}  {'what':<16} {'ms':>9}  {'of a pass':>9}  {'over passes':>11}")
    for batch in (int(text) for text in options.batches.split(",")):
        with TemporaryDirectory() as folder, torch.no_grad():
            runs = build_runs(options.engine, options.device, batch, options.size, Path(folder))
            times: dict[str, list[float]] = {name: [] for name in runs}
            for run in runs.values():
                time_call(run, options.device)  # the first call prepares
            for _ in range(options.rounds):
                for name, run in runs.items():
                    times[name].append(time_call(run, options.device))
        for name, seconds in times.items():
            share = statistics.median([s / b for s, b in zip(seconds, times["bare"], strict=True)])
            due = {"bare": 1, "0 views": 1, "3 views": 4}.get(name)
            over = "" if due is None else f"{share / due - 1:+.1%}"
            taken = 1000 * statistics.median(seconds)
            print(f"{batch:>5}  {name:<16} {taken:>9.2f}  {share:>9.3f}  {over:>11}")


if __name__ == "__main__":
    main()
