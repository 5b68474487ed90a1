"""The answers of the server, as JSON with named and typed fields."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from rightly.decisions.decision import describe_promise
from rightly.deployment.outputs import Outputs, list_set
from rightly.deployment.runtime import ExportedModel
from rightly.predictions.bounded_json import encode_json

TOP = 5  # how many classes an answer lists


class _Answer(BaseModel):
    model_config = ConfigDict(frozen=True)


class Choice(_Answer):
    """A class and how probable it is."""

    class_: int = Field(serialization_alias="class", description="Number of the class, from 0.")
    name: str | None = Field(description="Its name, if the model knows names.")
    probability: float = Field(description="Its calibrated probability.")


class ViewOpinion(_Answer):
    """The classifier's own prediction on one view of the image."""

    view: str = Field(description="The view, such as rotation.")
    class_: int | None = Field(
        serialization_alias="class",
        description="The class it saw there; null where the view was not run.",
    )
    name: str | None = Field(description="Its name, if the model knows names.")
    confidence: float | None = Field(description="Raw confidence; null where it was not run.")


class Prediction(_Answer):
    """The prediction for one image."""

    file: str | None = Field(description="The file name that came with the image, if one did.")
    class_: int = Field(
        serialization_alias="class", description="The predicted class, a number from 0."
    )
    name: str | None = Field(description="Its name, if the model knows names.")
    confidence: float = Field(description="How likely the predicted class is to be right.")
    raw_confidence: float = Field(description="The classifier's own, uncalibrated.")
    temperature: float = Field(description="What its logits were divided by.")
    accept: bool | None = Field(
        description="Whether to trust it: the confidence reaches the threshold of the model. "
        "Null where the model has no threshold."
    )
    top: list[Choice] = Field(description=f"The {TOP} most probable classes, the predicted first.")
    prediction_set: list[Choice] | None = Field(
        description="The classes in its prediction set, the likeliest first; it may be empty. "
        "Null where the model has no sets."
    )
    views: list[ViewOpinion] = Field(
        description="The prediction on each view, if the model uses any."
    )
    unadapted_confidence: float | None = Field(
        None, description="Confidence without context; only where the server adapts (--adapt)."
    )
    context_score: float | None = Field(
        None, description="What the image adds to the context; only where the server adapts."
    )


class ModelSummary(_Answer):
    """What answered."""

    method: str = Field(description="The calibrator.")
    threshold: float | None = Field(description="The confidence from which on to accept.")
    promise: str | None = Field(
        None,
        description="What is promised of the accepted, or why it does not cover what is served "
        "now. Null where nothing was promised.",
    )
    coverage: float | None = Field(
        description="Share of images like those held out whose prediction set holds the true "
        "class; null without sets, and where confidence is adapted, for which nothing is promised."
    )


class Answer(_Answer):
    """One prediction for each image, in the order of the form."""

    predictions: list[Prediction]
    model: ModelSummary


class WindowPart(_Answer):
    """Images that followed each other."""

    images: int
    confidence: float = Field(description="Mean confidence, as it was answered.")
    unadapted_confidence: float = Field(description="Mean confidence without context.")
    expected_low: float | None = Field(description="Lower end of the expected range of accuracy.")
    expected_high: float | None = Field(description="Its upper end.")


class Drift(_Answer):
    """The sequential test for drift, since this worker started."""

    status: str = Field(description="Names of the alarms, no alarm, or starting.")
    last_alarm: str | None = Field(description="The last alarm and when it was noticed, in UTC.")
    alarms: dict[str, int] = Field(description="Alarms by name: shift, class mix.")
    levels: list[dict[str, float]] = Field(
        description="After each of the last blocks, how far each name is to its limit; 1 alarms."
    )


class StreamContext(_Answer):
    """What the server adapts to: the window of the last images."""

    images: int = Field(description="Images in the window.")
    window: int = Field(description="How many it holds when it is full, to the batch.")
    context: float = Field(description="0 as calibrated, below it harder: clipped and shrunk.")
    expected_accuracy: float | None = Field(description="Mean confidence of the window.")
    expected_low: float | None = Field(
        description="Lower end of its expected range at 90 %; null where none was learned."
    )
    expected_high: float | None = Field(description="Its upper end.")
    unadapted: float | None = Field(description="Mean confidence without context.")
    drift: Drift | None = Field(description="Null where the file knows nothing of drift.")
    parts: list[WindowPart] = Field(description="The window from its oldest images on.")


