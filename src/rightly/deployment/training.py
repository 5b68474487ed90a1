"""What trainers call: metrics while they train, and a calibrator when they are done.

Every function loads the library it is named after when it is called, and no other.
"""

import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from rightly.calibrators import Calibrator
from rightly.checks import check_probabilities
from rightly.fitting import fit
from rightly.metrics import METRICS
from rightly.metrics.definitions import check_options
from rightly.optional import require
from rightly.predictions import Predictions

METHOD = "temperature_scaling"  # a loader has no views
Path = str | os.PathLike[str]
Classify = Callable[[Any, Any], torch.Tensor]


def calibrate_module(
    model: torch.nn.Module,
    batches: Iterable[tuple[Any, Any]],
    out: Path | None = None,
    *,
    method: str = METHOD,
    classify: Classify = lambda model, inputs: model(inputs),
    **options: Any,
) -> Calibrator:
    """Runs a model over batches of (inputs, labels) and fits a calibrator to its logits.

    The batches must not be those it was trained on. `classify` turns model and inputs into logits
    (n, c); `options` are those of `rightly.fit`. With `out`, the calibrator is saved there.
    """
    device = next((weight.device for weight in model.parameters()), torch.device("cpu"))
    logits, labels, was_training = [], [], model.training
    model.eval()
    try:
        with torch.no_grad():
            for inputs, truth in batches:
                logits.append(classify(model, _move(inputs, device)).float().cpu())
                labels.append(torch.as_tensor(truth).cpu())
    finally:
        model.train(was_training)
    if not logits:
        raise ValueError("loader must yield batches of calibration samples, got none")
    calibrator = fit(Predictions(torch.cat(logits)), torch.cat(labels), method, **options)
    if out is not None:
        calibrator.save(out)
    return calibrator


def make_lightning_callback(
    loader: Iterable[Any], out: Path | None = None, *, method: str = METHOD, **options: Any
) -> Any:
    """A callback for Lightning's Trainer that calibrates the module when training has ended.

    `loader` yields batches (inputs, labels) that were not trained on, and the module's `forward`
    gives logits. The callback has the calibrator as `calibrator`; with `out` it is saved there.
    """
    base = _require_lightning().Callback

    class CalibrateAfterTraining(base):  # type: ignore[misc, valid-type]
        calibrator: Calibrator | None = None

        def on_fit_end(self, trainer: Any, pl_module: Any) -> None:
            if trainer.is_global_zero:
                batches = (_split_pair(batch) for batch in loader)
                self.calibrator = calibrate_module(
                    pl_module, batches, out, method=method, **options
                )

    return CalibrateAfterTraining()


def make_transformers_callback(
    loader: Iterable[Mapping[str, Any]],
    out: Path | None = None,
    *,
    method: str = METHOD,
    labels: str = "labels",
    **options: Any,
) -> Any:
    """A callback for the Trainer of transformers that calibrates the model when training has ended.

    `loader` yields batches as the model takes them, with their `labels`, that were not trained on.
    If the Trainer loads its best model at the end, that is the one. The callback has the
    calibrator as `calibrator`; with `out` it is saved there.
    """
    base = require("transformers").TrainerCallback

    class CalibrateAfterTraining(base):  # type: ignore[misc, valid-type]
        calibrator: Calibrator | None = None

        def on_train_end(self, args: Any, state: Any, control: Any, **context: Any) -> None:
            if state.is_world_process_zero:
                self.calibrator = calibrate_module(
                    context["model"],
                    (_split_labels(batch, labels) for batch in loader),
                    out,
                    method=method,
                    classify=lambda model, inputs: model(**inputs).logits,
                    **options,
                )

    return CalibrateAfterTraining()


def make_evaluate_metric(name: str, **options: Any) -> Any:
    """A metric of Hugging Face's evaluate, by its name in `rightly.metrics.METRICS`.

    `compute(predictions=probabilities, references=labels)` gives {name: value}; `add_batch` and
    `combine` work as for any other. Predictions are probabilities (n, c), never logits.
    """
    evaluate, features = require("evaluate"), require("datasets")
    record = METRICS.find(name)
    checked = check_options(record.measure, options)

    class RightlyMetric(evaluate.Metric):  # type: ignore[misc, name-defined]
        def _info(self) -> Any:
            return evaluate.MetricInfo(
                description=record.meaning,
                citation="",
                features=features.Features(
                    {
                        "predictions": features.Sequence(features.Value("float64")),
                        "references": features.Value("int64"),
                    }
                ),
            )

        def _compute(self, predictions: Any, references: Any) -> dict[str, float]:
            first, second = check_probabilities(np.asarray(predictions), np.asarray(references))
            if record.inputs == "confidence":
                first, second = first.max(-1), first.argmax(-1) == second
            return {record.name: float(record.measure(first, second, **checked))}

    return RightlyMetric(config_name=record.name)


def _require_lightning() -> Any:
    """Lightning under the name by which it is in use; the two do not mix."""
    if "pytorch_lightning" in sys.modules and "lightning.pytorch" not in sys.modules:
        return sys.modules["pytorch_lightning"]
    return require("lightning.pytorch")


def _split_pair(batch: Any) -> tuple[Any, Any]:
    if not isinstance(batch, Sequence) or len(batch) != 2:
        raise TypeError(
            f"loader must yield pairs (inputs, labels), got {type(batch).__name__}: wrap it in one "
            "that does, or call rightly.deployment.training.calibrate_module"
        )
    return batch[0], batch[1]


def _split_labels(batch: Any, labels: str) -> tuple[Any, Any]:
    if not isinstance(batch, Mapping) or labels not in batch:
        found = f"one with {', '.join(batch)}" if isinstance(batch, Mapping) else type(batch)
        raise TypeError(
            f"loader must yield mappings with {labels!r}, got {found}: name them by labels="
        )
    return {key: value for key, value in batch.items() if key != labels}, batch[labels]


def _move(inputs: Any, device: torch.device) -> Any:
    if isinstance(inputs, Mapping):
        return {key: _move(value, device) for key, value in inputs.items()}
    return inputs.to(device) if isinstance(inputs, torch.Tensor) else inputs
