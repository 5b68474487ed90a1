"""Streams that change, mix or fool adaptation are what their names say."""

import sys

import numpy as np
import pytest
import torch
from benchmarks.own import streams

import rightly
from rightly import Predictions


def draw(n, seed, scale=1.0):
    """Calibrated logits with views; a scale below 1 makes them harder and less confident."""
    g = torch.Generator().manual_seed(seed)
    logits = 4 * scale * torch.randn(n, 10, generator=g)
    views = logits[:, None] + torch.randn(n, 3, 10, generator=g)
    gumbel = -(-torch.rand(n, 10, generator=g).clamp(1e-9, 1 - 1e-7).log()).log()
    return Predictions(logits, views, view_names=("a", "b", "c")), (logits + gumbel).argmax(-1)


@pytest.fixture(scope="module")
def data():
    return streams.Data(draw(1500, 0), draw(1200, 1), [draw(700, 2, 0.5), draw(900, 3, 0.7)])


@pytest.fixture(scope="module")
def fitted(data):
    return rightly.calibrator("temperature_scaling").fit(*data.cal).learn_shift(*data.cal)


def test_the_shift_changes_in_the_middle_of_every_batch(fitted, data):
    inside, shifted = data.inside, data.shifts[0]
    part = streams.change_midway(fitted, inside, shifted)
    first, second = part.predictions[: streams.BATCH].logits.split(streams.BATCH // 2)
    assert torch.equal(first, inside[0].logits[streams.BATCH // 2 : streams.BATCH])
    assert torch.equal(second, shifted[0].logits[: streams.BATCH // 2])
    assert len(part.correct) == len(part.predictions)


def test_a_mixture_tells_its_shifted_half(fitted, data):
    part = streams.mix(fitted, data.inside, data.shifts[0])
    assert part.judged.sum() == 700 == len(part.predictions) / 2
    shifted = streams.mark(fitted, data.shifts[0])
    assert torch.equal(part.predictions.logits[part.judged], shifted.predictions.logits)
    assert np.array_equal(part.correct[part.judged], shifted.correct)


def test_confidence_stays_high_where_it_should(fitted, data):
    part = streams.match_confidence(fitted, data)
    usual = fitted.confidence(data.inside[0]).numpy()
    matched = fitted.confidence(part.predictions).numpy()
    shifted = fitted.confidence(data.shifts[0][0]).numpy()
    assert abs(matched.mean() - usual.mean()) < 0.01 < usual.mean() - shifted.mean()


def test_one_in_five_is_wrong_and_all_are_confident(fitted, data):
    part = streams.choose_mistakes(fitted, data.inside)
    assert part.correct.mean() == pytest.approx(0.8)
    assert (fitted.confidence(part.predictions) > streams.CONFIDENT).all()


def test_doubtful_samples_are_judged_among_easy_ones(fitted, data):
    part = streams.hide_among_easy(fitted, data.inside)
    c = fitted.confidence(part.predictions).numpy()
    low, high = streams.DOUBTFUL
    assert ((c[part.judged] > low) & (c[part.judged] < high)).all()
    assert c[~part.judged].min() >= np.median(fitted.confidence(data.inside[0]).numpy()) - 1e-9


@pytest.mark.filterwarnings("ignore:the shift estimate of this batch")
def test_classes_that_were_taken_away_are_never_right(fitted, data):
    row = streams.measure_never_seen(fitted, data)
    assert row.gap > 10 and row.adapted_gap > 10  # a fifth of the images are of such classes
    dropped = streams.drop_classes(data.cal[0], 8)
    assert dropped.class_count == 8 and dropped.view_logits.shape[-1] == 8


def test_it_prints_a_line_a_stream_and_method(data, tmp_path, monkeypatch, capsys):
    (tmp_path / "one").mkdir()
    for name, part in {"cal": data.cal, "ind": data.inside, "haze": data.shifts[0]}.items():
        rightly.save(tmp_path / "one" / f"{name}.npz", *part)
    monkeypatch.setattr(sys, "argv", ["streams", str(tmp_path)])
    streams.main()
    printed = capsys.readouterr().out
    for method in (streams.BASE, f"{streams.OWN}, views"):
        assert printed.count(method) == 11
    assert "augmented" not in printed
