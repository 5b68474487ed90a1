"""The parts of a calibrated classifier as modules that can be traced into a graph.

    images -> Front -> the image and its views, normalised, as one batch of (m + 1) n rows
           -> the classifier -> logits -> Head -> what is said about each image

With a budget the views of most images are spared: First says which rows have to be looked at
again, Front shows their views, and Head gets logits for those rows only.
"""

from collections.abc import Sequence
from typing import NamedTuple, final

import torch
from torch import Tensor, nn

from rightly.calibrators import Cascade, FittedCalibrator
from rightly.classifiers import Preprocessing
from rightly.classifiers.backends import record_last_linear
from rightly.classifiers.classifier import extract_logits
from rightly.predictions import Predictions
from rightly.transforms.image_tensors import Images
from rightly.transforms.views import Transform


class Said(NamedTuple):
    """What Head gives; None for what there is not."""

    probabilities: Tensor
    confidence: Tensor
    temperature: Tensor
    accept: Tensor | None
    raw_confidence: Tensor
    view_classes: Tensor | None
    view_confidence: Tensor | None


@final
class Front(nn.Module):
    """Images in [0, 1], and their views, as the classifier wants to see them."""

    def __init__(
        self,
        views: Sequence[Transform],
        preprocessing: Preprocessing,
        *,
        with_original: bool = True,
        channels_last: bool = False,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__()
        self.views, self.preprocessing = tuple(views), preprocessing
        self.with_original = with_original
        self.channels_last, self.dtype = channels_last, dtype

    def forward(self, images: Images, rows: Tensor | None = None) -> Tensor:
        shown = images if rows is None else images[rows]
        looks = [shown] if self.with_original else []
        looks += [view(shown) for view in self.views]
        stacked = torch.cat(looks) if len(looks) > 1 else looks[0]
        given = self.preprocessing.normalise(stacked).to(self.dtype)
        return given.permute(0, 2, 3, 1) if self.channels_last else given


@final
class Look(nn.Module):
    """A classifier's logits, and where they are wanted its features, for normalised images."""

    def __init__(self, module: nn.Module, output: str | int | None, features: bool) -> None:
        super().__init__()
        self.module, self.output, self.features = module, output, features

    def forward(self, given: Tensor) -> tuple[Tensor, ...]:
        first = next((p for p in self.module.parameters() if p.is_floating_point()), None)
        given = given if first is None else given.to(first.dtype)
        if not torch.compiler.is_exporting():
            # As the weights are.
            given = given.contiguous(memory_format=torch.channels_last)
        if not self.features:
            return (extract_logits(self.module(given), self.output).float(),)
        with record_last_linear(self.module) as seen:
            logits = extract_logits(self.module(given), self.output).float()
        if not seen or seen[1] != logits.shape[1]:
            raise ValueError(
                "features must be the input of the nn.Linear that gives the logits, but no such "
                "layer ran: use a method that needs no features"
            )
        return logits, seen[0].float().flatten(1)


@final
class First(nn.Module):
    """The rows whose views a cascade has to look at."""

    def __init__(self, calibrator: Cascade) -> None:
        super().__init__()
        self.calibrator = calibrator

    def forward(self, logits: Tensor) -> Tensor:
        asked = self.calibrator.needs_views(Predictions.unchecked(logits))
        return asked.nonzero().squeeze(-1)


@final
class Head(nn.Module):
    """From logits of images and views to what is said about each image.

    `stacked` logits have the image's rows first, then view by view. With `rows`, only those rows
    have views.
    """

    threshold: Tensor | None

    def __init__(self, fitted: FittedCalibrator, view_names: Sequence[str]) -> None:
        super().__init__()
        self.calibrator, self.view_names = fitted.calibrator, tuple(view_names)
        # As a tensor, so that a threshold is compared as exactly in a graph as here.
        threshold = fitted.threshold
        self.register_buffer(
            "threshold", None if threshold is None else torch.tensor(threshold, dtype=torch.float64)
        )

    def of_stack(self, stacked: Tensor, features: Tensor | None = None) -> Said:
        """Of logits, and features, whose rows are the images', then view by view."""
        looks = stacked.reshape(len(self.view_names) + 1, -1, stacked.shape[-1])
        if features is not None:
            features = features.reshape(len(self.view_names) + 1, -1, features.shape[-1])[0]
        views = looks[1:].transpose(0, 1) if self.view_names else None
        return self(looks[0], views, features)

    def of_some(
        self, logits: Tensor, rows: Tensor, stacked: Tensor, features: Tensor | None = None
    ) -> Said:
        """Of logits, and those of the views of the given rows, view by view."""
        m = len(self.view_names)
        looks = stacked.reshape(m, rows.shape[0], logits.shape[1]).transpose(0, 1)
        # Rows without views get their own logits in place of them, which nobody looks at.
        views = logits[:, None].expand(-1, m, -1).index_copy(0, rows, looks)
        shown = torch.zeros_like(logits[:, 0]).index_fill(0, rows, 1.0) > 0
        said = self(logits, views, features)
        assert said.view_classes is not None and said.view_confidence is not None
        nothing = torch.full_like(said.view_confidence, torch.nan)
        return said._replace(
            view_classes=torch.where(shown[:, None], said.view_classes, -1),
            view_confidence=torch.where(shown[:, None], said.view_confidence, nothing),
        )

    def forward(self, logits: Tensor, views: Tensor | None, features: Tensor | None) -> Said:
        predictions = Predictions.unchecked(
            logits, view_logits=views, features=features, view_names=self.view_names
        )
        _, confidence, temperature, probabilities = self.calibrator.compute(predictions)
        accept = None if self.threshold is None else confidence >= self.threshold
        seen = None if views is None else views.softmax(-1).max(-1)
        return Said(
            probabilities.float(),
            confidence.float(),
            temperature.float(),
            accept,
            predictions.confidence.float(),
            None if seen is None else seen.indices,
            None if seen is None else seen.values.float(),
        )
