"""Shards are done once, whatever happens to workers; with a Ray that runs in this process."""

import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import torch
from PIL import Image

from rightly import collection
from rightly.calibrators import calibrator
from rightly.classifiers import Preprocessing, open_model
from rightly.collection import CollectionLog, Plan
from rightly.collection.distributed import CollectJob, ShardJob, collect_with, run_shards
from rightly.collection.ray_cluster import Cluster
from rightly.datasets import open_images
from rightly.deployment.batch_inference import ScoringJob, apply
from rightly.predictions import load
from rightly.predictions.store import Store
from tests.collection import fake_ray
from tests.collection.tiny_model import CLASSES, class_folders, same

MODEL = """
import torch

def make():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(192, 3))
"""


@pytest.fixture(autouse=True)
def ray(monkeypatch):
    return fake_ray.install(monkeypatch)


@dataclass(frozen=True)
class Job:
    """Writes empty shards; `fail(k, begun)` may raise, or say that a shard has to wait."""

    target: Store
    fail: object = lambda k, begun: None
    begun: Counter = field(default_factory=Counter)

    def open(self):
        def do(k):
            self.begun[k] += 1
            answer = self.fail(k, self.begun[k])
            if answer is None:
                self.target.shard(k).write_bytes(b"")
            return answer or {"number": k}

        return do


def run(tmp_path, fail=lambda k, begun: None):
    job, answers = Job(Store(tmp_path, {"shards": 5}), fail), {}
    run_shards(Cluster(), job, lambda k, answer: answers.update({k: answer}))
    assert not job.target.missing()
    return job, answers


def test_every_missing_shard_is_done_once(tmp_path, ray):
    job, answers = run(tmp_path)
    assert isinstance(job, ShardJob)
    assert answers == {k: {"number": k} for k in range(5)} and set(job.begun.values()) == {1}
    job.target.shard(3).unlink()
    assert list(run(tmp_path)[1]) == [3]
    starts = len(ray.calls)
    assert run(tmp_path)[1] == {} and len(ray.calls) == starts  # nothing is left: no cluster


def test_a_worker_that_is_lost_is_replaced(tmp_path):
    def fail(k, begun):
        if k == 2 and begun < 3:
            raise fake_ray.WorkerLost

    job, answers = run(tmp_path, fail)
    assert sorted(answers) == list(range(5)) and job.begun[2] == 3


def test_a_shard_that_brings_down_every_worker_ends_the_run(tmp_path):
    def fail(k, begun):
        if k == 2:
            raise fake_ray.WorkerLost

    with pytest.raises(OSError, match="shard 2 brought down its worker 4 times"):
        run(tmp_path, fail)


def test_a_run_that_ray_gave_up_goes_on_in_another_round(tmp_path):
    def fail(k, begun):
        if k == 3 and begun == 1:
            (tmp_path / "part-000003.parquet").write_bytes(b"")  # written, but not reported
            raise KeyboardInterrupt

    original = fake_ray._Rows.iter_rows

    def iter_rows(self):
        try:
            yield from original(self)
        except KeyboardInterrupt as error:
            raise fake_ray.RayError("the node is gone") from error

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fake_ray._Rows, "iter_rows", iter_rows)
        job, answers = run(tmp_path, fail)
    assert answers == {k: {"number": k} if k != 3 else {} for k in range(5)}
    assert job.begun[4] == 1


def test_a_run_without_progress_says_how_to_resume(tmp_path, monkeypatch):
    def iter_rows(self):
        raise fake_ray.RayError("no nodes left\nand more lines")

    monkeypatch.setattr(fake_ray._Rows, "iter_rows", iter_rows)
    message = "no progress in 3 rounds, 5 shards missing: no nodes left; rerun the same command"
    with pytest.raises(OSError, match=message):
        run(tmp_path)


def test_a_shard_may_wait_for_another(tmp_path):
    def fail(k, begun):
        if k == 0 and begun == 1:
            return {"postponed": "needs the columns of another"}
        return None

    assert sorted(run(tmp_path, fail)[1]) == list(range(5))
    with pytest.raises(ValueError, match="nothing to take columns from"):
        for shard in tmp_path.iterdir():
            shard.unlink()
        run(tmp_path, lambda k, begun: {"postponed": "nothing to take columns from"})


def test_errors_of_the_user_keep_their_type_and_message(tmp_path):
    def fail(k, begun):
        raise FileNotFoundError("there is no model file")

    with pytest.raises(OSError, match="^there is no model file$"):
        run(tmp_path, fail)

    def crash(k, begun):
        return {}["missing"]

    with pytest.raises(RuntimeError, match="(?s)in a worker: Traceback.*KeyError: 'missing'"):
        run(tmp_path, crash)


def test_shards_that_only_other_nodes_see_are_an_error(tmp_path):
    with pytest.raises(OSError, match="5 shards were written on other nodes .* all nodes share"):
        run(tmp_path, lambda k, begun: {"written": "elsewhere"})


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder of 30 images, one of them in grey, and a model beside it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    class_folders(tmp_path / "images", 30)
    first = sorted((tmp_path / "images" / CLASSES[0]).iterdir())[0]
    Image.open(first).convert("L").save(first)
    (tmp_path / "ray_model.py").write_text(MODEL)
    yield tmp_path
    sys.modules.pop("ray_model", None)


def collect_job(out, **settings):
    plan = Plan(("hflip",), ("contrast:2",), shard_size=8, **settings)
    options = {
        "model": "py:ray_model:make",
        "device": "cpu",
        "preprocessing": Preprocessing((8, 8)),
    }
    images = {"source": "images", "layout": "folders"}
    stored = plan.settings(open_model(**options), open_images(**images))
    return CollectJob(Store.begin(Path(out), stored), plan, options, images, batch_size=5)


def test_workers_collect_and_apply_as_one_process_does(place):
    job, log, counts = collect_job("ray"), CollectionLog(), []
    collect_with(Cluster(workers=2), job, lambda *step: counts.append(step), log)
    assert counts[0] == ("collecting", 0, 30) and counts[-1] == ("collecting", 30, 30)
    assert log.converted == {"L": 1}
    local = collect_job("local")
    collection.collect_into(
        local.target, open_model(**job.model), open_images(**job.images), job.plan, 5
    )
    same(load("ray"), load("local"))
    torch.manual_seed(0)
    predictions, labels = load("local")
    calibrator("temperature_scaling").fit(predictions, labels).save("a.safetensors")
    counts = []
    apply("a.safetensors", "ray", "scores", cluster=Cluster(), progress=lambda *x: counts.append(x))
    assert counts == [("applying", done, 4) for done in range(5)]
    with ScoringJob.begin(Path("a.safetensors"), Path("ray"), Path("scores")) as job:
        assert not job.target.missing() and len(job.join()["confidence"]) == 60


def test_a_shard_without_a_readable_image_waits_and_other_nodes_are_checked(place):
    job = collect_job("out")
    other = {**job.target.settings, "model_fingerprint": "another"}
    with pytest.raises(ValueError, match="sees other model_fingerprint than the run began with"):
        CollectJob(Store(place / "out", other), job.plan, job.model, job.images).open()
    for path in sorted((place / "images").rglob("*.png"))[:8]:
        path.write_bytes(b"none")
    waiting = collect_job("skips", unreadable="skip")
    assert "postponed" in waiting.open()(0)
    collect_with(Cluster(), waiting)
    assert len(load(place / "skips")[0]) == 44 and len(waiting.target.skipped()) == 8
