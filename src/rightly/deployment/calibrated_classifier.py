"""A classifier that says how likely it is to be right: images in, verdicts out."""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, final

import numpy as np
import torch
from torch import Tensor, nn

from rightly.calibrators import (
    AnyCalibrator,
    Cascade,
    FittedCalibrator,
    as_fitted,
    load_calibrator,
)
from rightly.classifiers import Classifier, Preprocessing, open_model
from rightly.classifiers.backends import ModuleBackend
from rightly.datasets.decoding import to_image
from rightly.deployment import hub
from rightly.deployment.metadata import (
    expected_preprocessing,
    identity_of,
    must_have_classes,
    must_match,
)
from rightly.deployment.outputs import Verdicts
from rightly.deployment.stages import First, Front, Head, Look, Said
from rightly.transforms.image_tensors import Images, check_images
from rightly.transforms.views import VIEWS, Transform

Views = Sequence[str] | Mapping[str, Transform]
Model = TypeVar("Model", bound="CalibratedClassifier")


class Calibrated(NamedTuple):
    """Logits divided by their temperature, and the probability that the top class is right."""

    logits: Tensor
    confidence: Tensor
    temperature: Tensor


@final
class CalibratedClassifier(nn.Module):
    """A classifier, the views it is asked about and a calibrator, as one module.

    The classifier may be a module, a spec such as "timm:resnet50" or a function from images to
    logits; a module stays in evaluation mode, with its weights channels last. Images are in
    [0, 1], before normalisation, at the size that the classifier takes. Views are those the
    calibrator was fitted with; ones that are not Rightly's own come as a mapping from name to
    function.
    """

    def __init__(
        self,
        classifier: str | nn.Module | Classifier | Callable[..., Any],
        calibrator: AnyCalibrator,
        views: Views | None = None,
        *,
        preprocessing: Preprocessing | None = None,
        class_names: Sequence[str] | None = None,
        output: str | int | None = None,
        device: str | torch.device = "auto",
    ) -> None:
        super().__init__()
        calibrator = as_fitted(calibrator)
        if not calibrator.is_pointwise:
            raise ValueError(
                f"{calibrator.title} looks at a whole batch of samples, so it cannot answer for "
                "single images: choose a method that takes each sample alone"
            )
        self.view_names, self.views = chosen_views(calibrator, views)
        self.opened = _opened(classifier, calibrator, preprocessing, output, device)
        must_match(calibrator, self.opened)
        must_have_classes(calibrator, None, class_names)
        names = class_names or calibrator.class_names or self.opened.class_names
        self.class_names = None if names is None else tuple(names)
        self.fitted = calibrator
        self.calibrator = calibrator.calibrator
        backend = self.opened.backend
        features = "features" in calibrator.needs
        self.network: Look | None = None
        if isinstance(backend, ModuleBackend) and backend.has_modes:
            self.network = Look(backend.module, self.opened.output, features)
            # Channels last, as pictures come: convolutions are faster so, on CPUs as on GPUs.
            self.network.to(backend.device, memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.calibrator.to(self.opened.device)
        self.head = Head(calibrator, self.view_names).to(self.opened.device)
        super().train(False)

    @property
    def preprocessing(self) -> Preprocessing:
        return self.opened.preprocessing

    @property
    def threshold(self) -> float | None:
        return self.fitted.threshold

    @property
    def identity(self) -> dict[str, Any]:
        """All that the files of this model say about it."""
        return identity_of(self.fitted, self.opened, self.class_names)

    def train(self: Model, mode: bool = True) -> Model:
        """Nothing changes: what was calibrated is the classifier in evaluation mode."""
        return self

    def forward(self, images: Images) -> Calibrated:
        logits, said = self.look(images)
        scaled = logits.double() / said.temperature.double()[:, None]
        return Calibrated(scaled.float(), said.confidence, said.temperature)

    @torch.no_grad()
    def predict(self, images: Any) -> Verdicts:
        """Verdicts about images: float tensor in [0, 1] or bytes (n, 3, h, w), or pictures.

        Pictures, such as Pillow's, are resized and cut as the classifier wants them.
        """
        logits, said = self.look(self.images_of(images))
        return Verdicts(
            logits.argmax(-1),
            said.confidence,
            said.raw_confidence,
            said.temperature,
            said.probabilities,
            said.accept,
            said.view_classes,
            said.view_confidence,
        )

    def images_of(self, images: Any) -> Images:
        """Anything that shows images, as floats in [0, 1] on the classifier's device."""
        if isinstance(images, np.ndarray) and images.ndim == 4:
            raise TypeError(
                "images must be a tensor (n, 3, h, w) or a list of pictures, got an array: use "
                "torch.from_numpy(array), or list(array) for pictures of (h, w, 3) bytes"
            )
        if not isinstance(images, Tensor):
            pictures = images if isinstance(images, list | tuple) else [images]
            if not pictures:
                raise ValueError("images must hold at least one picture, got none")
            looks = [self._shown(picture, i) for i, picture in enumerate(pictures)]
            images = torch.from_numpy(np.stack(looks)).permute(0, 3, 1, 2)
        if images.dtype == torch.uint8:
            images = images.float() / 255
        check_images(images)
        if not len(images):
            raise ValueError("images must hold at least one image, got an empty batch")
        size = self.preprocessing.size
        if size is not None and tuple(images.shape[2:]) != size:
            raise ValueError(
                f"images must have the size {size} that the classifier takes, got "
                f"{tuple(images.shape[2:])}: give pictures, or resize and cut as {size}"
            )
        return images.to(self.device)

    def _shown(self, picture: Any, i: int) -> np.ndarray:
        return self.preprocessing.pixels(to_image(picture, f"number {i}"))

    @property
    def device(self) -> torch.device:
        if self.network is None:
            return self.opened.device
        first = next(self.network.parameters(), None)
        return self.opened.device if first is None else first.device

    def look(self, images: Images) -> tuple[Tensor, Said]:
        """The classifier's own logits, and what is said about each image."""
        views = list(self.views)
        if not isinstance(self.calibrator, Cascade) or torch.compiler.is_exporting():
            stacked, *features = self._asked(Front(views, self.preprocessing), images)
            said = self.head.of_stack(stacked, *features)
            return stacked[: images.shape[0]], said
        logits, *features = self._asked(Front([], self.preprocessing), images)
        rows = First(self.calibrator)(logits)
        if len(rows):
            again = Front(views, self.preprocessing, with_original=False)
            stacked = self._asked(again, images, rows)[0]
        else:
            stacked = logits[:0]
        return logits, self.head.of_some(logits, rows, stacked, *features)

    def _asked(self, front: Front, images: Images, *rows: Tensor) -> tuple[Tensor, ...]:
        if self.network is not None:
            answer = self.network(front(images, *rows))
        else:
            # Its preprocessing is its own affair: this front only shows the views.
            plain = Front(front.views, Preprocessing(), with_original=front.with_original)
            wanted = "features" in self.calibrator.needs
            with self.opened.prepare():
                both = self.opened.forward(plain(images, *rows), wanted)
            answer = tuple(part for part in both if part is not None)
        found = answer[0].shape[1]
        if found != self.calibrator.class_count:
            must_have_classes(self.fitted, found, None)
        return answer

    def save_pretrained(self, folder: str | os.PathLike[str]) -> None:
        """Writes config.json, the calibrator and a model card; the classifier stays where it is."""
        hub.write(Path(folder), self.fitted, self.identity)

    @classmethod
    def from_pretrained(
        cls,
        folder: str | os.PathLike[str],
        classifier: str | nn.Module | Classifier | Callable[..., Any],
        views: Views | None = None,
        **others: Any,
    ) -> "CalibratedClassifier":
        """What `save_pretrained` wrote, or a repository on the Hub, around its own classifier."""
        place = hub.located(folder)
        hub.must_match_config(place, calibrator := load_calibrator(place / hub.CALIBRATOR))
        return cls(classifier, calibrator, views, **others)

    def push_to_hub(self, repo_id: str, **options: Any) -> str:
        """Uploads what `save_pretrained` writes; needs the package huggingface_hub."""
        return hub.push(repo_id, self.save_pretrained, **options)


def chosen_views(
    calibrator: FittedCalibrator, views: Views | None
) -> tuple[tuple[str, ...], tuple[Transform, ...]]:
    """Names and functions of the views that a calibrator was fitted with."""
    names = calibrator.view_names
    given = tuple(names if views is None else views)
    if given != names:
        raise ValueError(
            f"views must be those that {calibrator.title} was fitted with, {list(names)}, in this "
            f"order, got {list(given)}"
        )
    if isinstance(views, Mapping):
        return names, tuple(views.values())
    try:
        return names, tuple(VIEWS.find(name) for name in names)
    except ValueError as error:
        raise ValueError(
            f"{error}: give views as a mapping from each name to a function of images"
        ) from error


def _opened(
    classifier: Any,
    calibrator: FittedCalibrator,
    preprocessing: Preprocessing | None,
    output: str | int | None,
    device: str | torch.device,
) -> Classifier:
    """The classifier; one without a config of its own is shown images as when it was collected."""
    if isinstance(classifier, Classifier):
        return open_model(classifier, device=device, preprocessing=preprocessing, output=output)
    has_config = isinstance(classifier, str) and not classifier.startswith(("onnx:", "pt2:"))
    if preprocessing is None and not has_config:
        preprocessing = expected_preprocessing(calibrator)
    return open_model(classifier, device=device, preprocessing=preprocessing, output=output)
