"""Tables of labels."""

import pytest

from rightly.datasets import open_images
from tests.datasets.example_sets import put


@pytest.mark.parametrize(
    ("table", "names", "labels"),
    [
        ("b.png,1\na.png,0\n", None, [0, 1]),
        ("filename,label\nb.png,1\na.png,0\n", None, [0, 1]),
        ("id,split,class_name\nb.png,x,dog\na.png,x,cat\n", None, [0, 1]),
        ("\ufeffpicture,what\nb.png,dog\na.png,cat\n\n", ("dog", "cow", "cat"), [2, 0]),
        ("b.png, 1\na.png, 0\n", ("cat", "dog"), [0, 1]),
        ("b.png,10\na.png,2\n", ("2", "10"), [0, 1]),
    ],
)
def test_tables_of_labels_may_have_headings_numbers_or_names(tmp_path, table, names, labels):
    for i, name in enumerate(("a.png", "b.png")):
        put(tmp_path / "photos" / name, i)
    path = tmp_path / "truth.csv"
    path.write_text(table, encoding="utf-8")
    images = open_images(tmp_path / "photos", labels=path, class_names=names)
    assert images.names == ("a.png", "b.png") and list(images.labels) == labels


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("", "it is empty"),
        ("a.png,1\n", "1 images have no row: b.png"),
        ("a.png,1\nb.png,0\nc.png,2\n", "1 rows have no image: c.png"),
        ("a.png,1\nb.png,0\na.png,1\n", "a.png occurs twice"),
        ("a.png,1\nb.png\n", "a label in each row"),
        ("a.png,1\nb.png,dog\n", "all class numbers from 0 or all class names"),
        ("a.png,-1\nb.png,2\n", "negative numbers: -1"),
        ("x,y,z\na.png,1,2\nb.png,1,2\n", "one column of file names"),
        ("a.png,1\nb.png," + "9" * 5000, "truth.csv must be all class numbers"),
        ("a.png,caf\u00e9\nb.png,2\n", "truth.csv must be a table .* in UTF-8"),
        ("a.png," + "x" * 200_000 + "\nb.png,2\n", "truth.csv must be a table .* field limit"),
    ],
)
def test_tables_of_labels_that_do_not_fit_are_refused(tmp_path, table, message):
    for name in ("a.png", "b.png"):
        put(tmp_path / "photos" / name)
    path = tmp_path / "truth.csv"
    path.write_bytes(table.encode("latin-1"))
    with pytest.raises(ValueError, match=message):
        open_images(tmp_path / "photos", labels=path)


def test_labels_outside_the_class_names_are_refused(tmp_path):
    put(tmp_path / "a.png")
    (tmp_path / "labels.csv").write_text("a.png,emu\n")
    with pytest.raises(ValueError, match="must be among class_names, but not: emu"):
        open_images(tmp_path, class_names=("cat", "dog"))
    (tmp_path / "labels.csv").write_text("a.png,2\n")
    with pytest.raises(ValueError, match=r"must lie in 0..1 .*got 2..2: do they count from 1"):
        open_images(tmp_path, class_names=("cat", "dog"))
    with pytest.raises(FileNotFoundError, match="no table"):
        open_images(tmp_path, labels=tmp_path / "other.csv")


def test_a_flat_folder_without_a_table_has_no_labels(tmp_path):
    put(tmp_path / "a.png")
    (tmp_path / "notes.txt").write_text("")
    images = open_images(tmp_path)
    assert images.labels is None and images.notes == ("1 files are not images: notes.txt",)
    images.check_classes(10)
