"""The same data sets from a Ray cluster as from one process, whatever happens to its nodes."""

import os
import signal
import sys
import threading
import time
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image

from rightly.cli import main
from rightly.collection import Plan
from tests.processes import run_python

NEEDS_RAY = [
    pytest.mark.long,
    pytest.mark.xdist_group("ray"),  # one cluster at a time is enough for two cores
    # Of Ray itself, about settings that it makes and threads that it leaves to the system.
    pytest.mark.filterwarnings("ignore::DeprecationWarning:ray"),
    pytest.mark.filterwarnings("ignore::FutureWarning:ray"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
OBJECTS = 100_000_000
# A node that is gone is noticed after seconds, not after the half minute that Ray gives it.
ATTENTIVE = {"health_check_period_ms": 500, "health_check_failure_threshold": 4}

# `leave_mark` notes which processes on which nodes opened the model; one that stands alone waits
# for another, so that a busy machine does not finish with the first before the second is up.
MODEL = """
import os, pathlib, time, torch

def make():
    g = torch.Generator().manual_seed(0)
    head = torch.nn.Linear(3 * 8 * 8, 3)
    with torch.no_grad():
        for weight in head.parameters():
            weight.copy_(torch.randn(weight.shape, generator=g))
    return torch.nn.Sequential(torch.nn.Flatten(), head)

def leave_mark():
    import ray
    if ray.is_initialized() and ray.get_runtime_context().get_actor_id():
        marks = pathlib.Path("marks")
        marks.mkdir(exist_ok=True)
        (marks / f"{os.getpid()} {ray.get_runtime_context().get_node_id()}").touch()
        deadline = time.monotonic() + 90
        while len({path.name.split()[1] for path in marks.iterdir()}) < 2:
            if time.monotonic() > deadline:
                break
            time.sleep(0.05)

class Slow(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.model = make()

    def forward(self, images):
        time.sleep(0.2)
        return self.model(images)

def slow():
    leave_mark()
    return Slow()

class Deadly(Slow):
    def forward(self, images):
        if (images == 1).all((1, 2, 3)).any():
            os.kill(os.getpid(), 9)
        return self.model(images)

def deadly():
    return Deadly()

def of_three_dimensions():
    return lambda images: images.mean(1)
"""


@pytest.fixture(scope="module")
def cluster():
    """Two nodes of one CPU; this process is on the first."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    ray = pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    head = {"num_cpus": 1, "object_store_memory": OBJECTS, "include_dashboard": False}
    made = Cluster(initialize_head=True, head_node_args={**head, "_system_config": ATTENTIVE})
    try:
        ray.init(made.address, log_to_driver=False, logging_level="error")
        yield made
    finally:
        ray.shutdown()
        made.shutdown()


@pytest.fixture
def second_node(cluster):
    node = cluster.add_node(num_cpus=1, object_store_memory=OBJECTS)
    try:
        cluster.wait_for_nodes(timeout=30)
        yield node
    finally:
        if node in cluster.list_all_nodes():
            cluster.remove_node(node)


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with models and 160 images, which makes ten shards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("rightly.collection.pipeline.Plan", partial(Plan, shard_size=16))
    rng = np.random.default_rng(0)
    for name in "abc":
        (tmp_path / "images" / name).mkdir(parents=True)
    for i in range(160):
        pixels = rng.integers(0, 255, (8, 8, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(tmp_path / "images" / "abc"[i % 3] / f"{i:03}.png")
    (tmp_path / "tiny.py").write_text(MODEL)
    yield tmp_path
    sys.modules.pop("tiny", None)


def collect(model, out, *others):
    arguments = ["--out", out, "--views", "grayscale", "-b", "10", "--quiet", *others]
    return main(["collect", f"py:tiny:{model}", "images", *arguments])


def rows_of(folder):
    """All that is in a folder, shard by shard."""
    return {path.name: pq.read_table(path) for path in sorted(Path(folder).iterdir())}


def assert_same(left, right):
    first, second = rows_of(left), rows_of(right)
    assert list(first) == list(second)
    for name, table in first.items():
        assert table.equals(second[name], check_metadata=True), name


def ray_marked(test):
    for mark in NEEDS_RAY:
        test = mark(test)
    return test


@ray_marked
def test_a_cluster_collects_what_one_process_does(place, second_node, capsys):
    Image.fromarray(np.full((8, 8), 7, np.uint8)).save(place / "images" / "a" / "grey.png")
    (place / "images" / "b" / "damaged.png").write_bytes(b"none")
    others = ["--unreadable", "skip", "--features", "--shifts", "contrast,gaussian_noise:5"]
    assert collect("make", "local", *others) == 0
    local = capsys.readouterr()
    assert collect("make", "ray", *others, "--engine", "ray") == 0
    distributed = capsys.readouterr()
    assert_same("local", "ray")
    assert len(rows_of("ray")) == 11
    assert "1 images of mode L" in local.out and "skipped b/damaged.png" in local.out
    for line in local.out.splitlines()[:-1]:  # the last tells the time
        assert line in distributed.out
    assert distributed.err == local.err
    assert "161 of 162 images" in distributed.out
    # What is complete is left alone, without a worker.
    assert collect("make", "ray", *others, "--engine", "ray") == 0
    assert "was complete" in capsys.readouterr().out


@ray_marked
def test_a_shard_without_a_readable_image_waits_for_another(place, second_node, capsys):
    for path in sorted((place / "images" / "a").iterdir())[:20]:
        path.write_bytes(b"none")
    others = ["--unreadable", "skip"]
    assert collect("make", "local", *others) == 0
    assert collect("make", "ray", *others, "--engine", "ray", "--ray-workers", "1") == 0
    assert_same("local", "ray")
    for path in (place / "images").rglob("*.png"):
        path.write_bytes(b"none")
    assert collect("make", "nothing", *others, "--engine", "ray") == 2
    assert "no image could be decoded; the first is a/000.png" in one_line(capsys)


def one_line(capsys):
    message = capsys.readouterr().err
    assert "Traceback" not in message
    return message.replace("\n", " ")


def when_both_nodes_work(out, strike):
    """Strikes when two workers have opened the model and some shards are there, but not all."""
    seen = {}

    def watch():
        deadline = time.monotonic() + 150
        while time.monotonic() < deadline:
            marks = [path.name.split() for path in Path("marks").glob("*")]
            shards = len(list(Path(out).glob("part-*.parquet")))
            if len({node for _, node in marks}) == 2 and shards >= 2:
                seen["shards"] = shards
                strike({node: int(pid) for pid, node in marks})
                return
            time.sleep(0.02)

    thread = threading.Thread(target=watch)
    thread.start()
    return thread, seen


@ray_marked
@pytest.mark.parametrize("victim", ["node", "worker"])
def test_a_run_is_complete_though_a_worker_or_its_node_is_killed(
    place, cluster, second_node, victim
):
    def strike(workers):
        if victim == "node":
            cluster.remove_node(second_node, allow_graceful=False)
        else:
            os.kill(workers[second_node.node_id], signal.SIGKILL)

    assert collect("slow", "local") == 0
    thread, seen = when_both_nodes_work("ray", strike)
    assert collect("slow", "ray", "--engine", "ray") == 0
    thread.join(60)
    assert seen["shards"] < 10
    assert_same("local", "ray")


@ray_marked
def test_an_image_that_kills_every_worker_ends_the_run(place, second_node, capsys):
    Image.fromarray(np.full((8, 8, 3), 255, np.uint8)).save(place / "images" / "b" / "killer.png")
    assert collect("deadly", "ray", "--engine", "ray") == 2
    assert "brought down its worker 4 times" in one_line(capsys)


@ray_marked
def test_what_is_the_users_mistake_reads_as_in_one_process(place, second_node, capsys):
    (place / "images" / "b" / "damaged.png").write_bytes(b"none")
    for model in ("make", "of_three_dimensions"):
        assert collect(model, f"local {model}") == 2
        expected = one_line(capsys)
        assert collect(model, f"ray {model}", "--engine", "ray") == 2
        assert one_line(capsys) == expected
    assert collect("make", "ray", "--engine", "ray", "--views", "sideways") == 2
    assert "view 'sideways' is not known" in one_line(capsys)
    assert not Path("ray").exists()


@ray_marked
def test_a_node_with_other_images_is_refused(place, second_node, capsys):
    """Here it is a model that is another one on every process."""
    with (place / "tiny.py").open("a") as file:
        file.write("def other():\n    return torch.nn.Sequential(torch.nn.Flatten(), ")
        file.write("torch.nn.Linear(192, 3))\n")
    assert collect("other", "ray", "--engine", "ray") == 2
    assert "sees other model_fingerprint than the run began with" in one_line(capsys)


@ray_marked
def test_a_cluster_applies_a_calibrator_as_one_process_does(place, second_node):
    assert collect("make", "local", "--shifts", "contrast") == 0
    assert main(["fit", "local", "--method", "ca_views", "--out", "a.safetensors"]) == 0
    for out in ("scores", "scores.csv"):
        assert main(["predict", "a.safetensors", "local", "--out", out]) == 0
        arguments = ["--out", f"ray {out}", "--engine", "ray", "--ray-workers", "2"]
        assert main(["predict", "a.safetensors", "local", *arguments]) == 0
    assert_same("scores", "ray scores")
    assert Path("scores.csv").read_text() == Path("ray scores.csv").read_text()
    assert sorted(path.name for path in place.iterdir() if path.name.startswith(".")) == []


@ray_marked
def test_without_an_address_ray_is_started_and_stopped(place):
    pytest.importorskip("ray")
    command = ["-m", "rightly", "collect", "py:tiny:make", "images"]
    command += ["--views", "grayscale", "-b", "10"]
    run_python(*command, "--out", "local", check=True)
    cluster = ["--engine", "ray", "--ray-workers", "1"]
    done = run_python(*command, "--out", "ray", *cluster, check=True, timeout=180)
    assert_same("local", "ray")
    assert "160 of 160 images" in done.stdout
    # Forward passes, the progress bar, an accuracy at chance, and one line of Ray's that says that
    # it will be quiet.
    assert len(done.stderr.splitlines()) <= 4


def test_without_ray_the_error_names_what_to_install(place, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "ray", None)
    assert collect("make", "ray", "--engine", "ray") == 2
    assert "pip install 'rightly[ray]'" in one_line(capsys)
    assert main(["predict", "a", "b", "--out", "c", "--engine", "ray"]) == 2
    assert "pip install 'rightly[ray]'" in one_line(capsys)


def test_arguments_of_ray_need_the_engine(place, capsys):
    assert collect("make", "out", "--ray-workers", "2") == 2
    assert "ray_workers must come with --engine ray" in one_line(capsys)


@ray_marked
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--ray-workers", "0"], "ray_workers must be 1 or more"),
        (["--ray-gpus", "-1"], "ray_gpus must be 0 or more"),
        (["--device", "cuda"], "needs GPUs for the workers of Ray"),
    ],
)
def test_bad_arguments_are_refused_before_ray_starts(place, capsys, arguments, words):
    pytest.importorskip("ray")
    assert collect("make", "ray", "--engine", "ray", *arguments) == 2
    assert words in one_line(capsys)


@ray_marked
def test_more_than_there_is_cannot_be_asked_for(place, cluster, capsys):
    assert collect("make", "ray", "--engine", "ray", "--ray-gpus", "1") == 2
    assert "no place for a worker with 1 CPUs and 1 GPUs" in one_line(capsys)
    assert collect("make", "ray", "--engine", "ray", "-j", "64") == 2
    assert "no place for a worker with 64 CPUs and 0 GPUs" in one_line(capsys)
