"""The public names of the package: what users call; everything else comes from submodules."""

import rightly

NAMES = """
Predictions load save concatenate collect calibrator fit Calibrator load_calibrator Decision
evaluate Evaluation compare Comparison report examine CalibratedClassifier Stream register metrics
NotFittedError benchmark View Shift losses
"""


def test_the_public_names_are_these_and_all_can_be_loaded():
    assert sorted(rightly.__all__) == sorted(NAMES.split())
    assert all(getattr(rightly, name) is not None for name in rightly.__all__)
    assert rightly.__version__
