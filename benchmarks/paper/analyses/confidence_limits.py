"""How far a confidence can lie from what is known of its sample: limits in closed form.

A temperature T takes probabilities p to p^(1/T), made to sum to 1 again. Of a sample we may know
the number of classes, the confidence before, or p_true / p_predicted; each leaves a range.
"""

import numpy as np
from jaxtyping import Float

Values = Float[np.ndarray, " n"]
ULPS = 1e-12  # limits are rounded outwards by this share


def scale_limits(others: Values, temperature: float, class_count: int) -> tuple[Values, Values]:
    """Least and highest confidence after scaling.

    `others` is (1 - c) / c of the confidence c before. The other classes' share of it is largest
    when they are alike and smallest when as few as possible hold all of it, none more than c;
    below a temperature of 1 it is the other way about.
    """
    power = 1 / temperature
    low, high = others * (1 - ULPS), np.minimum(others * (1 + ULPS), class_count - 1)
    alike = [(class_count - 1) ** (1 - power) * x**power for x in (low, high)]
    few = [np.floor(x) + (x - np.floor(x)) ** power for x in (low, high)]
    least, most = (few[0], alike[1]) if temperature >= 1 else (alike[0], few[1])
    return (1 - ULPS) / (1 + most), (1 + ULPS) / (1 + least)


def narrow_limits(temperature: float, class_count: int, ratio: float) -> tuple[float, float]:
    """Confidence of a wrong sample whose p_true / p_predicted is `ratio` or more."""
    return 1 / class_count, 1 / (1 + ratio ** (1 / temperature))


def absolute_limits(temperature: float, class_count: int, ratio: float) -> tuple[float, float]:
    """Confidence of a wrong sample whose p_true / p_predicted is `ratio` or less."""
    return 1 / (class_count - 1 + ratio ** (1 / temperature)), 1.0


def loss_limits(accuracy: float, class_count: int, power: int = 1) -> tuple[float, float]:
    """Least and highest CA loss of a set: all right samples at 1 and all wrong at 1 / C, or
    the other way about; power 1 is the paper's bound, 2 the squared loss that it trains."""
    wrong = 1 - accuracy
    return wrong / class_count**power, accuracy * (1 - 1 / class_count) ** power + wrong
