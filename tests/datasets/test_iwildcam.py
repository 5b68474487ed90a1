"""iWildCam in the layout of WILDS."""

import pytest

from rightly.datasets import open_images
from tests.datasets.example_sets import make_iwildcam, put


def test_iwildcam_asks_for_a_split_and_names_species(tmp_path):
    root, _, _ = make_iwildcam(tmp_path)
    with pytest.raises(ValueError, match=r"metadata\.csv, \{'id_val': 2, 'test': 1\}.*got None"):
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
    for damaged, words in (
        (b"split,filename,y\ntest\n", "metadata.csv must have 3 cells in each row, got .'test'"),
        (b"split,filename,y\ntest,\xe9.jpg,1\n", "metadata.csv must be a table .* in UTF-8"),
        (b"split,filename,y\ntest,a.jpg," + b"9" * 5000, "y in .*metadata.csv must lie in"),
    ):
        table.write_bytes(damaged)
        with pytest.raises((ValueError, FileNotFoundError), match=words):
            open_images(root, layout="iwildcam", split="test")
    table.write_text(f"split,filename,y\ntest,{'a' * 300}.jpg,1\n")
    with pytest.raises(FileNotFoundError, match="named in metadata.csv are not in"):
        open_images(root, layout="iwildcam", split="test")
    table.write_text("split,filename\n")
    with pytest.raises(ValueError, match=r"\['y'\] are missing"):
        open_images(root, layout="iwildcam", split="test")


def test_a_metadata_csv_that_is_no_table_is_some_other_folders(tmp_path):
    put(tmp_path / "a.png")
    (tmp_path / "metadata.csv").write_bytes(b"\xff\xfe caf\xe9")
    assert open_images(tmp_path).names == ("a.png",)
