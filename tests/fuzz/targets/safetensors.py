"""`rightly.load_calibrator`: files of all methods, with other tensors and headers."""

import json
import tempfile
import warnings
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import safetensors.torch
import torch
from torch import Tensor

import rightly
from rightly.calibrators import CALIBRATORS, serialization
from tests.conftest import make
from tests.fuzz.mutators import VALUES, mutate_array, mutate_bytes, mutate_json
from tests.fuzz.target import Files, Target

CLASSES = 4
NAME = "a.safetensors"


def make_samples() -> list[Files]:
    data = make(n=60, c=CLASSES, m=2, d=3)
    samples = []
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder, NAME)
        for method in CALIBRATORS:
            own = make(n=60, c=CALIBRATORS[method].fits_classes or CLASSES, m=2, d=3)
            rightly.calibrator(method).fit(*own).save(path)
            samples.append({NAME: _sort_header(path.read_bytes())})
        rightly.calibrator("ca_views", budget=1.5).fit(*data).save(path)
        samples.append({NAME: _sort_header(path.read_bytes())})
        fitted = rightly.fit(*data, "rightly", threshold=0.7)
        others = make(n=60, c=CLASSES, m=2, d=3, seed=1)
        fitted.decide(*others, coverage=0.8, set_score="raps").save(path)
        samples.append({NAME: _sort_header(path.read_bytes())})
    return samples


def mutate(random: Random, samples: list[Files]) -> Files:
    data = random.choice(samples)[NAME]
    action = random.random()
    if action < 0.8:
        data = _forge(random, data)
    if action > 0.7:
        data = mutate_bytes(random, data, random.choice(samples)[NAME])
    return {NAME: data}


def _forge(random: Random, data: bytes) -> bytes:
    """The file with other tensors or another header, and a list and checksum that fit."""
    length = int.from_bytes(data[:8], "little")
    encoded = json.loads(data[8 : 8 + length])["__metadata__"]
    tensors = safetensors.torch.load(data)
    if random.random() < 0.6 and tensors:
        tensors = _change_tensors(random, tensors)
    else:
        key = random.choice(sorted(encoded))
        if key in ("format", "version", "sha256", "tensors") or random.random() < 0.1:
            encoded[key] = random.choice([one for one in VALUES if isinstance(one, str)])
        else:
            changed = mutate_json(random, json.loads(encoded[key]))
            encoded[key] = changed.decode("utf-8", "replace")
        if random.random() < 0.1:
            del encoded[random.choice(sorted(encoded))]
    if random.random() < 0.95:
        encoded["tensors"] = json.dumps(serialization._list_tensors(tensors))
        encoded.pop("sha256", None)
        encoded["sha256"] = serialization._compute_checksum(encoded, tensors)
    return _sort_header(safetensors.torch.save(tensors, encoded))


def _sort_header(data: bytes) -> bytes:
    """The same file with its header in order, which safetensors leaves to chance."""
    length = int.from_bytes(data[:8], "little")
    header = json.dumps(json.loads(data[8 : 8 + length]), sort_keys=True).encode()
    header += b" " * (-len(header) % 8)
    return len(header).to_bytes(8, "little") + header + data[8 + length :]


def _change_tensors(random: Random, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    changed: dict[str, Any] = dict(tensors)
    name = random.choice(sorted(changed))
    action = random.random()
    if action < 0.1:
        del changed[name]
    elif action < 0.2:
        changed[random.choice((f"{name}.x", "x", f"first.{name}", "training", ""))] = changed[name]
    elif action < 0.3:
        changed[name] = changed[random.choice(sorted(changed))]
    else:
        array = mutate_array(random, changed[name].numpy())
        if array.dtype.kind in "fiub" and array.dtype.itemsize <= 8:
            native = np.array(array, array.dtype.newbyteorder("="), order="C")
            changed[name] = torch.from_numpy(native) if native.size else torch.zeros(native.shape)
    return {key: tensor.clone().contiguous() for key, tensor in changed.items()}


def read(folder: Path) -> None:
    calibrator = rightly.load_calibrator(folder / NAME)
    repr(calibrator), repr(dict(calibrator.record))
    predictions = _predictions_for(calibrator)
    for ask in (calibrator.confidence, calibrator.temperature, calibrator.probabilities):
        try:
            values = ask(predictions)
        except ValueError as error:  # promised for files whose numbers overflow on these samples
            assert "fit again" in str(error) or "predictions" in str(error), error
            continue
        assert bool(torch.isfinite(values).all()), f"{ask.__name__} is not finite"
    if calibrator.sets is not None:
        shape = calibrator.prediction_sets(predictions).shape
        assert shape == predictions.logits.shape
    classes = calibrator.classes(predictions)
    assert bool(((classes >= 0) & (classes < predictions.class_count)).all())


def _predictions_for(calibrator: Any) -> rightly.Predictions:
    """Samples of the shape that a calibrator asks for: plain, masked and far out."""
    c, m, d = calibrator.class_count, len(calibrator.view_names), calibrator.feature_count or 0
    generator = torch.Generator().manual_seed(0)
    logits = 3 * torch.randn(6, c, generator=generator)
    logits[1] *= 100
    logits[2, 1:] = -torch.inf
    logits[3] = 0
    views = logits[:, None] + torch.randn(6, m, c, generator=generator) if m else None
    features = 5 * torch.randn(6, d, generator=generator) if d else None
    return rightly.Predictions(logits, views, features, calibrator.view_names or None)


TARGET = Target("safetensors", (ValueError,), make_samples, mutate, read)
