"""Limits that contradict each other."""

import pytest

from rightly.serving import Limits


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"max_body_mb": 0.0}, "max_body_mb"),
        ({"timeout_s": float("nan")}, "timeout_s"),
        ({"max_wait_ms": -1.0}, "max_wait_ms"),
        ({"max_images": 300}, "queue"),
        ({"max_pixels": 10**9}, "Pillow"),
    ],
)
def test_limits_that_make_no_sense_are_refused(options, word):
    with pytest.raises(ValueError, match=word):
        Limits(**options)
