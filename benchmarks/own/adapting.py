"""What adapting to unlabelled batches gains, on shifts that nothing was fitted to.

    python -m benchmarks.own.collect_unseen_shifts CIFAR10 OUT [--device cuda]
    python -m benchmarks.own.adapting OUT [--classifiers all] [--rows 2500] [--augmented 1000] \
        [--sets]

OUT/CLASSIFIER/{cal,ind,SHIFT}.npz are predictions with views; OUT/shift_augmentation/CLASSIFIER.npz
those of calibration images under every shift, of which the kinds of STANDARD_SHIFTS are fitted to
and left out of the unseen ones. Each test set is one unlabelled batch of at most `--rows` rows.

Columns, against temperature scaling on the same sets: ECE in distribution (points), Brier ratio and
AUROC (points) there; under unseen shifts the excess of ECE over its noise floor as a share of
temperature scaling's, with a 95 % interval by bootstrap over sets, and the mean distance between
mean confidence and accuracy (points); ECE under extreme blur, as a share; over all sets the mean
absolute error of expected accuracy (points) and how often its 90 % range held. Below: what the best
offset and line would reach with labels, small batches, skewed classes, and what others expect of
the accuracy: the literature, and MOVAL and NannyML's CBPE where installed. Streams that change, mix
or fool it are in streams.py.
"""

import argparse
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from scipy.optimize import minimize
from scipy.special import expit, logit

import rightly
from benchmarks.own.accuracy_peers import measure_peers
from benchmarks.own.evaluate_own import OWN
from benchmarks.own.targets import BASE, list_classifiers
from rightly.evaluation.data_sets import load_data_set
from rightly.evaluation.measurement import compute_outcomes
from rightly.metrics import auroc, brier, ece
from rightly.predictions import Predictions
from rightly.transforms.shifts import STANDARD_SHIFTS, kind

IN_DISTRIBUTION, EXTREME = "ind", "extreme_blur"
FLOOR_DRAWS = 40
SKEW, SKEWED_STREAMS, STREAM = 0.3, 20, 1000

Labelled = tuple[Predictions, torch.Tensor]


class Measured(NamedTuple):
    """One calibrator on one test set."""

    ece: float
    floor: float
    brier: float
    auroc: float
    gap: float  # mean confidence less accuracy
    held: float = np.nan  # whether the expected range holds the accuracy


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("predictions", type=Path)
    parser.add_argument("--classifiers", default="all")
    parser.add_argument("--rows", type=int, default=2500, help="of each test set")
    parser.add_argument("--augmented", type=int, default=1000, help="images a shift to fit on")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--sets", action="store_true", help="ECE of each test set too")
    options = parser.parse_args()
    warnings.filterwarnings("ignore", message="the shift estimate of this batch")
    tables: dict[str, dict[tuple[str, str], Measured]] = {}
    extras: dict[str, list[float]] = {}
    names = list_classifiers(options.predictions, options.classifiers)
    for name in names:
        for method, values in measure_classifier(name, options, extras).items():
            tables.setdefault(method, {}).update({(name, t): v for t, v in values.items()})
        print(f"{name} measured", flush=True)
    print("", *format_table(tables), "", *format_extras(extras), sep="\n")
    if options.sets:
        print("", *format_sets(tables), sep="\n")


def measure_classifier(
    name: str, options: argparse.Namespace, extras: dict[str, list[float]]
) -> dict[str, dict[str, Measured]]:
    """All methods on the unseen shifts of one classifier."""
    cal, tests, augmented = load_classifier(name, options)
    base = rightly.calibrator(BASE).fit(*cal)
    for peer, error in measure_peers(base, cal, tests).items():
        extras.setdefault(f"{peer}: MAE of expected accuracy", []).append(100 * error)
    fitted = {BASE: base, f"{OWN}, views": rightly.calibrator(OWN).fit(*cal)}
    if augmented is not None:
        fitted[f"{BASE}, augmented"] = rightly.calibrator(BASE).fit(*augmented)
        fitted[f"{OWN}, augmented"] = rightly.calibrator(OWN).fit(*augmented)
    for method, one in fitted.items():
        one.learn_shift(*(augmented if "augmented" in method else cal))
    values = {}
    for method, one in fitted.items():
        if method != f"{BASE}, augmented":  # the same as without, unless it is adapted
            values[method] = {t: measure(one, test, None) for t, test in tests.items()}
        adapted = {t: measure(one, test, one) for t, test in tests.items()}
        values[f"{method}, adapted"] = adapted
        note_extras(extras, method, one, tests)
    return values


