"""Every metric once: its formula as the values of a state, and its record.

A metric of (confidence, correct), or of (probabilities, labels), builds its state from samples,
resamples or batches (`rightly.metrics.states`) and maps it to one value per resample. Called with
two arrays, it is the float of those samples.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, wraps
from inspect import Parameter, Signature, signature
from typing import Any, Literal, Protocol, cast, get_args, runtime_checkable

import numpy as np

from rightly.checks import check_count, check_outcomes, check_probabilities, check_share
from rightly.metrics.accumulator import Accumulator
from rightly.metrics.smoothing import fixed_point_bandwidth
from rightly.metrics.states import Bins, ClassBins, Inputs, Outcomes, Ranks, Sums, Values, step
from rightly.registry import Registry
from rightly.shapes import AnyArray

Measure = Callable[..., float]
Unit = Literal["%", "nats"]

ROUNDING = 1e-9  # share of a sample by which sums of errors may be off


@dataclass(frozen=True)
class Definition:
    """A metric in two steps: a state of ranked samples, and the values of the state."""

    build: Callable[..., Any]  # of `Ranks` and options
    values: Callable[..., Values]  # of the state and options
    is_additive: bool  # whether the states of batches add up

    def collect(self, ranks: Ranks, options: Mapping[str, Any]) -> Any:
        """The state of ranked samples."""
        return _call(self.build, ranks, options)

    def compute(self, state: Any, options: Mapping[str, Any]) -> Values:
        """The values of a state."""
        return _call(self.values, state, options)

    def __call__(self, ranks: Ranks, options: Mapping[str, Any] | None = None) -> Values:
        return self.compute(self.collect(ranks, options or {}), options or {})


@runtime_checkable
class DefinedMeasure(Protocol):
    """A function of two arrays and options that has a definition."""

    definition: Definition

    def __call__(self, *arguments: Any, **options: Any) -> float: ...


Decorator = Callable[[Callable[..., np.ndarray]], DefinedMeasure]


def _call(function: Callable[..., Any], first: Any, options: Mapping[str, Any]) -> Any:
    """Call one of the two steps with those of the options that it takes."""
    known = _options_of(function)
    return function(first, **{name: value for name, value in options.items() if name in known})


@cache
def _options_of(function: Callable[..., Any]) -> dict[str, Parameter]:
    return dict(list(signature(function).parameters.items())[1:])


@dataclass(frozen=True)
class Metric:
    """All that tables, intervals, figures and reports need to know of one metric."""

    name: str
    measure: Measure  # of (confidence, correct) or (probabilities, labels), as `inputs` says
    inputs: Inputs = "confidence"
    lower_is_better: bool | None = True  # None: a diagnostic, neither is better
    range: tuple[float, float] = (-np.inf, np.inf)  # intervals are clipped to it
    unit: Unit = "%"  # "%": a share, shown times 100
    title: str = ""  # the literature's name; without one, `name`
    meaning: str = ""  # in a reader's words

    def __post_init__(self) -> None:
        for field, options in (("inputs", get_args(Inputs)), ("unit", get_args(Unit))):
            if getattr(self, field) not in options:
                expected = " or ".join(map(repr, options))
                raise ValueError(f"{field} must be {expected}, got {getattr(self, field)!r}")
        if not self.range[0] < self.range[1]:
            raise ValueError(
                f"range must be (least, largest), got {self.range}: leave it out if there is none"
            )
        object.__setattr__(self, "title", self.title or self.name)

    @property
    def definition(self) -> Definition | None:
        """State and values of a metric of this library; other measures take samples alone."""
        return getattr(self.measure, "definition", None)

    @property
    def is_additive(self) -> bool:
        """Whether states of batches add up, so that a stream takes constant memory."""
        return self.definition is not None and self.definition.is_additive

    def collect(self, first: np.ndarray, second: np.ndarray, options: Mapping[str, Any]) -> Any:
        """What a checked batch adds: its state, or the samples themselves."""
        if self.definition is None or not self.is_additive:
            return first, second
        return self.definition.collect(Ranks(Outcomes.of(self.inputs, first, second)), options)

    def compute(self, collected: tuple[np.ndarray, ...], options: Mapping[str, Any]) -> float:
        """The metric of what was collected."""
        if self.definition is None or not self.is_additive:
            return float(self.measure(*collected, **options))
        return float(self.definition.compute(collected, options)[0])

    def accumulator(self, **options: Any) -> Accumulator:
        """Sums up batches: `update`, `compute`, `reset`, `merge`; options such as bins=15."""
        return Accumulator(self, check_options(self.measure, options))


def check_options(measure: Measure, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a measure beside its two inputs: bins, or shares by their names."""
    known = list(signature(measure).parameters)[2:]
    checked = dict(options)
    for name, value in options.items():
        if name not in known:
            title = getattr(measure, "__name__", "this metric")
            takes = f"takes {', '.join(known)}" if known else "takes no options"
            raise TypeError(f"{name} is no option of {title}, which {takes}")
        if name == "bins":
            checked[name] = check_count(name, value)
        elif name in ("coverage", "risk"):
            check_share(name, value)
    return checked


