"""Healthy data give no finding; what is made sick from them gives exactly its own."""

import itertools

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier

import rightly
from rightly.demo_data import load_demo_set

SETS = ("ind", "haze", "pixelate")


@pytest.fixture(scope="module")
def cal():
    return load_demo_set("cal")


@pytest.fixture(scope="module")
def test():
    return load_demo_set("ind")


def change(predictions, **changes):
    """The same predictions, built anew with some arrays changed."""
    kept = {
        "logits": predictions.logits,
        "view_logits": predictions.view_logits,
        "view_names": predictions.view_names,
        "features": predictions.features,
    }
    return rightly.Predictions(**kept | changes)


def names(*arguments, **options):
    return [finding.name for finding in rightly.examine(*arguments, **options)]


def test_healthy_data_give_no_finding(cal):
    tests = {name: load_demo_set(name) for name in SETS}
    assert rightly.examine(cal, tests, expected_accuracy=0.87) == ()
    few = cal[0][:1000], cal[1][:1000]
    assert rightly.examine(few) == ()
    assert rightly.examine((cal[0], cal[1]), {"unlabelled": (tests["ind"][0], None)}) == ()


@pytest.mark.parametrize(
    ("name", "spoil"),
    [
        ("probabilities", lambda z: z.softmax(1)),
        ("probabilities", lambda z: z.softmax(1).half()),
        ("percentages", lambda z: 100 * z.softmax(1)),
        ("log_probabilities", lambda z: z.log_softmax(1)),
        ("probabilities", lambda z: (100 * z.softmax(1)).round() / 100),
        ("percentages", lambda z: (100 * z.softmax(1)).round()),
        ("scores_in_0_1", lambda z: z.sigmoid()),
        ("log_probabilities", lambda z: z.log_softmax(1) / np.log(10)),
        ("log_probabilities", lambda z: z.softmax(1).where(z.softmax(1) > 1e-3, 0).log()),
        ("negated_scores", lambda z: -z.log_softmax(1)),
        ("clipped", lambda z: z.clamp(max=float(z.amax(1).quantile(0.9)))),
        ("coarse_logits", lambda z: (200 * z).half()),
        ("ties", lambda z: z.clamp(max=4)),
        ("unusable", lambda z: (1e4 * z).half()),
        ("unusable", lambda z: z.index_fill(0, torch.tensor([7]), torch.nan)),
    ],
)
def test_scores_that_are_no_logits(cal, name, spoil):
    (finding,) = rightly.examine((spoil(cal[0].logits), cal[1]))
    assert finding.name == name and finding.data_set == "cal"
    assert any(letter.isdigit() for letter in finding.found) and finding.remedy


def test_probabilities_in_files_are_found(cal, tmp_path):
    np.savez(tmp_path / "cal.npz", logits=cal[0].logits.softmax(1).numpy(), labels=cal[1].numpy())
    assert names(tmp_path / "cal.npz") == ["probabilities"]


@pytest.mark.parametrize("rows", [5000, 400])
def test_the_numbering_of_permuted_labels_is_found(cal, rows):
    order = torch.tensor([3, 1, 2, 0, 9, 4, 6, 7, 8, 5])
    predictions, labels = cal[0][:rows], order[cal[1][:rows]]
    (finding,) = rightly.examine((predictions, labels), expected_accuracy=0.87)
    assert finding.name == "labels_permuted"
    assert "5 of 10 classes" in finding.found and "3 -> 0" in finding.found
    for label, read_as in ((0, 3), (4, 5), (5, 9), (9, 4)):
        assert f"{label} -> {read_as}" in finding.found


def test_two_swapped_classes_are_found(cal):
    labels = cal[1].clone()
    labels[cal[1] == 3], labels[cal[1] == 5] = 5, 3  # cats and dogs
    (finding,) = rightly.examine((cal[0], labels))
    assert finding.name == "labels_permuted" and "3 -> 5, 5 -> 3" in finding.found


def test_labels_off_by_one_are_found_in_range_and_beyond(cal):
    (finding,) = rightly.examine((cal[0], cal[1] + 1))
    assert finding.name == "labels_off_by_one" and "1..10" in finding.found
    assert finding.remedy == "subtract 1 from the labels"
    # A background class in front, as TensorFlow's ImageNet models have one.
    wider = torch.cat([cal[0].logits.amin(1, keepdim=True) - 1, cal[0].logits], 1)
    (finding,) = rightly.examine((wider, cal[1]))
    assert finding.name == "labels_off_by_one" and finding.remedy == "add 1 to the labels"


