"""What held-out samples say: which views are of use, and how far to follow the fit.

Temperature scaling is the model whose only weight is 1, that of the image's log-odds. What does no
better on samples that it was not fitted on is left at that.
"""

import torch
from torch import Tensor
from torch.nn import functional

from rightly.calibrators.correctness_logistic.samples import Samples
from rightly.calibrators.correctness_logistic.settings import SETTINGS, Settings
from rightly.calibrators.correctness_logistic.two_stage_fit import TwoStageFit
from rightly.calibrators.evidence import view_log_odds
from rightly.calibrators.solvers.ridge_logistic import Solution
from rightly.predictions import Predictions
from rightly.tensor_shapes import Features, Labels, PerSampleBool


def select_views(
    predictions: Predictions, labels: Labels, temperature: float, settings: Settings = SETTINGS
) -> list[int]:
    """The views that tell right from wrong by themselves, by log loss on held-out samples.

    What a view adds to the image is for the regression to say. But one that shows noise or another
    image must not stand in for a shifted image, nor be pooled with views that are of use.
    """
    if predictions.view_logits is None:
        return []
    every = -(-len(predictions) // settings.view_rows)
    sample, truth = predictions[::every], labels[::every]
    log_odds = view_log_odds(sample, temperature)
    columns = torch.stack([log_odds.same, log_odds.other, log_odds.likeliest], 2).cpu()
    correct = (sample.classes == truth).cpu()
    most = _cross_fit_loss(columns[:, 0, :0], correct, settings) - settings.least_view_gain
    losses = [_cross_fit_loss(view, correct, settings) for view in columns.unbind(1)]
    return [view for view, loss in enumerate(losses) if loss < most]


def _cross_fit_loss(columns: Features, correct: PerSampleBool, settings: Settings) -> float:
    """Log loss of logistic regression, each sample's after a fit without its fold.

    The fit is one Newton step from a constant, which is enough to tell something from nothing.
    """
    target = correct.double()
    centred = columns - columns.mean(0)
    scale = centred.square().mean(0).sqrt().clamp_min(1e-9)
    design = torch.cat([torch.ones_like(target)[:, None], centred / scale], 1)
    penalty = torch.full((design.shape[1],), settings.min_ridge, dtype=torch.float64)
    mean = (target.sum() + 1) / (len(target) + 2)
    fold = torch.arange(len(target)) % settings.held_out_folds
    logits = torch.logit(mean).expand(len(target)).clone()
    for number in range(settings.held_out_folds):
        x, held_out = design[fold != number], fold == number
        hessian = mean * (1 - mean) * x.T @ x + penalty.diag()
        step = torch.linalg.solve(hessian, x.T @ (target[fold != number] - mean))
        logits[held_out] += design[held_out] @ step
    return float(_log_losses(logits, correct).sum())


def _log_losses(logits: Tensor, correct: PerSampleBool) -> Tensor:
    target = correct.double().expand_as(logits)
    return functional.binary_cross_entropy_with_logits(logits, target, reduction="none")


def select_share(
    problem: TwoStageFit, samples: Samples, shift_weight: float
) -> tuple[float, Solution | None]:
    """How far to go from temperature scaling, at 0, to the fit, at 1, in log-odds.

    The share with the least log loss on held-out images, where all of it has to gain `least_gain`:
    a few samples cannot tell. Beside it the solution of a fold, near which that of all samples is.
    """
    options, problem = problem.settings, problem.with_shift_at_most(0.5)
    samples = samples.subsample(2 * options.share_rows, options.held_out_folds).cpu()
    fold = samples.image % options.held_out_folds
    scaled, fitted = samples.columns[:, 0], torch.empty_like(samples.columns[:, 0])
    if int(samples.image.max()) < options.held_out_folds:
        return 0.0, None  # there is nothing to fit on without some fold
    is_augmented = bool(samples.shift_kinds())
    fit = problem.fit_linear if is_augmented else problem.fit_ranking
    solution: Solution | None = None  # of the fold before, near this one's
    for number in range(options.held_out_folds):
        rows, held_out = samples.take(fold != number), fold == number
        solution = fit(rows, shift_weight, solution)
        design = problem.design_matrix(samples.columns[held_out], random_features=False)
        fitted[held_out] = solution.logits(design, samples.classes[held_out])
    # Views in the place of images do not judge, nor is the level that they ask for judged: what
    # they stand for is not in the data.
    weight = problem.sample_weights(samples, 0.0, 1.0)
    # With shift augmentation the fit loses an allowance in distribution, all of it or nothing.
    steps = 1 if is_augmented else options.share_steps
    shares = torch.linspace(0, 1, steps + 1, dtype=torch.float64)
    losses = torch.stack(
        [weight @ _log_losses(scaled + s * (fitted - scaled), samples.correct) for s in shares]
    )
    return float(shares[int((losses + options.least_gain * shares).argmin())]), solution


def shrink(solution: Solution, share: float) -> Solution:
    """The solution whose log-odds lie that share of the way from temperature scaling."""
    weights = share * solution.weights
    weights[0] += 1 - share
    return Solution(share * solution.bias, weights, share * solution.offsets)