_RECORDS: list[Metric] = []


def define(
    build: Callable[..., Any],
    title: str,
    meaning: str,
    *,
    inputs: Inputs = "confidence",
    is_additive: bool = True,
    range: tuple[float, float] = (0.0, 1.0),
    **fields: Any,
) -> Decorator:
    """Make a metric of a formula: a function of two arrays, and its record."""

    def decorate(values: Callable[..., Values]) -> DefinedMeasure:
        definition = Definition(build, values, is_additive)
        names = ("confidence", "correct") if inputs == "confidence" else ("probabilities", "labels")
        check = check_outcomes if inputs == "confidence" else check_probabilities
        arrays = [Parameter(x, Parameter.POSITIONAL_OR_KEYWORD, annotation=AnyArray) for x in names]
        options = _options_of(build) | _options_of(values)
        of_arrays = Signature([*arrays, *options.values()], return_annotation=float)

        @wraps(values)
        def measure(*arguments: Any, **named: Any) -> float:
            check_options(measure, {x: value for x, value in named.items() if x not in names})
            bound = of_arrays.bind(*arguments, **named).arguments
            samples = Outcomes.of(inputs, *check(*(bound.pop(x) for x in names)))
            return float(definition(Ranks(samples), check_options(measure, bound))[0])

        vars(measure).update(__signature__=of_arrays, definition=definition)
        _RECORDS.append(
            Metric(
                values.__name__,
                measure,
                inputs,
                range=range,
                title=title,
                meaning=meaning,
                **fields,
            )
        )
        return cast(DefinedMeasure, measure)

    return decorate


def define_ranked(*texts: str, **fields: Any) -> Decorator:
    """Make a metric of ranks, which do not add up."""
    return define(lambda ranks: ranks, *texts, is_additive=False, **fields)


def define_mean(*texts: str, inputs: Inputs = "confidence", **fields: Any) -> Decorator:
    """Make a metric of the mean over samples of a loss of each."""

    def decorate(loss: Callable[..., np.ndarray]) -> DefinedMeasure:
        def collect(ranks: Ranks) -> Sums:
            return Sums.of_loss(ranks, loss, inputs)

        def mean(sums: Sums) -> Values:
            return sums.total[:, 0] / sums.n

        mean.__name__, mean.__doc__ = loss.__name__, loss.__doc__
        mean.__qualname__ = loss.__qualname__
        return define(collect, *texts, inputs=inputs, **fields)(mean)

    return decorate


# In the order of the paper's table, then what the paper does not report.


@define(Bins.of_equal_width, "ECE", "mean distance between confidence and accuracy, in 25 bins")
def ece(bins: Bins) -> Values:
    """Mean gap between confidence and accuracy in equal-width bins (Guo et al., 2017)."""
    return mean_gap(bins)


def mean_gap(bins: Bins) -> Values:
    """Mean over samples of their bin's gap between confidence and accuracy."""
    return abs(bins.excess).sum(-1) / bins.n


@define_mean("Brier score", "mean squared distance between confidence and being right")
def brier(confidence: np.ndarray, correct: np.ndarray) -> np.ndarray:
    """Mean squared distance between confidence and correctness (Brier, 1950)."""
    return (confidence - correct) ** 2


@define(
    Bins.of_equal_count,
    "ACE",
    "mean distance between confidence and accuracy, in 25 bins of equal count",
    is_additive=False,
)
def ace(bins: Bins) -> Values:
    """Mean gap in bins of equal count, of the predicted class only (after Nixon et al., 2019)."""
    return mean_gap(bins)


