"""From a classifier and images to rows: each in its place, whatever happens on the way."""

import csv
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
import tracemalloc
import weakref
from collections import Counter
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow.dataset
import pyarrow.parquet
import pytest
import torch
from PIL import Image
from torch import nn

import rightly
from rightly import collection as collecting
from rightly.classifiers import Preprocessing, open_model
from rightly.cli import main
from rightly.collection import Plan, Report, collect, collect_into, decoding, running
from rightly.collection.decoding import AHEAD, STEP
from rightly.datasets import ImageDataset, open_images
from rightly.datasets.imagenet import wnids
from rightly.predictions.store import Store
from rightly.transforms.shifts import SHIFTS, STANDARD_SHIFTS
from rightly.transforms.views import VIEWS

CLASSES = ("cat", "dog", "emu")
# 16 x 12 pictures become 12 x 9, of which the middle is cut out.
SMALL = Preprocessing((8, 8), 9, "bilinear", (0.4, 0.5, 0.6), (0.2, 0.3, 0.4))


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def shards_of(monkeypatch):
    """Makes `collect` store few images at a time."""

    def make(size):
        monkeypatch.setattr(collecting, "Plan", partial(Plan, shard_size=size))

    return make


class Tiny(nn.Module):
    """A convolution and a linear layer; counts the images it is shown."""

    def __init__(self, class_count=3, seed=0):
        super().__init__()
        self.conv, self.head = nn.Conv2d(3, 5, 3), nn.Linear(5, class_count)
        self.dropout = nn.Dropout(0.5)  # seen by whoever forgets evaluation mode
        draws = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for weight in self.parameters():
                weight.copy_(torch.randn(weight.shape, generator=draws))
        self.shown = 0

    def penultimate(self, images):
        return self.conv(images).relu().mean((2, 3))

    def forward(self, images):
        self.shown += len(images)
        return self.head(self.dropout(self.penultimate(images)))


def picture(i, mode="RGB", size=(16, 12)):
    pixels = np.random.default_rng(i).integers(0, 256, (size[1], size[0], 3), np.uint8)
    return Image.fromarray(pixels).convert(mode)


def flat(root, count):
    root.mkdir()
    for i in range(count):
        picture(i).save(root / f"{i:04d}.png")
    return root


def class_folders(root, count):
    for i in range(count):
        place = root / CLASSES[i % 3]
        place.mkdir(parents=True, exist_ok=True)
        picture(i).save(place / f"{i:04d}.png")
    return root


def by_hand(model, files, views=("hflip",), shifts=(), seed=0):
    """What a loop over images gives: logits, logits of views and features, shift by shift."""
    logits, view_logits, features = [], [], []
    model.eval()
    mean, std = torch.tensor([SMALL.mean, SMALL.std])[:, None, :, None, None]

    def seen(images):
        return (images - mean) / std

    with torch.no_grad():
        for name, severity in ((None, 0), *shifts):
            for file in files:
                small = Image.open(file).resize((12, 9), Image.Resampling.BILINEAR)
                pixels = np.asarray(small.crop((2, 0, 10, 8)), np.float32) / 255
                image = torch.from_numpy(pixels).permute(2, 0, 1)[None]
                shown = image if name is None else SHIFTS[name](image, severity, seed)
                logits.append(model(seen(shown)))
                features.append(model.penultimate(seen(shown)))
                view_logits += [torch.stack([model(seen(VIEWS[v](shown))) for v in views], 1)]
    return torch.cat(logits), torch.cat(view_logits), torch.cat(features)


def same(found, expected):
    """Two collections are equal to the last bit."""
    for name in ("logits", "view_logits", "features", "shift"):
        one, other = getattr(found[0], name), getattr(expected[0], name)
        assert (one is None) == (other is None)
        assert one is None or torch.equal(one, other)
    for name in ("view_names", "class_names", "shift_names"):
        assert getattr(found[0], name) == getattr(expected[0], name)
    assert (found[1] is None) == (expected[1] is None)
    assert found[1] is None or torch.equal(found[1], expected[1])


def close(found, expected):
    # Sums over a batch of another size are rounded otherwise in the last bits.
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


def rows_in(folder):
    return pyarrow.dataset.dataset(folder).to_table()


# What is collected.


@pytest.mark.parametrize("batch_size", [1, 7, 256])
def test_every_number_is_that_of_a_loop_over_images(tmp_path, shards_of, batch_size):
    shards_of(10)
    root, model = class_folders(tmp_path / "images", 23), Tiny()
    views, shifts = ("hflip", "color_jitter"), ("gaussian_noise:2", "contrast")
    found, labels = collect(
        model, root, views, shifts, batch_size, features=True, preprocessing=SMALL, seed=5
    )
    files = sorted(root.rglob("*.png"))
    logits, view_logits, features = by_hand(
        model, files, views, (("gaussian_noise", 2), ("contrast", 3)), seed=5
    )
    close(found.logits, logits)
    close(found.view_logits, view_logits)
    close(found.features, features)
    truth = torch.tensor([CLASSES.index(file.parent.name) for file in files])
    assert torch.equal(labels, truth.repeat(3))
    assert torch.equal(found.shift, torch.arange(3).repeat_interleave(23))
    assert (found.view_names, found.shift_names) == (views, shifts)
    assert found.class_names == CLASSES


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_what_is_stored_is_what_is_returned(tmp_path, shards_of, dtype):
    shards_of(5)
    root, out = class_folders(tmp_path / "images", 12), tmp_path / "preds"
    given = {"shifts": ("jpeg",), "preprocessing": SMALL, "features": True, "batch_size": 3}
    kept = collect(Tiny(), root, **given)
    stored = collect(Tiny(), root, **given, out=out, dtype=dtype)
    same(stored, rightly.load(out))
    if dtype == "float32":
        same(stored, kept)
    else:
        assert torch.equal(stored[0].view_logits, kept[0].view_logits.half().float())
    assert len(list(out.iterdir())) == 3


