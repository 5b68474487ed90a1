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


def test_options_reach_the_cluster():
    pytest.importorskip("ray")
    cluster = make_cluster("ray", None, 2, 3, 0.5)
    assert (cluster.workers, cluster.cpus, cluster.gpus) == (2, 3, 0.5)
