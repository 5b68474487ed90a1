"""Rows that stand where other rows should: leaked, of another image, or not shifted at all."""

from collections.abc import Iterator, Mapping

import numpy as np

from rightly.evaluation.data_sets import name_shift
from rightly.evaluation.examination.findings import ERROR, WARNING, Finding
from rightly.evaluation.examination.near_rows import are_near, measure_near
from rightly.evaluation.examination.scores import find_no_logits, find_rounded
from rightly.evaluation.leakage import CalibrationData
from rightly.predictions import Predictions
from rightly.predictions.masking import fill_masked
from rightly.predictions.rows import MAX_OVERLAP

WIDTH = 16  # dimensions that logits are projected to, where there are more classes
FEWEST = 30  # rows
EQUAL = 0.99  # share of rows that must be alike for shifts to be copies
EQUAL_VIEWS = 0.95  # and for views: a copy in so many rows tells next to nothing
BLOCKS, BLOCK = 10, 100  # parts of the rows that views are looked at in, and their least size
SAME_SETS = 0.5  # share of the rows of one test set that are in another
ORDERS = 20  # random orders that views are compared with
UNRELATED = 4.0  # standard deviations above random orders
ANOTHER_ORDER = 6.0  # standard errors by which another order must be better
ALIKE = 0.3  # that another order must make the logits, to be named
UNSHIFTED_CHANGE = 0.003  # mean change of confidence, that rounding may leave


def find_leaks(name: str, cal: Predictions, predictions: Predictions) -> Iterator[Finding]:
    """Calibration rows among test rows, and predictions of another classifier."""
    known = CalibrationData.of_predictions(cal)
    assert known.rows is not None
    share, kind = known.rows.measure_shared(predictions)
    same = "the same images as calibration rows"
    if kind != "image_hash":
        share, same = (
            measure_near(predictions, cal),
            "the logits of calibration rows, but for rounding",
        )
    if share > MAX_OVERLAP:
        yield Finding(
            name,
            "calibration_rows",
            ERROR,
            f"{share:.1%} of the rows have {same}, so that results on them look too good",
            "take test samples that are not calibrated on",
        )
    prints = known.fingerprint, predictions.fingerprint
    if None not in prints and prints[0] != prints[1]:
        yield Finding(
            name,
            "another_classifier",
            ERROR,
            f"the rows come from another classifier (fingerprint {str(prints[1])[:12]}) than the "
            f"calibration rows ({str(prints[0])[:12]})",
            "collect both from one classifier",
        )


def find_equal_sets(sets: Mapping[str, Predictions]) -> Iterator[Finding]:
    """Test sets with the same logits, though one should be shifted."""
    names = list(sets)
    for i, name in enumerate(names):
        for other in names[:i]:
            share = measure_near(sets[name], sets[other])
            if share > SAME_SETS:
                yield Finding(
                    name,
                    "no_shift",
                    ERROR,
                    f"{share:.1%} of the rows have the logits of rows of {other}, but for "
                    "rounding: where one of them should be shifted, nothing was",
                    "collect it again from the shifted images",
                )


def find_bad_views(name: str, predictions: Predictions) -> Iterator[Finding]:
    """Views that are the image itself, or that belong to other images."""
    views = predictions.view_logits
    if views is None or len(predictions) < FEWEST:
        return
    logits, disordered = predictions.logits, {}
    image = _project(logits.cpu().double().numpy(), fill_masked(logits).cpu().double().numpy())
    for j, view in enumerate(predictions.view_names):
        equal = float(are_near(views[:, j], logits).double().mean())
        if equal > EQUAL_VIEWS:
            yield Finding(
                name,
                "view_is_image",
                WARNING,
                f"the view {view} has the logits of the image in {equal:.1%} of the rows, but for "
                "rounding: it changes nothing and tells nothing",
                "leave it out, or see that the transform was applied (grey images have no colour "
                "to take away)",
            )
            continue
        what = f"the logits of the view {view}"
        no_logits = find_no_logits(name, views[:, j], what) or find_rounded(name, views[:, j], what)
        if no_logits is not None:
            yield no_logits
            continue
        filled = fill_masked(views[:, j])
        looks = _project(views[:, j].cpu().double().numpy(), filled.cpu().double().numpy())
        problem = _find_disorder(image, looks)
        if problem:
            disordered[view] = problem
    if disordered:
        names = ", ".join(disordered)
        shown = f"the view {names} shows" if len(disordered) == 1 else f"the views {names} show"
        yield Finding(
            name,
            "view_of_other_images",
            ERROR,
            f"{shown} other images than {'its' if len(disordered) == 1 else 'their'} rows: "
            f"{next(iter(disordered.values()))}",
            "give view_logits the order of logits; shape (n, views, c), not (views, n, c) reshaped",
        )