def test_names_and_numbers_of_images_are_stored_with_their_rows(tmp_path, shards_of):
    shards_of(4)
    root, out = flat(tmp_path / "images", 9), tmp_path / "preds"
    found, _ = collect(Tiny(), root, ("hflip",), ("contrast",), 3, out=out, preprocessing=SMALL)
    rows = rows_in(out).sort_by([("shift", "ascending"), ("image", "ascending")])
    assert rows["image"].to_pylist() == [*range(9)] * 2
    assert rows["name"].to_pylist() == [f"{i:04d}.png" for i in range(9)] * 2
    np.testing.assert_array_equal(np.array(rows["view_hflip"].to_pylist()), found.view_logits[:, 0])
    kept = json.loads(rows.schema.metadata[b"rightly"])
    assert kept["views"] == ["hflip"] and kept["shifts"] == ["contrast"] and kept["images"] == 9


def test_the_order_does_not_depend_on_how_fast_pictures_are_decoded(tmp_path, shards_of):
    shards_of(16)
    images, model = open_images(flat(tmp_path / "images", 40)), Tiny()

    def slow(i):
        time.sleep(random.Random(i).random() / 100)
        return images.read(i)

    given = {"preprocessing": SMALL, "batch_size": 6}
    at_once = collect(model, images, **given, workers=1)
    same(collect(model, replace(images, read=slow), **given, workers=8), at_once)


def test_without_views_and_shifts_there_are_only_logits(tmp_path):
    root = flat(tmp_path / "images", 5)
    found, labels = collect(Tiny(), root, (), preprocessing=SMALL)
    close(found.logits, by_hand(Tiny(), sorted(root.iterdir()))[0])
    assert found.view_logits is found.features is found.shift is labels is None
    assert found.view_names == found.shift_names == ()
    stored = collect(Tiny(), root, (), preprocessing=SMALL, out=tmp_path / "preds")
    same(stored, (found, labels))