def test_labels_in_another_order_are_found(cal):
    order = torch.randperm(len(cal[1]), generator=torch.Generator().manual_seed(0))
    assert names((cal[0], cal[1][order])) == ["accuracy_at_chance"]


def test_many_classes_with_few_samples_each_are_no_permutation():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 500, 2000)
    wrong = rng.random(2000) < 0.4
    shown = np.where(wrong, (labels + rng.integers(1, 4, 2000)) % 500, labels)  # alike classes
    logits = rng.standard_normal((2000, 500)).astype(np.float32)
    logits[np.arange(2000), shown] += 8
    assert names((logits, labels)) == []
    order = rng.permutation(500)
    assert names((logits, order[labels])) == ["labels_permuted"]


def test_missing_classes_are_found(cal):
    kept = cal[1] != 4
    (finding,) = rightly.examine((cal[0][kept], cal[1][kept]))
    assert finding.name == "missing_classes" and "1 of 10 classes: 4" in finding.found


def test_few_samples_and_few_errors_are_found(cal):
    assert names((cal[0][:60], cal[1][:60])) == ["few_samples", "few_outcomes"]
    correct = cal[0].correct(cal[1])
    keep = correct | (torch.cumsum(~correct, 0) <= 5)
    assert names((cal[0][keep], cal[1][keep])) == ["few_outcomes"]


def test_an_accuracy_that_was_not_expected_is_found(cal):
    accuracy = float(cal[0].correct(cal[1]).double().mean())
    assert names(cal, expected_accuracy=round(accuracy, 2)) == []
    assert names(cal, expected_accuracy=accuracy + 0.05) == ["unexpected_accuracy"]
    assert names(cal, expected_accuracy=accuracy - 0.05) == ["unexpected_accuracy"]


def test_calibration_rows_among_test_rows_are_found(cal, test):
    rows = torch.arange(100)
    joined = rightly.concatenate([test[0], cal[0][rows]]), torch.cat([test[1], cal[1][rows]])
    (finding,) = rightly.examine(cal, {"mixed": joined})
    assert finding.name == "calibration_rows" and finding.data_set == "mixed"


def test_views_of_the_image_itself_are_found(cal):
    views = cal[0].view_logits.clone()
    views[:, 1] = cal[0].logits
    (finding,) = rightly.examine((change(cal[0], view_logits=views), cal[1]))
    assert finding.name == "view_is_image" and cal[0].view_names[1] in finding.found


@pytest.mark.parametrize("by_class", [False, True])
def test_views_of_other_images_are_found(cal, by_class):
    order = cal[1].argsort(stable=True) if by_class else torch.arange(len(cal[1]))
    predictions, labels = cal[0][order], cal[1][order]
    assert names((predictions, labels)) == []
    views = predictions.view_logits
    draw = torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))
    for moved, words in (
        (views.roll(1, 0), "moved by +1 rows"),
        (views.roll(-3, 0), "moved by -3 rows"),
        (views.flip(0), "in reverse order"),
        (views[draw], "random order"),
    ):
        mixed = views.clone()
        mixed[:, 2] = moved[:, 2]
        (finding,) = rightly.examine((change(predictions, view_logits=mixed), labels))
        assert finding.name == "view_of_other_images"
        assert words in finding.found


def test_views_reshaped_in_the_wrong_order_are_found(cal):
    views = cal[0].view_logits
    n, m, c = views.shape
    mixed = views.transpose(0, 1).reshape(n, m, c)
    found = names((change(cal[0], view_logits=mixed), cal[1]))
    assert found == ["view_of_other_images"]


def test_views_of_which_a_shard_stands_in_another_order_are_found(cal):
    views = cal[0].view_logits.clone()
    views[1000:2000, 1] = views[1000:2000, 1].roll(300, 0)
    (finding,) = rightly.examine((change(cal[0], view_logits=views), cal[1]))
    assert finding.name == "view_of_other_images" and "in rows 1000 to" in finding.found
    assert cal[0].view_names[1] in finding.found and cal[0].view_names[0] not in finding.found


def test_views_that_are_probabilities_are_found(cal):
    views = cal[0].view_logits.clone()
    views[:, 0] = views[:, 0].softmax(-1)
    (finding,) = rightly.examine((change(cal[0], view_logits=views), cal[1]))
    assert finding.name == "probabilities" and cal[0].view_names[0] in finding.found