def load_classifier(
    name: str, options: argparse.Namespace
) -> tuple[Labelled, dict[str, Labelled], Labelled | None]:
    """Calibration rows, test sets but for the standard shifts, and rows with shift augmentation."""
    folder, device = options.predictions / name, options.device
    standard = {kind(shift) for shift in STANDARD_SHIFTS}
    tests = {
        file.stem: thin(to_device(load_data_set(file), device), options.rows)
        for file in sorted(folder.glob("*.npz"))
        if file.stem != "cal" and file.stem not in standard
    }
    cal = to_device(load_data_set(folder / "cal.npz"), device)
    path = options.predictions / "shift_augmentation" / f"{name}.npz"
    if not path.exists():
        return cal, tests, None
    shifted = to_device(load_data_set(path), device)
    return cal, tests, add_augmentation(cal, shifted, standard, options.augmented)


def to_device(data: Labelled, device: str) -> Labelled:
    return data[0].to(device), data[1].to(device)


def thin(data: Labelled, rows: int) -> Labelled:
    chosen = np.random.default_rng(0).permutation(len(data[1]))[:rows]
    return data[0][chosen], data[1][torch.from_numpy(chosen).to(data[1].device)]


def add_augmentation(
    cal: Labelled, shifted: Labelled, kinds: Iterable[str], images: int
) -> Labelled:
    """Calibration rows with those of the first images under some kinds of shift."""
    predictions, labels = shifted
    names = [kind(name) for name in predictions.shift_names]
    wanted = torch.tensor([0, *(name in set(kinds) for name in names)], device=labels.device)
    rows = (wanted[predictions.shift] > 0) & (predictions.images() < images)
    unshifted, own = cal
    count, chosen = len(unshifted), predictions[rows]
    joined = Predictions(
        torch.cat([unshifted.logits, chosen.logits]),
        torch.cat([unshifted.view_logits, chosen.view_logits]),
        view_names=unshifted.view_names,
        shift=torch.cat([torch.zeros(count, device=own.device).long(), chosen.shift]),
        shift_names=predictions.shift_names,
        image=torch.cat([torch.arange(count, device=own.device), chosen.image]),
    )
    return joined, torch.cat([own, labels[rows]])


def measure(
    calibrator: rightly.Calibrator, test: Labelled, adapted: rightly.Calibrator | None
) -> Measured:
    """A calibrator on a test set, adapted to it if `adapted` is given."""
    predictions, labels = test
    correct = (calibrator.classes(predictions) == labels).cpu().numpy()
    one = calibrator if adapted is None else adapted.adapt(predictions)
    c = one.confidence(predictions).cpu().numpy()
    held = np.nan
    if adapted is not None:
        _, low, high = adapted.expected_accuracy(predictions)
        held = float(low <= correct.mean() <= high)
    return measure_pairs(c, correct, held)


def measure_pairs(c: np.ndarray, correct: np.ndarray, held: float = np.nan) -> Measured:
    rng = np.random.default_rng(0)
    floor = np.mean([ece(c, rng.random(len(c)) < c) for _ in range(FLOOR_DRAWS)])
    gap = float(c.mean() - correct.mean())
    return Measured(ece(c, correct), float(floor), brier(c, correct), auroc(c, correct), gap, held)


def format_table(tables: Mapping[str, Mapping[tuple[str, str], Measured]]) -> list[str]:
    base = tables[BASE]
    head = (
        "ECE id",
        "Brier",
        "AUROC",
        "excess",
        "",
        "gap",
        "Brier",
        "AUROC",
        "blur",
        "MAE",
        "held",
    )
    lines = [f"{'':44}" + "".join(f"{text:>9}" for text in head)]
    for method, values in tables.items():
        lines.append(f"{method:44}" + "".join(f"{text:>9}" for text in format_row(values, base)))
    return lines


def format_sets(tables: Mapping[str, Mapping[tuple[str, str], Measured]]) -> list[str]:
    """ECE in %, mean over classifiers: a line a test set, a column a method."""
    lines = ["ECE in %: " + "; ".join(tables)]
    for test in dict.fromkeys(test for _, test in tables[BASE]):
        means = [
            100 * np.mean([one.ece for (_, own), one in values.items() if own == test])
            for values in tables.values()
        ]
        lines.append(f"{test:16}" + "".join(f"{mean:9.2f}" for mean in means))
    return lines


