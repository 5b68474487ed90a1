"""What sets of views gain per forward pass, against temperature scaling without views.

    python -m benchmarks.own.view_sets UNSEEN/resnet20 [--sets "hflip; hflip,translation,zoom"]

The folder holds {cal,ind,SHIFT...}.npz as collect_unseen_shifts writes them. A line a set
of views: ratio of Brier scores and points of AUROC in distribution, and their means over shifts.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import rightly
from benchmarks.own.evaluate_own import OWN
from benchmarks.own.targets import BASE
from rightly import metrics
from rightly.evaluation.data_sets import LabelledSet, load_data_set

SETS = (
    "; rotation,grayscale,color_jitter; hflip; hflip,translation; hflip,zoom; "
    "hflip,translation,zoom; hflip,translation,rotation; hflip,translation,zoom,grayscale; all"
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sets", default=SETS, help="lists of views joined by semicolons, or all")
    options = parser.parse_args()
    data = {path.stem: load_data_set(path) for path in sorted(options.folder.glob("*.npz"))}
    print(f"{'passes':6}  {'ind':>14}  {'shifts':>14}  views")
    for text in options.sets.split(";"):
        names = [name.strip() for name in text.split(",") if name.strip()]
        if names == ["all"]:
            names = list(data["cal"][0].view_names)
        (brier, auroc), (shifted_brier, shifted_auroc) = measure_views(data, names)
        ind, shifts = f"{brier:.3f} {auroc:+.2f}", f"{shifted_brier:.3f} {shifted_auroc:+.2f}"
        print(f"{1 + len(names):6}  {ind:>14}  {shifts:>14}  {','.join(names)}", flush=True)


def measure_views(
    data: dict[str, LabelledSet], names: Sequence[str]
) -> tuple[np.ndarray, np.ndarray]:
    """Ratio of Brier scores and points of AUROC: in distribution, and means over shifts."""
    own = rightly.calibrator(OWN).fit(select(data["cal"], names)[0], data["cal"][1])
    base = rightly.calibrator(BASE).fit(select(data["cal"], ())[0], data["cal"][1])
    gains = {name: compare_on(own, base, one, names) for name, one in data.items() if name != "cal"}
    ind = gains.pop("ind")
    return ind, np.mean(list(gains.values()), 0)


def compare_on(
    own: rightly.Calibrator, base: rightly.Calibrator, data: LabelledSet, names: Sequence[str]
) -> np.ndarray:
    correct = data[0].correct(data[1]).numpy()
    confidence = own.confidence(select(data, names)[0]).numpy()
    reference = base.confidence(select(data, ())[0]).numpy()
    ratio = metrics.brier(confidence, correct) / metrics.brier(reference, correct)
    points = 100 * (metrics.auroc(confidence, correct) - metrics.auroc(reference, correct))
    return np.array([ratio, points])


def select(data: LabelledSet, names: Sequence[str]) -> LabelledSet:
    """The same with these views only."""
    predictions, labels = data
    return (predictions.with_views(names) if names else predictions.without_views()), labels


if __name__ == "__main__":
    main()
