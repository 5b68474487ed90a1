"""The paper's names, and the values it prints (published.csv, typed from its tables)."""

import csv
from pathlib import Path
from typing import NamedTuple

# Its row headings, spelt as each table has them, and our names.
METHODS = {
    "Uncal": "uncalibrated",
    "TS": "temperature_scaling",
    "ETS": "ensemble_temperature_scaling",
    "MIR": "multi_isotonic",
    "SPL": "spline",
    "Adaptive TS": "adaptive_temperature_scaling",
    "TCP": "true_class_probability",
    "ProCal": "proximity",
    "CE only (PTS)": "ce_only",
    "CE Only (PTS)": "ce_only",
    "CA only": "ca_only",
    "CA Only": "ca_only",
    "CE+trans.": "ce_views",
    "CA+trans. (ours)": "ca_views",
    "CA + CE + trans": "ca_ce_views",
    "DCA": "dca_views",
    "MDCA": "mdca_views",
    "CA (ours)": "ca_views",
    "DCA+CA": "dca_ca_views",
    "MDCA+CA": "mdca_ca_views",
}
# Its "KS" is what its released code computes, with the arguments swapped: see METRICS of rightly.
METRICS = {"ECE": "ece", "BS": "brier", "KS": "ks_released", "AUC": "auroc"}
TABLES = {
    "1": "Table 1: calibrators under the ImageNet setup",
    "2": "Table 2: calibrators under the CIFAR-10 setup",
    "3": "Table 3: calibrators under the iWildCam setup",
    "pre-hoc": "Pre-hoc table: losses of training-time methods in the same network",
}


class PublishedValue(NamedTuple):
    """One cell of a table of the paper, in its own words; values are in %."""

    table: str
    setup: str
    test_set: str
    method: str
    metric: str
    value: float


def read_published() -> list[PublishedValue]:
    """Every cell, in the paper's order."""
    with (Path(__file__).parent / "published.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    return [PublishedValue(**{**row, "value": float(row["value"])}) for row in rows]
