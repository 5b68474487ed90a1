"""Connecting to Ray, counting places for workers, and leaving everything as it was."""

import logging
import os
import sys

import pytest

from rightly.collection.ray_cluster import (
    Cluster,
    check_reachable,
    connect,
    count_workers,
    quiet_ray_data,
)
from tests.collection import fake_ray


@pytest.fixture
def ray(monkeypatch):
    return fake_ray.install(monkeypatch, nodes=({"CPU": 4.0, "GPU": 1.0}, {"CPU": 3.0}))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"workers": 0}, "1 or more, got 0"),
        ({"cpus": 0}, "1 CPU or more"),
        ({"gpus": -1.0}, "GPUs"),
    ],
)
def test_a_cluster_without_sense_is_refused(ray, options, message):
    with pytest.raises(ValueError, match=message):
        Cluster(**options)


def test_without_ray_the_error_names_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ImportError, match=r"pip install 'rightly\[ray\]'"):
        Cluster()


def test_workers_are_counted_node_by_node(ray):
    assert count_workers(ray, Cluster(cpus=2)) == 3
    assert count_workers(ray, Cluster(cpus=1, gpus=0.5)) == 2
    with pytest.raises(OSError, match="no place for a worker with 64 CPUs and 0 GPUs.* 7 and 1"):
        count_workers(ray, Cluster(cpus=64))
    assert ray.calls == [("cancel", {})]


def test_ray_is_started_quietly_and_stopped(ray, monkeypatch):
    monkeypatch.delenv("RAY_BACKEND_LOG_LEVEL", raising=False)
    with connect(ray, Cluster()):
        assert os.environ["RAY_BACKEND_LOG_LEVEL"] == "fatal"
    (start, options), (stop, _) = ray.calls
    assert (start, stop) == ("init", "shutdown")
    assert options["address"] == "local" and options["include_dashboard"] is False
    assert "RAY_BACKEND_LOG_LEVEL" not in os.environ


def test_a_ray_that_the_caller_started_is_left_running(monkeypatch):
    ray = fake_ray.install(monkeypatch, initialized=True)
    with connect(ray, Cluster()):
        pass
    assert ray.calls == []


def test_ray_data_is_quiet_only_inside(ray):
    logger = logging.getLogger("ray.data")
    before = logger.level
    with quiet_ray_data(ray):
        assert not ray.data.context.enable_progress_bars and logger.level == logging.ERROR
    assert ray.data.context.enable_progress_bars and logger.level == before


def test_a_wrong_address_is_refused_at_once():
    for address in ("127.0.0.1:1", "ray://127.0.0.1:1", "127.0.0.1:port"):
        with pytest.raises(ConnectionError, match="no Ray cluster at"):
            check_reachable(address)
    check_reachable(None)
    check_reachable("auto")