@define(
    Bins.of_equal_width,
    "MCE",
    "largest distance between confidence and accuracy of any of 25 bins",
)
def mce(bins: Bins) -> Values:
    """Largest gap of any non-empty equal-width bin, however few it holds (Naeini et al., 2015)."""
    return (abs(bins.excess) / np.maximum(bins.size, 1)).max(-1)


@define_ranked("KS error", "largest gap between summed confidence and summed accuracy")
def ks(ranks: Ranks) -> Values:
    """Largest gap between cumulative confidence and cumulative accuracy (Gupta et al., 2021)."""
    return ranks.largest_excess / (ranks.n * ranks.outcomes.unit)


@define(
    Sums.of_outcomes,
    "KS error (released code)",
    "the KS of the paper's released code, which sorts by correctness",
)
def ks_released(sums: Sums) -> Values:
    """The "KS" of the paper's released code, which sorts by correctness, not by confidence.

    Its arguments are swapped, which makes it max(A, B - A) with A the confidence lost on wrong
    samples and B that missing on right ones: a calibrated predictor scores its Brier score, not
    0. Here to compare with the paper's tables, not to judge a calibrator.
    """
    right, on_wrong, on_right = sums.total.T / sums.n
    return np.maximum(on_wrong, right - on_right - on_wrong)


@define_ranked(
    "AUROC",
    "chance that a right prediction is more confident than a wrong one",
    lower_is_better=False,
)
def auroc(ranks: Ranks) -> Values:
    """Chance that a right sample outranks a wrong one (Hendrycks & Gimpel, 2017); nan if none."""
    pairs = ranks.n_right * (ranks.n - ranks.n_right)
    return (pairs - ranks.pairs_lost) / _nan_if_none(pairs)


def _nan_if_none(count: Values) -> Values:
    return np.where(count > 0, count, np.nan)


@define_mean(
    "NLL",
    "mean negative log-probability of the true class",
    inputs="probabilities",
    range=(0.0, math.inf),
    unit="nats",
)
def nll(probabilities: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Mean negative log-probability of the true class."""
    # A probability that rounding turned to 0 must not make the mean infinite; scikit-learn's
    # log_loss has the same floor.
    return -np.log(np.clip(_of_truth(probabilities, labels), np.finfo(np.float64).eps, 1))


@define_mean(
    "multiclass Brier score",
    "mean squared distance between all class probabilities and the truth, summed",
    inputs="probabilities",
    range=(0.0, 2.0),
)
def multiclass_brier(probabilities: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Mean over samples of the squared distances of all classes, from 0 to 2 (Brier, 1950).

    With two classes twice the Brier score of P(y = 1). `brier_decomposition` splits it.
    """
    # (p - 1)^2 = p^2 + 1 - 2 p at the true class, without a copy of all probabilities.
    squares = np.einsum("nc,nc->n", probabilities, probabilities)
    return np.maximum(squares + 1 - 2 * _of_truth(probabilities, labels), 0)


def _of_truth(probabilities: np.ndarray, labels: np.ndarray) -> np.ndarray:
    return probabilities[np.arange(len(labels)), labels]


@define(
    ClassBins.of,
    "classwise ECE",
    "mean over classes of the distance between probability and frequency",
    inputs="probabilities",
)
def classwise_ece(bins: ClassBins) -> Values:
    """Mean over classes of each one's ECE, probabilities of 0 left out (Nixon et al., 2019)."""
    return abs(bins.excess).sum((-1, -2)) / (bins.n * bins.excess.shape[1])


@define(
    Bins.of_equal_width,
    "L2 ECE",
    "root of the mean squared distance of confidence and accuracy, in 25 bins",
)
def ece_l2(bins: Bins) -> Values:
    """Root of the mean squared gap in equal-width bins (RMS calibration error, Kumar et al., 2019).

    What torchmetrics calls norm="l2". It weighs large gaps more than ECE does, and is never below.
    """
    return np.sqrt((bins.excess**2 / np.maximum(bins.size, 1)).sum(-1) / bins.n)


@define(
    Bins.of_equal_width_with_variance,
    "debiased ECE",
    "ECE less what chance alone adds to it in a test set of this size",
)
def ece_debiased(bins: Bins) -> Values:
    """ECE less what chance adds to it in bins of this many samples, at least 0.

    max(0, ECE - sum over bins of (n_b / n) s_b B(t / s_b)), where s_b^2 = sum of c (1 - c) / n_b^2,
    t^2 = max(0, sum of (n_b / n) (gap_b^2 - s_b^2)), the debiased squared error of Kumar et al.
    (2019), and B(z) = 2 phi(z) - 2 z Phi(-z) is the bias of |z + noise|: the mean of a bin's gap
    seen with a normal error. For t stands one gap for all bins, since a bin's own gap is itself
    raised by chance, and would undo only two fifths of what chance adds to calibrated samples.
    For calibrated samples t is near 0 and the noise floor is taken off; far from calibration
    nothing is. Its mean is nearer to the truth than ECE's; a single value is spread more.
    """
    from scipy.special import ndtr

    filled = np.maximum(bins.size, 1)
    squared = ((bins.excess**2 - bins.variance) / filled).sum(-1) / bins.n
    gap = np.sqrt(np.maximum(squared, 0))[:, None]
    deviation = np.sqrt(bins.variance)
    # Beyond 40 deviations, and where nothing can vary, chance adds nothing.
    z = filled * gap / np.maximum(np.where(deviation > 0, deviation, np.inf), filled * gap / 40)
    raised = 2 * np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi) - 2 * z * ndtr(-z)
    return np.maximum(mean_gap(bins) - (deviation * raised).sum(-1) / bins.n, 0)