def _project(raw: np.ndarray, logits: np.ndarray) -> np.ndarray:
    """Logits less their means over rows and classes, in few dimensions."""
    centred = logits - logits.mean(1, keepdims=True)
    if raw.shape[1] > WIDTH:
        directions = np.random.default_rng(0).standard_normal((raw.shape[1], WIDTH))
        centred = centred @ directions
    centred = centred - centred.mean(0)
    # By rows of one length, so that no sample outweighs the others.
    length = np.linalg.norm(centred, axis=1, keepdims=True)
    unit: np.ndarray = centred / np.where(length > 0, length, 1)
    return unit


def _find_disorder(image: np.ndarray, view: np.ndarray) -> str:
    """How the rows of a view miss those of their images; empty where they do not."""
    n, rng = len(image), np.random.default_rng(0)
    own = (image * view).sum(1)
    random = [(image * view[rng.permutation(n)]).sum(1).mean() for _ in range(ORDERS)]
    above = float((own.mean() - np.mean(random)) / max(float(np.std(random, ddof=1)), 1e-12))
    # All cyclic orders at once: correlations by Fourier transforms.
    spectrum = np.fft.rfft(image, axis=0).conj() * np.fft.rfft(view, axis=0)
    by_shift = np.fft.irfft(spectrum.sum(1), n) / n
    moved = int(by_shift.argmax())
    rolled = (image * np.roll(view, -moved, axis=0)).sum(1)
    reverse = (image * view[::-1]).sum(1)
    step = moved if moved <= n // 2 else moved - n
    orders = {f"moved by {step:+d} rows": rolled, "in reverse order": reverse}
    order, other = max(orders.items(), key=lambda item: float(item[1].mean()))
    gain = other - own
    is_surer = gain.mean() > ANOTHER_ORDER * max(float(gain.std(ddof=1)) / np.sqrt(n), 1e-12)
    if is_surer and other.mean() > ALIKE:
        return (
            f"their logits are alike by {other.mean():.2f} (1 for equal ones) if its rows are "
            f"{order}, and by {own.mean():.2f} as they stand"
        )
    if above < UNRELATED:
        return (
            f"their logits are alike by {own.mean():.2f} (1 for equal ones), no more than in a "
            f"random order ({np.mean(random):.2f})"
        )
    return _find_disordered_block(image, view, own, rng)


def _find_disordered_block(
    image: np.ndarray, view: np.ndarray, own: np.ndarray, rng: np.random.Generator
) -> str:
    """The same for parts of the rows, such as shards, where the others are in order."""
    if len(own) < BLOCKS * BLOCK:
        return ""
    blocks = np.array_split(np.arange(len(own)), BLOCKS)
    best = max(float(own[block].mean()) for block in blocks)
    for block in blocks:
        orders = (rng.permutation(block) for _ in range(ORDERS))
        random = [float((image[block] * view[order]).sum(1).mean()) for order in orders]
        here = float(own[block].mean())
        if here < best / 2 and here - np.mean(random) < UNRELATED * np.std(random, ddof=1):
            return (
                f"in rows {block[0]} to {block[-1]} their logits are alike by {here:.2f} (1 for "
                f"equal ones), no more than in a random order, and elsewhere by up to {best:.2f}"
            )
    return ""


def find_unshifted(name: str, predictions: Predictions) -> Iterator[Finding]:
    """Rows marked as shifted that are as the unshifted ones of the same images."""
    if predictions.shift is None or predictions.image is None:
        return
    shift, image = predictions.shift.cpu().numpy(), predictions.image.cpu().numpy()
    confidence = predictions.confidence.cpu().numpy()
    classes, clean = predictions.classes.cpu().numpy(), np.flatnonzero(shift == 0)
    known, at = np.unique(image[clean], return_index=True)
    for value in np.unique(shift[shift > 0]).tolist():
        rows = np.flatnonzero((shift == value) & np.isin(image, known))
        if len(rows) < FEWEST:
            continue
        same = clean[at[np.searchsorted(known, image[rows])]]
        change = float(np.abs(confidence[rows] - confidence[same]).mean())
        alike = float((classes[rows] == classes[same]).mean())
        if change < UNSHIFTED_CHANGE and alike > EQUAL:
            title = name_shift(name, value, predictions.shift_names)
            yield Finding(
                name,
                "no_shift",
                ERROR,
                f"the rows of the shift {title} are as those without: the predicted class is the "
                f"same in {alike:.1%} of {len(rows)} images, and the confidence changes by "
                f"{change:.4f} on average",
                "see that the shift was applied, and at a severity that changes images",
            )
