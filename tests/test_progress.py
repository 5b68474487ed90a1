"""One protocol, (step, done, total), and one bar for it."""

import io

import pytest
from rich.console import Console

from rightly import progress
from rightly.progress import track

ODD = "[red]odd[/] :smile: [/b]"


@pytest.fixture
def terminal(monkeypatch):
    console = Console(file=io.StringIO(), force_terminal=True, width=80, color_system=None)
    monkeypatch.setattr(progress, "_open_console", lambda: console)
    return console.file


def test_a_callable_is_called_as_it_is():
    steps = []
    with track(lambda *step: steps.append(step)) as step:
        step("fitting", 1, 3)
    assert steps == [("fitting", 1, 3)]


def test_the_bar_holds_names_as_they_are(terminal):
    with track(True) as step:
        step(ODD, 1, 2)
    assert ODD in terminal.getvalue() and "1/2" in terminal.getvalue()


def test_what_is_done_is_there_at_once(terminal):
    with track(True, ODD):
        pass
    assert ODD in terminal.getvalue()


def test_outside_a_terminal_only_what_is_kept_is_printed(capsys):
    with track(True, "fitting") as step:
        step("fitting", 1, 2)
    with track(False, keep=True) as step:
        step("collecting", 1, 2)
    assert capsys.readouterr().err == ""
    with track(True, keep=True) as step:
        step("collecting", 2, 2)
    printed = capsys.readouterr().err
    assert "collecting" in printed and "2/2" in printed


def test_the_speed_is_that_of_this_run():
    clock = [0.0]
    bar = progress._make_bar(Console(file=io.StringIO(), force_terminal=True), keep=False)
    bar.get_time = lambda: clock[0]
    task = bar.add_task("", total=1000)
    column = bar.columns[3]
    for seconds, done, shown in ((0, 900, ""), (5, 920, ""), (10, 940, "4/s"), (15, 1000, "")):
        clock[0] = seconds
        bar.update(task, completed=done)
        if shown:
            assert column.render(bar.tasks[0]).plain == shown
