"""Classes that a sample cannot have, and logits and sample counts at the edge of what can be."""

import numpy as np
import pytest
import torch

import rightly
from rightly import Predictions
from rightly.calibrators import CALIBRATORS
from rightly.calibrators.shift_adaptation import finalise_outputs
from rightly.predictions.masking import MASKED
from tests.calibrators.quick import choose_quick_arguments
from tests.conftest import make, make_for

ANY_CLASSES = [name for name, method in CALIBRATORS.items() if not method.fits_classes]

LOWEST = torch.finfo(torch.float32).min


def mask(value, n=48):
    """Predictions whose every fourth row leaves one class, the others about seven of ten."""
    predictions, labels = make(n=n)
    generator = torch.Generator().manual_seed(3)
    masked = torch.rand(n, 10, generator=generator) < 0.3
    masked[::4] = True
    masked[torch.arange(n), labels] = False
    logits = predictions.logits.masked_fill(masked, value)
    views = predictions.view_logits.masked_fill(masked[:, None], value)
    return Predictions(logits, views, predictions.features, predictions.view_names), labels, masked


@pytest.mark.parametrize("name", ANY_CLASSES)
def test_masked_classes_have_probability_zero_under_every_calibrator(name):
    predictions, labels, masked = mask(-torch.inf)
    fitted = rightly.calibrator(name, **choose_quick_arguments(name)).fit(predictions, labels)
    confidence, rows = fitted.confidence(predictions), fitted.probabilities(predictions)
    assert ((confidence >= 0) & (confidence <= 1)).all()
    assert (rows[masked] == 0).all() and torch.isfinite(rows).all()
    torch.testing.assert_close(rows.sum(-1), torch.ones(48).double())
    temperature = fitted.temperature(predictions)
    assert (temperature > 0).all() and torch.isfinite(temperature).all()
    possible = (~masked).sum(-1)
    assert (confidence[possible == 1] == 1).all()
    # A confidence that softmax can reach is the probability of its class.
    reachable = confidence > 1 / possible + 1e-4
    torch.testing.assert_close(rows.amax(-1)[reachable], confidence[reachable], atol=1e-6, rtol=0)
    together = finalise_outputs(fitted.compute_together(predictions), predictions, None)
    torch.testing.assert_close(together.confidence, confidence, atol=1e-9, rtol=1e-6)
    assert (together.probabilities[masked] == 0).all()


@pytest.mark.filterwarnings("ignore:all 1 calibration samples")
@pytest.mark.filterwarnings("ignore:.*classes have no calibration sample")
@pytest.mark.parametrize("name", CALIBRATORS)
def test_one_sample_is_fitted_or_refused_in_words(name):
    predictions, labels = make_for(name, n=1)
    calibrator = rightly.calibrator(name, **choose_quick_arguments(name))
    if name.startswith("proximity"):
        with pytest.raises(ValueError, match="at least 2 calibration samples"):
            calibrator.fit(predictions, labels)
        return
    calibrator.fit(predictions, labels)
    assert torch.isfinite(calibrator.confidence(predictions)).all()


@pytest.mark.parametrize(
    "name", ["temperature_scaling", "balanced_temperature", "multi_isotonic", "spline", "rightly"]
)
def test_masked_columns_change_nothing_for_the_others(name):
    """As good as leaving the columns out of all predictions."""
    predictions, labels = make(n=200)
    kept = [0, 1, 2, 3, 5, 6, 8]
    rows = torch.isin(labels, torch.tensor(kept))
    logits, views = predictions.logits[rows], predictions.view_logits[rows]
    smaller = Predictions(logits[:, kept], views[:, :, kept])
    renumbered = torch.tensor([kept.index(label) for label in labels[rows].tolist()])
    gone = [i for i in range(10) if i not in kept]
    masked, masked_views = logits.clone(), views.clone()
    masked[:, gone], masked_views[:, :, gone] = -torch.inf, -torch.inf
    larger = Predictions(masked, masked_views)
    without = rightly.calibrator(name).fit(smaller, renumbered)
    fitted = rightly.calibrator(name).fit(larger, labels[rows])
    for ask in ("confidence", "temperature"):
        torch.testing.assert_close(
            getattr(fitted, ask)(larger), getattr(without, ask)(smaller), atol=1e-4, rtol=1e-4
        )
    torch.testing.assert_close(
        fitted.probabilities(larger)[:, kept], without.probabilities(smaller), atol=1e-4, rtol=0
    )


def test_all_ways_to_mask_are_one():
    expected = mask(-torch.inf)[0]
    assert (expected.logits[0] == MASKED).sum() >= 8
    assert torch.tensor(MASKED, dtype=torch.float32).double() == MASKED
    for value in (LOWEST, -1e30, -1e9):
        again = mask(value)[0]
        assert torch.equal(again.logits, expected.logits)
        assert torch.equal(again.view_logits, expected.view_logits)
    half = Predictions(np.array([[1, np.finfo(np.float16).min, 2]], np.float16))
    assert half.logits.tolist() == [[1, MASKED, 2]]
    log = Predictions.from_log_probabilities([[np.log(0.25), np.log(0.75), -np.inf]])
    assert log.logits[0, 2] == MASKED
    # Large, but what float32 can tell apart: not masked.
    assert Predictions([[-65504.0, 0.0], [0.0, 1.0]]).logits[0, 0] == -65504


