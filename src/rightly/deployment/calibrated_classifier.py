"""A classifier that says how likely it is to be right: images in, outputs out."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, final

import torch
from torch import Tensor, nn

from rightly.calibrators import Calibrator, Cascade, check_calibrator, load_calibrator
from rightly.calibrators.shift_adaptation import ShiftAdaptation
from rightly.classifiers import Classifier, Preprocessing
from rightly.classifiers.backends import ModuleBackend
from rightly.deployment import hub
from rightly.deployment.conformance import check_shift_estimate
from rightly.deployment.inputs import Views, make_batch, open_classifier, resolve_views
from rightly.deployment.metadata import CALIBRATOR_FILE
from rightly.deployment.outputs import Outputs
from rightly.deployment.provenance import (
    check_classes,
    check_classifier,
    describe_adaptation,
    describe_model,
)
from rightly.deployment.stages import CalibrationStage, ClassifierStage, DeferralStage, ViewStage
from rightly.transforms.image_tensors import Images

Model = TypeVar("Model", bound="CalibratedClassifier")
AnyClassifier = str | nn.Module | Classifier | Callable[..., Any]


class CalibratedLogits(NamedTuple):
    """Logits whose softmax is the probabilities, and the probability that the class is right."""

    logits: Tensor
    confidence: Tensor


@final
class CalibratedClassifier(nn.Module):
    """A classifier, the views it is asked about and a calibrator, as one module.

    The classifier may be a module, a spec such as "timm:resnet50" or a function from images to
    logits; a module stays in evaluation mode, with its weights channels last. Images are in
    [0, 1], before normalisation, at the size that the classifier takes. Views are those the
    calibrator was fitted with; ones that are not Rightly's own come as a mapping from name to
    function. Where the calibrator can be adapted, outputs hold a shift score, unless `adaptable`
    is False.
    """

    def __init__(
        self,
        classifier: AnyClassifier,
        calibrator: Calibrator,
        views: Views | None = None,
        *,
        preprocessing: Preprocessing | None = None,
        class_names: Sequence[str] | None = None,
        output: str | int | None = None,
        device: str | torch.device = "auto",
        adaptable: bool = True,
    ) -> None:
        super().__init__()
        fitted = check_calibrator(calibrator)
        if not fitted.is_pointwise:
            raise ValueError(
                f"{fitted.title} depends on the whole batch, so it cannot answer for "
                "single images: choose a method that takes each sample alone"
            )
        self.view_names, self.views = resolve_views(fitted, views)
        self.classifier = open_classifier(classifier, fitted, preprocessing, output, device)
        check_classifier(fitted, self.classifier)
        check_classes(fitted, None, class_names)
        names = class_names or fitted.class_names or self.classifier.class_names
        self.class_names = None if names is None else tuple(names)
        self.calibrator = fitted
        backend = self.classifier.backend
        features = "features" in fitted.needs
        self.network: ClassifierStage | None = None
        if isinstance(backend, ModuleBackend) and backend.has_modes:
            self.network = ClassifierStage(backend.module, self.classifier.output, features)
            # Channels last, as images come: convolutions are faster so, on CPUs as on GPUs.
            self.network.to(backend.device, memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.calibrator.to(self.classifier.device)
        has_score = adaptable and self.calibrator.shift is not None
        stage = CalibrationStage(fitted, self.view_names, has_score)
        self.calibration = stage.to(self.classifier.device)
        super().train(False)

    @property
    def preprocessing(self) -> Preprocessing:
        return self.classifier.preprocessing

    @property
    def threshold(self) -> float | None:
        return self.calibrator.threshold

    @property
    def shift_adaptation(self) -> ShiftAdaptation | None:
        """How the calibrator adapts; None if this model does not."""
        return self.calibrator.shift if self.calibration.outputs_shift_score else None

    @property
    def metadata(self) -> dict[str, Any]:
        """What the files of this model say about it."""
        described = describe_model(self.calibrator, self.classifier, self.class_names)
        if self.shift_adaptation is not None:
            described["shift_adaptation"] = describe_adaptation(self.shift_adaptation)
            described["drift"] = self.shift_adaptation.describe_drift()
        return described

    @property
    def device(self) -> torch.device:
        if self.network is None:
            return self.classifier.device
        first = next(self.network.parameters(), None)
        return self.classifier.device if first is None else first.device

    def train(self: Model, mode: bool = True) -> Model:
        """Nothing changes: what was calibrated is the classifier in evaluation mode."""
        return self

    def forward(self, images: Images, shift_estimate: Tensor | None = None) -> CalibratedLogits:
        outputs = self.compute_outputs(images, shift_estimate)[1]
        smallest = torch.finfo(outputs.probabilities.dtype).tiny
        return CalibratedLogits(outputs.probabilities.clamp_min(smallest).log(), outputs.confidence)

    @torch.no_grad()
    def predict(self, images: Any, shift_estimate: float | None = None) -> Outputs:
        """Outputs for images: float tensor in [0, 1] or bytes (n, 3, h, w), or a list.

        A list, such as of Pillow's images, is resized and cut as the classifier wants it.
        Confidence is adapted to `shift_estimate`, by default to the calibrator's own.
        """
        batch = make_batch(images, self.preprocessing).to(self.device)
        if shift_estimate is None:
            return self.compute_outputs(batch)[1]
        check_shift_estimate(shift_estimate, self.shift_adaptation is not None)
        at = torch.tensor(shift_estimate, dtype=torch.float64, device=self.device)
        return self.compute_outputs(batch, at)[1]

    def compute_outputs(
        self, images: Images, shift_estimate: Tensor | None = None
    ) -> tuple[Tensor, Outputs]:
        """The classifier's own logits, and the outputs, of a checked batch."""
        views = list(self.views)
        if not isinstance(self.calibrator, Cascade) or torch.compiler.is_exporting():
            stacked, *features = self._classify(ViewStage(views, self.preprocessing), images)
            outputs = self.calibration(stacked, next(iter(features), None), shift_estimate)
            return stacked[: images.shape[0]], outputs
        logits, *features = self._classify(ViewStage([], self.preprocessing), images)
        rows = DeferralStage(self.calibrator)(logits)
        view_logits = logits[:0]
        if len(rows):
            stage = ViewStage(views, self.preprocessing, with_original=False)
            view_logits = self._classify(stage, images, rows)[0]
        outputs = self.calibration.calibrate_deferred(
            logits, rows, view_logits, next(iter(features), None), shift_estimate
        )
        return logits, outputs

    def _classify(self, stage: ViewStage, images: Images, *rows: Tensor) -> tuple[Tensor, ...]:
        """Logits, and features where the calibrator needs them, of a stage's batch."""
        if self.network is not None:
            values = self.network(stage(images, *rows))
        else:
            # Its preprocessing is its own affair: this stage only makes the views.
            plain = ViewStage(stage.views, Preprocessing(), with_original=stage.with_original)
            wanted = "features" in self.calibrator.needs
            with self.classifier.prepare():
                both = self.classifier.forward(plain(images, *rows), wanted)
            values = tuple(part for part in both if part is not None)
        check_classes(self.calibrator, values[0].shape[1], None)
        return values

    def save_pretrained(self, folder: str | os.PathLike[str]) -> None:
        """Writes config.json, the calibrator and a model card; the classifier stays where it is."""
        hub.write_folder(Path(folder), self.calibrator, self.metadata)

    @classmethod
    def from_pretrained(
        cls,
        folder: str | os.PathLike[str],
        classifier: AnyClassifier,
        views: Views | None = None,
        **options: Any,
    ) -> "CalibratedClassifier":
        """What `save_pretrained` wrote, or a repository on the Hub, around its own classifier."""
        place = hub.locate_folder(folder)
        calibrator = load_calibrator(place / CALIBRATOR_FILE)
        hub.check_config(place, calibrator)
        return cls(classifier, calibrator, views, **options)

    def push_to_hub(self, repo_id: str, **options: Any) -> str:
        """Uploads what `save_pretrained` writes; needs the package huggingface_hub."""
        return hub.push_folder(repo_id, self.save_pretrained, **options)