class ErrorDetail(_Answer):
    code: str = Field(description="For programs: the same word for the same mistake, always.")
    message: str = Field(description="For people: what is wrong, and what to do.")


class ErrorAnswer(_Answer):
    """Why there is no answer."""

    error: ErrorDetail


class Health(_Answer):
    """Whether the server can answer."""

    status: Literal["ok", "stuck"]
    waiting: int = Field(description="Images that wait for their turn.")


class Card(BaseModel):
    """What is served, as the exported file says it; further fields may follow."""

    model_config = ConfigDict(extra="allow")

    method: str = Field(description="The calibrator.")
    class_names: list[str] | None = Field(None, description="Names of the classes, from 0.")
    class_count: int | None = Field(None, description="How many classes there are.")
    views: list[str] | None = Field(None, description="The views that are used.")
    preprocessing: dict[str, Any] | None = Field(None, description="What is done to an image.")
    classifier: dict[str, Any] | None = Field(None, description="Its name and fingerprint.")
    calibration: dict[str, Any] | None = Field(
        None, description="On how many samples it was calibrated, and metrics before and after."
    )
    threshold: dict[str, Any] | None = Field(
        None, description="The threshold, with the accuracy and coverage it was chosen for."
    )
    sets: dict[str, Any] | None = Field(
        None, description="What the prediction sets promise, on how many held-out images."
    )


def make_prediction(
    outputs: Outputs, file: str | None, model: ExportedModel, adapts: bool = False
) -> Prediction:
    """The prediction in outputs of one row; with both confidences where the server adapts."""
    best, members = int(outputs.classes[0]), list_set(outputs)
    probabilities = np.asarray(outputs.probabilities[0])
    both = ("unadapted_confidence", "context_score") if adapts else ()
    return Prediction(
        file=file,
        class_=best,
        name=_find_name(best, model),
        confidence=float(outputs.confidence[0]),
        raw_confidence=float(outputs.raw_confidence[0]),
        temperature=float(outputs.temperature[0]),
        accept=None if outputs.accept is None else bool(outputs.accept[0]),
        top=_rank_classes(probabilities, best, model),
        prediction_set=None if members is None else _make_choices(members, probabilities, model),
        views=_make_views(outputs, model),
        **{name: float(getattr(outputs, name)[0]) for name in both},
    )


def summarise_model(
    model: ExportedModel, adapts: bool = False, alarm: str | None = None
) -> ModelSummary:
    """What answered, and what it promises: nothing where it adapts or drift is alarmed."""
    is_covered = not adapts and alarm is None and "adapted" not in model.metadata
    sets = model.metadata.get("sets") if is_covered else None
    return ModelSummary(
        method=str(model.metadata["method"]),
        threshold=model.threshold,
        promise=describe_promise(model.metadata, adapts=adapts, alarm=alarm),
        coverage=None if sets is None else sets["coverage"],
    )


def encode_card(model: ExportedModel) -> bytes:
    """The metadata of a model as JSON, in which what is not finite is null.

    Without the samples that drift is counted from, which are many.
    """
    shown = {name: value for name, value in model.metadata.items() if name != "drift"}
    return encode_json(shown).encode()


def _rank_classes(probabilities: np.ndarray, best: int, model: ExportedModel) -> list[Choice]:
    order = np.argsort(-probabilities, kind="stable")[: TOP + 1].tolist()
    first = [best, *(k for k in order if k != best)][:TOP]  # in a tie the predicted class leads
    return _make_choices(first, probabilities, model)


def _make_choices(
    classes: Sequence[int], probabilities: np.ndarray, model: ExportedModel
) -> list[Choice]:
    return [
        Choice(class_=k, name=_find_name(k, model), probability=float(probabilities[k]))
        for k in classes
    ]


def _make_views(outputs: Outputs, model: ExportedModel) -> list[ViewOpinion]:
    if outputs.view_classes is None or outputs.view_confidence is None:
        return []
    views = zip(
        model.view_names,
        outputs.view_classes[0].tolist(),
        outputs.view_confidence[0].tolist(),
        strict=True,
    )
    return [
        ViewOpinion(view=view, class_=k, name=_find_name(k, model), confidence=confidence)
        if k >= 0
        else ViewOpinion(view=view, class_=None, name=None, confidence=None)
        for view, k, confidence in views
    ]


def _find_name(k: int, model: ExportedModel) -> str | None:
    return model.class_names[k] if model.class_names else None
