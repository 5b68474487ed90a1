"""Classifiers by folder: FOLDER/CLASSIFIER/SET, each set a file or a folder that `load` reads."""

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rightly.predictions.arrays import SUFFIXES
from rightly.predictions.parquet import SHARDS
from rightly.registry import unknown_name

FILES = (".npz", *SUFFIXES)
EXPECTED = "FOLDER/CLASSIFIER/SET.npz, or a folder that collect wrote in the place of a file"


@dataclass(frozen=True)
class ClassifierFolder:
    """Where the predictions of one classifier are: to fit on, and to measure on by name."""

    cal: Path
    tests: Mapping[str, Path]


@dataclass(frozen=True)
class ClassifierFolders:
    """The classifiers of a folder by name, and what in it holds no predictions."""

    classifiers: Mapping[str, ClassifierFolder]
    unread: Sequence[str]


def find_classifiers(
    folder: str | os.PathLike[str],
    cal: str = "cal",
    classifiers: Sequence[str] | None = None,
    tests: Sequence[str] | None = None,
) -> ClassifierFolders:
    """Every classifier with its data sets, or those named, in their order; `cal` is to fit on."""
    root = Path(folder)
    if not root.is_dir():
        raise FileNotFoundError(
            f"directory must hold a folder for each classifier, but there is no folder {root}: "
            f"arrange predictions as {EXPECTED}"
        )
    unread: list[str] = []
    sets: dict[str, dict[str, Path]] = {}
    for place in _list(root):
        found = _find_sets(place, unread) if place.is_dir() else {}
        if found:
            sets[place.name] = found
        else:
            unread.append(place.name)
    if not sets:
        raise ValueError(f"directory must hold predictions as {EXPECTED}, but {root} has none")
    _check_names("classifiers", classifiers, sets, f"folders with predictions in {root}")
    sets = {name: sets[name] for name in classifiers or sets}
    lacking = [name for name, found in sets.items() if cal not in found]
    if lacking:
        there = ", ".join(sets[lacking[0]])
        raise ValueError(
            f"cal must name the predictions to fit on, but there is no {cal!r} of "
            f"{', '.join(lacking)}, only {there}: add it, choose another cal, or leave the "
            "classifier out by naming others with classifiers="
        )
    measured = {name for found in sets.values() for name in found if name != cal}
    _check_names("tests", tests, measured, "test sets of a classifier")
    chosen = {}
    for name in sets:
        titles = [title for title in tests or sets[name] if title in sets[name] and title != cal]
        chosen[name] = ClassifierFolder(
            sets[name][cal], {title: sets[name][title] for title in titles}
        )
    bare = [name for name, one in chosen.items() if not one.tests]
    if bare:
        raise ValueError(
            f"directory must hold a test set of every classifier, but there is none of "
            f"{', '.join(bare)} beside {cal!r}: add one, or leave the classifier out by naming "
            "others with classifiers="
        )
    return ClassifierFolders(chosen, unread)


def _list(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if not path.name.startswith("."))


def _find_sets(folder: Path, unread: list[str]) -> dict[str, Path]:
    """The data sets of a classifier by name; what else there is goes to `unread`."""
    sets: dict[str, Path] = {}
    others = []
    for path in _list(folder):
        is_set = any(path.glob(SHARDS)) if path.is_dir() else path.suffix in FILES
        name = path.name if path.is_dir() else path.stem
        if not is_set:
            others.append(f"{folder.name}/{path.name}")
        elif name in sets:
            raise ValueError(
                f"directory must hold one data set of each name, but {folder} has "
                f"{sets[name].name} and {path.name}: rename or remove one"
            )
        else:
            sets[name] = path
    unread += others if sets else []
    return sets


def _check_names(
    argument: str, asked: Sequence[str] | None, there: Collection[str], what: str
) -> None:
    if asked is not None and not asked:
        raise ValueError(f"{argument} must name at least one of the {what}, got none")
    for name in asked or ():
        if name not in there:
            raise unknown_name(argument, name, sorted(there))
