"""Counts the files of src/rightly in which code runs for an image, from collect over fit to report.

    python -m benchmarks.speed.files_per_image [--cli]

Every module is imported first; then a small classifier is collected over a folder of pictures with
the default views, the default method is fitted and a report written, from Python or, with --cli,
through the command line. A file counts where a function of it is called, by the interpreter's own
profile events in all threads; module level code, class definitions, what dataclasses generate and
the hooks of lazy imports do not count.
"""

import argparse
import importlib
import pkgutil
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import nn

import rightly
import rightly.cli

TARGET = 40
ROOT = Path(rightly.__file__).parent
SIDE, CLASSES, IMAGES_A_CLASS = 32, 3, 20
OMITTED = {"<module>", "__getattr__", "__dir__"}  # by qualified name: of modules, not of classes
MODEL = "py:benchmarks.speed.files_per_image:build_model"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cli", action="store_true", help="through the command line")
    options = parser.parse_args()
    import_all()
    with TemporaryDirectory() as name:
        folder = Path(name)
        write_images(folder / "images", seed=0)
        write_images(folder / "test_images", seed=1)
        steps = list_cli_steps(folder) if options.cli else list_steps(folder)
        files = {step: trace_files(work) for step, work in steps.items()}
    print(*format_files(files, None if options.cli else TARGET), sep="\n")


def import_all() -> None:
    """Imports every module of the package whose libraries are installed."""
    for module in pkgutil.walk_packages([str(ROOT)], "rightly."):
        if module.name != "rightly.__main__":  # it would run the command line
            try:
                importlib.import_module(module.name)
            except ImportError as error:
                print(f"{module.name} is left out: {error}", file=sys.stderr)


def build_model() -> nn.Module:
    """A classifier of one linear layer."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear(3 * SIDE * SIDE, CLASSES)).eval()


def write_images(folder: Path, seed: int) -> None:
    """Writes pictures of noise, a folder a class."""
    rng = np.random.default_rng(seed)
    for k in range(CLASSES):
        (folder / f"class{k}").mkdir(parents=True)
        for i in range(IMAGES_A_CLASS):
            pixels = rng.integers(0, 256, (SIDE, SIDE, 3), np.uint8)
            Image.fromarray(pixels).save(folder / f"class{k}" / f"{i}.png")


def read_images(folder: Path) -> list[tuple[Image.Image, int]]:
    """Images and labels in memory, as a data set of one's own would yield them."""
    files = sorted(folder.glob("*/*.png"))
    return [(Image.open(file).copy(), int(file.parent.name[len("class") :])) for file in files]


def list_steps(folder: Path) -> dict[str, Callable[[], object]]:
    """Collect, fit and report from Python, each on what the one before returned."""
    results: dict[str, Any] = {}

    def collect() -> None:
        for name, images in {"data": "images", "test": "test_images"}.items():
            results[name] = rightly.collect(build_model(), read_images(folder / images))

    def fit() -> None:
        results["calibrator"] = rightly.fit(*results["data"], "rightly")

    def report() -> None:
        tests = {"test": results["test"]}
        results["page"] = rightly.report(results["calibrator"], tests).html

    return {"collect": collect, "fit": fit, "report": report}


def list_cli_steps(folder: Path) -> dict[str, Callable[[], object]]:
    """Collect, fit and report through the command line, each from the files of the one before."""
    preds, test = str(folder / "preds"), str(folder / "test")
    calibrator = str(folder / "calibrator.safetensors")
    page = str(folder / "report.html")
    report = ("report", "correctness_logistic", test, "--cal", preds, "--out", page)

    def collect() -> None:
        for out, images in {preds: "images", test: "test_images"}.items():
            source = (MODEL, str(folder / images))
            run_command("collect", *source, "--out", out, "--size", str(SIDE))

    return {
        "collect": collect,
        "fit": lambda: run_command("fit", preds, "--out", calibrator),
        "report": lambda: run_command(*report),
    }


def run_command(*arguments: str) -> None:
    """Runs a command of `rightly` in this process; its output goes to standard error."""
    with redirect_stdout(sys.stderr):
        status = rightly.cli.main(list(arguments))
    if status:
        raise RuntimeError(f"rightly {' '.join(arguments)} ended with status {status}")


def trace_files(work: Callable[[], object]) -> set[str]:
    """The files of the package, relative to it, in which work calls a function."""
    codes: set[Any] = set()

    def record(frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            codes.add(frame.f_code)

    with profile_threads(record):
        work()
    paths = {Path(code.co_filename) for code in codes if code.co_qualname not in OMITTED}
    return {path.relative_to(ROOT).as_posix() for path in paths if path.is_relative_to(ROOT)}


@contextmanager
def profile_threads(record: Callable[[FrameType, str, object], None]) -> Iterator[None]:
    """Profiles this thread and those that it starts."""
    threading.setprofile(record)
    sys.setprofile(record)
    try:
        yield
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def format_files(files: dict[str, set[str]], target: int | None) -> list[str]:
    """The files of each step in the order of their names, and how many there are together."""
    lines = []
    for step, names in files.items():
        lines += [f"{step}: {len(names)} files", *(f"  {name}" for name in sorted(names))]
    total = len(set().union(*files.values()))
    modules = len(list(ROOT.rglob("*.py")))
    compared = ""  # the command line adds its own files, and those of data sets on disk
    if target is not None:
        compared = f" (target {target}{'' if total <= target else ', MISSED'})"
    return [*lines, f"together {total} of {modules} files{compared}"]


if __name__ == "__main__":
    main()
