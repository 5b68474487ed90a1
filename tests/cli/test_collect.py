"""`rightly collect`, run as a user would: it takes what the function takes."""

import csv
import itertools

import numpy as np
import pytest
from PIL import Image

import rightly
from rightly.classifiers import Preprocessing
from rightly.cli import main
from rightly.collection import DEFAULT_VIEWS, collect
from rightly.datasets import LAYOUTS
from rightly.transforms.shifts import SHIFTS, STANDARD_SHIFTS
from rightly.transforms.views import VIEWS
from tests.cli.conftest import MODEL
from tests.collection.tiny_model import CLASSES, SMALL, Tiny, class_folders, picture, same
from tests.deployment.tiny_models import pictures

SOURCE = """
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
        (tmp_path / f"{name}.py").write_text(SOURCE.format(classes=classes))
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


def test_the_names_of_views_shifts_and_layouts_are_listed(capsys):
    assert main(["collect", "--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    expected = [VIEWS, SHIFTS, STANDARD_SHIFTS, LAYOUTS]
    assert [line.partition(": ")[2].split(", ") for line in lines] == [list(x) for x in expected]


def test_help_names_the_views_that_are_looked_at_by_default(capsys):
    assert main(["collect", "--help"]) == 0
    assert ",".join(DEFAULT_VIEWS) in "".join(capsys.readouterr().out.split())


def test_views_default_to_the_papers_and_can_be_none(tmp_path, capsys):
    for i, pixels in enumerate(pictures(4, size=20)):
        (tmp_path / "images" / "abcd"[i]).mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(tmp_path / "images" / "abcd"[i] / f"[{i}].png")
    (tmp_path / "images" / "a" / "[x].png").write_bytes(b"no picture")
    arguments = ["collect", MODEL, str(tmp_path / "images")]
    arguments += ["--unreadable", "skip"]
    for out, options, views in (("p", [], DEFAULT_VIEWS), ("q", ["--views", ""], ())):
        assert main([*arguments, *options, "--out", str(tmp_path / out)]) == 0
        assert rightly.load(tmp_path / out)[0].view_names == tuple(views)
        assert "skipped a/[x].png: " in capsys.readouterr().out


def test_what_is_collected_can_be_compared_fitted_evaluated_and_applied(tmp_path, own, capsys):
    model = own()
    for name, seed in (("cal", 0), ("test", 1)):
        root = coloured(tmp_path / f"{name} images", 90, seed)
        arguments = ["collect", model, str(root), "--quiet"]
        arguments += ["--views", "hflip,blur", "--out", str(tmp_path / name)]
        assert main(arguments) == 0
        assert "90 of 90 images are in" in capsys.readouterr().out
    cal, test, saved = (str(tmp_path / name) for name in ("cal", "test", "fit.safetensors"))
    methods = "uncalibrated,temperature_scaling,ca_views"
    assert main(["compare", cal, f"new={test}", "--methods", methods]) == 0
    printed = capsys.readouterr().out
    assert "new" in printed and "ca_views" in printed
    assert main(["fit", cal, "--method", "ca_views", "--views", "blur", "--out", saved]) == 0
    assert main(["evaluate", saved, test]) == 0
    assert "90 samples" in " ".join(capsys.readouterr().out.split())
    assert main(["predict", saved, test, "--out", str(tmp_path / "scores.csv")]) == 0
    with (tmp_path / "scores.csv").open() as file:
        rows = list(csv.DictReader(file))
    predictions, labels = rightly.load(test)
    assert [row["class_name"] for row in rows] == [CLASSES[i] for i in predictions.classes]
    assert 0.5 < float(predictions.correct(labels).double().mean()) < 1


def run(tmp_path, model, *others, out="preds"):
    root = tmp_path / "images"
    if not root.exists():
        coloured(root, 12)
    arguments = [model, str(root), "--out", str(tmp_path / out)]
    return main(["collect", *arguments, *others])


def test_the_standard_shifts_can_be_asked_for_by_name(tmp_path, own):
    assert run(tmp_path, own(), "--views", "hflip", "--shifts", "standard", "--size", "32") == 0
    collected, _ = rightly.load(tmp_path / "preds")
    assert collected.shift_names == STANDARD_SHIFTS
    assert collected.shift.unique().tolist() == list(range(len(STANDARD_SHIFTS) + 1))


def test_the_command_takes_what_the_function_takes(tmp_path, own):
    others = "--views zoom --shifts jpeg:5,contrast --features -b 5 -j 2 --dtype float16 --seed 3"
    others += " --size 6 --resize 7 --mean 0.5,0.4,0.3 --std 0.2,0.2,0.2 --interpolation bicubic"
    model = own()
    assert run(tmp_path, model, *others.split()) == 0
    expected = collect(
        model,
        tmp_path / "images",
        views=("zoom",),
        shifts=("jpeg:5", "contrast"),
        batch_size=5,
        features=True,
        preprocessing=Preprocessing((6, 6), 7, "bicubic", (0.5, 0.4, 0.3), (0.2, 0.2, 0.2)),
        dtype="float16",
        seed=3,
        out=tmp_path / "expected",
    )
    same(rightly.load(tmp_path / "preds"), expected)


def test_quiet_prints_no_bar(tmp_path, own, capsys):
    model = own()
    options = ("--views", "hflip", "--shifts", "contrast,haze:2")
    assert run(tmp_path, model, *options) == 0
    captured = capsys.readouterr()
    assert "collecting" in captured.err
    assert "72 forward passes: 12 images x 3 (unshifted, 2 shifts) x 2 (image, 1 views)" in (
        captured.out
    )
    assert run(tmp_path, model, *options) == 0
    assert "forward passes" not in capsys.readouterr().out  # all of them were made
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
    message = capsys.readouterr().err.replace("\n", " ")
    assert "cat/003.png cannot be decoded" in message and "unreadable='skip'" in message
    assert run(tmp_path, model, "--quiet", "--unreadable", "skip") == 0
    captured = capsys.readouterr()
    assert "11 of 12 images are in" in captured.out
    for line in (
        "skipped cat/003.png: ",
        "1 images of mode L were converted",
        "1 images of mode RGBA were converted",
        "1 files are not images: dog/notes.txt",
    ):
        assert line in captured.out + captured.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--views", "sideways"], "view 'sideways' is not known: "),
        (["--shifts", "contrast:9"], "must be 1 to 5"),
        (["--precision", "double"], "precision must be one of"),
        (["--dtype", "int8"], "dtype must be one of"),
        (["--batch-size", "0"], "batch_size must be at least 1"),
        (["--batch-size", "many"], "'--batch-size'"),
        (["--layout", "round"], "layout 'round' is not known: choose from "),
        (["--size", "9", "--resize", "8"], "must fit into an image resized to 8"),
        (["--std", "a"], "std must be numbers joined by commas, got 'a'"),
        (["--ray-gpus", "1"], "ray_gpus must come with --engine ray"),
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
    assert run(tmp_path, own(), "--mean", mean) == 2
    captured = capsys.readouterr()
    assert "mean must be" in captured.err and "Traceback" not in captured.err


def test_classes_that_do_not_match_end_the_command_with_status_two(tmp_path, own, capsys):
    assert run(tmp_path, own(4), "--quiet") == 2
    assert "the set has 3 classes but the classifier 4" in capsys.readouterr().err


def test_without_a_size_what_is_collected_can_be_exported(tmp_path, own, capsys):
    model, saved = own(), str(tmp_path / "c.safetensors")
    coloured(tmp_path / "images", 60)
    assert run(tmp_path, model, "--views", "hflip", "--quiet") == 0
    assert main(["fit", str(tmp_path / "preds"), "--method", "ts", "--out", saved]) == 0
    out = tmp_path / "model.onnx"
    assert main(["export", model, saved, "--out", str(out)]) == 0
    exported = rightly.deployment.runtime.open_exported(out)
    assert exported.preprocessing.size == (8, 8)
    capsys.readouterr()


def test_names_of_all_classes_come_from_a_file(tmp_path, own, capsys):
    model = own(classes=5)
    assert run(tmp_path, model) == 2
    assert "the set has 3 classes but the classifier 5: give class_names=" in (
        capsys.readouterr().err
    )
    names = ["ant", *CLASSES, "fox"]
    (tmp_path / "names.txt").write_text("\ufeff" + "\r\n".join(names) + "\n", encoding="utf-8")
    given = ["--class-names", str(tmp_path / "names.txt"), "--quiet"]
    assert run(tmp_path, model, *given, out="named") == 0
    predictions, labels = rightly.load(tmp_path / "named")
    assert predictions.class_names == tuple(names)
    assert sorted(set(labels.tolist())) == [1, 2, 3]
    (tmp_path / "names.txt").write_text("ant\n\nbee\n")
    assert run(tmp_path, model, *given, out="other") == 2
    assert "class_names must have one name per line" in capsys.readouterr().err


def test_names_of_imagenet_are_taken_where_the_user_says_so(tmp_path, own, capsys):
    images = tmp_path / "photos"
    images.mkdir()
    for i in range(4):
        Image.new("RGB", (8, 8), (50 * i, 0, 0)).save(images / f"{i}.png")
    labels = tmp_path / "labels.csv"
    labels.write_text("file,label\n0.png,0\n1.png,207\n2.png,517\n3.png,999\n")
    given = [str(images), "--labels", str(labels), "--views", "hflip", "--quiet"]
    for out, said in (("unsaid", []), ("said", ["--class-names", "imagenet"])):
        model, target = own(classes=1000), ["--out", str(tmp_path / out)]
        assert main(["collect", model, *given, *target, *said]) == 0
    assert rightly.load(tmp_path / "unsaid")[0].class_names is None
    names = rightly.load(tmp_path / "said")[0].class_names
    assert (names[0], names[207], names[517]) == ("tench", "golden retriever", "crane (machine)")
    command = ["collect", own(classes=5), *given, "--out", str(tmp_path / "five")]
    assert main([*command, "--class-names", "imagenet"]) == 2
    assert "1000 classes but the classifier 5" in capsys.readouterr().err
    assert main([*command, "--class-names", "imagenets"]) == 2
    assert "must be a file or the word imagenet" in capsys.readouterr().err


FAILING = """
from torch import nn


