"""The parts of a calibrated classifier as modules that can be traced into a graph.

    images -> ViewStage -> each image and its views, normalised, as one batch of (m + 1) n rows
           -> ClassifierStage -> logits -> CalibrationStage -> Outputs

With a budget the views of most images are spared: DeferralStage selects the rows that need them,
a second ViewStage makes their views, and CalibrationStage gets view logits for those rows only.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import final

import torch
from torch import Tensor, nn

from rightly.calibrators import Calibrator, Cascade
from rightly.calibrators.shift_adaptation import finalise_outputs
from rightly.classifiers import Preprocessing
from rightly.classifiers.backends import extract_logits, record_last_linear
from rightly.deployment.outputs import Outputs
from rightly.predictions import Predictions
from rightly.predictions.masking import bound_masked
from rightly.transforms.image_tensors import Images

Transform = Callable[[Images], Images]


@final
class ViewStage(nn.Module):
    """Images in [0, 1], and their views, normalised as the classifier takes them."""

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
        images = images if rows is None else images[rows]
        batches = [images] if self.with_original else []
        batches += [view(images) for view in self.views]
        stacked = torch.cat(batches) if len(batches) > 1 else batches[0]
        normalised = self.preprocessing.normalise(stacked).to(self.dtype)
        return normalised.permute(0, 2, 3, 1) if self.channels_last else normalised


@final
class ClassifierStage(nn.Module):
    """A classifier's logits, and where they are wanted its features, for normalised images."""

    def __init__(self, module: nn.Module, output: str | int | None, features: bool) -> None:
        super().__init__()
        self.module, self.output, self.features = module, output, features

    def forward(self, batch: Tensor) -> tuple[Tensor, ...]:
        first = next((p for p in self.module.parameters() if p.is_floating_point()), None)
        batch = batch if first is None else batch.to(first.dtype)
        if not torch.compiler.is_exporting():
            # As the weights are.
            batch = batch.contiguous(memory_format=torch.channels_last)
        if not self.features:
            return (extract_logits(self.module(batch), self.output).float(),)
        with record_last_linear(self.module) as recorded:
            logits = extract_logits(self.module(batch), self.output).float()
        if not recorded or recorded[1] != logits.shape[1]:
            raise ValueError(
                "features must be the input of the nn.Linear that gives the logits, but no such "
                "layer ran: use a method that needs no features"
            )
        return logits, recorded[0].float().flatten(1)


@final
class DeferralStage(nn.Module):
    """The rows inside a cascade's deferral band, whose views it needs."""

    def __init__(self, cascade: Cascade) -> None:
        super().__init__()
        self.cascade = cascade

    def forward(self, logits: Tensor) -> Tensor:
        deferred = self.cascade.needs_views(Predictions.unchecked(bound_masked(logits)))
        return deferred.nonzero().squeeze(-1)


