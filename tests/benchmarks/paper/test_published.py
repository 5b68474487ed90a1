"""The paper's printed values and names."""

from collections import Counter

from benchmarks.paper.published import METHODS, METRICS, TABLES, read_published
from benchmarks.paper.setups import SETUPS

import rightly
from rightly.calibrators import CALIBRATORS


def test_every_cell_of_the_papers_tables_is_there():
    cells = read_published()
    assert Counter(cell.table for cell in cells) == {"1": 260, "2": 192, "3": 48, "pre-hoc": 96}
    assert len({cell[:5] for cell in cells}) == len(cells)
    value = {cell[:5]: cell.value for cell in cells}
    for key, printed in {
        ("1", "imagenet", "ImageNet-Val", "Uncal", "ECE"): 8.71,
        ("1", "imagenet", "ImageNet-R", "CA+trans. (ours)", "KS"): 10.12,
        ("1", "imagenet", "ObjectNet", "CA + CE + trans", "AUC"): 78.14,
        ("1", "imagenet", "ImageNet-S", "TCP", "BS"): 21.69,
        ("2", "cifar10", "Gaussian Blur", "Uncal", "AUC"): 66.7,
        ("2", "cifar10", "CINIC", "CA+trans. (ours)", "KS"): 15.90,
        ("2", "cifar10", "Defocus Blur", "ETS", "KS"): 39.73,
        ("3", "iwildcam", "iWildCam", "TCP", "AUC"): 90.51,
        ("pre-hoc", "imagenet", "ObjectNet", "MDCA+CA", "AUC"): 78.22,
    }.items():
        assert value[key] == printed


def test_the_papers_names_lead_to_ours():
    for cell in read_published():
        assert METHODS[cell.method] in CALIBRATORS
        assert METRICS[cell.metric] in rightly.metrics.METRICS
        assert cell.table in TABLES and cell.setup in SETUPS
