"""Test sets of other classifiers, of calibration rows and with labels in another order."""

import itertools
import re

import numpy as np
import pytest
import torch
from PIL import Image

import rightly
from rightly.cli import main
from rightly.deployment import make_card
from rightly.deployment.batch_inference import apply
from rightly.predictions.rows import SAMPLE, RowHashes
from tests.conftest import make

OTHER = r"must hold predictions of the classifier that was calibrated.*any_classifier=True"
SAME = r"must hold other samples .* of its rows have the same {}.*allow_overlap=True"


def with_fields(data, **fields):
    predictions, labels = data
    names = ("view_logits", "features", "view_names")
    kept = {name: getattr(predictions, name) for name in names}
    return rightly.Predictions(predictions.logits, **kept, **fields), labels


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Predictions of two classifiers, and a calibrator of the first."""
    folder = tmp_path_factory.mktemp("files")
    cal, test = (with_fields(make(seed=seed), fingerprint="a" * 64) for seed in (0, 1))
    other = with_fields(make(seed=2), fingerprint="b" * 64)
    for name, data in (("cal", cal), ("test", test), ("other", other)):
        rightly.save(folder / f"{name}.npz", *data)
    rightly.fit(*rightly.load(folder / "cal.npz"), "ts").save(folder / "c.safetensors")
    return folder


def calls(folder, test):
    """Everything that meets a calibrator, or calibration data, with a test set."""
    cal, saved, tests = folder / "cal.npz", folder / "c.safetensors", {"t": folder / f"{test}.npz"}
    return {
        "compare": lambda **more: rightly.compare(cal, tests, methods=["ts"], **more),
        "evaluate": lambda **more: rightly.evaluate(saved, tests, metrics=["ece"], **more),
        "report": lambda **more: rightly.report(saved, tests, resamples=100, **more),
        "report beside": lambda **more: rightly.report(
            "ts", tests, cal=cal, methods=["uncalibrated"], resamples=100, **more
        ),
        "card": lambda **more: make_card(saved, tests, **more),
    }


@pytest.mark.parametrize("call", ["compare", "evaluate", "report", "report beside", "card"])
def test_another_classifier_and_calibration_rows_are_refused_unless_insisted(files, call):
    assert calls(files, "test")[call]()
    with pytest.raises(ValueError, match=OTHER):
        calls(files, "other")[call]()
    assert calls(files, "other")[call](any_classifier=True)
    with pytest.raises(ValueError, match=SAME.format("logits")):
        calls(files, "cal")[call]()
    assert calls(files, "cal")[call](allow_overlap=True)


def test_apply_refuses_another_classifier(files, tmp_path):
    saved, out = files / "c.safetensors", tmp_path / "a.csv"
    with pytest.raises(ValueError, match=OTHER.replace("must", "predictions must", 1)):
        apply(saved, files / "other.npz", out)
    assert not out.exists()
    assert apply(saved, files / "other.npz", out, any_classifier=True) == 300
    assert apply(saved, files / "cal.npz", out) == 300


def test_the_command_line_refuses_the_same(files, tmp_path, capsys):
    saved, other, cal = (str(files / name) for name in ("c.safetensors", "other.npz", "cal.npz"))
    for arguments in (
        ["evaluate", saved, other],
        ["predict", saved, other, "--out", str(tmp_path / "a.csv")],
        ["evaluate", saved, other, "--plot", str(tmp_path / "a.png"), "--kind", "roc"],
    ):
        assert main(arguments) == 2
        assert "insist with any_classifier=True" in (printed := capsys.readouterr().err)
        assert re.search(r"rightly \w+: \S+ must hold predictions of", printed)
    assert main(["compare", cal, cal]) == 2
    assert "tests['cal'] must hold other samples" in (printed := capsys.readouterr().err)
    assert "insist with allow_overlap=True" in printed
    arguments = ["compare", cal, cal, "--allow-overlap", "--methods", "ts"]
    assert main([*arguments, "--no-intervals"]) == 0
    assert "Accuracy: cal " in capsys.readouterr().out


def test_one_row_in_a_hundred_may_be_shared_and_one_more_not():
    cal, test = make(n=1000), make(n=1000, seed=1)
    for count, is_refused in ((10, False), (11, True)):
        logits = torch.cat([cal[0].logits[:count], test[0].logits[count:]])
        mixed = (rightly.Predictions(logits), test[1])
        if is_refused:
            with pytest.raises(ValueError, match=r"1\.1% of its rows"):
                rightly.compare(cal, {"mine": mixed}, methods=["ts"])
        else:
            rightly.compare(cal, {"mine": mixed}, methods=["ts"])


def test_hashes_of_images_count_where_both_sets_have_them():
    cal, test = make(n=300), make(n=300, seed=1)
    numbers = np.arange(300)
    own, shown = with_fields(cal, image_hash=numbers), with_fields(test, image_hash=numbers)
    with pytest.raises(ValueError, match=SAME.format("images")):
        rightly.compare(own, {"mine": shown}, methods=["ts"])
    rightly.compare(own, {"mine": test}, methods=["ts"])
    # The same logits, but other images: as those of a classifier that gives few answers.
    rightly.compare(own, {"mine": with_fields(cal, image_hash=numbers + 300)}, methods=["ts"])


def test_logits_that_repeat_within_a_set_prove_nothing():
    draws = torch.Generator().manual_seed(0)
    few = torch.randn(40, 3, generator=draws)
    sets = [few[torch.randint(40, (300,), generator=draws)] for _ in range(2)]
    cal, test = [(rightly.Predictions(logits), logits.argmax(-1) % 2) for logits in sets]
    rightly.compare(cal, {"mine": test}, methods=["ts"], metrics=["brier"])


def test_a_sample_of_the_hashes_measures_the_share():
    cal, test = make(n=6 * SAMPLE)[0], make(n=6 * SAMPLE, seed=1)[0]
    kept = RowHashes.from_record(RowHashes.compute(cal).to_record())
    assert kept.measure_shared(cal) == (1.0, "logits")
    assert kept.measure_shared(test)[0] == 0
    half = rightly.Predictions(torch.cat([cal.logits[::2], test.logits[::2]]))
    assert kept.measure_shared(half)[0] == pytest.approx(0.5, abs=0.07)


def test_hashes_and_fingerprint_are_kept_by_slices_copies_and_files(tmp_path):
    predictions, labels = with_fields(
        make(n=40), image_hash=np.arange(40) - 20, fingerprint="abc", shift=np.arange(40) % 2
    )
    rightly.save(tmp_path / "a.npz", predictions[10:30], labels[10:30])
    loaded, _ = rightly.load(tmp_path / "a.npz")
    joined = rightly.concatenate([loaded[:5], loaded[5:]])
    for one in (loaded, joined, loaded.without_views()):
        assert one.image_hash.tolist() == list(range(-10, 10)) and one.fingerprint == "abc"
    with pytest.raises(ValueError, match="predictions of one classifier"):
        rightly.concatenate([predictions, with_fields(make(n=40), fingerprint="abd")[0]])


def test_labels_in_another_order_are_warned_of(tmp_path, capsys):
    cal, test = make(n=400), make(n=400, seed=1)
    rolled = (test[0], (test[0].classes + (torch.arange(400) >= 6)) % 10)
    with pytest.warns(UserWarning, match=r"mine has .*% accuracy, .* not above chance \(.*%\)"):
        rightly.compare(cal, {"mine": rolled}, methods=["ts"])
    with pytest.warns(UserWarning, match="the calibration data has"):
        rightly.fit(*rolled, "ts")
    rightly.save(tmp_path / "cal.npz", *cal)
    assert main(["fit", str(tmp_path / "cal.npz"), "--out", str(tmp_path / "c.safetensors")]) == 0
    share = float(cal[0].correct(cal[1]).double().mean())
    assert f"accuracy on them: {share:.1%}" in capsys.readouterr().out


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("classes", [2, 10])
def test_imbalance_few_samples_and_one_class_raise_no_alarm(classes):
    draws = np.random.default_rng(0)
    for n, accuracy in itertools.product((5, 300, 3000), (0.7, 0.95)):
        labels = np.where(draws.random(n) < 0.9, 0, draws.integers(0, classes, n))
        said = np.where(draws.random(n) < accuracy, labels, draws.integers(0, classes, n))
        logits = 3 * np.eye(classes)[said] + draws.normal(0, 0.1, (n, classes))
        both = (rightly.Predictions(logits), labels)
        rightly.evaluation.data_sets.load_data_set(both)
        rightly.evaluation.data_sets.load_data_set((both[0], np.zeros(n, int)))


def test_collect_hashes_images_before_shifts_whatever_their_size_and_format(tmp_path):
    draws = np.random.default_rng(0)
    for i in range(6):
        pixels = draws.integers(0, 256, (12, 12, 3), dtype=np.uint8)
        for folder, suffix in (("png", "png"), ("bmp", "bmp")):
            place = tmp_path / folder / "ab"[i % 2]
            place.mkdir(parents=True, exist_ok=True)
            Image.fromarray(pixels).save(place / f"{i}.{suffix}")

    def classify(images):
        return images.mean((2, 3))[:, :2]

    hashes = []
    for folder, size in (("png", 12), ("bmp", 8)):
        collected, _ = rightly.collect(
            classify,
            tmp_path / folder,
            views=(),
            shifts=("contrast",),
            preprocessing=rightly.classifiers.Preprocessing((size, size)),
            out=tmp_path / f"{folder} preds",
        )
        hashes.append(collected.image_hash.tolist())
        assert collected.fingerprint
    assert hashes[0] == hashes[1] and hashes[0][:6] == hashes[0][6:]
    assert len(set(hashes[0])) == 6
