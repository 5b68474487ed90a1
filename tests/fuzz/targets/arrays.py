"""`rightly.load` of .npy, .pt and .csv files."""

import io
from pathlib import Path
from random import Random

import numpy as np
import torch

import rightly
from tests.conftest import make
from tests.fuzz.mutators import mutate_array, mutate_bytes, mutate_text
from tests.fuzz.target import Files, Target
from tests.fuzz.targets.npz import check_predictions


def make_samples() -> list[Files]:
    predictions, labels = make(n=12, c=4)
    logits = predictions.logits
    single, named = io.BytesIO(), io.BytesIO()
    torch.save(logits, single)
    torch.save({"logits": logits, "labels": labels}, named)
    rows = [
        f"{','.join(map(str, row))},{y}" for row, y in zip(logits.tolist(), labels, strict=True)
    ]
    table = "\n".join(["ant,bee,cow,dog,label", *rows])
    return [
        {"a.npy": _write(logits.numpy())},
        {"a.npy": _write(logits[:, 0].numpy())},
        {"a.pt": single.getvalue()},
        {"a.pt": named.getvalue()},
        {"a.csv": table.encode()},
    ]


def _write(array: np.ndarray) -> bytes:
    written = io.BytesIO()
    np.lib.format.write_array(written, array, allow_pickle=True)
    return written.getvalue()


def mutate(random: Random, samples: list[Files]) -> Files:
    ((name, data),) = random.choice(samples).items()
    (other,) = random.choice(samples).values()
    if name == "a.csv" and random.random() < 0.7:
        return {name: mutate_text(random, data.decode()).encode("utf-8", "replace")}
    if name == "a.npy" and random.random() < 0.4:
        array = np.lib.format.read_array(io.BytesIO(data))
        return {name: _write(mutate_array(random, array))}
    return {name: mutate_bytes(random, data, other)}


def read(folder: Path) -> None:
    for path in folder.iterdir():
        check_predictions(*rightly.load(path))


TARGET = Target("arrays", (ValueError, TypeError), make_samples, mutate, read)
