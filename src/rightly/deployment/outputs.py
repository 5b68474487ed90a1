"""What a calibrated classifier says about images."""

from dataclasses import dataclass, fields

import numpy as np
from jaxtyping import Bool, Float, Int
from torch import Tensor

PerImage = Float[Tensor, " n"] | Float[np.ndarray, " n"]
PerImageInt = Int[Tensor, " n"] | Int[np.ndarray, " n"]
PerImageBool = Bool[Tensor, " n"] | Bool[np.ndarray, " n"]
PerView = Float[Tensor, "n m"] | Float[np.ndarray, "n m"]
PerViewInt = Int[Tensor, "n m"] | Int[np.ndarray, "n m"]
PerClass = Float[Tensor, "n c"] | Float[np.ndarray, "n c"]


@dataclass(frozen=True)
class Verdicts:
    """One entry an image; tensors from torch, arrays from a file."""

    classes: PerImageInt
    confidence: PerImage  # how likely the class is to be right
    raw_confidence: PerImage  # what the classifier itself says
    temperature: PerImage
    probabilities: PerClass
    accept: PerImageBool | None = None  # None where no threshold was asked for
    # What each view said; class -1 and confidence nan where a budget spared the view.
    view_classes: PerViewInt | None = None
    view_confidence: PerView | None = None

    def __len__(self) -> int:
        return len(self.classes)

    def numpy(self) -> "Verdicts":
        """The same as arrays."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return Verdicts(
            **{
                name: value.detach().cpu().numpy() if isinstance(value, Tensor) else value
                for name, value in values.items()
            }
        )
