"""Options of the commands: those that several share, and how their text becomes arguments."""

import importlib
import json
import math
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from rightly.checks import check_choice
from rightly.files import check_target
from rightly.optional import require

if TYPE_CHECKING:
    from rightly.classifiers import Preprocessing
    from rightly.collection.ray_cluster import Cluster
    from rightly.predictions import Predictions

DATA_SET = ".npz, .npy, .pt or .csv, or a folder that collect wrote"
FIGURE_FORMATS = (".pdf", ".svg", ".png")

# Options that are no argument of a command's function, or that many commands have: one meaning
# each. All others are arguments of the command's function under the same name.
SHARED = {
    "import": "Module to import first: own metrics, methods, views, shifts; repeatable.",
    "labels": "Labels of data sets without any: .npy, .pt, .npz or text; repeatable.",
    "probabilities": "Arrays and tables hold probabilities, not logits.",
    "views": "Views, in this order, joined by commas.",
    "methods": "Methods and groups joined by commas, or all (rightly fit --list).",
    "metrics": "Metrics joined by commas, or all.",
    "intervals": "95 % intervals and paired tests.",
    "resamples": "Bootstrap resamples of each test set.",
    "seed": "Random seed.",
    "repeats": "Fits per randomised method, each with its own seed.",
    "reference": "Method that the others are tested against.",
    "adapt": "Rows to adapt to at a time, without labels.",
    "any-classifier": "Accept predictions of another classifier.",
    "allow-overlap": "Accept test sets that hold calibration rows.",
    "json": "JSON file to write the values to.",
    "out": "File or folder to write.",
    "plot": "Figure to write: .pdf, .svg or .png.",
    "kind": "Kind of figure.",
    "card": "Model card (Markdown) to write.",
    "track": "Experiment tracker to send results to: mlflow or wandb.",
    "log": "File to append predictions to, as JSON lines, for monitor.",
    "list": "List of the names to choose from, and nothing else.",
    "batch-size": "Images per batch.",
    "allow-origin": "Origin whose pages may call the API, as https://example.org; repeatable.",
    "quiet": "No progress bar.",
    "pairs": "Table with the columns confidence and correct, instead of a calibrator.",
    "require": "Requirement; missing one ends with exit code 3; repeatable.",
    "set": "Argument of the method; repeatable.",
    "jsonl": "JSON lines, one object per image, instead of a table.",
    "use-labels": "Correction of intercept and slope by the labels of DATA.",
    "cost-error": "Cost of an accepted wrong prediction.",
    "cost-review": "Cost of a prediction left to a person.",
    "cost-gain": "Gain of an accepted correct prediction.",
    "class-names": "Names of all classes in the model's order, one per line; or imagenet.",
    "layout": "Layout of the image folder (rightly collect --list).",
    "split": "Split of a data set that has several.",
    "severity": "Severity of CIFAR-10-C.",
    "output": "Name of the output with the logits, of several.",
    "size": "Side of the square image the model takes.",
    "resize": "Shorter side before the centre is cut out.",
    "interpolation": "Interpolation when images are resized.",
    "mean": "Mean subtracted from images in [0, 1].",
    "std": "Standard deviation that divides images in [0, 1].",
    "engine": "Execution engine: local or ray.",
    "ray-address": "Address of a Ray cluster.",
    "ray-workers": "Workers on Ray.",
    "ray-gpus": "GPUs per worker on Ray; 0 runs on CPUs.",
}


def option(name: str, *spellings: str, **settings: Any) -> Any:
    """The option of this name, with the help that all commands share."""
    return typer.Option(*(spellings or (f"--{name}",)), help=SHARED[name], **settings)


def kind_option(kinds: Iterable[str]) -> Any:
    """The option `--kind` of a command that draws these figures, the first of them by default."""
    kinds = list(kinds)
    return typer.Option(
        "--kind",
        metavar="KIND",
        help=f"{SHARED['kind'].rstrip('.')}: {', '.join(kinds)}.",
        show_default=kinds[0],
    )


def import_modules(names: list[str] | None) -> list[str] | None:
    """Import the user's own modules, also from the working folder, and register their records."""
    from rightly.classifiers.sources import add_working_folder
    from rightly.registry import register_module

    for name in names or ():
        try:
            with add_working_folder():
                module = importlib.import_module(name)
        except Exception as error:  # it is somebody else's code
            raise ValueError(
                f"import must name a module that can be imported, got {name!r}: "
                f"{type(error).__name__}: {error}; install it, or run in the folder that it is in"
            ) from error
        register_module(module)
    return names