def test_a_function_is_as_good_as_a_module(tmp_path):
    root, model = flat(tmp_path / "images", 6), Tiny().eval()
    found, _ = collect(lambda images: model(images), root, preprocessing=SMALL)
    expected, _ = collect(model, root, preprocessing=SMALL)
    # A module's weights are laid out channels last, a function's own are not touched.
    torch.testing.assert_close(found.logits, expected.logits, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(found.view_logits, expected.view_logits, atol=1e-5, rtol=1e-5)


def test_labels_come_from_a_table_beside_a_flat_folder(tmp_path):
    root, table = flat(tmp_path / "images", 4), tmp_path / "labels.csv"
    table.write_text("file,label\n0001.png,1\n0000.png,2\n0003.png,0\n0002.png,1\n")
    given = {"preprocessing": SMALL, "images": {"labels": table}}
    assert collect(Tiny(), root, **given)[1].tolist() == [2, 1, 1, 0]
    assert collect(Tiny(), root, **given, out=tmp_path / "preds")[1].tolist() == [2, 1, 1, 0]


def test_logits_and_views_are_restricted_to_the_classes_of_the_set(tmp_path):
    root, kept, model = tmp_path / "imagenet-a", [6, 11, 988], Tiny(1000)
    for i, number in enumerate([988, 6, 11, 988]):
        place = root / wnids()[number]
        place.mkdir(parents=True, exist_ok=True)
        picture(i).save(place / f"{i}.png")
    opened = replace(open_images(root, layout="imagenet-a"), notes=())
    for out in (None, tmp_path / "preds"):
        found, labels = collect(
            model, opened, ("hflip",), ("contrast:1",), preprocessing=SMALL, out=out
        )
        files = [root / name for name in opened.names]
        logits, view_logits, _ = by_hand(model, files, ("hflip",), (("contrast", 1),))
        close(found.logits, logits[:, kept])
        close(found.view_logits, view_logits[:, :, kept])
        assert found.class_names == tuple(wnids()[number] for number in kept)
        assert labels.tolist() == [0, 1, 2, 2] * 2


class Pairs(torch.utils.data.Dataset):
    """Pictures with labels that are only known when they are read."""

    def __init__(self, labels):
        self.labels = labels

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return picture(i), self.labels[i]


def test_labels_that_come_with_the_pictures_of_a_dataset_are_kept(tmp_path, shards_of):
    shards_of(4)
    truth = [2, 0, 1, 1, 2, 0, 0, 1, 2]
    for out in (None, tmp_path / "preds"):
        found, labels = collect(
            Tiny(), Pairs(truth), (), ("contrast",), 2, out=out, preprocessing=SMALL
        )
        assert labels.tolist() == truth * 2
        expected = collect(Tiny(), flat(tmp_path / f"{out is None}", 9), (), preprocessing=SMALL)[0]
        close(found.logits[:9], expected.logits)


def test_features_of_a_dictionary_are_taken_as_given(tmp_path):
    def model(images):
        return {"logits": images.mean((2, 3)) * 9, "features": images[:, :, 0, :2].flatten(1)}

    found, _ = collect(
        model, flat(tmp_path / "images", 3), (), features=True, preprocessing=Preprocessing((8, 8))
    )
    assert found.features.shape == (3, 6)


@pytest.mark.parametrize("stored", [True, False])
def test_progress_adds_up_to_the_number_of_images(tmp_path, shards_of, stored):
    shards_of(8)
    steps = []
    out = tmp_path / "preds" if stored else None
    root = flat(tmp_path / "images", 21)
    collect(Tiny(), root, (), ("jpeg",), 3, out=out, preprocessing=SMALL, advance=steps.append)
    assert sum(steps) == 21
    assert max(steps) == 3


# The user's model.


def state_of(model):
    return (
        [part.training for part in model.modules()],
        [(id(w), id(w.grad), w.requires_grad, w.dtype, w.device) for w in model.parameters()],
        [weight.detach().clone() for weight in model.parameters()],
        torch.is_grad_enabled(),
        torch.is_inference_mode_enabled(),
    )


def alike(before, after):
    assert before[:2] == after[:2] and before[3:] == after[3:]
    assert all(torch.equal(*pair) for pair in zip(before[2], after[2], strict=True))


@pytest.fixture
def in_training():
    model = Tiny()
    model.train()
    model.dropout.eval()
    model.conv.bias.requires_grad_(False)
    model(torch.rand(2, 3, 8, 8)).sum().backward()
    return model


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_the_model_is_afterwards_as_it_was(tmp_path, in_training, precision):
    before = state_of(in_training)
    root = flat(tmp_path / "images", 5)
    found, _ = collect(in_training, root, preprocessing=SMALL, precision=precision)
    alike(before, state_of(in_training))
    assert found.logits.dtype == torch.float32
    expected = by_hand(in_training, sorted(root.iterdir()))[0]
    torch.testing.assert_close(
        found.logits, expected, rtol=0, atol=1e-5 if precision == "float32" else 0.1
    )


def test_the_model_is_as_it_was_after_an_error_of_its_own(tmp_path, in_training):
    before = state_of(in_training)

    def broken(module, given, output):
        raise RuntimeError("out of luck")

    hook = in_training.head.register_forward_hook(broken)
    with pytest.raises(RuntimeError, match="out of luck"):
        collect(in_training, flat(tmp_path / "images", 5), preprocessing=SMALL)
    hook.remove()
    alike(before, state_of(in_training))


def test_the_model_is_as_it_was_after_a_full_disk(tmp_path, in_training, monkeypatch):
    before = state_of(in_training)

    def full(*given, **named):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pyarrow.parquet, "write_table", full)
    root = flat(tmp_path / "images", 5)
    # The error keeps the frames it came through alive, and so what is open in them.
    with pytest.raises(OSError, match="No space left") as caught:
        collect(in_training, root, preprocessing=SMALL, out=tmp_path / "preds")
    alike(before, state_of(in_training))
    assert caught.value.__traceback__ is not None


def test_taking_blocks_one_by_one_leaves_gradients_on(tmp_path):
    classifier = open_model(Tiny(), preprocessing=SMALL)
    images = open_images(flat(tmp_path / "images", 6))
    for _ in running.blocks_of(classifier, images, Plan((), shard_size=2), range(3)):
        assert torch.is_grad_enabled()


def test_what_a_model_keeps_while_collecting_can_be_trained_with(tmp_path):
    class Keeping(Tiny):
        kept = None

        def forward(self, images):
            if self.kept is None:
                self.kept = torch.ones(3, device=images.device)
            return super().forward(images) * self.kept

    model = Keeping()
    collect(model, flat(tmp_path / "images", 3), preprocessing=SMALL)
    model(torch.rand(2, 3, 8, 8)).sum().backward()
    assert model.head.weight.grad is not None


# Going on after an end.


class Stopped(Exception):  # noqa: N818
    pass


def stop_after(count):
    total = 0

    def advance(done):
        nonlocal total
        total += done
        if total >= count:
            raise Stopped

    return advance


@pytest.mark.parametrize("images_before", [1, 8, 13, 20, 29, 30])
def test_a_run_goes_on_where_it_was(tmp_path, shards_of, images_before):
    shards_of(8)
    root, out, model = class_folders(tmp_path / "images", 30), tmp_path / "preds", Tiny()
    given = {"views": ("hflip",), "shifts": ("jpeg",), "batch_size": 4, "preprocessing": SMALL}
    expected = collect(model, root, **given)
    whole, model.shown = model.shown, 0
    with pytest.raises(Stopped):
        collect(model, root, **given, out=out, advance=stop_after(images_before))
    shards = {path: path.stat().st_mtime_ns for path in out.iterdir()}
    # The callback of the last batch of a shard comes before the shard is written.
    assert len(shards) == (images_before - 1) // 8
    model.shown, steps = 0, []
    same(collect(model, root, **given, out=out, advance=steps.append), expected)
    assert model.shown == (30 - 8 * len(shards)) * whole // 30
    assert all(path.stat().st_mtime_ns == written for path, written in shards.items())
    assert sum(steps) == 30
    rows = rows_in(out)
    places = zip(rows["shift"].to_pylist(), rows["image"].to_pylist(), strict=True)
    assert sorted(places) == [*itertools.product(range(2), range(30))]


