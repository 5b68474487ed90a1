"""When to act on a prediction and when to abstain: thresholds on confidence."""

from dataclasses import asdict, dataclass

from rightly.checks import check_confidence, check_share
from rightly.decisions.guarantee import exact_interval
from rightly.shapes import AnyArray


@dataclass(frozen=True)
class OperatingPoint:
    """Coverage and accuracy of the samples whose confidence reaches a threshold."""

    threshold: float
    accepted: int
    coverage: float  # share of samples that are accepted
    accuracy: float  # of those; nan where there are none
    accuracy_low: float  # exact 95 % interval of the accuracy (Clopper and Pearson, 1934)
    accuracy_high: float

    def as_dict(self) -> dict[str, float | int | None]:
        """Plain values for JSON, which has no nan."""
        return {name: None if value != value else value for name, value in asdict(self).items()}


def operating_point(confidence: AnyArray, correct: AnyArray, threshold: float) -> OperatingPoint:
    """Coverage and accuracy of accepting these samples where confidence >= threshold."""
    c, a = check_confidence(confidence, correct)
    check_share("threshold", threshold)
    accepted = c >= threshold
    n, right = int(accepted.sum()), int(a[accepted].sum())
    low, high = exact_interval(right, n)
    accuracy = right / n if n else float("nan")
    return OperatingPoint(float(threshold), n, n / len(c), accuracy, low, high)