Cal = Annotated[
    Path,
    typer.Argument(metavar="CAL", help=f"Calibration predictions with labels: {DATA_SET}."),
]
CalibratorFile = Annotated[
    Path, typer.Argument(metavar="CALIBRATOR", help="Saved calibrator (.safetensors).")
]
Tests = Annotated[
    list[str],
    typer.Argument(metavar="[NAME=]TEST...", help=f"Test sets with labels: {DATA_SET}."),
]
# Before all others, and for all commands: what it imports may register what these name.
Import = Annotated[
    list[str] | None,
    option("import", metavar="PACKAGE.MODULE", is_eager=True, callback=import_modules),
]
LabelFiles = Annotated[list[str] | None, option("labels", metavar="[DATA=]FILE")]
Probabilities = Annotated[bool, option("probabilities")]
Views = Annotated[str | None, option("views", metavar="NAME,NAME", show_default="all")]
Metrics = Annotated[
    str | None, option("metrics", metavar="NAME,NAME", show_default="ece,brier,ks,auroc")
]
Methods = Annotated[
    str | None,
    option(
        "methods",
        metavar="NAME,NAME",
        show_default="baselines, those for two classes, the paper's and Rightly's own",
    ),
]
Json = Annotated[Path | None, option("json", metavar="FILE")]
Intervals = Annotated[bool, option("intervals", "--intervals/--no-intervals")]
Reference = Annotated[
    str | None,
    option(
        "reference",
        metavar="NAME",
        show_default="temperature_scaling, or the first where that is not compared",
    ),
]
Repeats = Annotated[int, option("repeats", metavar="N")]
Resamples = Annotated[
    int | None,
    option("resamples", metavar="N", show_default="1000, or more where many tests ask for it"),
]
Seed = Annotated[int, option("seed")]
AnyClassifier = Annotated[bool, option("any-classifier")]
AllowOverlap = Annotated[bool, option("allow-overlap")]
Adapt = Annotated[str | None, option("adapt", metavar="N|all", show_default="not adapted")]
Plot = Annotated[Path | None, option("plot", metavar="FILE")]
Card = Annotated[Path | None, option("card", metavar="FILE")]
Quiet = Annotated[bool, option("quiet")]
CostError = Annotated[float | None, option("cost-error")]
CostReview = Annotated[float | None, option("cost-review")]
CostGain = Annotated[float, option("cost-gain")]
ClassNames = Annotated[
    str | None, option("class-names", metavar="FILE", show_default="as collected")
]
Layout = Annotated[str, option("layout")]
Model = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help="timm:NAME, hf:NAME_OR_DIR, torchvision:NAME, onnx:FILE, pt2:FILE or "
        "py:package.module:factory.",
    ),
]
Output = Annotated[str | None, option("output")]
Size = Annotated[int | None, option("size")]
Resize = Annotated[int | None, option("resize")]
Interpolation = Annotated[str, option("interpolation")]
Mean = Annotated[str | None, option("mean", metavar="R,G,B")]
Std = Annotated[str | None, option("std", metavar="R,G,B")]
Engine = Annotated[Literal["local", "ray"], option("engine")]
RayAddress = Annotated[str | None, option("ray-address", show_default="a Ray started here")]
RayWorkers = Annotated[int | None, option("ray-workers", metavar="N", show_default="all that fit")]
RayGpus = Annotated[float, option("ray-gpus", metavar="N")]


def check_outputs(outputs: Iterable[Path | None], inputs: Iterable[Any] = ()) -> None:
    """Refuse before any work what must not be written: devices, links and inputs."""
    sources = [split_name(item)[1] if isinstance(item, str) else item for item in inputs]
    for path in outputs:
        # Some commands write a folder, and make those above it.
        if path is not None and os.path.lexists(path) and not path.is_dir():
            check_target(path, sources)


def check_plot(plot: Path | None, kind: str | None, kinds: Sequence[str]) -> str:
    """The kind of figure to draw, refused before any work; matplotlib must be there."""
    chosen = kinds[0] if kind is None else kind
    check_choice("kind", chosen, kinds)
    if plot is None:
        if kind is not None:
            raise ValueError(f"kind needs a file to draw to: add --plot {kind}.svg")
        return chosen
    if plot.suffix.lower() not in FIGURE_FORMATS:
        raise ValueError(f"plot must end in {', '.join(FIGURE_FORMATS)}, got {plot.name!r}")
    require("matplotlib", "plots")
    return chosen


def split_names(joined: str | None) -> list[str]:
    """The names in text that joins them by commas."""
    return [name.strip() for name in (joined or "").split(",") if name.strip()]


def split_numbers(joined: str, name: str) -> list[float]:
    """The numbers in text that joins them by commas."""
    try:
        return [float(text) for text in split_names(joined)]
    except ValueError:
        raise ValueError(f"{name} must be numbers joined by commas, got {joined!r}") from None


def select_names(joined: str | None) -> str | list[str] | None:
    """The value of an option that takes all, or names joined by commas."""
    return joined if joined is None or joined == "all" else split_names(joined)


