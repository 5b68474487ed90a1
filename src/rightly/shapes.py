"""The shapes of NumPy arrays this library speaks: n samples, c classes."""

from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool, Float, Int

Confidence = Float[np.ndarray, " n"]
Correct = Bool[np.ndarray, " n"]
Probabilities = Float[np.ndarray, "n c"]
TrueClasses = Int[np.ndarray, " n"]

# What a user may hand in: NumPy, torch on any device, or nested lists.
if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from torch import Tensor

    AnyArray = Tensor | ArrayLike
else:
    AnyArray = Any  # naming torch's type at run time would load torch
