"""JSON beside data: results of comparisons, config.json of saved folders, mappings of ObjectNet."""

import json
from pathlib import Path
from random import Random

from rightly.datasets import open_images
from rightly.deployment.metadata import read_config
from rightly.evaluation.benchmark import benchmark
from rightly.evaluation.compare import Comparison
from rightly.evaluation.results import Result
from tests.deployment.tiny_onnx import METADATA
from tests.fuzz.mutators import mutate_bytes, mutate_json
from tests.fuzz.target import Files, Target

MAPPINGS = {
    "folder_to_objectnet_label.json": {"chair": "Chair", "tea": "Tea", "bike": "Bicycle"},
    "pytorch_to_imagenet_2012_id.json": {"0": 1, "1": 2, "2": 3},
    "objectnet_to_imagenet_1k.json": {"Chair": "a chair", "Bicycle": "a tandem; a mountain bike"},
}


def make_samples() -> list[Files]:
    rows = [
        Result(method, dataset, metric, 0.1 * (i + 1), 0, 0.05, 0.5, p, p, 0.01, 0.02)
        for i, (method, p) in enumerate((("uncalibrated", 0.02), ("temperature_scaling", None)))
        for dataset in ("ind", "blur")
        for metric in ("ece", "brier", "auroc")
    ]
    comparison = Comparison(rows, 1000, "temperature_scaling", skipped={"ca_views": ("views",)})
    results = comparison.to_json().encode()
    mappings = {f"mappings/{name}": json.dumps(value).encode() for name, value in MAPPINGS.items()}
    mappings["mappings/imagenet_to_label_2012_v2"] = b"a chair\na tandem\na mountain bike\n"
    images = {
        f"images/{name}/{i}.png": b"not decoded here" for i, name in enumerate(("bike", "tea"))
    }
    return [
        {"results.json": results},
        {"config.json": json.dumps(METADATA).encode()},
        {**mappings, **images},
    ]


def mutate(random: Random, samples: list[Files]) -> Files:
    files = dict(random.choice(samples))
    name = random.choice([name for name in files if not name.endswith(".png")])
    if name.endswith(".json") and random.random() < 0.85:
        files[name] = mutate_json(random, json.loads(files[name]))
    else:
        files[name] = mutate_bytes(random, files[name], files[name])
    return files


def read(folder: Path) -> None:
    if (folder / "results.json").exists():
        comparison = Comparison.load(folder / "results.json")
        comparison.to_json(), comparison.to_csv(), comparison.to_markdown(), repr(comparison)
        comparison.to_latex(), comparison._repr_html_()
        try:
            benchmark(folder).to_json()
        except ValueError as error:  # of all files together
            raise ValueError(f"results.json: {error}") from error
    elif (folder / "config.json").exists():
        read_config(folder)
    else:
        dataset = open_images(folder, layout="objectnet")
        assert dataset.labels is not None and dataset.kept_classes is not None


TARGET = Target("json", (ValueError, FileNotFoundError), make_samples, mutate, read)
