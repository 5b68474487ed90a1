"""Setups name layouts, views and test sets that exist."""

from benchmarks.paper.published import read_published
from benchmarks.paper.setups import SETUPS

from rightly.datasets import LAYOUTS
from rightly.transforms.views import VIEWS


def test_setups_name_what_there_is():
    named = {(cell.setup, cell.test_set) for cell in read_published()}
    for name, setup in SETUPS.items():
        assert setup.name == name
        assert set(setup.views) <= set(VIEWS)
        assert len({classifier.name for classifier in setup.classifiers}) == len(setup.classifiers)
        for images in (setup.calibration, *setup.tests):
            assert images.layout in LAYOUTS
            assert images.published is None or (setup.published, images.published) in named
    for name in ("imagenet", "cifar10", "iwildcam"):
        assert len(SETUPS[name].classifiers) == 10
        theirs = {cell.test_set for cell in read_published() if cell.setup == name}
        assert theirs == {images.published for images in SETUPS[name].tests}
