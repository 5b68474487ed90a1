"""The bar that `progress=True` prints."""

from rightly.reporting.progress_line import follow


def test_a_bar_is_printed_over_itself_and_wiped_at_the_end(capsys):
    with follow(True) as step:
        step("temperature_scaling", 0, 2)
        step("spline", 1, 2)
    first, second, wiped, end = capsys.readouterr().err.split("\r")[1:]
    assert first.endswith("0/2 temperature_scaling") and "1/2 spline" in second
    assert second.count("█") == second.count("░") == 10
    assert len(first) == len(second) == len(wiped) and not wiped.strip() and end == ""


def test_a_function_is_passed_on_and_nothing_is_printed_unasked(capsys):
    with follow(print) as step, follow(None) as none, follow(False) as off:
        assert step is print and none is None and off is None
    assert capsys.readouterr() == ("", "")
