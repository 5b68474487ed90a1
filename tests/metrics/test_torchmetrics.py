"""Metrics inside torchmetrics, against the metrics themselves."""

from importlib.util import find_spec

import numpy as np
import pytest
import torch

from rightly.metrics import METRICS


@pytest.fixture(scope="module")
def wrapped(loadable_torchvision):
    """torchmetrics' wrapper; imported late, because torchmetrics imports torchvision."""
    pytest.importorskip("torchmetrics")
    from rightly.metrics.torchmetrics import CalibrationMetric

    return CalibrationMetric


def batches(n=90, c=4):
    rng = np.random.default_rng(0)
    p = torch.from_numpy(rng.dirichlet(np.ones(c), n))
    labels = torch.from_numpy(rng.integers(0, c, n))
    return p, labels


def expect(name, p, labels, **options):
    metric = METRICS[name]
    if metric.inputs == "probabilities":
        return metric.measure(p, labels, **options)
    return metric.measure(p.max(-1).values, p.argmax(-1) == labels, **options)


@pytest.mark.skipif(find_spec("torchmetrics") is not None, reason="torchmetrics is installed")
def test_without_torchmetrics_the_package_to_install_is_named():
    from rightly.metrics.torchmetrics import CalibrationMetric

    with pytest.raises(ImportError, match="pip install torchmetrics"):
        CalibrationMetric("ece", num_classes=4)


@pytest.mark.parametrize("name", METRICS)
def test_batches_and_merged_workers_give_the_metric_of_all_samples(wrapped, name):
    p, labels = batches()
    here, there = wrapped(name, num_classes=4), wrapped(name, num_classes=4)
    here.update(p[:20], labels[:20])
    here.update(p[20:50], labels[20:50])
    there.update(p[50:], labels[50:])
    here.merge_state(there)
    assert here.compute().item() == pytest.approx(expect(name, p, labels), abs=1e-12)
    here.reset()
    # Called, it gives the batch's own value and remembers the batch.
    for rows in (slice(0, 30), slice(30, 60)):
        assert here(p[rows], labels[rows]).item() == pytest.approx(
            expect(name, p[rows], labels[rows]), abs=1e-12
        )
    assert here.compute().item() == pytest.approx(expect(name, p[:60], labels[:60]), abs=1e-12)


def test_it_lives_in_collections_and_takes_options(wrapped):
    import torchmetrics

    p, labels = batches()
    collection = torchmetrics.MetricCollection(
        {
            "ece": wrapped("ece", 4, {"bins": 15}),
            "auroc": wrapped("auroc", 4),
            "theirs": torchmetrics.classification.MulticlassCalibrationError(4, n_bins=15),
        }
    )
    collection.update(p, labels)
    values = collection.compute()
    assert values["ece"].item() == pytest.approx(expect("ece", p, labels, bins=15), abs=1e-12)
    assert values["ece"].item() == pytest.approx(values["theirs"].item(), abs=1e-6)
    assert collection["auroc"].higher_is_better and not collection["ece"].higher_is_better
    with pytest.raises(ValueError, match="must be non-negative with rows that sum to 1"):
        collection["ece"].update(p.log(), labels)
    with pytest.raises(ValueError, match="preds must have 4 columns as num_classes says, got 3"):
        collection["ece"].update(torch.eye(3), torch.arange(3))
