"""`rightly doctor`, run as a user would."""

import json

import pytest

import rightly
from rightly.classifiers import Preprocessing
from rightly.cli import main
from rightly.demo_data import load_demo_set
from tests.collection.tiny_model import flat


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("doctor")
    rightly.save(folder / "cal.npz", *load_demo_set("cal"))
    predictions, labels = load_demo_set("ind")
    rightly.save(folder / "swapped.npz", predictions, 9 - labels)
    return folder


def test_findings_end_with_five_and_are_written(folder, tmp_path, capsys):
    arguments = ["doctor", str(folder / "cal.npz"), f"test={folder / 'swapped.npz'}"]
    out = tmp_path / "findings.json"
    assert main([*arguments, "--expected-accuracy", "0.95", "--json", str(out)]) == 5
    printed = capsys.readouterr().out
    assert "cal: error, unexpected_accuracy\n  found: 87." in printed
    assert "test: error, labels_permuted\n  found: labels number 10 of 10 classes" in printed
    assert "0 -> 9, 1 -> 8" in printed and "2 findings in cal, test" in printed
    written = json.loads(out.read_text())
    assert written["format"] == "rightly-findings" and written["data_sets"] == ["cal", "test"]
    assert [one["name"] for one in written["findings"]] == [
        "unexpected_accuracy",
        "labels_permuted",
    ]


def test_collected_probabilities_are_found(tmp_path, capsys):
    def model(images):
        return images.mean((2, 3)).softmax(1)

    with pytest.raises(ValueError, match="as probabilities do"):
        size = Preprocessing((8, 8))
        rightly.collect(
            model, flat(tmp_path / "a", 5), views=(), preprocessing=size, out=tmp_path / "p"
        )
    assert main(["doctor", str(tmp_path / "p")]) == 5
    assert (
        "p: error, probabilities\n  found: logits are probabilities: all 5"
        in capsys.readouterr().out
    )


def test_what_cannot_be_examined_is_refused(folder, capsys):
    for arguments, words in (
        (["nowhere.npz"], "there is no predictions file nowhere.npz"),
        ([folder / "cal.npz", folder / "cal.npz"], "tests need another name than CAL"),
        ([folder / "cal.npz", "--expected-accuracy", "87"], "got 87.0: for 87 % pass 0.87"),
    ):
        assert main(["doctor", *map(str, arguments)]) == 2
        assert words in capsys.readouterr().err
