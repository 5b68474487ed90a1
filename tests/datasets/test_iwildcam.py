"""iWildCam in the layout of WILDS."""

import pytest

from rightly.datasets import open_images
from tests.datasets.example_sets import make_iwildcam


def test_iwildcam_asks_for_a_split_and_names_species(tmp_path):
    root, _, _ = make_iwildcam(tmp_path)
    with pytest.raises(ValueError, match=r"\{'id_val': 2, 'test': 1\}.*got None"):
        open_images(root)
    images = open_images(root, split="test")
    assert list(images.labels) == [181] and len(images.class_names) == 182
    assert images.class_names[5] == "puma concolor" and images.class_names[7] == "class 7"


def test_iwildcam_tables_that_do_not_fit_are_refused(tmp_path):
    root, _, _ = make_iwildcam(tmp_path)
    table = root / "iwildcam_v2.0" / "metadata.csv"
    table.write_text(table.read_text().replace("181", "182"))
    with pytest.raises(ValueError, match="y in .* must lie in 0..181, got '182'"):
        open_images(root, split="test")
    (root / "iwildcam_v2.0" / "train" / "c.jpg").unlink()
    with pytest.raises(FileNotFoundError, match=r"1 of 2 images.*c.jpg.*wilds.stanford"):
        open_images(root, split="id_val")
    table.write_text("split,filename\n")
    with pytest.raises(ValueError, match=r"\['y'\] are missing"):
        open_images(root, layout="iwildcam", split="test")
