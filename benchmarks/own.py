"""Measures Rightly's own calibrator against its bars, beside temperature scaling and all others.

    python benchmarks/own.py PREDICTIONS --classifiers resnet20,mobilenet \
        --shifts gaussian_blur,gaussian_noise [--rehearsal FOLDER [--strict]] [--ranks] \
        [--expected_shift 0.5] [--neighbours 1000] [--views hflip,translation] [--boosting] [--known]

PREDICTIONS/CLASSIFIER/{cal,ind,SHIFT}.npz hold predictions and labels, as `rightly.save` writes
them. FOLDER/CLASSIFIER.npz (see rehearsal.py) holds the same classifier's predictions for
calibration images under synthetic shifts, with the same views. No shift is judged by a calibrator
that has rehearsed it, with --strict none that has rehearsed one like it (any blur for a blur).
--classifiers all and --shifts all take all that lies there. --ranks also fits every other registry
entry that can be; --boosting also measures what it began from, gradient boosting on much
evidence; --known what could be had if each shift were known: fitted on half of each set, judged on
the other.
"""

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from sklearn.ensemble import HistGradientBoostingClassifier

import rightly
from rightly.evaluation.measurement import TABLE_METRICS, compare, measure
from rightly.metrics import METRICS
from rightly.predictions import Predictions
from rightly.tensor_shapes import Labels
from rightly.transforms.shifts import SHIFTS, kind

