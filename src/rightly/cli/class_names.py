"""The names of classes: of a file, or ImageNet's."""

from pathlib import Path
from typing import Annotated

import typer

ClassNames = Annotated[
    str | None,
    typer.Option(
        "--class-names",
        metavar="FILE",
        help="Names of all classes in the model's order, one a line; or the word imagenet.",
        show_default="as collected",
    ),
]


def read_class_names(source: str | None) -> list[str] | None:
    """Names one a line, but for empty lines at the end of the file, or ImageNet's."""
    if source is None:
        return None
    if source == "imagenet":
        from rightly.datasets import read_imagenet_names

        return list(read_imagenet_names())
    path = Path(source)
    if not path.is_file():
        raise FileNotFoundError(
            f"--class-names must be a file or the word imagenet, but there is no {path}"
        )
    names = path.read_text(encoding="utf-8-sig").rstrip().splitlines()
    names = [name.strip() for name in names]
    if not all(names) or not names:
        raise ValueError(f"--class-names must have one name a line, but {path} has empty ones")
    return names
