"""The answers of the server, as JSON with named and typed fields."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

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
    temperature: float | None = Field(
        description="What the method divides logits by, before any adaptation; null where it does "
        "not."
    )
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
        None, description="Confidence of the image alone; only where the server adapts (--adapt)."
    )
    shift_score: float | None = Field(
        None, description="What the image adds to the shift estimate; only where the server adapts."
    )


class ModelSummary(_Answer):
    """What answered."""

    method: str = Field(description="The calibrator.")
    threshold: float | None = Field(description="The confidence from which on to accept.")
    guarantee: str | None = Field(
        None,
        description="Guaranteed accuracy of accepted predictions, or that it is void. Null without "
        "a guarantee.",
    )
    coverage: float | None = Field(
        description="Share of images like those held out whose prediction set holds the true "
        "class; null without sets, and where it is void."
    )
    set_guarantee: str | None = Field(
        None,
        description="Coverage that prediction sets guarantee, or that it is void. Null without "
        "sets.",
    )
    void: str | None = Field(
        None,
        description="Why no guarantee holds for what is served now: adapted data, or a drift "
        "alarm. Null where no reason is known, which does not mean that it holds.",
    )


class Answer(_Answer):
    """One prediction for each image, in the order of the form."""

    predictions: list[Prediction]
    model: ModelSummary


class WindowPart(_Answer):
    """Images that followed each other, at the present shift estimate of the window."""

    images: int
    expected_accuracy: float | None = Field(description="Mean confidence; null without images.")
    expected_low: float | None = Field(
        description="Lower end of its expected range at 90 %; null where none was learned."
    )
    expected_high: float | None = Field(description="Its upper end.")
    unadapted_confidence: float | None = Field(description="Mean confidence before adapting.")


class Drift(_Answer):
    """The sequential test for drift, since this worker started."""

    status: str = Field(
        description="Names of the alarms, starting before a block was tested, or no alarm, which "
        "does not mean that the images are like those of the calibration."
    )
    last_alarm: str | None = Field(description="The last alarm and when it was noticed, in UTC.")
    alarms: dict[str, int] = Field(description="Alarms by name: shift, class prior.")
    levels: list[dict[str, float]] = Field(
        description="After each of the last blocks of at least an hour and 64 images, how far "
        "each name is to its limit; 1 alarms."
    )


class StreamStatus(WindowPart):
    """What the server adapts to: the window of the last images."""

    window: int = Field(description="How many images it holds when it is full, to the batch.")
    shift_estimate: float = Field(
        description="0 as calibrated, below it harder: clipped and shrunk."
    )
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
    decision: dict[str, Any] | None = Field(
        None, description="The threshold, its coverage and accuracy, and what is guaranteed."
    )
    sets: dict[str, Any] | None = Field(
        None, description="Nominal coverage of prediction sets, and the number of held-out images."
    )
    void: str | None = Field(None, description="Why no guarantee holds for what is served now.")