Data = tuple[Predictions, Labels]
Values = dict[str, dict[str, float]]  # set -> metric -> value
MEASURED = ("temperature_scaling", "rightly")
LOWER = {"ece": True, "brier": True, "ks": True, "auroc": False}
# In distribution: points of ECE, ratio of Brier, points of AUROC; under shift: ratios and points.
BARS = {
    "rightly": {"ece": 0.5, "brier": 0.95, "auroc": 1.3},
    "rightly, rehearsed": {"ece": 1.0, "brier": 0.95, "auroc": 1.3},
    "boosting": {"ece": 0.5, "brier": 0.95, "auroc": 1.3},
    "shift known": {"ece": 0.5, "brier": 0.95, "auroc": 1.3},
}
SHIFT_BARS = {
    "rightly": {"ece": 0.85, "brier": 0.90, "auroc": 2.5},
    "rightly, rehearsed": {"ece": 0.65, "brier": 0.85, "auroc": 3.5},
    "boosting": {"ece": 0.85, "brier": 0.90, "auroc": 2.5},
    "shift known": {"ece": 0.85, "brier": 0.90, "auroc": 2.5},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("predictions", type=Path)
    parser.add_argument("--classifiers", required=True)
    parser.add_argument("--shifts", required=True)
    parser.add_argument("--rehearsal", type=Path)
    parser.add_argument("--strict", action="store_true")
    parser.add_argument("--views")
    parser.add_argument("--ranks", action="store_true")
    parser.add_argument("--expected_shift", type=float, default=0.5)
    parser.add_argument("--neighbours", type=int, default=0)
    parser.add_argument("--boosting", action="store_true")
    parser.add_argument("--known", action="store_true")
    chosen = parser.parse_args()
    classifiers, shifts = chosen.classifiers.split(","), chosen.shifts.split(",")
    if classifiers == ["all"]:
        classifiers = sorted(file.parent.name for file in chosen.predictions.glob("*/cal.npz"))
    if shifts == ["all"]:
        files = (chosen.predictions / classifiers[0]).glob("*.npz")
        shifts = sorted({file.stem for file in files} - {"cal", "ind"})
    views = chosen.views.split(",") if chosen.views else None
    rows: dict[str, list[Values]] = {name: [] for name in MEASURED}
    for name in classifiers:
        folder = chosen.predictions / name
        cal = _loaded(folder / "cal.npz", views)
        tests = {one: _loaded(folder / f"{one}.npz", views) for one in ("ind", *shifts)}
        for method, arguments in (("temperature_scaling", {}), ("rightly", _options(chosen))):
            start = time.perf_counter()
            fitted = rightly.calibrator(method, **arguments).fit(*cal)
            seconds = time.perf_counter() - start
            rows[method].append({one: _measured(fitted, test) for one, test in tests.items()})
            print(f"{name}: {method} fitted in {seconds:.2f} s", flush=True)
        if chosen.boosting:
            rows.setdefault("boosting", []).append(_boosted(cal, tests))
        if chosen.known:
            known = {one: _known(test) for one, test in tests.items()}
            rows.setdefault("shift known", []).append(known)
        if chosen.rehearsal:
            rehearsal = _loaded(chosen.rehearsal / f"{name}.npz", views)
            values = _rehearsed(cal, rehearsal, tests, _options(chosen), chosen.strict)
            rows.setdefault("rightly, rehearsed", []).append(values)
        if chosen.ranks:
            others = [one for one in rightly.CALIBRATORS if one not in MEASURED and _able(one, cal)]
            for one in others:
                rows.setdefault(one, []).append({dataset: {} for dataset in tests})
            for row in compare(*cal, tests, others):
                rows[row.calibrator][-1][row.dataset][row.metric] = row.value
    _print_bars(rows, shifts)
    if chosen.ranks:
        _print_ranks(rows, shifts)


def _loaded(path: Path, views: Sequence[str] | None) -> Data:
    predictions, labels = rightly.load(path)
    return (predictions.with_views(views) if views else predictions), labels


def _able(name: str, cal: Data) -> bool:
    return all(getattr(cal[0], need) is not None for need in rightly.CALIBRATORS[name].needs)


def _options(chosen: argparse.Namespace) -> dict[str, float]:
    return {"expected_shift": chosen.expected_shift, "neighbours": chosen.neighbours}


def _measured(fitted: rightly.Calibrator, test: Data) -> dict[str, float]:
    return measure(fitted, *test, TABLE_METRICS)


def _boosted(cal: Data, tests: dict[str, Data]) -> Values:
    """Gradient boosting on all that seemed to speak of correctness."""
    model = HistGradientBoostingClassifier(
        max_iter=150,
        learning_rate=0.05,
        max_leaf_nodes=15,
        l2_regularization=5.0,
        min_samples_leaf=50,
        random_state=0,
    )
    temperature = rightly.calibrator("temperature_scaling").fit(*cal).temperature(cal[0])[0]
    model.fit(_much_evidence(cal[0], temperature), cal[0].correct(cal[1]).numpy())
    values = {}
    for name, (shown, truth) in tests.items():
        confidence = model.predict_proba(_much_evidence(shown, temperature))[:, 1]
        correct = shown.correct(truth).numpy()
        values[name] = {key: METRICS[key].measure(confidence, correct) for key in TABLE_METRICS}
    return values


def _known(test: Data) -> dict[str, float]:
    """Each half of a set measured by what was fitted on the other half."""
    shown, truth = test
    even = torch.arange(len(shown)) % 2 == 0
    confidence = np.zeros(len(shown))
    for half in (even, ~even):
        fitted = rightly.calibrator("rightly", expected_shift=0.0).fit(shown[half], truth[half])
        confidence[~half] = fitted.confidence(shown[~half]).numpy()
    correct = shown.correct(truth).numpy()
    return {key: METRICS[key].measure(confidence, correct) for key in TABLE_METRICS}


def _much_evidence(predictions: Predictions, temperature: torch.Tensor) -> np.ndarray:
    """Top-4 scores of image and views and their logs, agreement, inner products, entropies."""
    own = (predictions.logits.double() / temperature).softmax(-1)
    views = (predictions.view_logits.double() / temperature).softmax(-1)
    top = own.topk(4)
    seen = views.gather(-1, top.indices[:, None].expand(-1, views.shape[1], -1))
    agrees = (views.argmax(-1) == own.argmax(-1)[:, None]).double()
    columns = [
        top.values,
        top.values.clamp_min(1e-9).log(),
        seen.flatten(1),
        seen.clamp_min(1e-9).log().flatten(1),
        seen[:, :, 0].mean(1, keepdim=True),
        seen[:, :, 0].amin(1, keepdim=True),
        agrees,
        agrees.mean(1, keepdim=True),
        (views * own[:, None]).sum(-1),
        torch.special.entr(own).sum(-1, keepdim=True),
        torch.special.entr(views).sum(-1),
        (predictions.logits.double() / temperature).logsumexp(-1, keepdim=True),
        (predictions.view_logits.double() / temperature).logsumexp(-1),
    ]
    return torch.cat(columns, 1).numpy()


def _rehearsed(
    cal: Data, rehearsal: Data, tests: dict[str, Data], options: dict, strict: bool
) -> Values:
    """Each test set judged after rehearsing all shifts but its own, or all but those like it."""
    shown, truth = rehearsal
    like = _module if strict else kind
    names = cal[0].view_names
    plain = Predictions(
        cal[0].logits, cal[0].view_logits, view_names=names, image=np.arange(len(cal[0]))
    )
    # Rehearsal shows the first images of cal, in their order, under one shift after the other.
    image = np.zeros(len(shown), np.int64)
    for number in np.unique(shown.shift):
        image[shown.shift == number] = np.arange(int((shown.shift == number).sum()))
    shown = Predictions(
        shown.logits,
        shown.view_logits,
        view_names=names,
        shift=shown.shift,
        shift_names=shown.shift_names,
        image=image,
    )
    kinds = [like(shift) for shift in shown.shift_names]
    values = {}
    for name, test in tests.items():
        kept = torch.tensor([False, *(other != like(name) for other in kinds)])[shown.shift]
        joined = rightly.concatenate([plain, shown[kept]])
        start = time.perf_counter()
        fitted = rightly.calibrator("rightly", **options).fit(
            joined, torch.cat([cal[1], truth[kept]])
        )
        seconds, weight = time.perf_counter() - start, float(fitted.learned()["rehearsed"])
        count = len(shown.shift[kept].unique())
        print(f"  {name}: rehearsed {count} shifts at {weight:g} in {seconds:.1f} s", flush=True)
        values[name] = _measured(fitted, test)
    return values


def _module(name: str) -> str:
    known = SHIFTS.get(kind(name))
    return name if known is None else known.transform.__module__


def _print_bars(rows: dict[str, list[Values]], shifts: Sequence[str]) -> None:
    base = {side: _mean(rows["temperature_scaling"], sets) for side, sets in _sides(shifts)}
    print(f"\n{'':22}{'in distribution':34}unseen shifts")
    heads = "   ece  brier     ks  auroc" + "       "
    print(f"{'':22}{heads}{heads}")
    for name in ("temperature_scaling", *BARS):
        if name in rows:
            means = [_mean(rows[name], sets) for _, sets in _sides(shifts)]
            print(f"{name:22}" + "       ".join(_numbers(mean) for mean in means))
    print("\nagainst temperature scaling: in distribution ece +points, brier ratio, auroc +points;")
    print("under shift ece ratio, brier ratio, auroc +points; the bar in brackets")
    for name in BARS:
        if name not in rows:
            continue
        told = []
        for (side, sets), bars in zip(_sides(shifts), (BARS[name], SHIFT_BARS[name]), strict=True):
            mean, own = _mean(rows[name], sets), base[side]
            ece = 100 * (mean["ece"] - own["ece"]) if side == "ind" else mean["ece"] / own["ece"]
            found = {
                "ece": ece,
                "brier": mean["brier"] / own["brier"],
                "auroc": 100 * (mean["auroc"] - own["auroc"]),
            }
            for metric, value in found.items():
                reached = value <= bars[metric] if LOWER[metric] else value >= bars[metric]
                told.append(f"{metric} {value:.3f} ({bars[metric]}{'' if reached else ' MISSED'})")
        print(f"{name:20} " + "  ".join(told))


def _print_ranks(rows: dict[str, list[Values]], shifts: Sequence[str]) -> None:
    """Mean rank over classifiers, sets and the four metrics, among all registry entries."""
    names = [name for name in rows if name in rightly.CALIBRATORS]
    ranks = {}
    for side, sets in _sides(shifts):
        places = []
        for i in range(len(rows["rightly"])):
            for one in sets:
                for metric, lower in LOWER.items():
                    values = np.array([rows[name][i][one][metric] for name in names])
                    places.append(np.argsort(np.argsort(values if lower else -values)) + 1)
        ranks[side] = np.mean(places, 0)
    print(f"\nmean rank among {len(names)}{'in distribution':>25}{'unseen shifts':>16}")
    for i in np.argsort(ranks["ind"] + ranks["shifts"]):
        print(f"{names[i]:34}{ranks['ind'][i]:8.2f}{ranks['shifts'][i]:16.2f}")


def _sides(shifts: Sequence[str]) -> list[tuple[str, Sequence[str]]]:
    return [("ind", ["ind"]), ("shifts", shifts)]


def _mean(values: Sequence[Values], sets: Sequence[str]) -> dict[str, float]:
    return {
        metric: float(np.mean([one[name][metric] for one in values for name in sets]))
        for metric in TABLE_METRICS
    }


def _numbers(mean: dict[str, float]) -> str:
    return " ".join(f"{100 * mean[metric]:6.2f}" for metric in TABLE_METRICS)


if __name__ == "__main__":
    main()