def test_a_finished_run_does_not_ask_the_model_again(tmp_path, shards_of):
    shards_of(8)
    root, out, model = flat(tmp_path / "images", 20), tmp_path / "preds", Tiny()
    first = collect(model, root, out=out, preprocessing=SMALL)
    model.shown, steps = 0, []
    same(collect(model, root, out=out, preprocessing=SMALL, advance=steps.append), first)
    assert model.shown == 0
    assert sum(steps) == 20


def test_progress_adds_up_when_the_short_last_shard_is_there(tmp_path, shards_of):
    shards_of(8)
    root, out, steps = flat(tmp_path / "images", 20), tmp_path / "preds", []
    collect(Tiny(), root, out=out, preprocessing=SMALL)
    (out / "part-000000.parquet").unlink()
    collect(Tiny(), root, out=out, preprocessing=SMALL, batch_size=8, advance=steps.append)
    assert steps == [12, 8]


def test_a_second_run_with_anything_else_is_refused(tmp_path):
    root, out = flat(tmp_path / "images", 5), tmp_path / "preds"
    collect(Tiny(), root, ("hflip",), out=out, preprocessing=SMALL)
    before = {path: path.read_bytes() for path in out.iterdir()}
    other = flat(tmp_path / "other", 6)
    for model, images, changes, words in (
        (Tiny(), root, {"views": ("blur",)}, r"views was \['hflip'\], now \['blur'\]"),
        (Tiny(), root, {"shifts": ("jpeg",)}, "shifts was"),
        (Tiny(seed=1), root, {}, "model_fingerprint was"),
        (Tiny(), other, {}, "images was 5, now 6; images_fingerprint was"),
        (Tiny(), root, {"preprocessing": Preprocessing((8, 8))}, "preprocessing was"),
        (Tiny(), root, {"dtype": "float16"}, "dtype was float32, now float16"),
        (Tiny(), root, {"seed": 1}, "seed was 0, now 1"),
        (Tiny(), root, {"features": True}, "features was False, now True"),
    ):
        given = {"views": ("hflip",), "preprocessing": SMALL} | changes
        with pytest.raises(ValueError, match=f"holds another collection .*{words}"):
            collect(model, images, **given, out=out)
    assert {path: path.read_bytes() for path in out.iterdir()} == before


def test_a_full_disk_can_be_mended_and_the_run_completed(tmp_path, shards_of, monkeypatch):
    shards_of(4)
    root, out = flat(tmp_path / "images", 10), tmp_path / "preds"
    write, left = pyarrow.parquet.write_table, itertools.count()

    def full(*given, **named):
        if next(left) == 1:
            raise OSError(28, "No space left on device")
        write(*given, **named)

    monkeypatch.setattr(pyarrow.parquet, "write_table", full)
    with pytest.raises(OSError, match="part-000001.parquet.*No space left.*same command again"):
        collect(Tiny(), root, out=out, preprocessing=SMALL)
    assert [path.name for path in out.iterdir()] == ["part-000000.parquet"]
    same(
        collect(Tiny(), root, out=out, preprocessing=SMALL),
        collect(Tiny(), root, preprocessing=SMALL),
    )


SLOW_MODEL = """
import time
from pathlib import Path

import pyarrow.parquet
import torch

write_table = pyarrow.parquet.write_table


def slowly(table, where, **others):
    Path(where).write_bytes(b"PAR1 and nothing more for a while")
    time.sleep(0.1)
    write_table(table, where, **others)


class Slow(torch.nn.Linear):
    def forward(self, images):
        time.sleep(0.005)
        return super().forward(images.mean((2, 3)))


def model():
    torch.set_num_threads(1)
    pyarrow.parquet.write_table = slowly  # so that some kills meet half a file
    made = Slow(3, 10)
    with torch.no_grad():
        made.weight.copy_(torch.arange(30.0).reshape(10, 3).sin())
        made.bias.zero_()
    Path("ready").touch()
    return made
"""