def test_what_was_collected_twice_is_found_but_for_rounding(cal, test):
    """In float16, or in other batches: a copy of rows, of a view, of a whole set."""
    again = cal[0].logits.half().float() * (1 + 1e-6)
    mixed = torch.cat([test[0].logits[:900], again[:100]])
    labels = torch.cat([test[1][:900], cal[1][:100]])
    (finding,) = rightly.examine(cal, {"test": (mixed, labels)})
    assert finding.name == "calibration_rows" and "10.0%" in finding.found
    views = cal[0].view_logits.clone()
    views[:, 0] = again
    assert names((change(cal[0], view_logits=views), cal[1])) == ["view_is_image"]
    copy = test[0].logits.half().float()
    assert names(cal, {"ind": test, "blur": (copy, test[1])}) == ["no_shift"]


@pytest.mark.filterwarnings("ignore:probabilities hold exact zeros")
def test_votes_of_a_forest_that_agree_are_no_calibration_rows():
    """Where all of 100 trees agree, two images have the same logits by chance."""
    x, y = load_digits(return_X_y=True)
    forest = RandomForestClassifier(100, random_state=0).fit(x[:600], y[:600])
    sets = [
        (rightly.Predictions.from_probabilities(forest.predict_proba(x[rows])), y[rows])
        for rows in (slice(600, 1200), slice(1200, None))
    ]
    assert "calibration_rows" not in names(sets[0], {"test": sets[1]})


def test_two_classes_are_near_by_chance_and_give_no_finding():
    rng = np.random.default_rng(0)
    sets = {}
    for name in ("cal", "a", "b"):
        scores = 2 * rng.normal(size=3000)
        labels = (rng.random(3000) < 1 / (1 + np.exp(-scores))).astype(int)
        sets[name] = rightly.Predictions.from_binary(scores), labels
    assert rightly.examine(sets.pop("cal"), sets) == ()


@pytest.mark.parametrize(
    ("name", "spoil"),
    [
        ("labels_one_hot", lambda y: np.eye(10)[y]),
        ("labels_missing", lambda y: np.where(np.arange(len(y)) % 50, y, np.nan)),
        ("labels_missing", lambda y: np.where(np.arange(len(y)) % 50, y, -1)),
        ("unusable", lambda y: y.astype(float)),
    ],
)
def test_labels_that_are_no_class_numbers(cal, name, spoil, tmp_path):
    labels = spoil(cal[1].numpy())
    assert names((cal[0].logits, labels)) == [name]
    np.savez(tmp_path / "cal.npz", logits=cal[0].logits.numpy(), labels=labels)
    assert names(tmp_path / "cal.npz") == [name]


def test_shifted_rows_that_do_not_shift_are_found(test):
    haze, labels = load_demo_set("haze")
    rows = slice(0, 1000)
    n = len(labels[rows])
    shift = torch.arange(2).repeat_interleave(n)
    both = torch.cat([labels[rows], labels[rows]])
    for shown, found in ((haze.logits, []), (test[0].logits + 1e-4, ["no_shift"])):
        logits = torch.cat([test[0].logits[rows], shown[rows]])
        predictions = rightly.Predictions(logits, shift=shift, shift_names=["gaussian_blur:3"])
        assert names((predictions, both)) == found


def test_equal_test_sets_are_found(cal, test):
    assert names(cal, {"ind": test, "haze": test}) == ["no_shift"]


def test_every_finding_has_a_line_in_the_docs(cal):
    from pathlib import Path

    import rightly.evaluation.examination as package

    folder = Path(package.__file__).parent
    text = (Path(__file__).parents[2] / "docs" / "doctor.md").read_text(encoding="utf8")
    import re

    used = itertools.chain.from_iterable(
        re.findall(r'Finding\(\s*name,\s*"(\w+)"', file.read_text(encoding="utf8"))
        for file in folder.glob("*.py")
    )
    assert {f"`{name}`" for name in used} | {"`probabilities`", "`percentages`"} <= set(
        re.findall(r"`\w+`", text)
    )


def test_what_is_no_data_set_is_refused():
    with pytest.raises(TypeError, match=r"cal must be a path or \(predictions, labels\), got list"):
        rightly.examine([1, 2])
    with pytest.raises(ValueError, match="expected_accuracy must be a fraction in .0, 1., got 90"):
        rightly.examine("cal.npz", expected_accuracy=90.0)
    with pytest.raises(FileNotFoundError, match=r"cal\.npz"):
        rightly.examine("nowhere/cal.npz")
