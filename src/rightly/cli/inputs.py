"""What commands take: options that several share, and from paths and names to data sets."""

import os
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rightly.checks import check_choice
from rightly.files import check_target

if TYPE_CHECKING:
    from rightly.classifiers import Preprocessing
    from rightly.predictions import Predictions

OUTPUTS = ("out", "json", "plot")  # options that name what a command writes
DATA_SET = ".npz, .npy, .pt or .csv, or a folder that collect wrote"

Cal = Annotated[
    Path,
    typer.Argument(metavar="CAL", help=f"Calibration predictions with labels: {DATA_SET}."),
]
CalibratorFile = Annotated[
    Path, typer.Argument(metavar="CALIBRATOR", help="A saved calibrator (.safetensors).")
]
On = Annotated[
    list[str],
    typer.Option("--on", metavar="[NAME=]FILE", help=f"Test set ({DATA_SET}); repeatable."),
]
OnIfAny = Annotated[
    list[str] | None,
    typer.Option("--on", metavar="[NAME=]FILE", help=f"Test set ({DATA_SET}); repeatable."),
]
Views = Annotated[
    str | None,
    typer.Option("--views", help="Use only these views, in this order.", show_default="all"),
]
LabelFiles = Annotated[
    list[str] | None,
    typer.Option(
        "--labels",
        metavar="[DATA=]FILE",
        help="Labels of data sets without any: .npy, .pt, .npz or text; repeatable.",
    ),
]
Probabilities = Annotated[
    bool,
    typer.Option("--probabilities", help="Arrays and tables hold probabilities, not logits."),
]
Metrics = Annotated[
    str | None,
    typer.Option(
        "--metrics", help="all, or names joined by commas.", show_default="ece,brier,ks,auroc"
    ),
]
Methods = Annotated[
    str | None,
    typer.Option(
        "--methods",
        help="all, or names and groups joined by commas (rightly methods lists them).",
        show_default="baselines, those for two classes, the paper's and Rightly's own",
    ),
]
Json = Annotated[
    Path | None, typer.Option("--json", metavar="FILE", help="Also write the values here.")
]
Intervals = Annotated[
    bool,
    typer.Option("--intervals/--no-intervals", help="Report 95 % intervals and paired tests."),
]
Reference = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="The method that the others are tested against.",
        show_default="temperature_scaling, or the first where that is not compared",
    ),
]
Repeats = Annotated[int, typer.Option(help="Fits of each method that draws at random.")]
Seed = Annotated[int, typer.Option("--seed", help="Random seed.")]
Resamples = Annotated[
    int | None,
    typer.Option(
        "--resamples",
        help="Bootstrap resamples of each test set.",
        show_default="1000, or more where many tests ask for it",
    ),
]
FitSeed = Annotated[int, typer.Option("--fit-seed", help="Of fits that draw at random.")]
BootstrapSeed = Annotated[int, typer.Option("--bootstrap-seed", help="Of the resamples.")]

AnyClassifier = Annotated[
    bool, typer.Option("--any-classifier", help="Take predictions of another classifier.")
]
AllowOverlap = Annotated[
    bool, typer.Option("--allow-overlap", help="Take test sets that hold calibration rows.")
]

Adapt = Annotated[
    str | None,
    typer.Option(
        "--adapt",
        metavar="N|all",
        help="Adapt to each test set without its labels: to all rows at once, or to N at a time.",
    ),
]

Size = Annotated[
    int | None, typer.Option("--size", help="Side of the square image the model takes.")
]
Resize = Annotated[
    int | None, typer.Option("--resize", help="Shorter side before the centre is cut out.")
]
Interpolation = Annotated[str, typer.Option("--interpolation", help="How images are resized.")]
Mean = Annotated[
    str | None,
    typer.Option("--mean", metavar="R,G,B", help="Subtracted from images in [0, 1]."),
]
Std = Annotated[
    str | None, typer.Option("--std", metavar="R,G,B", help="Divides images in [0, 1].")
]


def check_outputs(run: Callable[..., Any]) -> Callable[..., Any]:
    """The command, refusing before any work what must not be written: devices, links, inputs."""

    @wraps(run)
    def checked(**options: Any) -> Any:
        outputs = [options[name] for name in OUTPUTS if options.get(name)]
        inputs = [
            split_test_set(value)[1] if isinstance(value, str) else value
            for name, values in options.items()
            if name not in OUTPUTS
            for value in (values if isinstance(values, list) else [values])
        ]
        for path in outputs:
            # Some commands write a folder, and make those above it.
            if os.path.lexists(path) and not path.is_dir():
                check_target(path, inputs)
        return run(**options)

    return checked


