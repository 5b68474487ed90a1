"""`rightly.load` of .npz files: archives whose members and checksums are right, and others."""

import io
import tempfile
import zipfile
from pathlib import Path
from random import Random

import numpy as np

import rightly
from tests.conftest import make
from tests.fuzz.mutators import WORDS, mutate_array, mutate_bytes, mutate_text
from tests.fuzz.target import Files, Target

METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)


def make_samples() -> list[Files]:
    predictions, labels = make(n=12, c=4, m=2, d=3)
    whole = rightly.Predictions(
        predictions.logits,
        predictions.view_logits,
        predictions.features,
        predictions.view_names,
        ["ant", "bee", "cow", "dog"],
        np.arange(12) % 3,
        ["blur", "noise"],
        np.arange(12) // 3,
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.npz")
        rightly.save(path, whole, labels)
        plain = io.BytesIO()
        np.savez(plain, logits=predictions.logits.numpy().astype(np.float16))
        return [{"a.npz": path.read_bytes()}, {"a.npz": plain.getvalue()}]


def mutate(random: Random, samples: list[Files]) -> Files:
    data = random.choice(samples)["a.npz"]
    if random.random() < 0.75:
        data = _rebuild(random, data)
    if random.random() < 0.4:
        data = mutate_bytes(random, data, random.choice(samples)["a.npz"])
    return {"a.npz": data}


def _rebuild(random: Random, data: bytes) -> bytes:
    """The archive with changed members, whose checksums fit."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = [(name, archive.read(name)) for name in archive.namelist()]
    chosen = random.randrange(len(members))
    name, content = members[chosen]
    action = random.random()
    if action < 0.4:
        array = mutate_array(random, np.lib.format.read_array(io.BytesIO(content)))
        written = io.BytesIO()
        np.lib.format.write_array(written, array, version=random.choice([(1, 0), (2, 0), (3, 0)]))
        members[chosen] = (name, written.getvalue())
    elif action < 0.65:
        members[chosen] = (name, _mutate_header(random, content))
    elif action < 0.8:
        members[chosen] = (name, mutate_bytes(random, content, data))
    elif action < 0.87:
        names = ("logits.npy", "labels.npy", "image.npy", "probs.npy", *WORDS)
        members[chosen] = (random.choice(names), content)
    elif action < 0.93:
        members.append((name, random.choice(members)[1]))
    else:
        del members[chosen]
    return _pack(random, members)


def _mutate_header(random: Random, content: bytes) -> bytes:
    """An array whose header says something else, with a length that fits it."""
    size = int.from_bytes(content[8:10], "little")
    header = content[10 : 10 + size].decode("latin-1").rstrip()
    replacement = random.choice(
        (
            ("(12,", f"({random.choice((0, -12, 10**12, 2**63, 2**64, 10**30))},"),
            ("False", random.choice(("True", "None", "0", "[]"))),
            (
                "<f4",
                random.choice(("|O", "<f99", "<V8", "[('a', '<f4')]", "<f16", "<M8", "", "|V0")),
            ),
            ("}", ", 'extra': 1}"),
            ("{", "[" * random.choice((1, 50, 5000))),
            ("'shape': (", "'shape': (" + "1, " * random.choice((1, 40, 3000))),
            ("descr", "desc"),
        )
    )
    changed = header.replace(*replacement)
    if changed == header:
        changed = mutate_text(random, header)
    encoded = changed.encode("latin-1", "replace") + b"\n"
    return content[:8] + len(encoded).to_bytes(4, "little")[:2] + encoded + content[10 + size :]


def _pack(random: Random, members: list[tuple[str, bytes]]) -> bytes:
    packed = io.BytesIO()
    method = random.choice((*METHODS[:2] * 4, *METHODS))
    with zipfile.ZipFile(packed, "w", method) as archive:
        for name, content in members:
            info = zipfile.ZipInfo(name or "logits.npy")
            info.compress_type = method
            archive.writestr(info, content)
    return packed.getvalue()


def read(folder: Path) -> None:
    predictions, labels = rightly.load(folder / "a.npz")
    check_predictions(predictions, labels)


def check_predictions(predictions: rightly.Predictions, labels: object) -> None:
    """What any predictions that were read must be like."""
    confidence = predictions.confidence
    assert bool(((confidence >= 0) & (confidence <= 1)).all()), "a confidence is none"
    for values in (predictions.logits, predictions.view_logits, predictions.features):
        assert values is None or bool(np.isfinite(values.numpy()).all()), "not finite"
    assert labels is None or len(labels) == len(predictions)  # type: ignore[arg-type]
    repr(predictions)


TARGET = Target("npz", (ValueError, TypeError), make_samples, mutate, read)