@define(
    Bins.of_cells,
    "smooth ECE",
    "distance between confidence and accuracy, smoothed instead of binned",
)
def smooth_ece(cells: Bins) -> Values:
    """ECE smoothed at the width that equals its own value (Blasiok & Nakkiran, 2023).

    The fixed point of their definition, to 1e-4. Their package relplot halves the range of widths
    ten times and sums over a mesh of 200 points, which leaves it up to 5e-4 away: of 500
    calibrated samples it gave 0.0378 where this, and the kernel summed without a grid, gave 0.0382.
    """
    return fixed_point_bandwidth(cells.excess / cells.n[:, None])


# Selective prediction: the error rate when only the most confident are accepted. Each sample of a
# tie gets the tie's mean error, the average over every order of the tie. A threshold accepts a tie
# as a whole: `curves.risk_coverage` has the points that thresholds reach.


@define_ranked("AURC", "mean error rate when only the most confident are accepted")
def aurc(ranks: Ranks) -> Values:
    """Mean over k of the error rate among the k most confident (Geifman et al., 2019)."""
    return _aurc(ranks)


def _aurc(ranks: Ranks) -> Values:
    # A sample that is wrong and has k more confident ones raises the error rate among the first
    # k + 1, k + 2, ... n by 1 / (k + 1), 1 / (k + 2), ... 1 / n.
    n = len(ranks.outcomes.correct)
    raised = np.append((1 / np.arange(n, 0, -1)).cumsum()[::-1], 0.0)
    total = np.append(0.0, raised.cumsum())
    levels = ranks.outcomes.wrong_levels
    weight = np.take(ranks.weight, levels, -1)
    first = ranks.weight[:, -1:] - weight
    after = ranks.weight[:, -1:] - np.where(levels > 0, np.take(ranks.weight, levels - 1, -1), 0)
    rate = step(weight - np.take(ranks.right, levels, -1)) / np.maximum(after - first, 1)
    return (rate * (total[after] - total[first])).sum(-1) / ranks.n


@define_ranked("E-AURC", "AURC less that of the best order of the same predictions")
def e_aurc(ranks: Ranks) -> Values:
    """AURC less that of the same predictions in the best order (Geifman et al., 2019).

    The best AURC is summed exactly; the paper's r + (1 - r) ln(1 - r) is its limit for many
    samples with the error rate r.
    """
    from scipy.special import digamma

    # The best order has the r right samples first: the sum of (k - r) / k over k > r is n - r less
    # r times a difference of harmonic numbers.
    n, right = ranks.n, ranks.n_right
    best = n - right - right * (digamma(n + 1) - digamma(right + 1))
    return np.maximum(_aurc(ranks) - best / n, 0)


