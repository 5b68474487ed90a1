"""What the outputs of a model become in an answer of the server."""

from collections.abc import Sequence

import numpy as np

from rightly.deployment.metadata import describe_coverage, describe_guarantee
from rightly.deployment.outputs import Outputs, list_set
from rightly.deployment.runtime import ExportedModel
from rightly.files import encode_json
from rightly.serving.schemas import TOP, Choice, ModelSummary, Prediction, ViewOpinion


def make_prediction(
    outputs: Outputs, file: str | None, model: ExportedModel, adapts: bool = False
) -> Prediction:
    """The prediction in outputs of one row; with both confidences where the server adapts."""
    best, members = int(outputs.classes[0]), list_set(outputs)
    probabilities = np.asarray(outputs.probabilities[0])
    both = ("unadapted_confidence", "shift_score") if adapts else ()
    return Prediction(
        file=file,
        class_=best,
        name=_find_name(best, model),
        confidence=float(outputs.confidence[0]),
        raw_confidence=float(outputs.raw_confidence[0]),
        temperature=None if outputs.temperature is None else float(outputs.temperature[0]),
        accept=None if outputs.accept is None else bool(outputs.accept[0]),
        top=_rank_classes(probabilities, best, model),
        prediction_set=None if members is None else _make_choices(members, probabilities, model),
        views=_make_views(outputs, model),
        **{name: float(getattr(outputs, name)[0]) for name in both},
    )


def summarise_model(model: ExportedModel, void: str | None = None) -> ModelSummary:
    """What answered, and its guarantees, or why they are void."""
    sets = model.metadata.get("sets")
    return ModelSummary(
        method=str(model.metadata["method"]),
        threshold=model.threshold,
        guarantee=describe_guarantee(model.metadata, void),
        coverage=None if sets is None or void else sets["coverage"],
        set_guarantee=describe_coverage(model.metadata, void),
        void=void,
    )


def encode_card(model: ExportedModel, void: str | None = None) -> bytes:
    """Metadata of a model as JSON, and why its guarantees are void; null for nan.

    Without the samples that drift is counted from, which are many.
    """
    shown = {name: value for name, value in model.metadata.items() if name != "drift"}
    return encode_json(shown | {"void": void}).encode()


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
