"""Beyond one machine: workers of Ray take the shards of a data set (extra `rightly[ray]`).

    shards that are missing --Ray Data--> workers, each with its own classifier --> shards on disk
                                             |
    progress <-- one short answer a shard <--+

Workers write the shards themselves, whole or not at all. So nothing large travels, a shard that
is done twice does no harm, and when a worker or its node is lost, another does what it had begun.
Every node must see the same model, images and folders under the same paths.
"""

import json
import logging
import os
import platform
import socket
import sys
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from rightly.batch_inference import Scoring
from rightly.classifiers import open_model
from rightly.collection import Plan, Report
from rightly.collection.forward import blocks_of
from rightly.datasets import open_images
from rightly.predictions.store import Store

ROUNDS = 3  # in a row without a new shard, before giving up
BEGUN = 4  # times one shard may be begun: it brings down its workers if it was never finished
START = 300  # seconds for a place for one worker: a cluster may have to grow
STALL = 6 * 3600  # seconds without any answer: longer than any shard takes
CONNECT = 20  # seconds to reach a cluster
COUNT = 120  # seconds for an answer of the counter, which may have to move from a lost node
OBJECTS = 100_000_000  # bytes of shared memory: only answers are kept there

Answer = dict[str, Any]
KINDS = (ImportError, OSError, TypeError, ValueError)  # what bad input raises


@runtime_checkable
class Work(Protocol):
    """What workers do, made of plain values so that it can be sent to them."""

    @property
    def target(self) -> Store: ...
    def opened(self) -> Callable[[int], Answer]: ...


@dataclass(frozen=True)
class Cluster:
    """Where Ray runs, and what each of its workers takes of it."""

    address: str | None = None  # None starts Ray on this machine alone
    workers: int | None = None  # at most; None is as many as there is room for
    cpus: int = 1
    gpus: float = 0.0

    def __post_init__(self) -> None:
        _ray()
        if self.workers is not None and self.workers < 1:
            raise ValueError(f"workers of Ray must be 1 or more, got {self.workers}")
        if self.cpus < 1 or self.gpus < 0:
            raise ValueError(
                f"a worker of Ray takes 1 CPU or more and 0 GPUs or more, got {self.cpus} "
                f"and {self.gpus:g}"
            )


@dataclass(frozen=True)
class Collecting:
    """Collects shards of images, with arguments of `open_model` and `open_images`."""

    target: Store
    plan: Plan
    model: Mapping[str, Any]
    images: Mapping[str, Any]
    batch_size: int = 256
    threads: int = 1

    def opened(self) -> Callable[[int], Answer]:
        classifier, images = open_model(**self.model), open_images(**self.images)
        self._check(self.plan.settings(classifier, images))

        def collect(k: int) -> Answer:
            report = Report()
            blocks = blocks_of(
                classifier, images, self.plan, [k], self.batch_size, self.threads, report=report
            )
            for _, block in blocks:
                try:
                    self.target.write(k, block)
                except ValueError as error:
                    if len(block.image):
                        raise
                    # It takes its columns from another shard, and none is there yet.
                    return {"postponed": str(error)}
            return {"converted": dict(report.converted)}

        return collect

    def _check(self, settings: Mapping[str, Any]) -> None:
        """Refuses a node that has other files than the one where the run began."""
        seen = json.loads(json.dumps(settings))
        differ = [name for name, value in seen.items() if value != self.target.settings[name]]
        if differ:
            raise ValueError(
                f"a worker on {platform.node()} sees other {', '.join(differ)} than the run began "
                "with: every node must have the same model and images under the same paths"
            )


def collect_with(
    cluster: Cluster,
    work: Collecting,
    advance: Callable[[int], object] = lambda count: None,
    report: Report | None = None,
) -> None:
    """Writes the shards that a store still lacks, with workers of Ray."""
    images = work.target.settings["images"]

    def count(k: int) -> int:
        return len(work.plan.rows(k, images))

    def done(k: int, answer: Answer) -> None:
        advance(count(k))
        if report is not None:
            report.converted.update(answer.get("converted", {}))

    advance(images - sum(count(k) for k in work.target.missing()))
    _run(cluster, work, done)


