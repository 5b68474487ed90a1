"""The shapes of tensors this library speaks: n samples, c classes, m views, d features."""

from jaxtyping import Bool, Float, Int
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