@final
class CalibrationStage(nn.Module):
    """From logits of images and views to outputs, adapted if the calibrator is.

    `stacked` logits have the images' rows first, then those of view by view. `outputs_shift_score`
    adds the shift score of each image and its confidence before adapting.
    """

    threshold: Tensor | None

    def __init__(
        self, fitted: Calibrator, view_names: Sequence[str], outputs_shift_score: bool = False
    ) -> None:
        super().__init__()
        self.calibrator, self.view_names = fitted, tuple(view_names)
        self.outputs_shift_score = outputs_shift_score
        self.is_adapted = fitted.is_adapted  # asked now, for graphs cannot ask
        self.sets = fitted.sets
        # As a tensor, so that a threshold is compared as exactly in a graph as here.
        threshold = fitted.threshold
        self.register_buffer(
            "threshold", None if threshold is None else torch.tensor(threshold, dtype=torch.float64)
        )

    def forward(
        self, stacked: Tensor, features: Tensor | None = None, shift_estimate: Tensor | None = None
    ) -> Outputs:
        """Outputs where every image has all of its views."""
        if not self.view_names:
            return self._calibrate(stacked, None, features, shift_estimate)
        count = len(self.view_names) + 1
        batches = stacked.reshape(count, -1, stacked.shape[-1])
        if features is not None:
            features = features.reshape(count, -1, features.shape[-1])[0]
        return self._calibrate(batches[0], batches[1:].transpose(0, 1), features, shift_estimate)

    def calibrate_deferred(
        self,
        logits: Tensor,
        rows: Tensor,
        view_logits: Tensor,
        features: Tensor | None = None,
        shift_estimate: Tensor | None = None,
    ) -> Outputs:
        """Outputs where only some rows have views, whose logits come view by view."""
        m = len(self.view_names)
        deferred = view_logits.reshape(m, rows.shape[0], logits.shape[1]).transpose(0, 1)
        # Rows without views get their own logits in place of them, which nobody looks at.
        views = logits[:, None].expand(-1, m, -1).index_copy(0, rows, deferred)
        has_views = torch.zeros_like(logits[:, 0]).index_fill(0, rows, 1.0) > 0
        outputs = self._calibrate(logits, views, features, shift_estimate)
        assert outputs.view_classes is not None and outputs.view_confidence is not None
        nothing = torch.full_like(outputs.view_confidence, torch.nan)
        return replace(
            outputs,
            view_classes=torch.where(has_views[:, None], outputs.view_classes, -1),
            view_confidence=torch.where(has_views[:, None], outputs.view_confidence, nothing),
        )

    def _calibrate(
        self,
        logits: Tensor,
        views: Tensor | None,
        features: Tensor | None,
        shift_estimate: Tensor | None,
    ) -> Outputs:
        logits, views = bound_masked(logits), None if views is None else bound_masked(views)
        predictions = Predictions.unchecked(
            logits, view_logits=views, features=features, view_names=self.view_names
        )
        own, estimate = self.calibrator.shift, None
        adaptation = self.calibrator.correction or (own if self.is_adapted else None)
        if shift_estimate is not None:
            assert own is not None
            low, high = own.limits.clamp_max(0)[0], own.limits.clamp_min(0)[1]
            adaptation, estimate = own, shift_estimate.double().clamp(low, high)
        outputs = self.calibrator.compute_together(predictions)
        final = finalise_outputs(outputs, predictions, adaptation, estimate)
        score = unadapted = None
        if self.outputs_shift_score:
            assert own is not None
            unadapted = final.unadapted_confidence
            score = own.shift_scores(unadapted, final.classes)
        best = None if views is None else views.softmax(-1).max(-1)
        in_set = None if self.sets is None else self.sets.contains(final.probabilities, logits)
        return Outputs(
            classes=final.classes,
            confidence=final.confidence.float(),
            raw_confidence=predictions.confidence.float(),
            probabilities=final.probabilities.float(),
            temperature=None if final.temperature is None else final.temperature.float(),
            # Before rounding to float32, which could lift a confidence over the threshold.
            accept=None if self.threshold is None else final.confidence >= self.threshold,
            view_classes=None if best is None else best.indices,
            view_confidence=None if best is None else best.values.float(),
            shift_score=None if score is None else score.float(),
            unadapted_confidence=None if unadapted is None else unadapted.float(),
            in_set=in_set,
        )


@final
class StackedCalibration(nn.Module):
    """CalibrationStage as a tracer takes it: a tuple of the outputs that there are."""

    def __init__(self, stage: CalibrationStage) -> None:
        super().__init__()
        self.stage = stage

    def forward(
        self, stacked: Tensor, features: Tensor | None = None, shift_estimate: Tensor | None = None
    ) -> tuple[Tensor, ...]:
        return tuple(self.stage(stacked, features, shift_estimate).to_dict().values())


@final
class DeferredCalibration(nn.Module):
    """The same for logits of images, and of the views of some of them."""

    def __init__(self, stage: CalibrationStage) -> None:
        super().__init__()
        self.stage = stage

    def forward(
        self,
        logits: Tensor,
        rows: Tensor,
        view_logits: Tensor,
        features: Tensor | None = None,
        shift_estimate: Tensor | None = None,
    ) -> tuple[Tensor, ...]:
        outputs = self.stage.calibrate_deferred(logits, rows, view_logits, features, shift_estimate)
        return tuple(outputs.to_dict().values())
