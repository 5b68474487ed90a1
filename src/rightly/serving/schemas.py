"""What the server says, as JSON with named and typed fields."""

import json
import math
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from rightly.deployment.runtime import Deployed
from rightly.serving.batching import Row

TOP = 5  # how many classes an answer lists


class _Answer(BaseModel):
    model_config = ConfigDict(frozen=True)


class Choice(_Answer):
    """A class and how probable it is."""

    class_: int = Field(serialization_alias="class", description="Number of the class, from 0.")
    name: str | None = Field(description="Its name, if the model knows names.")
    probability: float = Field(description="Its calibrated probability.")


class ViewOpinion(_Answer):
    """What the classifier said about one view of the picture."""

    view: str = Field(description="The view, such as rotation.")
    class_: int | None = Field(
        serialization_alias="class",
        description="The class it saw there; null where the view was not run.",
    )
    name: str | None = Field(description="Its name, if the model knows names.")
    confidence: float | None = Field(description="Raw confidence; null where it was not run.")


class Prediction(_Answer):
    """What is said about one picture."""

    file: str | None = Field(description="The file name that came with the picture, if one did.")
    class_: int = Field(
        serialization_alias="class", description="The predicted class, a number from 0."
    )
    name: str | None = Field(description="Its name, if the model knows names.")
    confidence: float = Field(description="How likely the predicted class is to be right.")
    raw_confidence: float = Field(description="What the classifier itself says, uncalibrated.")
    temperature: float = Field(description="What its logits were divided by.")
    accept: bool | None = Field(
        description="Whether to trust it: the confidence reaches the threshold of the model. "
        "Null where the model has no threshold."
    )
    top: list[Choice] = Field(description=f"The {TOP} most probable classes, the predicted first.")
    views: list[ViewOpinion] = Field(description="What each view said, if the model looks at any.")


class ModelSummary(_Answer):
    """What answered."""

    method: str = Field(description="The calibrator.")
    threshold: float | None = Field(description="The confidence from which on to accept.")


class Answer(_Answer):
    """One prediction for each picture, in the order of the form."""

    predictions: list[Prediction]
    model: ModelSummary


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
    views: list[str] | None = Field(None, description="The views that are looked at.")
    preprocessing: dict[str, Any] | None = Field(None, description="What is done to a picture.")
    classifier: dict[str, Any] | None = Field(None, description="Its name and fingerprint.")
    calibration: dict[str, Any] | None = Field(
        None, description="On how many samples it was calibrated, and metrics before and after."
    )
    threshold: dict[str, Any] | None = Field(
        None, description="The threshold, with the accuracy and coverage it was chosen for."
    )


def prediction(row: Row, file: str | None, model: Deployed) -> Prediction:
    """What is said about image i of a batch."""
    verdicts, i = row
    best = int(verdicts.classes[i])
    return Prediction(
        file=file,
        class_=best,
        name=_name(best, model),
        confidence=float(verdicts.confidence[i]),
        raw_confidence=float(verdicts.raw_confidence[i]),
        temperature=float(verdicts.temperature[i]),
        accept=None if verdicts.accept is None else bool(verdicts.accept[i]),
        top=_top(np.asarray(verdicts.probabilities[i]), best, model),
        views=_views(row, model),
    )


def summary(model: Deployed) -> ModelSummary:
    return ModelSummary(method=str(model.identity["method"]), threshold=model.threshold)


def card(model: Deployed) -> bytes:
    """The identity of a model as JSON, in which what is not finite is null."""
    return json.dumps(_finite(model.identity), allow_nan=False).encode()


def _top(probabilities: np.ndarray, best: int, model: Deployed) -> list[Choice]:
    order = np.argsort(-probabilities, kind="stable")[: TOP + 1].tolist()
    first = [best, *(k for k in order if k != best)][:TOP]  # in a tie the predicted class leads
    return [
        Choice(class_=k, name=_name(k, model), probability=float(probabilities[k])) for k in first
    ]


def _views(row: Row, model: Deployed) -> list[ViewOpinion]:
    verdicts, i = row
    if verdicts.view_classes is None or verdicts.view_confidence is None:
        return []
    said = zip(
        model.view_names,
        verdicts.view_classes[i].tolist(),
        verdicts.view_confidence[i].tolist(),
        strict=True,
    )
    return [
        ViewOpinion(view=view, class_=k, name=_name(k, model), confidence=confidence)
        if k >= 0
        else ViewOpinion(view=view, class_=None, name=None, confidence=None)
        for view, k, confidence in said
    ]


def _name(k: int, model: Deployed) -> str | None:
    return model.class_names[k] if model.class_names else None


def _finite(value: Any) -> Any:
    if isinstance(value, dict) or hasattr(value, "items"):
        return {str(key): _finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
