"""Sums over the samples of each class, in an order that repeats on every device."""

from dataclasses import dataclass

import torch
from torch import Tensor

from rightly.tensor_shapes import Labels


@dataclass(frozen=True)
class ClassSums:
    """Adds up rows by their class: values (n, ...) become sums (classes, ...)."""

    classes: Labels
    count: int
    order: Labels | None = None  # of rows by class, on a GPU, where index_add adds in any order
    sizes: Labels | None = None

    @staticmethod
    def of(classes: Labels, count: int) -> "ClassSums":
        if not classes.is_cuda:
            return ClassSums(classes, count)
        sizes = classes.bincount(minlength=count)
        return ClassSums(classes, count, classes.argsort(stable=True), sizes)

    def __call__(self, values: Tensor) -> Tensor:
        if self.order is None:
            sums = values.new_zeros(self.count, *values.shape[1:])
            return sums.index_add(0, self.classes, values)
        return torch.segment_reduce(values[self.order], "sum", lengths=self.sizes, unsafe=True)