@define_ranked(
    "AUGRC",
    "mean share of samples that are accepted and wrong, over all thresholds",
    range=(0.0, 0.5),
)
def augrc(ranks: Ranks) -> Values:
    """Area under the share of samples accepted and wrong, over coverage (Traub et al., 2024).

    (1 - AUROC) a (1 - a) + (1 - a)^2 / 2 with the accuracy a: the chance that a random sample is
    wrong and no less confident than another one, which may be itself; from 0 to 1/2.
    """
    wrong = ranks.n - ranks.n_right
    return (ranks.pairs_lost + wrong**2 / 2) / ranks.n**2


@define_ranked("risk at 80 % coverage", "error rate among the most confident 80 % of the samples")
def risk_at_coverage(ranks: Ranks, coverage: float = 0.8) -> Values:
    """Error rate among the most confident samples, as many as reach this coverage; one at least."""
    count = np.maximum(np.ceil(coverage * ranks.n - ROUNDING), 1)
    before, after, errors, rate = _errors_from_top(ranks)
    # The tie in which the last of them lies: the levels come from the least confident up.
    level = (after >= count[:, None]).sum(-1, keepdims=True) - 1
    first, error, mean = (np.take_along_axis(x, level, -1)[:, 0] for x in (before, errors, rate))
    return (error + (count - first) * mean) / count


@define_ranked(
    "coverage at 5 % risk",
    "largest share of the most confident samples of which at most 5 % are wrong",
    lower_is_better=False,
)
def coverage_at_risk(ranks: Ranks, risk: float = 0.05) -> Values:
    """Largest share of the most confident samples with at most this error rate; 0 if none."""
    # The last of them: an error at the top may be outweighed by what follows. Inside a tie the
    # error rate goes one way, from errors / before to that at its end.
    before, after, errors, rate = _errors_from_top(ranks)
    allowed = risk + ROUNDING / ranks.n[:, None]
    at_end = errors + (after - before) * rate <= allowed * after
    rises = rate > allowed
    turn = (before * rate - errors) / np.where(rises, rate - allowed, 1)
    inside = np.where(rises & (turn > before), np.floor(turn), 0)
    return np.where(at_end, after, inside).max(-1) / ranks.n


def _errors_from_top(ranks: Ranks) -> tuple[np.ndarray, ...]:
    """Samples before and up to the end of each level, from the top; errors before; error rate."""
    size, wrong = ranks.held, step(ranks.wrong)
    before = ranks.weight[:, -1:] - ranks.weight
    return before, before + size, ranks.wrong[:, -1:] - ranks.wrong, wrong / np.maximum(size, 1)


@define(
    Sums.of_outcomes,
    "confidence gap",
    "mean confidence when wrong minus mean confidence when right",
    range=(-1.0, 1.0),
)
def confidence_gap(sums: Sums) -> Values:
    """Mean confidence when wrong minus when right, the paper's E^diff; nan if either is never."""
    right, on_wrong, on_right = sums.total.T
    return on_wrong / _nan_if_none(sums.n - right) - on_right / _nan_if_none(right)


@define_mean(
    "narrowly wrong",
    "share of samples that are wrong, but nearly preferred the true class",
    inputs="probabilities",
    lower_is_better=None,
)
def narrowly_wrong(probabilities: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Share of all samples that are wrong with p_true / p_predicted > 0.5, as in the paper."""
    near = _of_truth(probabilities, labels) > 0.5 * probabilities.max(-1)
    return 1.0 * (near & (probabilities.argmax(-1) != labels))


METRICS: Registry[Metric] = Registry("metric", Metric, _RECORDS)


def measure_all(
    confidence: AnyArray, correct: AnyArray, metrics: Iterable[str] | None = None
) -> dict[str, float]:
    """Some metrics of confidence, or all, from one sort shared by those that need it.

    >>> measure_all([0.75, 0.5, 0.25], [True, False, True], ["ks", "auroc"])
    {'ks': 0.25, 'auroc': 0.5}
    """
    records = [metric for metric in METRICS.values() if metric.inputs == "confidence"]
    if metrics is not None:
        records = [METRICS.find(name) for name in metrics]
        others = [metric.name for metric in records if metric.inputs != "confidence"]
        if others:
            raise ValueError(
                f"metrics must be of (confidence, correct), got {', '.join(others)} of "
                "(probabilities, labels): call those by themselves"
            )
    c, a = check_outcomes(confidence, correct)
    ranks = Ranks(Outcomes(c, a))
    return {
        metric.name: metric.measure(c, a)
        if metric.definition is None
        else float(metric.definition(ranks)[0])
        for metric in records
    }
