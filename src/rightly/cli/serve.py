"""`rightly serve`: a web page and an API."""

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rightly.cli.console import ERR, print_line
from rightly.cli.options import Import, option

if TYPE_CHECKING:
    from rightly.deployment.runtime import ExportedModel

EXAMPLE = "rightly serve model.onnx --port 8080"
FUNCTIONS = (
    "rightly.serving:make_app",
    "rightly.serving:Limits",
    "rightly.serving:open_socket",
)


def run(
    file: Annotated[Path, typer.Argument(metavar="MODEL", help="Exported model (.onnx).")],
    modules: Import = None,
    host: Annotated[str, typer.Option(help="Bind address; 0.0.0.0 for all.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port; 0 picks a free one.")] = 8000,
    max_body_mb: Annotated[float, typer.Option(help="Maximum request body, MB.")] = 20.0,
    max_pixels: Annotated[int, typer.Option(help="Maximum pixels per image.")] = 50_000_000,
    max_images: Annotated[int, typer.Option(help="Maximum images per request.")] = 32,
    max_batch: Annotated[int, typer.Option(help="Maximum images per batch.")] = 32,
    max_wait_ms: Annotated[float, typer.Option(help="Maximum batching delay, ms.")] = 5.0,
    timeout_s: Annotated[float, typer.Option(help="Timeout of a request, s.")] = 30.0,
    queue: Annotated[int, typer.Option(help="Maximum images that wait.")] = 256,
    adapt: Annotated[
        int | None,
        option("adapt", metavar="N", show_default="not adapted"),
    ] = None,
    state: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="File that persists the adaptation window."),
    ] = None,
    log: Annotated[Path | None, option("log", metavar="FILE")] = None,
    allow_origins: Annotated[
        list[str] | None,
        option("allow-origin", metavar="ORIGIN", show_default="none"),
    ] = None,
) -> None:
    """Serve an exported model: a web page and an API."""
    try:
        from rightly.serving import Limits, make_app, open_socket, run_app
        from rightly.serving.server import format_address
    except ImportError as error:
        raise ImportError(f"serve needs more: pip install 'rightly[serve]' ({error})") from error
    from rightly.deployment.runtime import open_exported

    limits = Limits(max_body_mb, max_pixels, max_images, max_batch, max_wait_ms, timeout_s, queue)
    model = open_exported(file)
    app = make_app(model, limits, allow_origins or [], adapt=adapt, state=state, log=log)
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
