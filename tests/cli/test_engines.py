"""Where slow commands run."""

import pytest

from rightly.cli.engines import make_cluster


def test_commands_run_here_unless_asked_otherwise():
    assert make_cluster("local", None, None) is None


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({"address": "ray://a", "workers": None}, "--ray-address has"),
        ({"address": None, "workers": 0}, "--ray-workers has"),
        ({"address": "a", "workers": 2, "gpus": 1.0}, "--ray-address, --ray-workers, --ray-gpus"),
    ],
)
def test_options_of_ray_need_ray(options, names):
    with pytest.raises(ValueError, match=f"^{names}.* no meaning without --engine ray"):
        make_cluster("local", **options)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"workers": 0}, "--ray-workers must be 1 or more, got 0"),
        ({"workers": None, "gpus": -1.0}, "--ray-gpus-per-worker must be 0 or more, got -1"),
    ],
)
def test_counts_are_refused_by_the_names_of_their_options(options, words):
    with pytest.raises(ValueError, match=words):
        make_cluster("ray", None, **options)


def test_options_reach_the_cluster():
    pytest.importorskip("ray")
    cluster = make_cluster("ray", None, 2, 3, 0.5)
    assert (cluster.workers, cluster.cpus, cluster.gpus) == (2, 3, 0.5)
