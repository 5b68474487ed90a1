"""From paths and names to data sets."""

from pathlib import Path

import pytest

from rightly.cli import inputs


def test_names_and_numbers_are_joined_by_commas():
    assert inputs.split_names(" a, b,,c ") == ["a", "b", "c"]
    assert inputs.split_names(None) == inputs.split_names("") == []
    assert inputs.split_numbers("1, 2.5", "--x") == [1, 2.5]
    with pytest.raises(ValueError, match="--x must be numbers joined by commas, got '1,b'"):
        inputs.split_numbers("1,b", "--x")


def test_a_test_set_is_named_by_the_user_or_by_its_file():
    assert inputs.split_test_set("a=b/c.npz") == ("a", Path("b/c.npz"))
    assert inputs.split_test_set("b/c.npz") == ("c", Path("b/c.npz"))
    assert inputs.split_test_set("a=1=c.npz") == ("a=1", Path("c.npz"))


def test_views_are_chosen_and_ordered(files):
    [(predictions, _)] = inputs.read_data_sets([files / "cal.npz"], None, False, "view2,view0")
    assert predictions.view_names == ("view2", "view0")
    [(predictions, _)] = inputs.read_data_sets([files / "cal.npz"], None, False)
    assert predictions.view_names == ("view0", "view1", "view2")


def test_test_sets_need_different_names(files):
    items = [f"mine={files / 'ind.npz'}", str(files / "blur.npz")]
    assert inputs.read_paths(items) == {"mine": files / "ind.npz", "blur": files / "blur.npz"}
    with pytest.raises(ValueError, match="'blur' twice: write --on NAME=FILE"):
        inputs.read_paths([*items, f"blur={files / 'ind.npz'}"])


def test_adapt_is_all_or_a_number_of_rows():
    assert [inputs.parse_adapt(text) for text in (None, "all", "64")] == [False, True, 64]
    with pytest.raises(ValueError, match="adapt must be all or a number of rows, got 'many'"):
        inputs.parse_adapt("many")


def test_preprocessing_is_the_models_own_where_nothing_is_said():
    assert inputs.make_preprocessing(None, None, "bicubic", None, None) is None
    made = inputs.make_preprocessing(8, 9, "bicubic", "0.1,0.2,0.3", "1,2,3")
    assert (made.size, made.resize, made.interpolation) == ((8, 8), 9, "bicubic")
    assert (made.mean, made.std) == ((0.1, 0.2, 0.3), (1, 2, 3))
    with pytest.raises(ValueError, match="--std must be three numbers"):
        inputs.make_preprocessing(None, None, "bicubic", None, "1,2")
