"""Every number is that of a loop over images, and the model is left as it was."""

import json

import numpy as np
import pyarrow.dataset
import pyarrow.parquet
import pytest
import torch

import rightly
from rightly import collection
from rightly.classifiers import Preprocessing
from rightly.collection import collect, collect_to_folder
from rightly.collection.ray_cluster import Cluster
from rightly.datasets import open_images
from rightly.registry import register
from rightly.transforms.shifts import SHIFTS, Shift
from rightly.transforms.views import VIEWS, View
from tests.collection.tiny_model import (
    CLASSES,
    SMALL,
    Pairs,
    Tiny,
    alike,
    by_hand,
    class_folders,
    close,
    flat,
    rows_in,
    same,
    state_of,
)


@pytest.mark.parametrize("batch_size", [1, 7, 256])
def test_every_number_is_that_of_a_loop_over_images(tmp_path, shards_of, batch_size):
    shards_of(10)
    root, model = class_folders(tmp_path / "images", 23), Tiny()
    views, shifts = ("hflip", "color_jitter"), ("gaussian_noise:2", "contrast")
    found, labels = collect(
        model,
        root,
        views=views,
        shifts=shifts,
        batch_size=batch_size,
        features=True,
        preprocessing=SMALL,
        seed=5,
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
    found, _ = collect(
        Tiny(),
        root,
        views=("hflip",),
        shifts=("contrast",),
        batch_size=3,
        out=out,
        preprocessing=SMALL,
    )
    rows = rows_in(out).sort_by([("shift", "ascending"), ("image", "ascending")])
    assert rows["image"].to_pylist() == [*range(9)] * 2
    assert rows["name"].to_pylist() == [f"{i:04d}.png" for i in range(9)] * 2
    np.testing.assert_array_equal(np.array(rows["view_hflip"].to_pylist()), found.view_logits[:, 0])
    kept = json.loads(rows.schema.metadata[b"rightly"])
    assert kept["views"] == ["hflip"] and kept["shifts"] == ["contrast"] and kept["images"] == 9


def test_without_views_and_shifts_there_are_only_logits(tmp_path):
    root = flat(tmp_path / "images", 5)
    found, labels = collect(Tiny(), root, views=(), preprocessing=SMALL)
    close(found.logits, by_hand(Tiny(), sorted(root.iterdir()))[0])
    assert found.view_logits is found.features is found.shift is labels is None
    assert found.view_names == found.shift_names == ()
    stored = collect(Tiny(), root, views=(), preprocessing=SMALL, out=tmp_path / "preds")
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
    given = {"preprocessing": SMALL, "labels": table}
    assert collect(Tiny(), root, **given)[1].tolist() == [2, 1, 1, 0]
    assert collect(Tiny(), root, **given, out=tmp_path / "preds")[1].tolist() == [2, 1, 1, 0]


def test_labels_that_come_with_the_pictures_of_a_dataset_are_kept(tmp_path, shards_of):
    shards_of(4)
    truth = [2, 0, 1, 1, 2, 0, 0, 1, 2]
    for out in (None, tmp_path / "preds"):
        found, labels = collect(
            Tiny(),
            Pairs(truth),
            views=(),
            shifts=("contrast",),
            batch_size=2,
            out=out,
            preprocessing=SMALL,
        )
        assert labels.tolist() == truth * 2
        expected = collect(
            Tiny(), flat(tmp_path / f"{out is None}", 9), views=(), preprocessing=SMALL
        )[0]
        close(found.logits[:9], expected.logits)


@pytest.mark.parametrize("stored", [True, False])
def test_progress_adds_up_to_the_number_of_images(tmp_path, shards_of, stored):
    shards_of(8)
    steps = []
    out = tmp_path / "preds" if stored else None
    root = flat(tmp_path / "images", 21)
    collect(
        Tiny(),
        root,
        views=(),
        shifts=("jpeg",),
        batch_size=3,
        out=out,
        preprocessing=SMALL,
        progress=lambda *step: steps.append(step),
    )
    done = [0] * stored + [3, 6, 8, 11, 14, 16, 19, 21]  # no batch is of two shards
    assert steps == [("collecting", number, 21) for number in done]


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


def test_a_view_and_a_shift_registered_at_run_time_are_collected(tmp_path):
    def dim(images, severity, seed=0):
        return images * (1 - 0.1 * severity)

    class_folders(tmp_path / "images", 6)
    register(View("upside_down", lambda images: images.flip(2)))
    register(Shift("dim", dim))
    try:
        options = {"preprocessing": SMALL, "out": tmp_path / "out"}
        predictions, _ = collect(
            Tiny(), tmp_path / "images", views=("upside_down",), shifts=("dim:4",), **options
        )
        files = sorted((tmp_path / "images").rglob("*.png"))
        logits, view_logits, _ = by_hand(Tiny(), files, ("upside_down",), [("dim", 4)])
        assert predictions.view_names == ("upside_down",) and predictions.shift_names == ("dim:4",)
        close(predictions.logits, logits)
        close(predictions.view_logits, view_logits)
        assert predictions.image.tolist() == [*range(6)] * 2
    finally:
        VIEWS.remove("upside_down")
        SHIFTS.remove("dim")


@pytest.mark.parametrize("stored", [True, False])
def test_what_is_run_and_what_came_of_it_is_told(tmp_path, stored):
    out, lines = tmp_path / "preds" if stored else None, []
    root = class_folders(tmp_path / "images", 6)
    given = {"views": ("hflip",), "shifts": ("jpeg",), "preprocessing": SMALL}
    collect(Tiny(), root, out, **given, notify=lines.append)
    assert lines[0].startswith("preprocessing: ") and "8 x 8" in lines[0]
    assert lines[1].startswith("24 forward passes: 6 images x 2")
    if stored:
        assert [line.partition(":")[0] for line in lines[2:4]] == [
            "accuracy",
            "accuracy under jpeg",
        ]
        assert lines[4].startswith(f"6 of 6 images are in {out} (took")
        lines.clear()
        collect_to_folder(Tiny(), root, out, **given, notify=lines.append)
        assert not any("forward passes" in line for line in lines)
        assert lines[-1].endswith("(was complete)")


@pytest.mark.parametrize(
    ("preprocessing", "words"),
    [
        (Preprocessing(), "images at their own size, in [0, 1] without normalisation"),
        (Preprocessing((8, 6)), "resized and cut to 8 x 6 (bilinear), in [0, 1]"),
        (Preprocessing((8, 8), 9, "bicubic"), "to shorter side 9 (bicubic), 8 x 8 from the centre"),
        (Preprocessing(resize=(9, 7), mean=(0.5, 0.4, 0.3)), "normalised with mean 0.5, 0.4, 0.3"),
    ],
)
def test_size_and_normalisation_are_told(preprocessing, words):
    assert words in preprocessing.describe()


def test_a_folder_is_collected_into_without_being_read_back(tmp_path):
    root, out = class_folders(tmp_path / "images", 6), tmp_path / "preds"
    assert collect_to_folder(Tiny(), root, out, views=("hflip",), preprocessing=SMALL) is None
    expected = collect(Tiny(), root, views=("hflip",), preprocessing=SMALL)
    same(rightly.load(out), expected)
    with pytest.raises(ValueError, match="options must be of .*got view: see rightly.collect"):
        collect_to_folder(Tiny(), root, out, view=("hflip",))


def test_options_of_images_are_refused_for_those_that_are_open(tmp_path):
    images = open_images(class_folders(tmp_path / "images", 6))
    collect(Tiny(), images, views=(), preprocessing=SMALL)
    for given in ({"labels": [0] * 6}, {"layout": "folders"}):
        with pytest.raises(ValueError, match="leave it out"):
            collect(Tiny(), images, preprocessing=SMALL, **given)


def test_an_engine_needs_what_its_workers_can_open(tmp_path, monkeypatch):
    monkeypatch.setattr("rightly.collection.ray_cluster.load_ray", lambda: None)
    engine, out = Cluster(), tmp_path / "preds"
    for given, kind, words in (
        (("timm:x", "images"), ValueError, "engine needs out"),
        ((Tiny(), "images", out), TypeError, "engine needs a model by its spec"),
        (("timm:x", [], out), TypeError, "engine needs samples by their folder"),
        (("timm:x", "images", out), ValueError, "device cuda needs GPUs"),
    ):
        with pytest.raises(kind, match=words):
            collect(*given, engine=engine, device="cuda")


def test_names_of_the_package_load_when_they_are_used():
    assert collection.collect is collect
    with pytest.raises(AttributeError, match="no attribute 'collecting'"):
        _ = collection.collecting
