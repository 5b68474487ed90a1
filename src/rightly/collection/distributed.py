"""Beyond one machine: workers of Ray take the shards of a data set (extra `rightly[ray]`).

    shards that are missing --Ray Data--> workers, each with its own classifier --> shards on disk
                                             |
    progress <-- one short answer a shard <--+

Workers write the shards themselves, whole or not at all. So nothing large travels, a shard that
is done twice does no harm, and when a worker or its node is lost, another does what it had begun.
Every node must see the same model, images and folders under the same paths.
"""

import json
import os
import platform
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from rightly.classifiers import open_model
from rightly.collection.decoding import CollectionLog
from rightly.collection.forward import compute_blocks
from rightly.collection.plan import Plan
from rightly.collection.ray_cluster import (
    Cluster,
    connect,
    count_workers,
    load_ray,
    quiet_ray_data,
)
from rightly.datasets import open_images
from rightly.predictions.store import Store
from rightly.progress import Progress, ignore

MAX_IDLE_ROUNDS = 3  # in a row without a new shard, before giving up
MAX_STARTS = 4  # of one shard: it brings down its workers if it was never finished
COUNTER_TIMEOUT_S = 120  # the counter may have to move from a lost node

Answer = dict[str, Any]
INPUT_ERRORS = (ImportError, OSError, TypeError, ValueError)


@runtime_checkable
class ShardJob(Protocol):
    """What workers do for each shard, made of plain values so that it can be sent to them."""

    @property
    def target(self) -> Store: ...
    def open(self) -> Callable[[int], Answer]: ...


@dataclass(frozen=True)
class CollectJob:
    """Collects shards of images, with arguments of `open_model` and `open_images`."""

    target: Store
    plan: Plan
    model: Mapping[str, Any]
    images: Mapping[str, Any]
    batch_size: int = 256
    threads: int = 1

    def open(self) -> Callable[[int], Answer]:
        classifier, images = open_model(**self.model), open_images(**self.images)
        self._check(self.plan.settings(classifier, images))
        plan = self.plan

        def collect(k: int) -> Answer:
            nonlocal plan
            log = CollectionLog()
            blocks = compute_blocks(
                classifier, images, plan, [k], self.batch_size, self.threads, log=log
            )
            plan = replace(plan, allow_random=True)  # the first shard tells, once a worker
            for _, block in blocks:
                try:
                    self.target.write(k, block)
                except ValueError as error:
                    if len(block.image):
                        raise
                    # It takes its columns from another shard, and none is there yet.
                    return {"postponed": str(error)}
            return {"converted": dict(log.converted)}

        return collect

    def _check(self, settings: Mapping[str, Any]) -> None:
        """Refuses a node that has other files than the one where the run began."""
        own = json.loads(json.dumps(settings))
        differ = [name for name, value in own.items() if value != self.target.settings[name]]
        if differ:
            raise ValueError(
                f"a worker on {platform.node()} sees other {', '.join(differ)} than the run began "
                "with: every node must have the same model and images under the same paths"
            )


def collect_with(
    cluster: Cluster,
    job: CollectJob,
    progress: Progress = ignore,
    log: CollectionLog | None = None,
) -> None:
    """Writes the shards that a store still lacks, with workers of Ray."""
    images = job.target.settings["images"]
    left = {k: len(job.plan.rows(k, images)) for k in job.target.missing()}

    def done(k: int, answer: Answer) -> None:
        del left[k]
        progress("collecting", images - sum(left.values()), images)
        if log is not None:
            log.converted.update(answer.get("converted", {}))

    progress("collecting", images - sum(left.values()), images)
    run_shards(cluster, job, done)


