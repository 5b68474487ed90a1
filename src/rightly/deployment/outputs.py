"""The outputs of a calibrated classifier: one record for torch, graphs, files, server and CLI."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

# Any, because the values are tensors where torch computed them and arrays elsewhere; naming
# torch's type here would load torch.
PerImage = Float[Any, " n"]
PerImageInt = Int[Any, " n"]
PerImageBool = Bool[Any, " n"]
PerClass = Float[Any, "n c"]
PerClassBool = Bool[Any, "n c"]
PerView = Float[Any, "n m"]
PerViewInt = Int[Any, "n m"]


@dataclass(frozen=True)
class Outputs:
    """One entry an image. Names and order of the fields are those of an exported file's outputs."""

    classes: PerImageInt  # what the calibrator predicts
    confidence: PerImage  # probability that the class is right
    raw_confidence: PerImage  # the classifier's own
    probabilities: PerClass
    # What the method divides logits by, before any adaptation; None where it does not.
    temperature: PerImage | None = None
    accept: PerImageBool | None = None  # None without a threshold
    # Of each view; class -1 and confidence nan where a budget spared the view.
    view_classes: PerViewInt | None = None
    view_confidence: PerView | None = None
    # The mean over a batch is its shift estimate, before shrinkage; the confidence before adapting.
    shift_score: PerImage | None = None
    unadapted_confidence: PerImage | None = None
    in_set: PerClassBool | None = None  # None where no scores were held out

    def __len__(self) -> int:
        return len(self.classes)

    def to_dict(self) -> dict[str, Any]:
        """The values that there are, by name, in the order of the fields."""
        values = {name: getattr(self, name) for name in OUTPUT_NAMES}
        return {name: value for name, value in values.items() if value is not None}

    def to_numpy(self) -> "Outputs":
        """The same as arrays."""
        return Outputs(**{name: _to_array(value) for name, value in self.to_dict().items()})

    def rows(self) -> "Iterator[Outputs]":
        """Each image by itself, as outputs of one row."""
        for i in range(len(self)):
            yield Outputs(**{name: value[i : i + 1] for name, value in self.to_dict().items()})


OUTPUT_NAMES = tuple(field.name for field in fields(Outputs))
LOGGED = (
    "confidence",
    "raw_confidence",
    "temperature",
    "accept",
    "shift_score",
    "unadapted_confidence",
)
REQUIRED = tuple(field.name for field in fields(Outputs) if field.default is MISSING)


def check_output_names(names: Sequence[str], source: object) -> None:
    """Refuses a file that lacks outputs which every model has; further ones do not matter."""
    missing = [name for name in REQUIRED if name not in names]
    if missing:
        raise ValueError(
            f"{source} must have the outputs {list(REQUIRED)}, but lacks {missing}: export it again"
        )


def read_outputs(values: Mapping[str, np.ndarray], source: object = "the model") -> Outputs:
    """Outputs by their names; names that this version does not know are ignored."""
    check_output_names(list(values), source)
    return Outputs(**{name: _to_standard(values[name]) for name in OUTPUT_NAMES if name in values})


def view_agreement(outputs: Outputs) -> list[float | None]:
    """Share of each image's views that see its class; None where no view was run."""
    if outputs.view_classes is None:
        return [None] * len(outputs)
    views, classes = _to_array(outputs.view_classes), _to_array(outputs.classes)
    run, same = (views >= 0).sum(1), (views == classes[:, None]).sum(1)
    return [float(a / b) if b else None for a, b in zip(same, run, strict=True)]


def describe_row(outputs: Outputs) -> dict[str, Any]:
    """Outputs of one row as plain values, as logs hold them; None for what there is not.

    The names are those of the columns that `predict` writes, with `class` for the class.
    """
    values = {name: getattr(outputs, name) for name in LOGGED}
    return {
        "class": int(outputs.classes[0]),
        **{name: None if value is None else value[0].item() for name, value in values.items()},
        "agreement": view_agreement(outputs)[0],
        "prediction_set": list_set(outputs),
    }


def list_set(outputs: Outputs) -> list[int] | None:
    """The classes in the set of outputs of one row, the likeliest first; None without sets."""
    if outputs.in_set is None:
        return None
    classes = np.flatnonzero(_to_array(outputs.in_set)[0])
    likely = _to_array(outputs.probabilities)[0, classes]
    numbers: list[int] = classes[np.argsort(-likely, kind="stable")].tolist()
    return numbers


def concatenate(parts: Sequence[Outputs]) -> Outputs:
    """The outputs of several batches as one, as arrays."""
    arrays = [part.to_numpy().to_dict() for part in parts]
    return Outputs(**{name: np.concatenate([part[name] for part in arrays]) for name in arrays[0]})


def _to_standard(value: np.ndarray) -> np.ndarray:
    # onnxruntime's integers are of C's type long long, which NumPy keeps apart from int64.
    return value.astype(np.int64) if value.dtype.kind == "i" else value


def _to_array(value: Any) -> np.ndarray:
    return value if isinstance(value, np.ndarray) else value.detach().cpu().numpy()
