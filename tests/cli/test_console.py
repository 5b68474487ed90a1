"""What is printed stays whole, whatever it is called and however narrow the terminal."""

import io
import json
import math
import os
import pty
import subprocess
import sys
import warnings

import pytest
from rich.console import Console
from rich.text import Text
from rightly.cli._legacy_reporting import write_results

import rightly
from rightly.cli import console
from rightly.evaluation.results import Result
from rightly.metrics import METRICS
from tests.conftest import make

ODD = "[red]odd[/] :smile: [/b]"


def opened(is_terminal, width=80):
    return Console(
        file=io.StringIO(),
        width=width,
        force_terminal=is_terminal,
        color_system=None,
        highlight=False,
        markup=False,
        emoji=False,
    )


def printed(table, is_terminal, width=80):
    target = opened(is_terminal, width)
    console.print_table(table, target)
    return target.file.getvalue()


def numbers(columns=9):
    table = console.make_table("name", *(f"metric {i}" for i in range(columns)))
    for name in ("ensemble_temperature_scaling", ODD):
        table.add_row(name, *(f"{i}.123456789" for i in range(columns)))
    return table


def test_a_pipe_has_no_edge():
    text = printed(numbers(), is_terminal=False)
    assert len(text.splitlines()) == 3 and ODD in text
    assert all(f"{i}.123456789" in text for i in range(9))


def test_a_narrow_terminal_gets_several_tables_of_numbers():
    text = printed(numbers(), is_terminal=True)
    lines = text.splitlines()
    assert all(len(line) <= 80 for line in lines)
    assert sum(line.startswith("ensemble_temperature_scaling ") for line in lines) == 3
    assert all(text.count(f"metric {i}") == 1 for i in range(9))
    assert all(text.count(f"{i}.123456789") == 2 for i in range(9))


def test_a_column_without_heading_stays_beside_the_one_before():
    table = console.make_table("name", "value", "", "other", "")
    table.add_row("a" * 20, "1", "low 1 " * 5, "2", Text("low 2 " * 5))
    lines = printed(table, is_terminal=True, width=60).splitlines()
    assert sum("1 low" not in line and "low 1" in line for line in lines) <= 1
    assert [("low 1" in line, "low 2" in line) for line in lines if "low" in line] == [
        (True, False),
        (False, True),
    ]


@pytest.mark.parametrize("prose", [True, False])
def test_prose_and_what_fits_nowhere_become_paragraphs(prose):
    table = console.make_table("name", "needs", text=2)
    table.add_column("note", no_wrap=not prose)
    note = "a long note about the method " * 5
    table.add_row("spline", "logits", note)
    table.add_row(ODD, "", Text("short"))
    lines = printed(table, is_terminal=True).splitlines()
    assert all(len(line) <= 80 for line in lines)
    text = " ".join(" ".join(lines).split())
    assert f"spline needs: logits; note: {note.strip()}" in text
    assert f"{ODD} note: short" in text and "needs: ;" not in text


def test_a_table_that_fits_is_left_as_it_is():
    text = printed(numbers(2), is_terminal=True)
    assert len(text.splitlines()) == 3


def test_names_meet_no_markup(capsys):
    console.print_line(ODD)
    console.print_line(ODD, console.ERR)
    with console.show_status(ODD) as update:
        update(ODD)
    with console.show_progress(2, ODD) as advance:
        advance(1, ODD)
        advance()
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = console.show_warning
        warnings.warn(ODD, stacklevel=1)
    captured = capsys.readouterr()
    assert captured.out == f"{ODD}\n"
    assert captured.err.startswith(f"{ODD}\n") and captured.err.endswith(f"warning: {ODD}\n")


def test_a_quiet_bar_prints_nothing(capsys):
    with console.show_progress(2, "bar", quiet=True) as advance:
        advance(2)
    assert capsys.readouterr().err == ""


def test_json_files_say_what_they_are_and_hold_no_nan(tmp_path):
    content = {"a": math.nan, "b": (1.5, {"c": [math.nan, "nan"]})}
    console.write_json(tmp_path / "a.json", "rightly-test", content)
    assert json.loads((tmp_path / "a.json").read_text()) == {
        "format": "rightly-test",
        "version": 1,
        "a": None,
        "b": [1.5, {"c": [None, "nan"]}],
    }


@pytest.fixture(scope="module")
def arguments(tmp_path_factory):
    """Commands whose tables are wide: every method, every metric, views with long names."""
    folder = tmp_path_factory.mktemp("tables")
    rows = [
        Result(name, "a test set", metric, 0.5 + i / 100, 0)
        for i, name in enumerate(rightly.CALIBRATORS)
        for metric in METRICS
    ]
    for name in ("a", "b"):
        write_results(folder / f"{name}.json", rows, None)
    predictions, labels = make(n=100)
    views = ["a_view_with_quite_a_long_name", "color_jitter", "[b]rotation[/b]"]
    predictions = rightly.Predictions(predictions.logits, predictions.view_logits, view_names=views)
    rightly.save(folder / "cal.npz", predictions, labels)
    rank = ["rank", str(folder / "a.json"), str(folder / "b.json")]
    return [["methods"], rank, ["views", str(folder / "cal.npz")]], views


def run_in(arguments, is_terminal):
    code = f"from rightly.cli import main\nfor a in {arguments!r}: assert main(a) == 0"
    command = [sys.executable, "-c", code]
    environment = {**os.environ, "COLUMNS": "80", "TERM": "xterm"}
    if not is_terminal:
        options = {"capture_output": True, "text": True, "check": True}
        return subprocess.run(command, env=environment, **options).stdout
    leader, follower = pty.openpty()
    text = b""
    with subprocess.Popen(command, stdout=follower, stderr=subprocess.DEVNULL, env=environment):
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
def test_tables_keep_every_word(arguments, is_terminal):
    commands, views = arguments
    text = run_in(commands, is_terminal)
    words = " ".join(text.split())
    assert "…" not in text
    for name, method in rightly.CALIBRATORS.items():
        assert text.count(name) >= 2
        assert all(word in words for word in f"{method.paper} {method.note}".split())
    assert all(name in text for name in [*METRICS, *views])