def test_a_masked_label_is_refused_with_its_row():
    predictions, labels, masked = mask(-torch.inf)
    labels[7] = int(masked[7].nonzero()[0])
    with pytest.raises(ValueError, match=r"labels .* row 7, the logit of the true class .* masked"):
        rightly.calibrator("ts").fit(predictions, labels)


def test_a_row_without_any_class_is_refused():
    logits = torch.zeros(5, 3)
    logits[3] = -torch.inf
    with pytest.raises(ValueError, match="logits must leave each row a class, but all of row 3"):
        Predictions(logits)
    views = torch.zeros(5, 2, 3)
    views[2, 1] = LOWEST
    with pytest.raises(ValueError, match="view_logits must leave each row a class.* row 2"):
        Predictions(torch.randn(5, 3), views)


@pytest.mark.parametrize("value", [1e19, 1e30, 1e9])
def test_logits_of_a_diverged_network_are_refused_with_the_row(value):
    logits = torch.randn(5, 3)
    logits[4, 1] = value
    with pytest.raises(ValueError, match="logits must lie below 1e.09, got 1e.* in row 4"):
        Predictions(logits)


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_nan_and_infinity_are_refused_beside_masked_logits(value):
    logits = torch.randn(5, 3)
    logits[1, 0], logits[2, 1] = -torch.inf, value
    with pytest.raises(ValueError, match="NaN or infinity in 1 of 5 rows"):
        Predictions(logits)
    with pytest.raises(ValueError, match="features must be finite"):
        Predictions(torch.randn(5, 3), features=logits)


@pytest.mark.parametrize("name", ["temperature_scaling", "multi_isotonic", "ca_views", "rightly"])
def test_graphs_take_infinity_as_it_comes_from_the_classifier(name):
    """What is traced for export, and run by torch: logits that nobody checked."""
    from rightly.deployment.stages import CalibrationStage

    predictions, labels, masked = mask(-torch.inf)
    fitted = rightly.calibrator(name).fit(predictions, labels)
    views = predictions.view_names if fitted.uses_views else ()
    stage = CalibrationStage(fitted, views)
    batches = [predictions.logits, *predictions.view_logits.unbind(1)][: len(views) + 1]
    stacked = torch.cat([torch.where(batch <= MASKED, -torch.inf, batch) for batch in batches])
    with torch.no_grad():
        outputs = stage(stacked)
        dims = ({0: torch.export.Dim.AUTO},)
        program = torch.export.export(_Traced(stage), (stacked,), dynamic_shapes=dims)
        confidence, probabilities = program.module()(stacked)
    for rows in (outputs.probabilities, probabilities):
        assert (rows[masked] == 0).all() and torch.isfinite(rows).all()
    expected = fitted.confidence(predictions).float()
    torch.testing.assert_close(outputs.confidence, expected, atol=1e-6, rtol=0)
    torch.testing.assert_close(confidence, expected, atol=1e-6, rtol=0)


class _Traced(torch.nn.Module):
    def __init__(self, stage):
        super().__init__()
        self.stage = stage

    def forward(self, stacked):
        outputs = self.stage(stacked)
        return outputs.confidence, outputs.probabilities


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_masked_logits_are_stored_and_loaded(tmp_path, dtype):
    from rightly.predictions.store import Block, Store
    from tests.predictions.shards import asked

    predictions, labels, _ = mask(-torch.inf)
    rightly.save(tmp_path / "a.npz", predictions, labels)
    assert torch.equal(rightly.load(tmp_path / "a.npz")[0].logits, predictions.logits)
    plan = asked(shards=1, shifts=[], views=[], features=False, dtype=dtype, class_names=None)
    logits = predictions.logits.numpy()
    rows = np.arange(48)
    block = Block(rows, [str(i) for i in rows], labels.numpy(), rows * 0, logits, None, None)
    Store.begin(tmp_path / "b", plan).write(0, block)
    stored = rightly.load(tmp_path / "b")[0].logits
    assert torch.equal(stored == MASKED, predictions.logits == MASKED)


def test_confidence_that_is_no_number_is_refused_with_the_row():
    predictions, labels = make(n=60)
    fitted = rightly.calibrator("proximity_bins").fit(predictions, labels)
    fitted.corrections[:] = torch.nan
    with pytest.raises(ValueError, match="proximity_bins has no confidence for 60 of 60"):
        fitted.confidence(predictions)
    with pytest.raises(ValueError, match="proximity_bins has no probabilities for"):
        fitted.probabilities(predictions)
