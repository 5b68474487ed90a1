"""A Ray cluster: where it is, how many workers fit, and connecting to it (`rightly[ray]`)."""

import logging
import os
import socket
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from rightly.optional import require

START_TIMEOUT_S = 300  # for a place for one worker: a cluster may have to grow
STALL_TIMEOUT_S = 6 * 3600  # without any answer: longer than any shard takes
CONNECT_TIMEOUT_S = 20
OBJECT_STORE_BYTES = 100_000_000  # small, because only answers are kept there


def load_ray() -> Any:
    """The library Ray with Ray Data, or an error that says what to install."""
    require("ray.data", "ray")
    return require("ray", "ray")


@dataclass(frozen=True)
class Cluster:
    """Where Ray runs, and what each of its workers takes of it."""

    address: str | None = None  # None starts Ray on this machine alone
    workers: int | None = None  # at most; None is as many as there is room for
    cpus: int = 1
    gpus: float = 0.0

    def __post_init__(self) -> None:
        load_ray()
        if self.workers is not None and self.workers < 1:
            raise ValueError(f"workers must be 1 or more, got {self.workers}")
        if self.cpus < 1 or self.gpus < 0:
            raise ValueError(
                f"a worker of Ray takes 1 CPU or more and 0 GPUs or more, got {self.cpus} "
                f"and {self.gpus:g}"
            )


@contextmanager
def connect(ray: Any, cluster: Cluster) -> Iterator[None]:
    """Connected to Ray inside; one that the caller started is left running."""
    if ray.is_initialized():
        yield
        return
    # Ray's own lines would tear the progress bar; errors are raised here.
    quiet = {"RAY_BACKEND_LOG_LEVEL": "fatal", "RAY_USAGE_STATS_ENABLED": "0"}
    added = {name: value for name, value in quiet.items() if name not in os.environ}
    own = {"include_dashboard": False, "object_store_memory": OBJECT_STORE_BYTES}
    check_reachable(cluster.address)
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


def count_workers(ray: Any, cluster: Cluster) -> int:
    """How many workers fit, at least one; waits for the first place."""
    room = 0
    for node in ray.nodes():
        free = node["Resources"] if node["Alive"] else {}
        by_cpu = int(free.get("CPU", 0) / cluster.cpus)
        room += min(by_cpu, int(free.get("GPU", 0) / cluster.gpus)) if cluster.gpus else by_cpu
    # This machine does not grow, a cluster may; Ray Data would wait for it without end.
    place = ray.remote(num_cpus=cluster.cpus, num_gpus=cluster.gpus)(_do_nothing).remote()
    try:
        ray.get(place, timeout=START_TIMEOUT_S if room or cluster.address else 0)
    except ray.exceptions.GetTimeoutError as error:
        ray.cancel(place, force=True)
        total = ray.cluster_resources()
        raise OSError(
            f"no place for a worker with {cluster.cpus} CPUs and {cluster.gpus:g} GPUs: all nodes "
            f"together have {total.get('CPU', 0):g} and {total.get('GPU', 0):g}, or others use them"
        ) from error
    return max(room, 1)


@contextmanager
def quiet_ray_data(ray: Any) -> Iterator[None]:
    """Ray Data without progress bars, and with a limit to how long it waits."""
    context, logger = ray.data.DataContext.get_current(), logging.getLogger("ray.data")
    wanted = {
        "enable_progress_bars": False,
        "execution_no_progress_timeout_s": STALL_TIMEOUT_S,  # only newer versions know it
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


def check_reachable(address: str | None) -> None:
    """Refuses a wrong address at once, for which Ray would wait many minutes."""
    host, colon, port = (address or "").rpartition("://")[2].rpartition(":")
    if not colon:
        return  # none, or a word such as "auto" that Ray looks up
    try:
        socket.create_connection((host, int(port)), CONNECT_TIMEOUT_S).close()
    except (OSError, ValueError) as error:
        raise ConnectionError(f"there is no Ray cluster at {address}: {error}") from error


def _do_nothing() -> None:
    """The task that finds out whether there is a place."""
