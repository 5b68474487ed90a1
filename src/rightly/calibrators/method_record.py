"""What is known about a calibrator before it is built."""

from collections.abc import Callable
from dataclasses import dataclass
from inspect import signature
from typing import Literal

from rightly.calibrators.base import Calibrator

Group = Literal[
    "baseline", "scaling", "binning", "literature", "paper", "ablation", "released", "own"
]


@dataclass(frozen=True)
class Method:
    """How to build a calibrator, where it comes from, and what to know before choosing it."""

    name: str
    build: Callable[..., Calibrator]
    group: Group
    paper: str = ""
    needs: tuple[str, ...] = ()  # fields of Predictions without which it cannot work
    uses: tuple[str, ...] = ()  # fields it reads where there are any
    is_random: bool = False  # takes a seed
    is_pointwise: bool = True  # each sample's confidence is its own, whatever the batch
    keeps_class: bool = True  # the predicted class is the classifier's own
    aliases: tuple[str, ...] = ()
    note: str = ""

    def takes(self, argument: str) -> bool:
        """Whether it can be built with that argument."""
        return argument in signature(self.build).parameters