def select_given(**values: Any) -> dict[str, Any]:
    """The arguments that were given; the function's own defaults serve for the others."""
    return {name: value for name, value in values.items() if value is not None}


def split_name(item: str) -> tuple[str, Path]:
    """Name and path of an argument [NAME=]FILE; without a name, the file's own."""
    name, _, path = item.rpartition("=")
    return name or Path(path).stem, Path(path)


def read_paths(items: Sequence[str]) -> dict[str, Path]:
    """The paths of arguments [NAME=]FILE, by name."""
    paths: dict[str, Path] = {}
    for item in items:
        name, path = split_name(item)
        if name in paths:
            raise ValueError(
                f"tests need different names, got {name!r} twice: write NAME={path} for one"
            )
        paths[name] = path
    return paths


def read_adapt(text: str | None) -> bool | int:
    """The argument `adapt`: False, True for all rows, or the rows of a batch."""
    if text is None or text == "all":
        return text == "all"
    if not text.isdecimal() or not int(text):
        raise ValueError(f"adapt must be a number of rows from 1, or all, got {text!r}")
    return int(text)


def read_settings(items: Sequence[str] | None) -> dict[str, Any]:
    """Arguments of a method, given as NAME=VALUE; what is no JSON value is text."""
    settings: dict[str, Any] = {}
    for item in items or ():
        name, equals, text = item.partition("=")
        if not equals or not name.isidentifier():
            raise ValueError(f"set must be NAME=VALUE, got {item!r}: write --set neighbours=1000")
        try:
            settings[name] = json.loads(text.lower() if text in ("True", "False") else text)
        except ValueError:
            settings[name] = text
    return settings


def read_costs(error: float | None, review: float | None, gain: float) -> dict[str, float] | None:
    """The argument `costs`; None where no cost is given."""
    if error is None and review is None and not gain:
        return None
    if error is None or review is None:
        raise ValueError(
            "cost_error and cost_review must come together, as what is cheapest depends on both"
        )
    return {"error": error, "review": review, "gain": gain}


def read_class_names(source: str | None) -> list[str] | None:
    """Names one per line, but for empty lines at the end of the file, or ImageNet's."""
    if source is None:
        return None
    if source == "imagenet":
        from rightly.datasets import read_imagenet_names

        return list(read_imagenet_names())
    path = Path(source)
    if not path.is_file():
        raise FileNotFoundError(
            f"class_names must be a file or the word imagenet, but there is no {path}"
        )
    names = path.read_text(encoding="utf-8-sig").rstrip().splitlines()
    names = [name.strip() for name in names]
    if not all(names) or not names:
        raise ValueError(f"class_names must have one name per line, but {path} has empty ones")
    return names


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


def load_sets(
    paths: Sequence[Path],
    labels: Sequence[str] | None,
    probabilities: bool,
    views: str | None = None,
) -> "list[tuple[Predictions, Any]]":
    """Predictions and labels, if there are any, as the shared options say how to read them."""
    from rightly.predictions import load

    files, names = assign_labels(labels, paths), split_names(views) or None
    return [
        load(path, labels=files.get(path), probabilities=probabilities, views=names)
        for path in paths
    ]


def make_cluster(
    engine: str, address: str | None, workers: int | None, cpus: int = 1, gpus: float = 0.0
) -> "Cluster | None":
    """The Ray cluster to run on; None to run here."""
    if engine == "ray":
        from rightly.collection.ray_cluster import Cluster

        if workers is not None and workers < 1:
            raise ValueError(f"ray_workers must be 1 or more, got {workers}")
        if not 0 <= gpus < math.inf:
            raise ValueError(f"ray_gpus must be 0 or more, got {gpus:g}")
        require("ray.data", "ray")
        return Cluster(address, workers, cpus, gpus)
    given = {"ray_address": address, "ray_workers": workers, "ray_gpus": gpus or None}
    names = [name for name, value in given.items() if value is not None]
    if names:
        raise ValueError(f"{', '.join(names)} must come with --engine ray")
    return None


def make_preprocessing(
    size: int | None, resize: int | None, interpolation: str, mean: str | None, std: str | None
) -> "Preprocessing | None":
    """What the options say about preprocessing; None leaves it to the model's own config."""
    settings: dict[str, Any] = {
        "size": (size, size) if size else None,
        "resize": resize,
        "mean": None if mean is None else _split_three(mean, "mean"),
        "std": None if std is None else _split_three(std, "std"),
    }
    settings = {name: value for name, value in settings.items() if value}
    if not settings:
        return None
    from rightly.classifiers import Preprocessing

    return Preprocessing(**settings, interpolation=interpolation)


def _split_three(text: str, name: str) -> tuple[float, float, float]:
    numbers = split_numbers(text, name)
    if len(numbers) != 3:
        raise ValueError(f"{name} must be three numbers joined by commas, got {text!r}")
    return numbers[0], numbers[1], numbers[2]
