"""What is known about a calibrator before it is built."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from inspect import signature
from typing import Literal

from rightly.calibrators.base import Calibrator

Group = Literal[
    "baseline", "binary", "scaling", "binning", "literature", "paper", "ablation", "released", "own"
]

# Of fitting to the 5,000 packaged samples of 10 classes on one processor, up to a second or ten;
# and where it grows faster than the number of logits.
LOW, MEDIUM = "low", "medium"
LOW_BY_CLASSES, LOW_BY_SAMPLES, MEDIUM_BY_SAMPLES = "low, by c²", "low, by n²", "medium, by n²"


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
    fits_classes: int | None = None  # the number of classes it is for, if it is for one only
    aliases: tuple[str, ...] = ()
    note: str = ""
    cost: str = LOW

    @classmethod
    def from_class(cls, calibrator: type[Calibrator]) -> "Method":
        """The record of a class of one's own, named in snake case."""
        return cls(
            re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", calibrator.__name__).lower(),
            calibrator,
            "own",
            needs=calibrator.needs,
            uses=calibrator.uses,
            is_random="seed" in signature(calibrator).parameters,
            is_pointwise=calibrator.is_pointwise,
            keeps_class=calibrator.keeps_class,
            fits_classes=calibrator.fits_classes,
            note=(calibrator.__doc__ or "").partition("\n")[0],
        )

    @property
    def parameters(self) -> str:
        """What it can be built with, and what it is built with otherwise."""
        values = (one for one in signature(self.build).parameters.values() if one.name != "seed")
        return ", ".join(str(one.replace(annotation=one.empty)) for one in values)

    def takes(self, argument: str) -> bool:
        """Whether it can be built with that argument."""
        return argument in signature(self.build).parameters
