"""Streams that change, mix or fool adaptation: what it gains or costs there.

    python -m benchmarks.own.streams OUT [--classifiers all] [--rows 2000] [--augmented 1000]

OUT is what collect_unseen_shifts or collect_imagenet_shifts wrote; the kinds of STANDARD_SHIFTS are
fitted to, the others are unseen. A line a stream, means over classifiers and unseen shifts: the gap
between mean confidence and accuracy (points, too confident above 0) and ECE (%), before and after
adapting without labels.
"""

import argparse
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

import rightly
from benchmarks.own.adapting import Labelled, load_classifier
from benchmarks.own.evaluate_own import OWN
from benchmarks.own.targets import BASE, IN_DISTRIBUTION, list_classifiers
from rightly.evaluation.measurement import adapt_in_batches
from rightly.metrics import ece
from rightly.predictions import Predictions

BATCH, BLOCK = 64, 16
NEVER_SEEN, RELABELLED = 0.2, 0.3  # shares of the classes
CONFIDENT, DOUBTFUL = 0.9, (0.3, 0.6)
BINS = 20  # of confidence, in which a shifted sample takes the place of an unshifted one


class Part(NamedTuple):
    """Samples in order, whether each is right, and which of them are judged."""

    predictions: Predictions
    correct: np.ndarray
    judged: np.ndarray | slice = slice(None)


class Row(NamedTuple):
    """Gap in points and ECE in %, before and after adapting."""

    gap: float
    adapted_gap: float
    ece: float
    adapted_ece: float


class Data(NamedTuple):
    """One classifier: what is fitted to, the test set in distribution, and unseen shifts of it."""

    cal: Labelled
    inside: Labelled
    shifts: list[Labelled]


Adapt = Callable[[rightly.Calibrator, Predictions], np.ndarray]


def adapt_whole(one: rightly.Calibrator, p: Predictions) -> np.ndarray:
    return one.adapt(p).confidence(p).cpu().numpy()


def adapt_batches(one: rightly.Calibrator, p: Predictions) -> np.ndarray:
    batches = adapt_in_batches(one, p, BATCH)
    return np.concatenate([adapted.confidence(batch).cpu().numpy() for adapted, batch in batches])


def observe_blocks(one: rightly.Calibrator, p: Predictions) -> np.ndarray:
    stream = rightly.Stream(one, window=BATCH)
    parts = [p[start : start + BLOCK] for start in range(0, len(p), BLOCK)]
    return np.concatenate([stream.observe(part).cpu().numpy() for part in parts])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("predictions", type=Path)
    parser.add_argument("--classifiers", default="all")
    parser.add_argument("--rows", type=int, default=2000, help="of each test set")
    parser.add_argument("--augmented", type=int, default=1000, help="images a shift to fit on")
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    warnings.filterwarnings("ignore", message="the shift estimate of this batch")
    table: dict[tuple[str, str], list[Row]] = {}
    for name in list_classifiers(options.predictions, options.classifiers):
        for method, data in load_settings(name, options):
            fitted = rightly.calibrator(method.partition(",")[0]).fit(*data.cal)
            fitted.learn_shift(*data.cal)
            for what, row in measure_streams(fitted, data):
                table.setdefault((what, method), []).append(row)
        print(f"{name} measured", flush=True)
    print("", *format_table(table), sep="\n")


def load_settings(name: str, options: argparse.Namespace) -> Iterator[tuple[str, Data]]:
    """Methods with what they are fitted to."""
    cal, tests, augmented = load_classifier(name, options)
    inside = tests.pop(IN_DISTRIBUTION)
    views = Data(cal, inside, list(tests.values()))
    yield BASE, views
    yield f"{OWN}, views", views
    if augmented is not None:
        yield f"{OWN}, augmented", views._replace(cal=augmented)


def measure_streams(one: rightly.Calibrator, data: Data) -> Iterator[tuple[str, Row]]:
    """Every stream with its row, for a calibrator fitted to data.cal."""
    yield "in distribution", measure(one, [mark(one, data.inside)])
    changing = [change_midway(one, data.inside, shifted) for shifted in data.shifts]
    yield f"shift changes amid batches of {BATCH}", measure(one, changing, adapt_batches)
    yield f"the same, rightly.Stream, window {BATCH}", measure(one, changing, observe_blocks)
    mixed = [mix(one, data.inside, shifted) for shifted in data.shifts]
    whole = [part._replace(judged=slice(None)) for part in mixed]
    yield "half shifted, mixed", measure(one, whole)
    for what, is_shifted in (("unshifted", False), ("shifted", True)):
        parts = [part._replace(judged=part.judged == is_shifted) for part in mixed]
        yield f"half shifted, mixed: the {what}", measure(one, parts)
    yield "a shift that keeps confidence high", measure(one, [match_confidence(one, data)])
    yield "a fifth of the classes never seen", measure_never_seen(one, data)
    yield "three tenths of the classes relabelled", measure(one, [relabel(one, data.inside)])
    yield "one in five a confident mistake", measure(one, [choose_mistakes(one, data.inside)])
    yield "doubtful ones among easy ones", measure(one, [hide_among_easy(one, data.inside)])


def measure(one: rightly.Calibrator, parts: list[Part], adapt: Adapt = adapt_whole) -> Row:
    """Means over the parts."""
    rows = []
    for p, correct, judged in parts:
        right = correct[judged]
        both = [c[judged] for c in (one.confidence(p).cpu().numpy(), adapt(one, p))]
        gaps = [100 * (c.mean() - right.mean()) for c in both]
        rows.append(Row(*gaps, *(100 * ece(c, right) for c in both)))
    return Row(*np.mean(rows, 0))


