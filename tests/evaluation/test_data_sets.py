"""A data set is a path or a pair; its shifted rows are test sets of their own."""

import numpy as np
import pytest
import torch

import rightly
from rightly import Predictions
from rightly.evaluation.data_sets import load_data_set, load_test_sets, split_by_shift
from tests.conftest import make


def shifted(names=("blur:1", "jpeg:3")):
    predictions, labels = make(n=60)
    shift = np.repeat([0, 1, 2], 20)
    return Predictions(predictions.logits, shift=shift, shift_names=names), labels


def test_a_path_and_a_pair_give_the_same(sample, tmp_path):
    predictions, labels = sample
    rightly.save(tmp_path / "a.npz", predictions, labels)
    for source in (tmp_path / "a.npz", str(tmp_path / "a.npz"), (predictions, labels.numpy())):
        loaded, truth = load_data_set(source)
        torch.testing.assert_close(loaded.logits, predictions.logits)
        assert truth.equal(labels)


def test_views_are_selected_in_the_order_asked_for(sample):
    loaded, _ = load_data_set(sample, ["view2", "view0"])
    assert loaded.view_names == ("view2", "view0")
    assert load_data_set(sample, sample[0].view_names)[0] is sample[0]


def test_data_without_labels_and_other_types_are_refused(sample, tmp_path):
    rightly.save(tmp_path / "a.npz", sample[0])
    with pytest.raises(ValueError, match="cal must hold labels .* rightly.save"):
        load_data_set(tmp_path / "a.npz", argument="cal")
    with pytest.raises(TypeError, match=r"data set must be a path or \(predictions, labels\)"):
        load_data_set(sample[0])
    with pytest.raises(TypeError, match="must be a path"):
        load_data_set((sample[0].logits, sample[1]))


def test_shifted_rows_are_sets_of_their_own():
    predictions, labels = shifted()
    sets = split_by_shift("mine", predictions, labels)
    assert list(sets) == ["mine", "blur:1", "jpeg:3"]
    assert list(split_by_shift("mine", *shifted(()))) == ["mine", "mine shift 1", "mine shift 2"]
    for i, (part, truth) in enumerate(sets.values()):
        rows = slice(20 * i, 20 * (i + 1))
        assert part.logits.equal(predictions.logits[rows]) and truth.equal(labels[rows])


def test_two_test_sets_of_one_name_are_refused():
    assert list(load_test_sets({"a": shifted()})) == ["a", "blur:1", "jpeg:3"]
    with pytest.raises(ValueError, match="different name .* 'blur:1' twice"):
        load_test_sets({"a": shifted(), "b": shifted()})


def test_tests_must_have_names(sample):
    with pytest.raises(TypeError, match="tests must map names to data sets"):
        load_test_sets([sample])
    with pytest.raises(ValueError, match="at least one data set"):
        load_test_sets({})


def test_an_error_names_the_test_set():
    with pytest.raises(TypeError, match=r"tests\['mine'\] must be a path"):
        load_test_sets({"mine": 3})
