"""Where slow commands run: here, or on a Ray cluster."""

import math
from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from rightly.collection.ray_cluster import Cluster

Engine = Annotated[
    Literal["local", "ray"], typer.Option("--engine", help="Where it runs: here, or on Ray.")
]
RayAddress = Annotated[
    str | None,
    typer.Option(
        "--ray-address", help="Of a Ray cluster.", show_default="Ray is started on this machine"
    ),
]
RayWorkers = Annotated[
    int | None,
    typer.Option("--ray-workers", metavar="N", help="Of Ray.", show_default="as many as fit"),
]
RayGpus = Annotated[
    float, typer.Option("--ray-gpus-per-worker", metavar="N", help="0 runs on CPUs.")
]


def make_cluster(
    engine: str, address: str | None, workers: int | None, cpus: int = 1, gpus: float = 0.0
) -> "Cluster | None":
    """What the options say about Ray, or None where the command runs here."""
    if engine == "ray":
        from rightly.collection.ray_cluster import Cluster

        if workers is not None and workers < 1:
            raise ValueError(f"--ray-workers must be 1 or more, got {workers}")
        if not 0 <= gpus < math.inf:
            raise ValueError(f"--ray-gpus-per-worker must be 0 or more, got {gpus:g}")
        return Cluster(address, workers, cpus, gpus)
    options = {
        "--ray-address": address,
        "--ray-workers": workers,
        "--ray-gpus-per-worker": gpus or None,
    }
    names = [name for name, value in options.items() if value is not None]
    if names:
        raise ValueError(f"{', '.join(names)} has no meaning without --engine ray")
    return None