def run_shards(cluster: Cluster, job: ShardJob, done: Callable[[int, Answer], object]) -> None:
    """Does every missing shard of a job; what workers lose is done in further rounds.

    `done(k, answer)` is called once for each shard that was missing.
    """
    todo = job.target.missing()
    if not todo:
        return
    ray, idle, lost = load_ray(), 0, ""
    with connect(ray, cluster):
        while todo and idle < MAX_IDLE_ROUNDS:
            reported, postponed = set(), {}
            try:
                for k, answer in _yield_answers(ray, cluster, job, todo):
                    if "postponed" in answer:
                        postponed[k] = answer["postponed"]
                        continue
                    reported.add(k)
                    done(k, answer)
            except ray.exceptions.RayError as error:
                lost = f": {str(error).strip().splitlines()[0]}"
            left = job.target.missing()
            elsewhere = reported & set(left)
            if elsewhere:
                raise OSError(
                    f"{len(elsewhere)} shards were written on other nodes but are not here: "
                    "out must be a folder that all nodes share"
                )
            if postponed and len(left) == len(todo):
                raise ValueError(postponed[min(postponed)])
            for k in set(todo) - set(left) - reported:
                done(k, {})  # written by a worker that was lost before it answered
            idle = idle + 1 if len(left) == len(todo) else 0
            todo = left
    if todo:
        raise OSError(
            f"no progress in {MAX_IDLE_ROUNDS} rounds, {len(todo)} shards missing{lost}; "
            "rerun the same command to resume"
        )


def _yield_answers(
    ray: Any, cluster: Cluster, job: ShardJob, todo: list[int]
) -> Iterator[tuple[int, Answer]]:
    """Shards and the answers of workers, as they are done; errors of the user's are raised."""
    room = count_workers(ray, cluster)
    most = min(cluster.workers or room, len(todo))
    counter = ray.remote(num_cpus=0, max_restarts=-1, max_task_retries=-1)(_Counter).remote()
    with quiet_ray_data(ray):
        # A block for each shard, so that each is handed out, retried and reported alone. The pool
        # begins whole, but one worker is enough: after the loss of a node there may be no place
        # for more.
        rows = (
            ray.data.from_items([{"shard": k} for k in todo], override_num_blocks=len(todo))
            .map_batches(
                _Worker,
                fn_constructor_args=(job, str(Path.cwd()), sys.path, bool(cluster.gpus), counter),
                batch_size=1,
                concurrency=(1, most, most),
                num_cpus=cluster.cpus,
                num_gpus=cluster.gpus,
            )
            .iter_rows()
        )
        for row in rows:
            answer: Answer = json.loads(row["answer"])
            if "error" in answer:
                kinds = {kind.__name__: kind for kind in INPUT_ERRORS}
                raise kinds.get(answer["error"], RuntimeError)(answer["message"])
            yield int(row["shard"]), answer


class _Worker:
    """An actor in Ray's pool: opens what it works with once, then does one shard a call."""

    def __init__(
        self, job: ShardJob, folder: str, path: list[str], on_gpu: bool, counter: Any
    ) -> None:
        self.job, self.counter = job, counter
        self.folder, self.path, self.on_gpu = folder, path, on_gpu
        self.do_shard: Callable[[int], Answer] | None = None

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, list[Any]]:
        k = int(batch["shard"][0])
        try:
            answer = self._do_shard(k)
        except INPUT_ERRORS as error:
            kind = next(kind for kind in INPUT_ERRORS if isinstance(error, kind))
            answer = {"error": kind.__name__, "message": str(error)}
        except Exception:
            answer = {"error": "RuntimeError", "message": f"in a worker: {traceback.format_exc()}"}
        return {"shard": [k], "answer": [json.dumps(answer)]}

    def _do_shard(self, k: int) -> Answer:
        if self.do_shard is None:
            self._enter_environment()
        if self.job.target.shard(k).is_file():
            return {}  # by a worker that was lost before it answered
        begun = load_ray().get(self.counter.begin.remote(k), timeout=COUNTER_TIMEOUT_S)
        if begun > MAX_STARTS:
            raise OSError(
                f"shard {k} brought down its worker {MAX_STARTS} times: is there enough memory for "
                "the model and for this batch size?"
            )
        if self.do_shard is None:
            self.do_shard = self.job.open()
        return self.do_shard(k)

    def _enter_environment(self) -> None:
        """As if in the process that the user started: relative paths and py: models are found."""
        os.chdir(self.folder)
        sys.path += [folder for folder in self.path if folder not in sys.path]
        if not self.on_gpu:
            # Ray says it will stop hiding GPUs from those who asked for none: all would take one.
            os.environ["CUDA_VISIBLE_DEVICES"] = ""


class _Counter:
    """Counts how often each shard is begun, since Ray itself tries again without end."""

    def __init__(self) -> None:
        self.begun: Counter[int] = Counter()

    def begin(self, k: int) -> int:
        self.begun[k] += 1
        return self.begun[k]