def started(folder, out):
    """A run of the command that has just begun to collect."""
    ready = folder / "ready"
    ready.unlink(missing_ok=True)
    command = [sys.executable, "-m", "rightly", "collect", "--model", "py:slow_model:model"]
    command += ["--images", "images", "--layout", "cifar10", "--split", "test", "--out", out]
    command += ["--views", "hflip", "--shifts", "contrast", "-b", "128", "-j", "1", "--quiet"]
    with (folder / "log").open("a") as log:
        process = subprocess.Popen(
            command,
            cwd=folder,
            stdout=log,
            stderr=log,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
    while not ready.exists() and process.poll() is None:
        time.sleep(0.005)
    return process


@pytest.mark.slow
def test_killed_at_twenty_moments_it_ends_as_if_undisturbed(tmp_path):
    count, shards = 10_000, 10
    (tmp_path / "slow_model.py").write_text(SLOW_MODEL)
    pixels = np.random.default_rng(0).integers(0, 256, (count, 3073), np.uint8)
    pixels[:, 0] %= 10  # CIFAR-10 has the label before the pixels
    home = tmp_path / "images" / "cifar-10-batches-bin"
    home.mkdir(parents=True)
    (home / "test_batch.bin").write_bytes(pixels.tobytes())

    process = started(tmp_path, "undisturbed")
    begin = time.monotonic()
    assert process.wait() == 0, (tmp_path / "log").read_text()
    whole = time.monotonic() - begin  # of the collecting alone, without the start of Python
    expected, draws, kills = rows_in(tmp_path / "undisturbed"), random.Random(0), 0
    assert expected.num_rows == 2 * count
    for folder in itertools.count():
        out, ended = tmp_path / f"killed{folder}", False
        while not ended:
            process = started(tmp_path, out.name)
            if kills < 20:
                # Soon, so that several kills meet one folder at different stages.
                time.sleep(draws.random() * whole / 3)
                process.send_signal(signal.SIGKILL)
            status = process.wait()
            assert status in (0, -signal.SIGKILL), (tmp_path / "log").read_text()
            kills += status == -signal.SIGKILL
            ended = status == 0
            for shard in out.glob("part-*"):
                assert pyarrow.parquet.read_metadata(shard).num_rows in (2 * 1024, 2 * 784)
        assert rows_in(out).equals(expected, check_metadata=True)
        same(rightly.load(out), rightly.load(tmp_path / "undisturbed"))
        names = {path.name for path in out.iterdir()}
        assert names == {f"part-{k:06d}.parquet" for k in range(shards)}
        if kills == 20:
            break


# Bad input.


def test_a_damaged_picture_stops_the_run_by_name(tmp_path):
    root = flat(tmp_path / "images", 5)
    (root / "0003.png").write_bytes((root / "0003.png").read_bytes()[:60])
    with pytest.raises(ValueError, match=r"0003\.png cannot be decoded: .*unreadable='skip'"):
        collect(Tiny(), root, preprocessing=SMALL)


@pytest.mark.parametrize("stored", [True, False])
def test_damaged_pictures_are_left_out_and_listed_where_asked(tmp_path, shards_of, stored):
    shards_of(4)
    root = class_folders(tmp_path / "images", 12)
    whole, labels = collect(Tiny(), root, preprocessing=SMALL)
    names = [str(file.relative_to(root)) for file in sorted(root.rglob("*.png"))]
    # One alone, and all four of the second shard.
    for i in (1, 4, 5, 6, 7):
        (root / names[i]).write_bytes(b"no picture")
    out = tmp_path / "preds" if stored else None
    with pytest.warns(UserWarning, match=f"5 of 12 images cannot be decoded.*{names[1]}"):
        found, left = collect(
            Tiny(), root, batch_size=2, preprocessing=SMALL, out=out, unreadable="skip"
        )
    rows = [0, 2, 3, 8, 9, 10, 11]
    close(found.logits, whole.logits[rows])
    assert torch.equal(left, labels[rows])
    if out:
        classifier = open_model(Tiny(), preprocessing=SMALL)
        settings = Plan(shard_size=4).settings(classifier, open_images(root))
        skipped = Store.begin(out, settings).skipped()
        assert [name for name, _ in skipped] == [names[i] for i in (1, 4, 5, 6, 7)]
        assert all(reason for _, reason in skipped)
        assert rows_in(out).num_rows == 7


def test_a_first_shard_without_a_picture_is_stored_too(tmp_path, shards_of):
    shards_of(2)
    root, out = flat(tmp_path / "images", 5), tmp_path / "preds"
    for i in (0, 1):
        (root / f"000{i}.png").write_bytes(b"no picture")
    with pytest.warns(UserWarning, match="2 of 5 images cannot be decoded"):
        found, _ = collect(Tiny(), root, preprocessing=SMALL, out=out, unreadable="skip")
    assert len(found) == len(rows_in(out)) == 3
    assert sorted(path.name for path in out.iterdir())[0] == "part-000000.parquet"


@pytest.mark.filterwarnings("ignore:3 of 3 images")
@pytest.mark.parametrize("stored", [True, False])
def test_pictures_that_are_all_damaged_are_an_error(tmp_path, stored):
    root = flat(tmp_path / "images", 3)
    for file in root.iterdir():
        file.write_bytes(b"no picture")
    out = tmp_path / "preds" if stored else None
    with pytest.raises(ValueError, match=r"no image could be decoded; the first is 0000\.png"):
        collect(Tiny(), root, preprocessing=SMALL, unreadable="skip", out=out)


def test_grey_and_transparent_pictures_are_converted_and_said_so(tmp_path):
    root = flat(tmp_path / "images", 5)
    picture(1, "L").save(root / "0001.png")
    picture(2, "RGBA").save(root / "0002.png")
    picture(3, "L").save(root / "0003.png")
    with pytest.warns(UserWarning) as warned:
        found, _ = collect(Tiny(), root, (), preprocessing=SMALL)
    assert sorted(str(warning.message) for warning in warned) == [
        "1 pictures of mode RGBA were converted to RGB",
        "2 pictures of mode L were converted to RGB",
    ]
    for i in range(5):
        Image.open(root / f"000{i}.png").convert("RGB").save(root / f"000{i}.png")
    close(found.logits, by_hand(Tiny(), sorted(root.iterdir()))[0])


def test_conversions_are_counted_right_by_many_threads(tmp_path):
    class Slow(Counter):
        """Leaves time for another thread between reading and writing a count."""

        def __getitem__(self, mode):
            before = super().__getitem__(mode)
            time.sleep(0.002)
            return before

    root = tmp_path / "images"
    root.mkdir()
    for i in range(24):
        picture(i, "L").save(root / f"{i:02d}.png")
    images, report = open_images(root), Report(converted=Slow())
    classifier = open_model(Tiny(), preprocessing=SMALL)
    store = Store.begin(tmp_path / "preds", Plan(()).settings(classifier, images))
    collect_into(store, classifier, images, Plan(()), workers=8, report=report)
    assert dict(report.converted) == {"L": 24}


def flip_flop():
    widths = itertools.cycle([3, 4])
    return lambda images: torch.rand(len(images), next(widths))


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (lambda images: images, r"must give float logits of shape \(5, classes\)"),
        (lambda images: images.mean((1, 2, 3)), r"must give float logits.*got .* shape \(5,\)"),
        (lambda images: images.mean((2, 3))[:2], r"must give float logits.*shape \(2, 3\)"),
        (lambda images: images.mean((2, 3)).long(), "must give float logits.*int64"),
        (flip_flop(), "same number of classes in every batch: earlier batches had 3, got 4"),
    ],
)
def test_a_model_that_gives_no_logits_is_refused(tmp_path, model, words):
    with pytest.raises(ValueError, match=words):
        collect(model, flat(tmp_path / "images", 5), preprocessing=SMALL)


