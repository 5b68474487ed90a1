"""From an evaluation to the test sets of a study: arrays, mistakes, groups, and what views cost."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from torch import Tensor

from rightly.calibrators import Calibrator
from rightly.evaluation.data_sets import LabelledSet, TestSets
from rightly.evaluation.evaluate import Evaluation
from rightly.evaluation.groups import GroupNames
from rightly.evaluation.views import ViewRanking, measure_passes, rank_views
from rightly.predictions import Predictions
from rightly.progress import Progress
from rightly.reporting.html.study import (
    UNSHIFTED_PICTURES,
    WORST,
    Example,
    Pictures,
    SetSizes,
    StudySet,
)

MOST_VIEWS = 3  # of which it is told what they gain beside all


def rank_own_views(
    fitted: Calibrator, data: LabelledSet | None, progress: Progress
) -> ViewRanking | None:
    """What up to three of its views gain on the calibration data, where both are there."""
    if data is None or not fitted.view_names:
        return None
    progress("ranking views", 1, 1)
    return rank_views(fitted.select_views(data[0]), data[1], most=MOST_VIEWS)


def note_pictures(evaluation: Evaluation, pictures: Pictures | None) -> tuple[str, ...]:
    sets = [test for test, _ in evaluation.tests.values()]
    is_shifted = any(test.shift is not None and bool(test.shift.any()) for test in sets)
    return (UNSHIFTED_PICTURES,) if pictures is not None and is_shifted else ()


def build_sets(
    evaluation: Evaluation,
    pictures: Pictures | None = None,
    groups: Mapping[str, GroupNames] | None = None,
) -> list[StudySet]:
    """The arrays behind an evaluation, with its most confident mistakes."""
    fitted = evaluation.calibrator
    sets = []
    for name, (test, truth) in evaluation.tests.items():
        one = StudySet(
            name,
            test.confidence.cpu().numpy(),
            fitted.confidence(test).cpu().numpy(),
            fitted.classes(test).cpu().numpy(),
            truth.cpu().numpy(),
            (fitted.classes(test) == truth).cpu().numpy(),
            evaluation.sets[name],
            correct_before=test.correct(truth).cpu().numpy(),
            groups=(groups or {}).get(name),
            passes=measure_passes(fitted, test),
            prediction_sets=measure_sets(fitted, test, truth),
            decision=evaluation.decisions.get(name),
        )
        rows = find_worst_mistakes(one)
        examples = [
            Example(row) if pictures is None else pictures.find_example(name, row) for row in rows
        ]
        sets.append(replace(one, examples=examples))
    return sets


def measure_sets(fitted: Calibrator, test: Predictions, truth: Tensor) -> SetSizes | None:
    """Sizes and coverage of the prediction sets, where the calibrator carries them."""
    if fitted.sets is None:
        return None
    contains = fitted.prediction_sets(test).cpu()
    covered = contains.gather(1, truth.cpu()[:, None])[:, 0]
    return SetSizes(contains.sum(-1).numpy(), covered.numpy())


def find_worst_mistakes(one: StudySet, most: int = WORST) -> list[int]:
    """Rows of the wrong predictions that stay most confident after calibration."""
    wrong = np.flatnonzero(~one.correct)
    return [int(i) for i in wrong[np.argsort(-one.after[wrong], kind="stable")][:most]]


def check_names(names: Sequence[str] | None, tests: TestSets) -> Sequence[str] | None:
    """Names of classes, or those that the test sets carry; one for each class."""
    test = next(iter(tests.values()))[0]
    names = names or test.class_names
    if names is not None and len(names) != test.class_count:
        raise ValueError(
            f"class_names must have one name for each of {test.class_count} classes, got "
            f"{len(names)}"
        )
    return names
