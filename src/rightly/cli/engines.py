"""Where slow commands run: here, or on a Ray cluster."""

import argparse
from typing import Any

from rightly.collection.ray_cluster import Cluster


def add_arguments(add: Any) -> None:
    """The arguments that say where a command runs."""
    add.add_argument("--engine", default="local", choices=("local", "ray"), help="where it runs")
    add.add_argument("--ray-address", help="of a Ray cluster; none starts Ray on this machine")
    add.add_argument("--ray-workers", type=int, metavar="N", help="as many as fit, if not given")


def cluster_of(chosen: argparse.Namespace, cpus: int = 1, gpus: float = 0.0) -> Cluster | None:
    """What the arguments say about Ray, or None where the command runs here."""
    if chosen.engine == "ray":
        return Cluster(chosen.ray_address, chosen.ray_workers, cpus, gpus)
    asked = [name for name in vars(chosen) if name.startswith("ray_") and vars(chosen)[name]]
    if asked:
        flags = ", ".join(f"--{name.replace('_', '-')}" for name in asked)
        raise ValueError(f"{flags} has no meaning without --engine ray")
    return None
