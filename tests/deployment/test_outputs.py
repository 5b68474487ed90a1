"""One record for torch, files, server and command line."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from rightly.deployment.outputs import OUTPUT_NAMES, REQUIRED, Outputs, concatenate, read_outputs


def make_outputs(n=3, library=np):
    return Outputs(
        classes=library.zeros(n, dtype=library.int64),
        confidence=library.linspace(0.1, 0.9, n),
        raw_confidence=library.ones(n),
        probabilities=library.ones((n, 2)) / 2,
    )


def test_only_what_there_is_is_listed_in_the_order_of_the_fields():
    assert tuple(make_outputs().to_dict()) == REQUIRED
    both = replace(make_outputs(), in_set=np.ones((3, 2), bool), accept=np.ones(3, bool))
    assert tuple(both.to_dict()) == (*REQUIRED, "accept", "in_set")
    assert OUTPUT_NAMES[:4] == REQUIRED


def test_tensors_become_arrays():
    outputs = make_outputs(library=torch).to_numpy()
    assert all(isinstance(value, np.ndarray) for value in outputs.to_dict().values())
    assert outputs.accept is None and len(outputs) == 3


def test_rows_put_together_are_the_whole():
    whole = replace(make_outputs(), view_classes=np.array([[1, -1], [0, 0], [1, 1]]))
    rows = list(whole.rows())
    assert [len(row) for row in rows] == [1, 1, 1] and rows[2].view_classes.tolist() == [[1, 1]]
    joined = concatenate(rows)
    for name, value in whole.to_dict().items():
        assert np.array_equal(getattr(joined, name), value)


def test_values_are_read_by_name_and_unknown_ones_are_ignored():
    values = make_outputs().to_dict()
    shuffled = dict(reversed(values.items())) | {"from_the_future": np.zeros(3)}
    assert np.array_equal(read_outputs(shuffled).confidence, values["confidence"])
    # onnxruntime's integers: C's long long, as wide as int64, but another type to NumPy.
    shuffled["classes"] = values["classes"].astype(np.longlong)
    assert read_outputs(shuffled).classes.dtype == np.int64
    del shuffled["classes"]
    with pytest.raises(ValueError, match=r"m\.onnx .* lacks \['classes'\]: export it again"):
        read_outputs(shuffled, "m.onnx")
