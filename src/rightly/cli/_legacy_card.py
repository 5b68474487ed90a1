"""What `rightly card` calls, until it moves to rightly.deployment."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rightly.calibrators import load_calibrator
from rightly.cli.inputs import read_data_set, split_test_set
from rightly.decisions.thresholds import at_threshold
from rightly.deployment import open_deployed
from rightly.deployment.hub import CALIBRATOR, CONFIG
from rightly.deployment.metadata import identity_without_classifier
from rightly.deployment.model_card import Measured
from rightly.evaluation.measurement import TABLE_METRICS, measure, split_by_shift, uncalibrated


def describe_calibrator(path: Path) -> Any:
    if path.is_dir():
        try:
            return json.loads((path / CONFIG).read_text())
        except (OSError, ValueError) as error:
            raise ValueError(f"{path} must hold a {CONFIG} of save_pretrained: {error}") from error
    if path.suffix in (".onnx", ".pt2"):
        return open_deployed(path).identity
    return identity_without_classifier(load_calibrator(path))


def pick_calibrator(path: Path, given: Path | None) -> Path:
    if given is not None:
        return given
    if path.is_dir():
        return path / CALIBRATOR
    if path.suffix in (".onnx", ".pt2"):
        raise ValueError("--on needs --calibrator, because an exported file takes images")
    return path


def measure_calibrator(path: Path, tests: Sequence[str]) -> list[Measured]:
    fitted = load_calibrator(path)
    results = []
    for item in tests:
        name, file = split_test_set(item)
        loaded = read_data_set(file, fitted.view_names)
        for title, (shown, truth) in split_by_shift(name, *loaded).items():
            own = uncalibrated(shown, truth)
            correct = shown.correct(truth)
            point = None
            if fitted.threshold is not None:
                point = at_threshold(fitted.confidence(shown), correct, fitted.threshold)
            results.append(
                Measured(
                    title,
                    len(shown),
                    float(correct.double().mean()),
                    measure(own, shown, truth, TABLE_METRICS),
                    measure(fitted, shown, truth, TABLE_METRICS),
                    None if point is None else point.coverage,
                    None if point is None or not point.accepted else point.accuracy,
                )
            )
    return results
