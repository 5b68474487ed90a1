"""The shapes this library speaks: n samples, c classes, m views, d features."""

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy.typing import ArrayLike
from torch import Tensor

Logits = Float[Tensor, "n c"]
ViewLogits = Float[Tensor, "n m c"]
Features = Float[Tensor, "n d"]
Reference = Float[Tensor, "r d"]  # features of r other samples
Labels = Int[Tensor, " n"]
PerSample = Float[Tensor, " n"]
PerSampleBool = Bool[Tensor, " n"]
PerClass = Float[Tensor, " c"]
Scalar = Float[Tensor, ""]

Confidence = Float[np.ndarray, " n"]
Correct = Bool[np.ndarray, " n"]
Probabilities = Float[np.ndarray, "n c"]
TrueClasses = Int[np.ndarray, " n"]

# What a user may hand in: NumPy, torch on any device, or nested lists.
AnyArray = Tensor | ArrayLike
