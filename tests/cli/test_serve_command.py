"""`rightly serve`: what it refuses. That it serves is in tests/serving."""

import pytest

from rightly.cli import main


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--max-body-mb", "0"], "--max-body-mb must be positive"),
        (["--max-pixels", "999999999"], "--max-pixels must be at most"),
        (["--max-wait-ms", "-1"], "--max-wait-ms must be positive"),
        (["--queue", "2"], "--queue must have room"),
        ([], "there is no model file"),
    ],
)
def test_limits_are_named_by_their_options(capsys, arguments, words):
    assert main(["serve", "nowhere.onnx", *arguments]) == 2
    assert words in capsys.readouterr().err
