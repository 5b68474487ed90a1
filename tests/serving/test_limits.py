"""Limits that contradict each other."""

import pytest

from rightly.serving import Limits


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"body_bytes": 0}, "body_bytes"),
        ({"timeout_s": float("nan")}, "timeout_s"),
        ({"wait_s": -1.0}, "wait_s"),
        ({"images": 300}, "queue"),
        ({"pixels": 10**9}, "Pillow"),
    ],
)
def test_limits_that_make_no_sense_are_refused(options, word):
    with pytest.raises(ValueError, match=word):
        Limits(**options)
