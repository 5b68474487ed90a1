"""Measured fits, each kept in a file of its own when it is made, so that a stopped run goes on.

A file holds what the fit was made from, its results, and confidence and correctness on every test
set. Nothing but finished files is there: they are written beside their place and moved.
"""

import math
import shutil
import tempfile
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from rightly.checks import Schema, are_names, check_table, is_table, is_text
from rightly.evaluation.results import Result
from rightly.files import encode_json, parse_json, write_atomically
from rightly.metrics import Outcomes

VERSION = 1
KEY = "rightly.fit"
CONTENT: Schema = {
    "version": (str(VERSION), lambda value: value == VERSION),
    "settings": ("a table", is_table),
    "note": ("text", is_text),
    "accuracies": ("a table", is_table),
    "datasets": ("a list of names", are_names),
}


class FitKey(NamedTuple):
    """Which fit: of which method, for which classifier, with which seed."""

    classifier: str
    method: str
    seed: int

    def __str__(self) -> str:
        return f"{self.method} for {self.classifier}, seed {self.seed}"


@dataclass(frozen=True, eq=False)
class Fit:
    """What was measured of one fitted method on the test sets of its classifier."""

    results: Sequence[Result]
    note: str = ""  # the calibrator's own
    # Before and after by test set, where the method may predict other classes.
    accuracies: Mapping[str, tuple[float, float]] = field(default_factory=dict)


class FitStore:
    """Fits by key in the files of a folder; without one, in a folder that ends with the store."""

    def __init__(self, folder: Path | None = None) -> None:
        if folder is None:
            folder = Path(tempfile.mkdtemp(prefix="rightly-"))
            weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self.folder = folder

    def place(self, key: FitKey) -> Path:
        return self.folder / key.classifier / f"{quote(key.method, safe='')}-{key.seed}.safetensors"

    def read_settings(self, key: FitKey) -> dict[str, Any] | None:
        """What a fit was made from; None where it is not kept."""
        return self._read(key)["settings"] if self.place(key).exists() else None

    def read(self, key: FitKey) -> Fit:
        content = self._read(key)
        try:
            return Fit(
                [Result(*row[:3], *map(_restore, row[3:])) for row in content["results"]],
                content["note"],
                {name: (before, after) for name, (before, after) in content["accuracies"].items()},
            )
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise self._damaged(key, error) from error

    def read_outcomes(self, key: FitKey, dataset: str) -> Outcomes:
        """Confidence and correctness on one test set."""
        try:
            with safe_open(self.place(key), "np") as file:
                names = parse_json(file.metadata()[KEY])["datasets"]
                at = names.index(dataset)
                confidence = file.get_tensor(f"confidence.{at}").astype(np.float64)
                return Outcomes(confidence, file.get_tensor(f"correct.{at}").astype(bool))
        except (SafetensorError, KeyError, TypeError, ValueError) as error:
            raise self._damaged(key, error) from error

    def keep(
        self, key: FitKey, settings: Mapping[str, Any], fit: Fit, outcomes: Mapping[str, Outcomes]
    ) -> None:
        content = {
            "version": VERSION,
            "settings": settings,
            "results": [list(row) for row in fit.results],
            "note": fit.note,
            "accuracies": fit.accuracies,
            "datasets": list(outcomes),
        }
        arrays: dict[str, np.ndarray] = {}
        for i, one in enumerate(outcomes.values()):
            arrays[f"confidence.{i}"] = one.confidence.astype(np.float32)
            arrays[f"correct.{i}"] = one.correct.astype(np.uint8)
        path = self.place(key)
        path.parent.mkdir(parents=True, exist_ok=True)
        metadata = {KEY: encode_json(content)}
        write_atomically(path, lambda part: save_file(arrays, part, metadata))

    def _read(self, key: FitKey) -> dict[str, Any]:
        try:
            with safe_open(self.place(key), "np") as file:
                content = parse_json(file.metadata()[KEY])
            check_table(content, CONTENT, required=CONTENT)
        except (SafetensorError, KeyError, TypeError, ValueError) as error:
            raise self._damaged(key, error) from error
        return content

    def _damaged(self, key: FitKey, error: Exception) -> ValueError:
        return ValueError(
            f"{self.place(key)} cannot be read as a fit that a benchmark kept ({error}): remove "
            "it, and it is measured again"
        )


def _restore(value: Any) -> Any:
    """What JSON has null for is not available."""
    return math.nan if value is None else value
