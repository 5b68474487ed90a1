"""Shell completion: of commands and options, without loading torch."""

import os

import pytest

from rightly.cli import COMMANDS
from tests.processes import run_python

LINE = {"_RIGHTLY_COMPLETE": "complete_bash", "COMP_CWORD": "1"}


@pytest.mark.parametrize(
    ("words", "place", "expected"),
    [("rightly ", "1", set(COMMANDS)), ("rightly fit --conf", "2", {"--confidence-level"})],
)
def test_commands_and_options_are_completed(words, place, expected):
    environment = {**os.environ, **LINE, "COMP_WORDS": words, "COMP_CWORD": place}
    program = (
        "import sys; from rightly.cli import main; code = main([]); "
        "assert 'torch' not in sys.modules; sys.exit(code)"
    )
    done = run_python("-c", program, env=environment, check=True)
    assert set(done.stdout.split()) == expected


def test_the_script_for_a_shell_is_printed():
    environment = {**os.environ, "_RIGHTLY_COMPLETE": "source_bash"}
    program = "import sys; from rightly.cli import main; sys.exit(main([]))"
    done = run_python("-c", program, env=environment, check=True)
    assert "_RIGHTLY_COMPLETE=complete_bash" in done.stdout
