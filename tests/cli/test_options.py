"""From the text of options to arguments."""

from pathlib import Path

import pytest

from rightly.cli import options


def test_names_and_numbers_are_joined_by_commas():
    assert options.split_names(" a, b,,c ") == ["a", "b", "c"]
    assert options.split_names(None) == options.split_names("") == []
    assert options.split_numbers("1, 2.5", "x") == [1, 2.5]
    with pytest.raises(ValueError, match="x must be numbers joined by commas, got '1,b'"):
        options.split_numbers("1,b", "x")


def test_a_test_set_is_named_by_the_user_or_by_its_file():
    assert options.split_name("a=b/c.npz") == ("a", Path("b/c.npz"))
    assert options.split_name("b/c.npz") == ("c", Path("b/c.npz"))
    assert options.split_name("a=1=c.npz") == ("a=1", Path("c.npz"))


def test_views_are_selected_and_ordered(files):
    [(predictions, _)] = options.load_sets([files / "cal.npz"], None, False, "view2,view0")
    assert predictions.view_names == ("view2", "view0")
    [(predictions, _)] = options.load_sets([files / "cal.npz"], None, False)
    assert predictions.view_names == ("view0", "view1", "view2")


def test_test_sets_need_different_names(files):
    items = [f"mine={files / 'ind.npz'}", str(files / "blur.npz")]
    assert options.read_paths(items) == {"mine": files / "ind.npz", "blur": files / "blur.npz"}
    with pytest.raises(ValueError, match="'blur' twice: write NAME="):
        options.read_paths([*items, f"blur={files / 'ind.npz'}"])


def test_adapting_is_to_all_rows_or_to_batches():
    assert options.read_adapt(None) is False and options.read_adapt("all") is True
    assert options.read_adapt("64") == 64
    for text in ("0", "-1", "half"):
        with pytest.raises(ValueError, match="adapt must be a number of rows from 1, or all"):
            options.read_adapt(text)


def test_arguments_of_a_method_are_values_of_json_or_text():
    given = ["neighbours=1000", "a=0.5", "b=true", "c=True", "d=lac", "e=x=y"]
    expected = {"neighbours": 1000, "a": 0.5, "b": True, "c": True, "d": "lac", "e": "x=y"}
    assert options.read_settings(given) == expected and options.read_settings(None) == {}
    with pytest.raises(ValueError, match="set must be NAME=VALUE, got 'neighbours'"):
        options.read_settings(["neighbours"])


def test_preprocessing_is_the_models_own_where_nothing_is_said():
    assert options.make_preprocessing(None, None, "bicubic", None, None) is None
    made = options.make_preprocessing(8, 9, "bicubic", "0.1,0.2,0.3", "1,2,3")
    assert (made.size, made.resize, made.interpolation) == ((8, 8), 9, "bicubic")
    assert (made.mean, made.std) == ((0.1, 0.2, 0.3), (1, 2, 3))
    with pytest.raises(ValueError, match="std must be three numbers"):
        options.make_preprocessing(None, None, "bicubic", None, "1,2")


def test_commands_run_here_unless_asked_otherwise():
    assert options.make_cluster("local", None, None) is None


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ({"address": "ray://a", "workers": None}, "ray_address"),
        ({"address": None, "workers": 0}, "ray_workers"),
        ({"address": "a", "workers": 2, "gpus": 1.0}, "ray_address, ray_workers, ray_gpus"),
    ],
)
def test_options_of_ray_need_ray(given, names):
    with pytest.raises(ValueError, match=f"^{names} must come with --engine ray"):
        options.make_cluster("local", **given)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"workers": 0}, "ray_workers must be 1 or more, got 0"),
        ({"workers": None, "gpus": -1.0}, "ray_gpus must be 0 or more, got -1"),
    ],
)
def test_counts_are_refused_by_the_names_of_their_options(given, words):
    with pytest.raises(ValueError, match=words):
        options.make_cluster("ray", None, **given)


def test_options_reach_the_cluster():
    pytest.importorskip("ray")
    cluster = options.make_cluster("ray", None, 2, 3, 0.5)
    assert (cluster.workers, cluster.cpus, cluster.gpus) == (2, 3, 0.5)