def split_names(joined: str | None) -> list[str]:
    """The names in text that joins them by commas."""
    return [name.strip() for name in (joined or "").split(",") if name.strip()]


def split_numbers(joined: str, option: str) -> list[float]:
    """The numbers in text that joins them by commas."""
    try:
        return [float(text) for text in split_names(joined)]
    except ValueError:
        raise ValueError(f"{option} must be numbers joined by commas, got {joined!r}") from None


def split_test_set(item: str) -> tuple[str, Path]:
    """Name and path of an argument [NAME=]FILE; without a name, the file's own."""
    name, _, path = item.rpartition("=")
    return name or Path(path).stem, Path(path)


def read_paths(items: Sequence[str], option: str = "--on") -> dict[str, Path]:
    """The paths of arguments [NAME=]FILE, by name."""
    paths: dict[str, Path] = {}
    for item in items:
        name, path = split_test_set(item)
        if name in paths:
            raise ValueError(
                f"{option} needs a different name for each test set, got {name!r} twice: "
                f"write {f'{option} ' if option.startswith('-') else ''}NAME=FILE"
            )
        paths[name] = path
    return paths


def split_labels(items: Sequence[str] | None) -> dict[Path, Path]:
    """Files of arguments DATA=FILE by data set."""
    pairs = [item.rpartition("=")[::2] for item in items or ()]
    for data, file in pairs:
        if not data:
            raise ValueError(
                "labels must say whose they are where there are several data sets, got "
                f"{file}: write DATA={file}"
            )
    return {Path(data): Path(file) for data, file in pairs}


def assign_labels(items: Sequence[str] | None, paths: Sequence[Path]) -> dict[Path, Path]:
    """Files of arguments [DATA=]FILE by data set; without DATA, of the only one."""
    if len(set(paths)) == 1:
        items = [item if "=" in item else f"{paths[0]}={item}" for item in items or ()]
    files = split_labels(items)
    for path in files:
        check_choice("labels", str(path), [str(one) for one in paths])
    return files


def read_data_sets(
    paths: Sequence[Path],
    labels: Sequence[str] | None,
    probabilities: bool,
    views: str | None = None,
) -> "list[tuple[Predictions, Any]]":
    """Predictions and labels, if there are any, as options say how to read them."""
    from rightly.predictions import load

    files, names = assign_labels(labels, paths), split_names(views) or None
    return [
        load(path, labels=files.get(path), probabilities=probabilities, views=names)
        for path in paths
    ]


def select_names(joined: str | None) -> str | list[str] | None:
    """The value of an option that takes all, or names joined by commas."""
    return joined if joined is None or joined == "all" else split_names(joined)


def select_given(**joined: str | None) -> dict[str, Any]:
    """The arguments of options that may be left out, each all or names joined by commas."""
    return {name: select_names(text) for name, text in joined.items() if text is not None}


def parse_adapt(text: str | None) -> bool | int:
    """What --adapt says: nothing, all rows of a test set, or so many at a time."""
    if text is None or text == "all":
        return text is not None
    if not text.isdecimal():
        raise ValueError(
            f"adapt must be all or a number of rows, got {text!r}: pass for instance 64"
        )
    return int(text)


def make_preprocessing(
    size: int | None, resize: int | None, interpolation: str, mean: str | None, std: str | None
) -> "Preprocessing | None":
    """What the options say about preprocessing; None leaves it to the model's own config."""
    options: dict[str, Any] = {
        "size": (size, size) if size else None,
        "resize": resize,
        "mean": None if mean is None else _split_three(mean, "--mean"),
        "std": None if std is None else _split_three(std, "--std"),
    }
    options = {name: value for name, value in options.items() if value}
    if not options:
        return None
    from rightly.classifiers import Preprocessing

    return Preprocessing(**options, interpolation=interpolation)


def _split_three(text: str, option: str) -> tuple[float, float, float]:
    numbers = split_numbers(text, option)
    if len(numbers) != 3:
        raise ValueError(f"{option} must be three numbers joined by commas, got {text!r}")
    return numbers[0], numbers[1], numbers[2]