def test_a_model_that_changes_its_classes_between_batches_is_refused(tmp_path):
    with pytest.raises(ValueError, match="earlier batches had 3, got 4"):
        collect(flip_flop(), flat(tmp_path / "images", 5), (), batch_size=3, preprocessing=SMALL)


@pytest.mark.parametrize("where", ["logits", "logits of views", "features"])
def test_values_that_are_no_numbers_are_refused_with_the_image(tmp_path, where):
    root, out = flat(tmp_path / "images", 7), tmp_path / "preds"
    Image.new("RGB", (16, 12), (255, 0, 0)).save(root / "0005.png")

    def model(images):
        red = (images[:, 0] > 0.99).flatten(1).all(1) & (images[:, 1] < 0.01).flatten(1).all(1)
        grey = (images[:, 0] == images[:, 1]).flatten(1).all(1)
        nothing = torch.where(red, torch.nan, 0.0)[:, None]
        logits, features = images.mean((2, 3)) * 9, images.mean((2, 3))
        if where == "logits":
            logits = logits + nothing
        elif where == "features":
            features = features + nothing
        else:
            dark = images.mean((1, 2, 3)) < 0.35  # the red picture in grey; noise is lighter
            logits = torch.where((grey & dark)[:, None], torch.inf, logits)
        return {"logits": logits, "features": features}

    with pytest.raises(
        ValueError,
        match=rf"NaN or infinite {where} for 1 images, the first is 0005\.png: .*float32",
    ):
        collect(
            model,
            root,
            ("grayscale",),
            batch_size=4,
            features=True,
            preprocessing=Preprocessing((8, 8)),
            out=out,
        )
    assert not list(out.iterdir())


def test_pictures_of_different_sizes_need_the_size_of_the_model(tmp_path):
    root = flat(tmp_path / "images", 3)
    picture(9, size=(20, 20)).save(root / "0001.png")
    with pytest.raises(
        ValueError, match=r"0001\.png is \(20, 20\) and others are \(12, 16\): give"
    ):
        collect(Tiny(), root)


def test_the_odd_picture_is_named_however_fast_it_is_decoded(tmp_path):
    root = flat(tmp_path / "images", STEP + 4)
    odd = f"{STEP:04d}.png"
    picture(9, size=(20, 20)).save(root / odd)
    images, seen = open_images(root), threading.Event()

    def read(i):
        if i == 0:
            seen.wait(10)
        found = images.read(i)
        if i > STEP:  # by then the odd one, before it in the same thread, is all done
            seen.set()
        return found

    with pytest.raises(ValueError, match=rf"{odd} is \(20, 20\) and others are \(12, 16\)"):
        collect(Tiny(), replace(images, read=read), workers=2)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"views": ("sideways",)}, "no view 'sideways'; there are rotation, grayscale, .*blur"),
        ({"shifts": ("fog",)}, "no shift 'fog'; there are gaussian_noise, .*occlusion"),
        ({"shifts": ("contrast:6",)}, "must be 1 to 5, as in contrast:3, got 'contrast:6'"),
        ({"shifts": ("contrast:12",)}, "must be 1 to 5, as in contrast:3, got 'contrast:12'"),
        ({"shifts": ("contrast:hard",)}, "must be 1 to 5"),
        ({"views": ("hflip", "hflip")}, "views must be different ones, got hflip, hflip"),
        ({"shifts": ("jpeg", "jpeg:3")}, "shifts must be different ones, got jpeg, jpeg:3"),
        ({"precision": "float64"}, "precision must be one of float32, bfloat16, float16"),
        ({"dtype": "bfloat16"}, "dtype must be one of float32, float16, got 'bfloat16'"),
        ({"unreadable": "ignore"}, "unreadable must be one of stop, skip, got 'ignore'"),
        ({"batch_size": 0}, "batch_size must be at least 1, got 0"),
        ({"model": "tim:resnet50"}, "model must be one of timm:NAME, hf:.*got 'tim:resnet50'"),
        ({"model": "resnet50"}, "model must be one of timm:NAME"),
    ],
)
def test_unknown_choices_are_refused_with_those_that_there_are(tmp_path, given, words):
    given = {"model": Tiny(), "preprocessing": SMALL} | given
    with pytest.raises(ValueError, match=words):
        collect(dataset=flat(tmp_path / "images", 2), **given)