def format_row(
    values: Mapping[tuple[str, str], Measured], base: Mapping[tuple[str, str], Measured]
) -> list[str]:
    pairs = {key: (values[key], base[key]) for key in values}
    inside = [pair for key, pair in pairs.items() if key[1] == IN_DISTRIBUTION]
    blurred = [pair for key, pair in pairs.items() if key[1] == EXTREME]
    unseen = [pair for key, pair in pairs.items() if key[1] not in (IN_DISTRIBUTION, EXTREME)]
    excess = np.array([[one.ece - one.floor for one in pair] for pair in unseen])
    share = excess[:, 0].mean() / excess[:, 1].mean()
    rng = np.random.default_rng(0)
    drawn = [excess[rng.integers(len(excess), size=len(excess))].mean(0) for _ in range(1000)]
    low, high = np.percentile([x / y for x, y in drawn], [2.5, 97.5])
    held = [one.held for one in values.values() if not np.isnan(one.held)]
    return [
        f"{100 * np.mean([x.ece - y.ece for x, y in inside]):+.2f}",
        f"{np.mean([x.brier / y.brier for x, y in inside]):.3f}",
        f"{100 * np.mean([x.auroc - y.auroc for x, y in inside]):+.2f}",
        f"{share:.2f}",
        f"{low:.2f}-{high:.2f}",
        f"{100 * np.mean([abs(x.gap) for x, _ in unseen]):.2f}",
        f"{np.mean([x.brier / y.brier for x, y in unseen]):.3f}",
        f"{100 * np.mean([x.auroc - y.auroc for x, y in unseen]):+.2f}",
        f"{np.mean([x.ece / y.ece for x, y in blurred]):.2f}" if blurred else "",
        f"{100 * np.mean([abs(one.gap) for one in values.values()]):.2f}",
        f"{100 * np.mean(held):.0f} %" if held else "",
    ]


def note_extras(
    extras: dict[str, list[float]],
    method: str,
    one: rightly.Calibrator,
    tests: Mapping[str, Labelled],
) -> None:
    """Bounds with labels, small batches and skewed classes."""

    def note(what: str, value: float) -> None:
        extras.setdefault(f"{method}: {what}", []).append(100 * value)

    unseen = [test for name, test in tests.items() if name not in (IN_DISTRIBUTION, EXTREME)]
    pairs = [
        (one.confidence(p).cpu().numpy(), (one.classes(p) == y).cpu().numpy()) for p, y in unseen
    ]
    for what, best in (("offset", False), ("line", True)):
        note(
            f"ECE under shift, best {what} with labels",
            mean_ece(best_line(*pair, best) for pair in pairs),
        )
    for size in (32, 64):
        adapted = [compute_outcomes(one, p, labels, ["ece"], size) for p, labels in unseen]
        pairs_adapted = [(each.confidence, each.correct) for each in adapted]
        note(f"ECE under shift, batches of {size}", mean_ece(pairs_adapted))
    inside = tests[IN_DISTRIBUTION]
    note("ECE less unadapted, skewed classes in distribution", measure_skew(one, inside))


def mean_ece(pairs: Iterable[tuple[np.ndarray, np.ndarray]]) -> float:
    return float(np.mean([ece(c, correct) for c, correct in pairs]))


def best_line(
    c: np.ndarray, correct: np.ndarray, with_slope: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Confidence after the offset, or line, through log-odds that the labels ask for."""
    s = logit(np.clip(c, 1e-9, 1 - 1e-9))

    def loss(t: np.ndarray) -> float:
        z = t[0] + (t[1] if with_slope else 1.0) * s
        return float(np.mean(np.logaddexp(0, z) - correct * z))

    t = minimize(loss, np.array([0.0, 1.0])).x
    return expit(t[0] + (t[1] if with_slope else 1.0) * s), correct


def measure_skew(one: rightly.Calibrator, inside: Labelled) -> float:
    predictions, labels = inside
    rng, truth, worse = np.random.default_rng(5), labels.cpu().numpy(), []
    for _ in range(SKEWED_STREAMS):
        share = rng.dirichlet(np.full(predictions.class_count, SKEW))[truth]
        rows = rng.choice(len(truth), STREAM, p=share / share.sum())
        batch = predictions[rows]
        correct = one.classes(batch).cpu().numpy() == truth[rows]
        both = [x.confidence(batch).cpu().numpy() for x in (one.adapt(batch), one)]
        worse.append(ece(both[0], correct) - ece(both[1], correct))
    return float(np.mean(worse))


def format_extras(extras: Mapping[str, Sequence[float]]) -> list[str]:
    return [f"{what:90}{np.mean(values):8.2f}" for what, values in extras.items()]


if __name__ == "__main__":
    main()