def mark(one: rightly.Calibrator, data: Labelled) -> Part:
    return Part(data[0], (one.classes(data[0]) == data[1]).cpu().numpy())


def join(first: Part, second: Part) -> Part:
    """Both, with the second's samples judged."""
    joined = rightly.concatenate([first.predictions, second.predictions])
    judged = np.arange(len(joined)) >= len(first.predictions)
    return Part(joined, np.concatenate([first.correct, second.correct]), judged)


def take(part: Part, rows: np.ndarray) -> Part:
    judged = part.judged if isinstance(part.judged, slice) else part.judged[rows]
    return Part(part.predictions[rows], part.correct[rows], judged)


def change_midway(one: rightly.Calibrator, inside: Labelled, shifted: Labelled) -> Part:
    """Unshifted and shifted samples by turns of a batch, half a batch out of step with batches."""
    both = join(mark(one, inside), mark(one, shifted))
    count = min(len(inside[1]), len(shifted[1])) // BATCH
    turns = np.arange(count * BATCH).reshape(count, BATCH)
    order = np.stack([turns, turns + len(inside[1])], 1).ravel()
    return take(both, order[BATCH // 2 :])._replace(judged=slice(None))


def mix(one: rightly.Calibrator, inside: Labelled, shifted: Labelled) -> Part:
    """As many unshifted as shifted samples in one batch; `judged` tells the shifted ones."""
    both = join(mark(one, inside), mark(one, shifted))
    count = min(len(inside[1]), len(shifted[1]))
    return take(both, np.r_[:count, len(inside[1]) : len(inside[1]) + count])


def match_confidence(one: rightly.Calibrator, data: Data) -> Part:
    """Shifted samples, chosen so that their confidences are distributed as in distribution."""
    rng = np.random.default_rng(3)
    usual = one.confidence(data.inside[0]).cpu().numpy()
    edges = np.quantile(usual, np.linspace(0, 1, BINS + 1)[1:-1])
    pool = mark(one, data.shifts[0])
    for shifted in data.shifts[1:]:
        pool = join(pool, mark(one, shifted))
    bins = np.digitize(one.confidence(pool.predictions).cpu().numpy(), edges)
    each = len(usual) // BINS
    members = (np.flatnonzero(bins == k) for k in range(BINS))
    rows = np.concatenate([rng.choice(rows, each) for rows in members if len(rows)])
    return take(pool, rows)._replace(judged=slice(None))


def measure_never_seen(one: rightly.Calibrator, data: Data) -> Row:
    """All images, to a classifier from which the last classes were taken, fitted without them."""
    kept = data.cal[0].class_count - round(NEVER_SEEN * data.cal[0].class_count)
    known = data.cal[1] < kept
    without = drop_classes(data.cal[0], kept)[known]
    labels = data.cal[1][known]
    fitted = rightly.calibrator(one.method).fit(without, labels).learn_shift(without, labels)
    return measure(fitted, [mark(fitted, (drop_classes(data.inside[0], kept), data.inside[1]))])


def drop_classes(p: Predictions, kept: int) -> Predictions:
    views = None if p.view_logits is None else p.view_logits[..., :kept]
    shifts = {"shift": p.shift, "shift_names": p.shift_names, "image": p.image}
    present = shifts if p.shift is not None else {}
    return Predictions(p.logits[:, :kept], views, view_names=p.view_names, **present)


def relabel(one: rightly.Calibrator, inside: Labelled) -> Part:
    """The images of some classes bear the label of the class that follows."""
    predictions, labels = inside
    count = predictions.class_count
    moved = torch.where(labels < RELABELLED * count, (labels + 1) % count, labels)
    return mark(one, (predictions, moved))


def choose_mistakes(one: rightly.Calibrator, inside: Labelled) -> Part:
    """Confident samples, one in five of them wrong."""
    part, rng = mark(one, inside), np.random.default_rng(7)
    confident = one.confidence(inside[0]).cpu().numpy() > CONFIDENT
    wrong = np.flatnonzero(~part.correct & confident)
    right = rng.choice(np.flatnonzero(part.correct & confident), 4 * len(wrong))
    return take(part, np.concatenate([wrong, right]))


def hide_among_easy(one: rightly.Calibrator, inside: Labelled) -> Part:
    """Doubtful samples, which are judged, in a batch that somebody filled up with easy ones."""
    part, c = mark(one, inside), one.confidence(inside[0]).cpu().numpy()
    doubtful = np.flatnonzero((c > DOUBTFUL[0]) & (c < DOUBTFUL[1]))
    easy = np.argsort(-c)[: len(c) // 2]
    rows = np.concatenate([doubtful, easy])
    return take(part, rows)._replace(judged=np.arange(len(rows)) < len(doubtful))


def format_table(table: dict[tuple[str, str], list[Row]]) -> list[str]:
    heads = ("gap", "adapted", "ECE", "adapted")
    lines = [f"{'':42}{'':34}" + "".join(f"{head:>9}" for head in heads)]
    for what, method in sorted(table, key=lambda key: list(table).index((key[0], BASE))):
        values = np.mean(table[what, method], 0)
        cells = [*(f"{x:+9.2f}" for x in values[:2]), *(f"{x:9.2f}" for x in values[2:])]
        lines.append(f"{what:42}{method:34}" + "".join(cells))
    return lines


if __name__ == "__main__":
    main()