class Failing(nn.Linear):
    def forward(self, images):
        raise ValueError("the first pass")


def model():
    return Failing(3, 2)
"""


def test_a_set_without_labels_says_so_before_the_first_pass(tmp_path, monkeypatch, capsys):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "failing_model.py").write_text(FAILING)
    (tmp_path / "images").mkdir()
    picture(0).save(tmp_path / "images" / "0001.png")
    assert run(tmp_path, "py:failing_model:model") == 2
    captured = capsys.readouterr()
    assert "there are no labels" in captured.out and "labels, a CSV file" in captured.out
    assert "the first pass" in captured.err


def test_progress_starts_with_the_first_batch(tmp_path):
    model, shown = Tiny(), []
    collect(
        model,
        class_folders(tmp_path / "images", 12),
        views=("hflip",),
        batch_size=4,
        preprocessing=SMALL,
        allow_random=True,
        progress=lambda step, done, total: shown.append((done, model.shown)),
    )
    assert shown == [(4, 8), (8, 16), (12, 24)]


@pytest.mark.parametrize(
    ("model", "images", "words"),
    [("tim:x", "images", "did you mean timm:x?"), (None, "nowhere", "there is no folder nowhere")],
)
def test_a_model_or_folder_that_is_none_is_refused(tmp_path, own, capsys, model, images, words):
    coloured(tmp_path / "images", 3)
    place = str(tmp_path / images) if images == "images" else images
    assert main(["collect", model or own(), place, "--out", str(tmp_path / "preds")]) == 2
    assert words in capsys.readouterr().err
