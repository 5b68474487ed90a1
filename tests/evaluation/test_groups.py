"""Groups reach the rows they are about, through shifts, names and numbers."""

import numpy as np
import pytest

import rightly
from rightly.evaluation.data_sets import load_test_sets, open_data_sets
from rightly.evaluation.groups import resolve_groups
from tests.conftest import make
from tests.reporting.html.test_study import collected as collected


def write(folder, text):
    (folder / "groups.csv").write_text(text)
    return folder / "groups.csv"


def test_names_of_images_find_their_rows_under_every_shift(collected):
    folder, names = collected
    text = "".join(f"{name},{'even' if i % 2 == 0 else ''}\n" for i, name in enumerate(names))
    tests = open_data_sets({"photos": folder / "preds"})
    groups = resolve_groups(write(folder, "image,group\n" + text), tests)
    sets = load_test_sets(tests)
    assert set(groups) == set(sets) and len(groups) == 2
    for name, (_, labels) in sets.items():  # the label is the parity
        assert (groups[name] == np.where(labels.numpy() == 0, "even", "")).all()


def test_numbers_of_rows_and_arrays_tell_the_same(tmp_path):
    data = make(n=30)
    rightly.save(tmp_path / "a.npz", *data)
    tests = open_data_sets({"a": tmp_path / "a.npz", "b": data})
    names = ["x", "y", "z"] * 10
    text = "".join(f"a,{i},{name}\n" for i, name in enumerate(names))
    read = resolve_groups(write(tmp_path, "test,row,group\n" + text), tests)
    given = resolve_groups({"a": names}, tests)
    assert set(read) == set(given) == {"a"}
    assert read["a"].tolist() == given["a"].tolist() == names


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("image,row,group\n", "one of the columns image and row"),
        ("group\n", "one of the columns image and row"),
        ("row,kind\n", "'group'.* are missing"),
        ("row,group\n0,x\n", "a column test"),
        ("test,row,group\nc,0,x\n", "names? tests of .*'c'"),
        ("test,row,group\na,30,x\n", "rows from 0 to 29 of a, .*'30'"),
        ("test,row,group\na,-1,x\n", "rows from 0 to 29 of a, .*'-1'"),
        ("test,row,group\na,1,x\na,1,y\n", "one group for each row, .*'x' and 'y' for '1'"),
        ("image,group\n1,x\n", "a column row for a"),
        ("test,row,group\na,1,\n", "rows that tests hold"),
    ],
)
def test_tables_that_fit_no_rows_are_refused(tmp_path, text, message):
    tests = {"a": make(n=30), "b": make(n=30)}
    with pytest.raises(ValueError, match=message):
        resolve_groups(write(tmp_path, text), tests)


def test_arrays_that_fit_no_rows_are_refused(tmp_path):
    tests = {"a": make(n=30)}
    with pytest.raises(ValueError, match="one group for each of 30 rows"):
        resolve_groups({"a": ["x"] * 29}, tests)
    with pytest.raises(ValueError, match="must be of tests, .*'b'"):
        resolve_groups({"b": ["x"] * 30}, tests)
    with pytest.raises(TypeError, match="CSV file or map"):
        resolve_groups(["x"] * 30, tests)
    with pytest.raises(FileNotFoundError, match="nowhere"):
        resolve_groups(tmp_path / "nowhere.csv", tests)