def apply_with(
    cluster: Cluster, work: Scoring, advance: Callable[[int], object] = lambda count: None
) -> None:
    """Scores the shards that are not scored yet, with workers of Ray."""
    _run(cluster, work, lambda k, answer: advance(1))


def _run(cluster: Cluster, work: Work, done: Callable[[int, Answer], object]) -> None:
    """Has every missing shard done; Ray replaces what it loses, and so do further rounds."""
    todo = work.target.missing()
    if not todo:
        return
    ray, idle, lost = _ray(), 0, ""
    with _connected(ray, cluster):
        while todo and idle < ROUNDS:
            told, postponed = set(), {}
            try:
                for k, answer in _answers(ray, cluster, work, todo):
                    if "postponed" in answer:
                        postponed[k] = answer["postponed"]
                        continue
                    told.add(k)
                    done(k, answer)
            except ray.exceptions.RayError as error:
                lost = f": {str(error).strip().splitlines()[0]}"
            left = work.target.missing()
            if told & set(left):
                raise OSError(
                    f"{len(told & set(left))} shards were written on other nodes but are not here: "
                    "out must be a folder that all nodes share"
                )
            if postponed and len(left) == len(todo):
                raise ValueError(postponed[min(postponed)])
            for k in set(todo) - set(left) - told:
                done(k, {})  # written by a worker that was lost before it could say so
            idle = idle + 1 if len(left) == len(todo) else 0
            todo = left
    if todo:
        raise OSError(
            f"workers of Ray were lost again and again, {len(todo)} shards are missing{lost}; "
            "what is written is kept: run the same again when that is mended"
        )


