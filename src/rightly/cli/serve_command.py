"""`rightly serve`: a web page and an API."""

import math
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rightly.cli.console import ERR, print_line

if TYPE_CHECKING:
    from rightly.deployment.runtime import ExportedModel

EXAMPLE = "rightly serve model.onnx --port 8080"
OPTIONS = {
    "the limit pixels": "--max-pixels",
    "the limit on pixels": "--max-pixels",
    "the limit images": "--max-images",
    "the limit batch": "--max-batch",
    "the limit timeout_s": "--timeout-s",
    "the limit queue": "--queue",
    "the queue": "--queue",
    "adapt": "--adapt",
    "state": "--state",
    "log": "--log",
}


def run(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What export wrote (.onnx).")],
    host: Annotated[str, typer.Option(help="0.0.0.0 is everywhere.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="0 takes a free one.")] = 8000,
    max_body_mb: Annotated[float, typer.Option(help="Of a request.")] = 20.0,
    max_pixels: Annotated[int, typer.Option(help="Of an image.")] = 50_000_000,
    max_images: Annotated[int, typer.Option(help="In a request.")] = 32,
    max_batch: Annotated[int, typer.Option(help="Images run at once.")] = 32,
    max_wait_ms: Annotated[float, typer.Option(help="That an image waits for others.")] = 5.0,
    timeout_s: Annotated[float, typer.Option(help="For a request.")] = 30.0,
    queue: Annotated[int, typer.Option(help="Images that may wait.")] = 256,
    adapt: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Adapt to what the last N images show.",
            show_default="each image alone",
        ),
    ] = None,
    state: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Keep these here, over restarts and for all workers."),
    ] = None,
    log: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Append predictions as JSON lines, for monitor."),
    ] = None,
    allow_origin: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ORIGIN",
            help="Pages of this origin may call the API, as https://example.org; repeatable.",
            show_default="none",
        ),
    ] = None,
) -> None:
    """Serve an exported file: a web page and an API."""
    try:
        from rightly.serving import Limits, make_app, open_socket, run_app
        from rightly.serving.server import format_address
    except ImportError as error:
        raise ImportError(f"serve needs more: pip install 'rightly[serve]' ({error})") from error
    from rightly.deployment.runtime import open_exported

    # In the units of the options; limits know bytes and seconds.
    if not 1e-6 <= max_body_mb < math.inf:
        raise ValueError(f"--max-body-mb must be positive and finite, got {max_body_mb:g}")
    if not 0 <= max_wait_ms < math.inf:
        raise ValueError(f"--max-wait-ms must be positive and finite, or 0, got {max_wait_ms:g}")
    try:
        limits = Limits(
            body_bytes=int(max_body_mb * 1e6),
            pixels=max_pixels,
            images=max_images,
            batch=max_batch,
            wait_s=max_wait_ms / 1000,
            timeout_s=timeout_s,
            queue=queue,
        )
        model = open_exported(file)
        app = make_app(model, limits, allow_origin or [], adapt=adapt, state=state, log=log)
    except ValueError as error:
        raise ValueError(_name_options(str(error))) from error
    with open_socket(host, port) as listening:
        where = format_address(listening)
        print_line(f"serving {file}: {_describe(model)}")
        for line in _describe_guarantees(model, adapt is not None):
            print_line(line)
        print_line(f"listening on {where} (docs: {where}/docs)")
        # Pillow warns of what clients send, in words that they choose: nothing for a log.
        warnings.filterwarnings("ignore", module=r"PIL\.")
        run_app(app, listening, limits.timeout_s)
    ERR.print("stopped")


def _describe(model: "ExportedModel") -> str:
    metadata = model.metadata
    classifier = (metadata.get("classifier") or {}).get("name") or "an unnamed classifier"
    threshold = "no threshold" if model.threshold is None else f"threshold {model.threshold:.4g}"
    return f"{metadata['method']} on {classifier}, {metadata['class_count']} classes, {threshold}"


def _describe_guarantees(model: "ExportedModel", adapts: bool) -> list[str]:
    """Guarantees of what is served, and whether drift is watched."""
    from rightly.deployment.metadata import describe_guarantees, void_reason

    guarantees = describe_guarantees(model.metadata, void_reason(model.metadata, adapts=adapts))
    lines = list(dict.fromkeys(guarantees))
    if guarantees and model.metadata.get("drift") is None:
        lines.append(
            "drift is not watched: the file does not tell what images without it look like (export "
            "a calibrator that can be adapted, without --no-adaptable)"
        )
    return lines


def _name_options(message: str) -> str:
    for limit, option in OPTIONS.items():
        if message.startswith(f"{limit} must"):
            return option + message.removeprefix(limit)
    return message
