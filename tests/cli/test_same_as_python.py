"""Options are arguments: of a command's public function, of `load`, or one line of `SHARED`."""

import importlib
import inspect
import re
from collections.abc import Mapping

import pytest

from rightly.cli import COMMANDS, build_group
from rightly.cli.options import SHARED
from rightly.predictions import load

GROUP = build_group()


def find_arguments(name):
    """Names of the arguments of the functions that a command calls."""
    arguments = set()
    for path in COMMANDS[name].FUNCTIONS:
        module, _, attributes = path.partition(":")
        function = importlib.import_module(module)
        for attribute in attributes.split("."):
            function = getattr(function, attribute)
        arguments |= set(inspect.signature(function).parameters)
    return arguments


def list_options(name):
    """Options of a command, without dashes."""
    return {
        max(parameter.opts, key=len).removeprefix("--"): parameter
        for parameter in GROUP.commands[name].params
        if parameter.param_type_name == "option" and parameter.name != "help"
    }


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_an_argument_or_shared(name):
    known = find_arguments(name) | set(inspect.signature(load).parameters)
    others = {one for one in list_options(name) if one.replace("-", "_") not in known}
    assert others <= set(SHARED)


def test_shared_options_are_used_and_mean_the_same_everywhere():
    used = {option for name in COMMANDS for option in list_options(name)}
    assert set(SHARED) <= used
    for name in COMMANDS:
        for option, parameter in list_options(name).items():
            # Of images, not of predictions.
            if option in SHARED and (name, option) != ("collect", "labels"):
                assert parameter.help.startswith(SHARED[option].rstrip("."))


def test_fourteen_commands_and_one_sentence_of_help_per_option():
    assert len(COMMANDS) == 14
    for name in COMMANDS:
        for option, parameter in list_options(name).items():
            assert re.fullmatch(r"[A-Z0-9].*\.", parameter.help), (name, option)
            assert not parameter.help.startswith(("Of ", "In ", "For ", "To ", "What ", "How "))


def test_no_command_keeps_state_or_changes_signatures():
    for module in COMMANDS.values():
        source = inspect.getsource(module)
        assert "ContextVar" not in source and "@wraps" not in source and "import re\n" not in source
    assert isinstance(SHARED, Mapping)
