"""A calibrator of real predictions, and logs of it."""

import csv

import pytest

import rightly
from rightly.demo_data import load_demo_set


@pytest.fixture(scope="session")
def calibrator():
    cal = load_demo_set("cal")
    return rightly.calibrator("temperature_scaling").fit(*cal).learn_shift(*cal)


@pytest.fixture(scope="session")
def write_log(calibrator):
    """Writes the rows of predictions as a CSV log, with whatever further columns are given."""

    def write(path, predictions, **columns):
        classes, confidence = calibrator.classes(predictions), calibrator.confidence(predictions)
        table = {
            "class": classes.tolist(),
            "confidence": confidence.tolist(),
            "shift_score": calibrator.shift.shift_scores(confidence, classes).tolist(),
            **columns,
        }
        with path.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(table)
            writer.writerows(zip(*table.values(), strict=True))
        return path

    return write