def test_labels_that_do_not_match_the_classes_are_refused(tmp_path):
    root = class_folders(tmp_path / "folders", 6)
    with pytest.raises(ValueError, match="the set has 3 classes but the classifier 4"):
        collect(Tiny(4), root, preprocessing=SMALL)
    root, table = flat(tmp_path / "flat", 2), tmp_path / "labels.csv"
    table.write_text("0000.png,1\n0001.png,3\n")
    with pytest.raises(ValueError, match=r"labels must lie in 0\.\.2 .*got 3"):
        collect(Tiny(), root, preprocessing=SMALL, images={"labels": table})


@pytest.mark.parametrize("stored", [True, False])
def test_labels_found_too_large_while_reading_are_refused(tmp_path, stored):
    out = tmp_path / "preds" if stored else None
    with pytest.raises(ValueError, match=r"labels must lie in 0\.\.2 .*got 3 for 4: do they count"):
        collect(Tiny(), Pairs([1, 2, 1, 2, 3, 2]), preprocessing=SMALL, out=out)


# The command.

MODEL = """
import torch
from torch import nn


def model():
    made = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(3, {classes}))
    with torch.no_grad():
        made[2].weight.copy_(30 * torch.eye({classes}, 3))
        made[2].bias.zero_()
    return made
"""
numbers = itertools.count()


@pytest.fixture
def own(tmp_path, monkeypatch):
    """Models of the user's own, in a module that no other test has imported."""
    monkeypatch.syspath_prepend(tmp_path)

    def make(classes=3):
        name = f"own_model_{next(numbers)}"
        (tmp_path / f"{name}.py").write_text(MODEL.format(classes=classes))
        return f"py:{name}:model"

    return make


def coloured(root, count, seed=0):
    """Pictures that are a little more red, green or blue, as their class says."""
    draws = np.random.default_rng(seed)
    for i in range(count):
        pixels = draws.normal(128, 60, (8, 8, 3)) + draws.normal(0, 10, 3) + 12 * np.eye(3)[i % 3]
        place = root / CLASSES[i % 3]
        place.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(place / f"{i:03d}.png")
    return root


def test_what_is_collected_can_be_compared_fitted_evaluated_and_applied(tmp_path, own, capsys):
    model = own()
    for name, seed in (("cal", 0), ("test", 1)):
        root = coloured(tmp_path / f"{name} images", 90, seed)
        arguments = ["collect", "--model", model, "--images", str(root), "--quiet"]
        arguments += ["--views", "hflip,blur", "--out", str(tmp_path / name)]
        assert main(arguments) == 0
        assert "90 of 90 images are in" in capsys.readouterr().out
    cal, test, saved = (str(tmp_path / name) for name in ("cal", "test", "fit.safetensors"))
    methods = "uncalibrated,temperature_scaling,ca_views"
    assert main(["compare", cal, "--on", f"new={test}", "--methods", methods]) == 0
    printed = capsys.readouterr().out
    assert "new" in printed and "ca_views" in printed
    assert main(["fit", cal, "--method", "ca_views", "--views", "blur", "--out", saved]) == 0
    assert main(["evaluate", saved, test]) == 0
    assert "90 samples" in " ".join(capsys.readouterr().out.split())
    assert main(["apply", saved, test, "--out", str(tmp_path / "scores.csv")]) == 0
    with (tmp_path / "scores.csv").open() as file:
        rows = list(csv.DictReader(file))
    predictions, labels = rightly.load(test)
    assert [row["class_name"] for row in rows] == [CLASSES[i] for i in predictions.classes]
    assert 0.5 < float(predictions.correct(labels).double().mean()) < 1


def run(tmp_path, model, *others, out="preds"):
    root = tmp_path / "images"
    if not root.exists():
        coloured(root, 12)
    given = ["collect", "--model", model, "--images", str(root), "--out", str(tmp_path / out)]
    return main([*given, *others])


def test_a_rehearsal_can_be_asked_for_by_name(tmp_path, own):
    assert run(tmp_path, own(), "--views", "hflip", "--shifts", "rehearsal", "--size", "32") == 0
    found, _ = rightly.load(tmp_path / "preds")
    assert found.shift_names == STANDARD_SHIFTS
    assert set(STANDARD_SHIFTS) == {f"{name.partition(':')[0]}:4" for name in STANDARD_SHIFTS}
    assert found.shift.unique().tolist() == list(range(len(STANDARD_SHIFTS) + 1))


def test_the_command_takes_what_the_function_takes(tmp_path, own):
    others = "--views zoom --shifts jpeg:5,contrast --features -b 5 -j 2 --dtype float16 --seed 3"
    others += " --size 6 --resize 7 --mean 0.5,0.4,0.3 --std 0.2,0.2,0.2 --interpolation bicubic"
    model = own()
    assert run(tmp_path, model, *others.split()) == 0
    expected = collect(
        model,
        tmp_path / "images",
        ("zoom",),
        ("jpeg:5", "contrast"),
        5,
        features=True,
        preprocessing=Preprocessing((6, 6), 7, "bicubic", (0.5, 0.4, 0.3), (0.2, 0.2, 0.2)),
        dtype="float16",
        seed=3,
        out=tmp_path / "expected",
    )
    same(rightly.load(tmp_path / "preds"), expected)


