"""Processes of tests: started with default signals, ended with all that they started."""

import os
import signal

import pytest

from tests.processes import run_python, spawn


def test_signals_that_are_ignored_here_are_not_ignored_there(default_signals):
    for number in default_signals:
        signal.signal(number, signal.SIG_IGN)
    ask = "import signal; print(signal.SIG_IGN in map(signal.getsignal, {}))"
    numbers = [int(number) for number in default_signals]
    assert run_python("-c", ask.format(numbers), check=True).stdout == "False\n"


def test_all_that_a_process_has_started_ends_with_a_test_that_fails():
    reader, writer = os.pipe()
    command = ["sh", "-c", "sleep 60 & sleep 60"]
    with pytest.raises(ZeroDivisionError), spawn(command, pass_fds=[writer]) as process:
        raise ZeroDivisionError
    assert process.returncode == -signal.SIGKILL
    os.close(writer)
    with os.fdopen(reader) as end:
        assert end.read() == ""  # it ends when nobody holds the other end


def test_a_failure_is_told_with_what_was_printed():
    with pytest.raises(AssertionError, match="3: too late"):
        run_python("-c", "import sys; print('too late', file=sys.stderr); sys.exit(3)", check=True)
