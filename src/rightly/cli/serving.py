"""The command that answers over HTTP: serve."""

import argparse
import warnings
from typing import TYPE_CHECKING, Any

from rightly.cli.consoles import ERR, OUT

if TYPE_CHECKING:
    from rightly.deployment.runtime import ExportedModel


def add_commands(commands: Any) -> None:
    """The command of this module and its arguments."""
    add = commands.add_parser("serve", help="a web page and an API for an exported file")
    add.add_argument("file", help="what export wrote (.onnx)")
    add.add_argument("--host", default="127.0.0.1", help="0.0.0.0 is everywhere (%(default)s)")
    add.add_argument("--port", type=int, default=8000, help="0 takes a free one (%(default)s)")
    add.add_argument("--max-body-mb", type=float, default=20.0, help="of a request (%(default)s)")
    add.add_argument("--max-pixels", type=int, default=50_000_000, help="of an image (%(default)s)")
    add.add_argument("--max-images", type=int, default=32, help="in a request (%(default)s)")
    add.add_argument("--max-batch", type=int, default=32, help="images run at once (%(default)s)")
    add.add_argument(
        "--max-wait-ms",
        type=float,
        default=5.0,
        help="that an image waits for others (%(default)s)",
    )
    add.add_argument("--timeout-s", type=float, default=30.0, help="for a request (%(default)s)")
    add.add_argument("--queue", type=int, default=256, help="images that may wait (%(default)s)")
    add.add_argument(
        "--allow-origin",
        action="append",
        default=[],
        metavar="ORIGIN",
        help="pages of this origin may call the API, such as https://example.org; repeatable",
    )
    add.set_defaults(run=_serve)


def _serve(chosen: argparse.Namespace) -> None:
    try:
        from rightly.serving import Limits, make_app, open_socket, run_app
        from rightly.serving.server import format_address
    except ImportError as error:
        raise ImportError(f"serve needs more: pip install 'rightly[serve]' ({error})") from error
    from rightly.deployment.runtime import open_exported

    limits = Limits(
        body_bytes=int(chosen.max_body_mb * 1e6),
        pixels=chosen.max_pixels,
        images=chosen.max_images,
        batch=chosen.max_batch,
        wait_s=chosen.max_wait_ms / 1000,
        timeout_s=chosen.timeout_s,
        queue=chosen.queue,
    )
    model = open_exported(chosen.file)
    app = make_app(model, limits, chosen.allow_origin)
    with open_socket(chosen.host, chosen.port) as listening:
        where = format_address(listening)
        OUT.print(f"serving {chosen.file}: {_described(model)}", soft_wrap=True, markup=False)
        OUT.print(f"listening on {where} (docs: {where}/docs)", soft_wrap=True, markup=False)
        # Pillow warns of what clients send, in words that they choose: nothing for a log.
        warnings.filterwarnings("ignore", module=r"PIL\.")
        run_app(app, listening, limits.timeout_s)
    ERR.print("stopped")


def _described(model: "ExportedModel") -> str:
    metadata = model.metadata
    classifier = (metadata.get("classifier") or {}).get("name") or "an unnamed classifier"
    threshold = "no threshold" if model.threshold is None else f"threshold {model.threshold:.4g}"
    return f"{metadata['method']} on {classifier}, {metadata['class_count']} classes, {threshold}"