def test_quiet_prints_no_bar(tmp_path, own, capsys):
    model = own()
    assert run(tmp_path, model) == 0
    assert "collecting" in capsys.readouterr().err
    assert run(tmp_path, model, "--quiet", out="again") == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    assert "12 of 12 images" in captured.out


def test_a_finished_command_says_so_when_it_is_run_again(tmp_path, own, capsys):
    model = own()
    assert run(tmp_path, model, "--quiet") == 0
    assert run(tmp_path, model, "--quiet") == 0
    assert "(was complete)" in capsys.readouterr().out


def test_skipped_and_converted_pictures_are_printed(tmp_path, own, capsys):
    root = coloured(tmp_path / "images", 12)
    (root / "cat" / "003.png").write_bytes(b"no picture")
    picture(1, "L", (8, 8)).save(root / "dog" / "001.png")
    picture(1, "RGBA", (8, 8)).save(root / "dog" / "004.png")
    (root / "dog" / "notes.txt").write_text("not a picture")
    model = own()
    assert run(tmp_path, model, "--quiet") == 2
    told = capsys.readouterr().err.replace("\n", " ")
    assert "cat/003.png cannot be decoded" in told and "skip" in told
    assert run(tmp_path, model, "--quiet", "--unreadable", "skip") == 0
    captured = capsys.readouterr()
    assert "11 of 12 images are in" in captured.out
    for line in (
        "skipped cat/003.png: ",
        "1 pictures of mode L were converted",
        "1 pictures of mode RGBA were converted",
        "1 files are no pictures: dog/notes.txt",
    ):
        assert line in captured.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--views", "sideways"], "there are rotation, grayscale"),
        (["--shifts", "contrast:9"], "must be 1 to 5"),
        (["--precision", "double"], "precision must be one of"),
        (["--dtype", "int8"], "dtype must be one of"),
        (["--batch-size", "0"], "batch_size must be at least 1"),
        (["--layout", "round"], "layout must be 'auto' or one of"),
        (["--size", "9", "--resize", "8"], "must fit into a picture resized to 8"),
        (["--model", "tim:x"], "model must be one of timm:NAME"),
        (["--images", "nowhere"], "there is no folder nowhere"),
        (["--out", "{file}"], "out must be a folder"),
        (["--out", "{images}"], "must be a new or empty folder"),
    ],
)
def test_bad_arguments_end_in_one_line_and_status_two(tmp_path, own, capsys, arguments, words):
    (tmp_path / "file").write_text("")
    places = {name: str(tmp_path / name) for name in ("file", "images")}
    status = run(tmp_path, own(), *(argument.format(**places) for argument in arguments))
    captured = capsys.readouterr()
    assert status == 2
    assert words in captured.err.replace("\n", " ")
    assert "Traceback" not in captured.err


@pytest.mark.parametrize("mean", ["1,2", "a,b,c", "0.5", "1,2,3,4"])
def test_a_mean_that_is_not_three_numbers_ends_with_status_two(tmp_path, own, capsys, mean):
    with pytest.raises(SystemExit) as ended:
        run(tmp_path, own(), "--mean", mean)
    assert ended.value.code == 2
    captured = capsys.readouterr()
    assert "--mean" in captured.err and "Traceback" not in captured.err


def test_classes_that_do_not_match_end_the_command_with_status_two(tmp_path, own, capsys):
    assert run(tmp_path, own(4), "--quiet") == 2
    assert "the set has 3 classes but the classifier 4" in capsys.readouterr().err


# Memory.


@pytest.mark.slow
def test_memory_does_not_grow_with_the_number_of_images(tmp_path, monkeypatch):
    batch_size, side, lock = 16, 32, threading.RLock()
    now, most, made = Counter(), Counter(), decoding.Batch

    def count(what, by):
        with lock:
            now[what] += by
            most[what] = max(most[what], now[what])

    def read(i):
        count("pictures read ahead", 1)
        return picture(i, size=(side, side))

    def done(n):
        count("pictures read ahead", -n)

    def batch(*given):
        whole = made(*given)
        count("batches alive", 1)
        weakref.finalize(whole, count, "batches alive", -1)
        return whole

    monkeypatch.setattr(decoding, "Batch", batch)
    classifier, peaks = open_model(Tiny()), {}
    for n in (64, 300, 3000):  # the first is there to load what is loaded once
        images = ImageDataset(tuple(str(i) for i in range(n)), read)
        asked = Plan(("hflip",), ("contrast",), shard_size=64)
        store = Store.begin(tmp_path / str(n), asked.settings(classifier, images))
        now.clear()
        most.clear()
        tracemalloc.start()
        collect_into(store, classifier, images, asked, batch_size, advance=done)
        peaks[n] = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        # Those that wait, one that was taken from them, and two that are with the model.
        assert AHEAD * batch_size <= most["pictures read ahead"] <= (AHEAD + 3) * batch_size
        assert 1 <= most["batches alive"] <= AHEAD
        assert len(rows_in(store.path)) == 2 * n
    pixels = (3000 - 300) * 3 * side * side
    assert peaks[3000] - peaks[300] < pixels / 10
