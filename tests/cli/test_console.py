"""What is printed stays whole, whatever it is called and however narrow the terminal."""

import json
import math
import os
import pty
import re
import sys
import warnings

import pytest

import rightly
from rightly.calibrators import CALIBRATORS
from rightly.cli import console
from rightly.evaluation.compare import Comparison
from rightly.evaluation.results import Result
from rightly.metrics import METRICS
from tests.conftest import make
from tests.processes import DEVNULL, run, spawn

ODD = "[red]odd[/] :smile: [/b]"


def test_names_meet_no_markup(capsys):
    console.print_line(ODD)
    console.print_line(ODD, console.ERR)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = console.show_warning
        warnings.warn(ODD, stacklevel=1)
    captured = capsys.readouterr()
    assert captured.out == f"{ODD}\n"
    assert captured.err.startswith(f"{ODD}\n") and captured.err.endswith(f"warning: {ODD}\n")


def test_json_files_say_what_they_are_and_hold_no_nan(tmp_path):
    content = {"a": math.nan, "b": (1.5, {"c": [math.nan, "nan"]})}
    console.write_json(tmp_path / "a.json", "rightly-test", content)
    assert json.loads((tmp_path / "a.json").read_text()) == {
        "format": "rightly-test",
        "version": 1,
        "a": None,
        "b": [1.5, {"c": [None, "nan"]}],
    }


VIEWS = ["a_view_with_quite_a_long_name", "color_jitter", "[b]rotation[/b]"]
COMPARED = ["ensemble_temperature_scaling", "temperature_scaling", "multi_isotonic"]


@pytest.fixture(scope="module")
def commands(tmp_path_factory):
    """Commands whose tables are wide: every method, every metric, views with long names."""
    folder = tmp_path_factory.mktemp("tables")
    rows = [
        Result(name, "a test set", metric, 0.5 + i / 100, 0)
        for i, name in enumerate(CALIBRATORS)
        for metric in METRICS
    ]
    for name in ("a", "b"):
        (folder / "results").mkdir(exist_ok=True)
        Comparison(rows).to_json(folder / "results" / f"{name}.json")
    predictions, labels = make(n=100)
    predictions = rightly.Predictions(predictions.logits, predictions.view_logits, view_names=VIEWS)
    data = str(folder / "cal.npz")
    rightly.save(data, predictions, labels)
    on = [f"{ODD}={data}", f"blurred={data}", "--allow-overlap"]
    return {
        "fit --list": ["fit", "--list"],
        "benchmark": ["benchmark", str(folder / "results")],
        "views": ["views", data],
        "compare": ["compare", data, *on, "--methods", ",".join(COMPARED)],
        "compare --no-intervals": ["compare", data, *on, "--no-intervals"],
    }


def run_in(commands, is_terminal):
    """What each command prints, in a terminal of 80 columns or in a pipe."""
    code = f"""
import sys
from rightly.cli import main
for arguments in {list(commands.values())!r}:
    assert main(arguments) == 0
    print("=====", flush=True)
"""
    command = [sys.executable, "-c", code]
    environment = {**os.environ, "COLUMNS": "80", "TERM": "xterm"}
    if is_terminal:
        text = run_in_terminal(command, environment)
    else:
        text = run(command, env=environment, check=True).stdout
    parts = re.sub(r"\x1b\[[0-9;]*m", "", text).replace("\r", "").split("=====\n")
    return dict(zip(commands, parts, strict=False)), len(parts) - 1


def run_in_terminal(command, environment):
    leader, follower = pty.openpty()
    text = b""
    with spawn(command, stdout=follower, stderr=DEVNULL, env=environment):
        os.close(follower)
        while True:
            try:
                block = os.read(leader, 65536)
            except OSError:  # how Linux says that the other end is closed
                break
            text += block
            if not block:
                break
    os.close(leader)
    return text.decode()


@pytest.mark.parametrize("is_terminal", [True, False])
def test_tables_keep_every_word(commands, is_terminal):
    printed, count = run_in(commands, is_terminal)
    assert count == len(commands)
    for name, text in printed.items():
        assert "…" not in text, name
        if is_terminal:
            assert max(map(len, text.splitlines())) <= 80, name
    described = " ".join(printed["fit --list"].split())
    for name, method in CALIBRATORS.items():
        assert name in printed["fit --list"] and name in printed["benchmark"]
        assert all(word in described for word in f"{method.paper} {method.note}".split())
    assert all(metric in printed["benchmark"] for metric in METRICS)
    assert all(view in printed["views"] for view in VIEWS)
    for name in ("compare", "compare --no-intervals"):
        assert all(word in printed[name] for word in [*COMPARED, ODD, "blurred", "brier"])
    assert "correctness_logistic" in printed["compare --no-intervals"]
