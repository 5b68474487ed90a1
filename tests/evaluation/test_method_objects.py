"""`compare` takes calibrators and what builds them, beside names."""

from functools import partial

import pytest
import torch

import rightly
from rightly.evaluation.compare import resolve_methods
from tests.conftest import make


class Constant(rightly.Calibrator):
    """One confidence for all: the accuracy, plus what it was built with."""

    def __init__(self, plus: float = 0.0, seed: int = 0) -> None:
        super().__init__()
        self.plus = plus + seed / 100

    def learn(self, predictions, labels):
        self.store(value=(predictions.classes == labels).double().mean() + self.plus)

    def compute_confidence(self, predictions):
        return self.value.expand(len(predictions))


def compare(methods, **options):
    return rightly.compare(make(), {"t": make(seed=1)}, methods=methods, metrics="brier", **options)


def values(comparison, seed=0):
    return {row.calibrator: row.value for row in comparison if row.seed == seed}


def test_objects_are_rows_beside_names_with_intervals():
    instance = Constant(0.1)
    methods = ["ts", instance, partial(rightly.calibrator, "spline")]
    comparison = compare(methods, intervals=True, resamples=200)
    assert comparison.methods == ["temperature_scaling", "Constant", "calibrator"]
    assert not instance.is_fitted  # a copy was
    by_name = compare(["ts", "spline"])
    assert values(comparison)["calibrator"] == values(by_name)["spline"]
    assert all(row.low <= row.value <= row.high for row in comparison)
    assert "Constant" in comparison.to_markdown()


def test_what_is_fitted_stays_as_it_is_and_counts_for_every_seed():
    fitted = Constant().fit(make()[0], torch.zeros(300, dtype=torch.int64))
    kept = rightly.fit(*make(), "temperature_scaling")
    comparison = compare({"zero": fitted, "kept": kept, "drawn": Constant, "s": "ts"}, repeats=2)
    test, truth = make(seed=1)
    right = test.correct(truth).double()
    assert values(comparison)["zero"] == pytest.approx(float((right - fitted.value).pow(2).mean()))
    first, second = values(comparison), values(comparison, 1)
    assert first["kept"] == second["kept"] == first["s"]
    assert first["drawn"] != second["drawn"]  # it takes a seed


@pytest.mark.parametrize(
    ("methods", "error", "message"),
    [
        ([lambda: Constant()], ValueError, "lambda: pass methods="),
        ([Constant(), Constant(0.1)], ValueError, "different names, got 'Constant' twice"),
        (["ts", rightly.calibrator("ts")], ValueError, "got 'temperature_scaling' twice"),
        ({"a": lambda: 3}, TypeError, r"methods\['a'\] must build a rightly.Calibrator, got int"),
        ({"a": "tss"}, ValueError, "did you mean ts"),
        ([], ValueError, "methods must hold one"),
    ],
)
def test_what_is_no_method_is_refused(methods, error, message):
    with pytest.raises(error, match=message):
        compare(methods)


def test_what_another_library_fits_is_pointed_to_the_adapter():
    # Below `compare`, whose annotations the tests enforce.
    with pytest.raises(TypeError, match=r"must be names, calibrators.*got int: .*package.md shows"):
        resolve_methods([3], make(), {})
    with pytest.raises(TypeError, match=r"methods\['a'\] must be a name.*got float"):
        resolve_methods({"a": 3.5}, make(), {})
