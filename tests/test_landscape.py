"""Losses of one sample by temperature, against what the paper says and against differences."""

import numpy as np
import pytest

from rightly.landscape import landscape, logit_of


def test_losses_ask_what_the_paper_says_of_a_narrowly_wrong_sample():
    temperatures = np.linspace(0.1, 4, 3901)
    found = {
        name: landscape(name, np.array([1.9]), temperatures)
        for name in ("correctness_aware", "cross_entropy", "squared_error")
    }
    assert found["cross_entropy"].true_probability[0] == pytest.approx(0.412, abs=5e-4)
    assert temperatures[found["cross_entropy"].loss[0].argmin()] == pytest.approx(0.535, abs=2e-3)
    assert temperatures[found["squared_error"].loss[0].argmin()] == pytest.approx(0.994, abs=2e-3)
    assert (np.diff(found["correctness_aware"].loss[0]) < 0).all()
    for one in found.values():
        slope = np.gradient(one.loss[0], temperatures)
        np.testing.assert_allclose(one.slope[0][5:-5], slope[5:-5], atol=2e-3)


def test_a_logit_gives_the_probability_asked_for():
    wanted = np.array([0.05, 0.3, 0.43])
    found = landscape("cross_entropy", logit_of(wanted), np.array([1.0]))
    np.testing.assert_allclose(found.true_probability, wanted)
    np.testing.assert_allclose(found.loss[:, 0], -np.log(wanted))