def _answers(
    ray: Any, cluster: Cluster, work: Work, todo: list[int]
) -> Iterator[tuple[int, Answer]]:
    """Shards and what workers say of them, as they are done; errors of the user's are raised."""
    room = _room(ray, cluster)
    most = min(cluster.workers or room, len(todo))
    counter = ray.remote(num_cpus=0, max_restarts=-1, max_task_retries=-1)(_Counter).remote()
    with _quiet_data(ray):
        # A block for each shard, so that each is handed out, retried and reported alone. The pool
        # begins whole, but one worker is enough: after the loss of a node there may be no place
        # for more.
        rows = (
            ray.data.from_items([{"shard": k} for k in todo], override_num_blocks=len(todo))
            .map_batches(
                _Worker,
                fn_constructor_args=(work, str(Path.cwd()), sys.path, bool(cluster.gpus), counter),
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
                kinds = {kind.__name__: kind for kind in KINDS}
                raise kinds.get(answer["error"], RuntimeError)(answer["told"])
            yield int(row["shard"]), answer


class _Worker:
    """An actor in Ray's pool: opens what it works with once, then does one shard a call."""

    def __init__(
        self, work: Work, folder: str, path: list[str], on_gpu: bool, counter: Any
    ) -> None:
        self.work, self.counter = work, counter
        self.folder, self.path, self.on_gpu = folder, path, on_gpu
        self.do: Callable[[int], Answer] | None = None

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, list[Any]]:
        k = int(batch["shard"][0])
        try:
            answer = self._answer(k)
        except KINDS as error:
            kind = next(kind for kind in KINDS if isinstance(error, kind))
            answer = {"error": kind.__name__, "told": str(error)}
        except Exception:
            answer = {"error": "RuntimeError", "told": f"in a worker: {traceback.format_exc()}"}
        return {"shard": [k], "answer": [json.dumps(answer)]}

    def _answer(self, k: int) -> Answer:
        if self.do is None:
            self._settle()
        if self.work.target.shard(k).is_file():
            return {}  # by a worker that was lost before it could say so
        begun = _ray().get(self.counter.begin.remote(k), timeout=COUNT)
        if begun > BEGUN:
            raise OSError(
                f"shard {k} brought down its worker {BEGUN} times: is there enough memory for the "
                "model and for this batch size?"
            )
        if self.do is None:
            self.do = self.work.opened()
        return self.do(k)

    def _settle(self) -> None:
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


def _room(ray: Any, cluster: Cluster) -> int:
    """How many workers can be held, when there is place for one at least."""
    room = 0
    for node in ray.nodes():
        has = node["Resources"] if node["Alive"] else {}
        by_cpu = int(has.get("CPU", 0) / cluster.cpus)
        room += min(by_cpu, int(has.get("GPU", 0) / cluster.gpus)) if cluster.gpus else by_cpu
    # This machine does not grow, a cluster may; Ray Data would wait for it without end.
    place = ray.remote(num_cpus=cluster.cpus, num_gpus=cluster.gpus)(_nothing).remote()
    try:
        ray.get(place, timeout=START if room or cluster.address else 0)
    except ray.exceptions.GetTimeoutError as error:
        ray.cancel(place, force=True)
        has = ray.cluster_resources()
        raise OSError(
            f"no place for a worker with {cluster.cpus} CPUs and {cluster.gpus:g} GPUs: all nodes "
            f"together have {has.get('CPU', 0):g} and {has.get('GPU', 0):g}, or others use them"
        ) from error
    return max(room, 1)


def _nothing() -> None:
    """What a place is tried with."""


@contextmanager
def _connected(ray: Any, cluster: Cluster) -> Iterator[None]:
    """With Ray there; left as found where the caller had started it."""
    if ray.is_initialized():
        yield
        return
    # Ray's own lines would tear the progress bar; what goes wrong is said by the errors raised.
    quiet = {"RAY_BACKEND_LOG_LEVEL": "fatal", "RAY_USAGE_STATS_ENABLED": "0"}
    added = {name: value for name, value in quiet.items() if name not in os.environ}
    own = {"include_dashboard": False, "object_store_memory": OBJECTS}
    _check_reachable(cluster.address)
    os.environ.update(added)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # about Ray's own plans
            ray.init(
                address=cluster.address or "local",
                log_to_driver=False,
                logging_level=logging.ERROR,
                **({} if cluster.address else own),
            )
        yield
    finally:
        ray.shutdown()
        for name in added:
            del os.environ[name]


def _check_reachable(address: str | None) -> None:
    """Refuses a wrong address at once, for which Ray would wait many minutes."""
    host, colon, port = (address or "").rpartition("://")[2].rpartition(":")
    if not colon:
        return  # none, or a word such as "auto" that Ray looks up
    try:
        socket.create_connection((host, int(port)), CONNECT).close()
    except (OSError, ValueError) as error:
        raise ConnectionError(f"there is no Ray cluster at {address}: {error}") from error


@contextmanager
def _quiet_data(ray: Any) -> Iterator[None]:
    """Ray Data without its progress bars, and with a limit to its patience."""
    context, logger = ray.data.DataContext.get_current(), logging.getLogger("ray.data")
    wanted = {
        "enable_progress_bars": False,
        "execution_no_progress_timeout_s": STALL,  # only newer versions know it
    }
    before = {name: getattr(context, name) for name in wanted if hasattr(context, name)}
    level = logger.level
    try:
        for name in before:
            setattr(context, name, wanted[name])
        logger.setLevel(logging.ERROR)
        yield
    finally:
        logger.setLevel(level)
        for name, value in before.items():
            setattr(context, name, value)


def _ray() -> Any:
    try:
        import ray
        import ray.data
    except ImportError as error:
        raise ImportError(
            "the engine ray needs the package ray: pip install 'rightly[ray]'"
        ) from error
    return ray
