"""The commands together: help, usage errors, exit codes, what is loaded."""

import os
import re
import sys

import pytest

import rightly
from rightly.cli import COMMANDS, EXIT_CODES, main
from rightly.cli.console import ExitCode
from tests.processes import run_python

HEAVY = ("torch", "scipy", "sklearn", "matplotlib", "onnxruntime", "fastapi", "ray")
HELP = f"""
import sys
from rightly.cli import COMMANDS, main
for command in [None, *COMMANDS]:
    assert main(["--help"] if command is None else [command, "--help"]) == 0
    print(command, *[name for name in {HEAVY} if name in sys.modules], file=sys.stderr)
"""


def test_help_loads_nothing_heavy():
    """All of it in one process: what the first of these commands loads is named behind it."""
    done = run_python("-c", HELP, check=True)
    assert done.stderr.split() == ["None", *COMMANDS]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_is_one_sentence_and_ends_in_an_example_that_parses(command, capsys):
    assert main([command, "--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"Usage: rightly {command}")
    assert re.fullmatch(r"  [A-Z].*[.?]", lines[2]) and not lines[3]
    example = lines[-1].removeprefix("  Example: rightly ")
    assert example.split()[0] == command and len(lines[-1]) <= 80
    assert main([*example.split(), "--help"]) == 0  # its options exist


def test_help_of_all_lists_every_command_whole_and_the_exit_codes(capsys):
    assert main(["--help"]) == 0
    text = capsys.readouterr().out
    assert "..." not in text.replace("[ARGS]...", "")
    assert all(f"\n  {name} " in text for name in COMMANDS)
    assert " ".join(EXIT_CODES.split()) in " ".join(text.split())
    assert [int(code) for code in re.findall(r"\d+", EXIT_CODES)] == list(ExitCode)


def test_no_command_prints_the_help_but_is_refused(capsys):
    assert main([]) == 2
    assert capsys.readouterr().out.startswith("Usage: rightly")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fti"], "rightly: No such command 'fti'. Did you mean 'fit'?"),
        (["fit", "a", "--methd", "b"], "rightly fit: No such option: --methd: did you mean"),
        (["fit", "a", "--confidence_level", "1"], "did you mean --confidence-level?"),
        (["fit", "--out", "a.safetensors"], "rightly fit: Missing argument 'CAL'"),
        (["fit", "a.npz"], "rightly fit: Missing option '--out'"),
        (["fit", "a.npz", "--seed", "x", "--out", "a.safetensors"], "Invalid value for '--seed'"),
        (["predict", "a", "b", "--out", "c", "--engine", "slurm"], "'--engine'"),
    ],
)
def test_usage_errors_are_one_line_with_what_was_meant(capsys, arguments, message):
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and len(captured.err.splitlines()) == 1
    assert message in captured.err and "--help)" in captured.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ["fit", "nowhere.npz", "--out", "a.safetensors"],
            "there is no predictions file nowhere.npz",
        ),
        (
            ["fit", "{cal}", "--method", "plat", "--out", "a.safetensors"],
            "is not known",
        ),
        (
            ["fit", "{cal}", "--method", "spline", "--out", "no/folder/a.safetensors"],
            "does not exist",
        ),
        (
            ["fit", "{cal}", "--views", "sideways", "--out", "a.safetensors"],
            "views must be some of",
        ),
        (
            ["fit", "{cal}", "--set", "expected_shift=2.0", "--out", "a.safetensors"],
            "expected_shift must",
        ),
        (["compare", "{cal}", "{ind}", "--metrics", "luck"], "metric 'luck' is not known"),
        (["compare", "{cal}", "{ind}", "{ind}"], "different name"),
        (["compare", "{cal}", "{ind}", "--methods", "luck"], "methods 'luck' is not known"),
        (["compare", "{cal}", "{ind}", "--reference", "luck"], "reference must be one"),
        (["evaluate", "{saved}", "{cal}", "--resamples", "3"], "resamples must be at least"),
        (["evaluate", "{saved}", "{unlabelled}"], "must hold labels"),
        (["report", "spline", "{cal}", "--out", "a.html"], "a method with --cal FILE"),
        (["report", "ts", "{cal}", "--cal", "{unlabelled}", "--out", "a"], "cal must hold labels"),
        (["report", "{saved}", "x={unlabelled}", "--out", "a"], "must hold labels"),
        (["report", "x", "{ind}", "--cal", "{cal}", "--out", "a"], "no calibrator file x"),
        (["report", "{saved}", "{ind}", "--images", "no", "--out", "a"], "no folder no"),
        (["compare", "{cal}", "{ind}", "--resamples", "20"], "resamples must be at"),
        (["compare", "{cal}", "{ind}", "--resamples", "0"], "resamples must be at"),
        (["compare", "{cal}", "{ind}", "--repeats", "0"], "repeats must be at least 1"),
        (["benchmark", "{cal}"], "add --out FOLDER"),
        (["evaluate", "{saved}"], "evaluate needs CALIBRATOR and TEST, or --pairs CSV"),
        (["evaluate", "{saved}", "--pairs", "{cal}"], "pairs and CALIBRATOR exclude each other"),
        (["predict", "{saved}", "{cal}"], "predict needs one DATA and --out FILE"),
        (["predict", "{saved}", "{cal}", "--jsonl"], "are for an exported model"),
        (["predict", "m.onnx", "a.png", "--out", "a.csv"], "are for a calibrator"),
        (["compare", "{bare}", "{ind}", "--methods", "ca_views"], "needs predictions"),
        (["compare", "{unlabelled}", "{cal}"], "must hold labels"),
        (["evaluate", "{cal}", "{cal}"], "safetensors"),
    ],
)
def test_bad_input_ends_in_one_line_and_status_two(files, capsys, arguments, words):
    names = {name: str(files / f"{name}.npz") for name in ("cal", "ind", "bare", "unlabelled")}
    names["saved"] = str(files / "saved.safetensors")
    assert main([argument.format(**names) for argument in arguments]) == 2
    captured = capsys.readouterr()
    assert f"rightly {arguments[0]}: " in captured.err
    assert words in captured.err.replace("\n", " ")
    assert "Traceback" not in captured.err


def collect(model, folder):
    return ["collect", f"py:tests.cli.models:{model}", str(folder), "--out", str(folder / "out")]


def test_an_interrupted_command_says_so(tmp_path, capsys):
    assert main(collect("interrupted", tmp_path)) == 130
    assert capsys.readouterr().err.strip().endswith("stopped")


def test_a_bug_is_raised_in_python_and_shown_whole_in_a_shell(tmp_path, monkeypatch, capsys):
    with pytest.raises(ZeroDivisionError):
        main(collect("broken", tmp_path))
    monkeypatch.setattr(sys, "argv", ["rightly", *collect("broken", tmp_path)])
    assert main() == 2
    error = capsys.readouterr().err
    assert "Traceback" in error and "broken on purpose" in error


def test_a_reader_that_has_gone_is_no_traceback(monkeypatch, capsys):
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as broken, monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", broken)
        assert main(["fit", "--list"]) == 2
    assert capsys.readouterr().err == ""
    assert main(["--version"]) == 0  # Rich's consoles speak again
    assert capsys.readouterr().out.startswith("rightly ")


def test_the_command_is_installed(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.strip() == f"rightly {rightly.__version__}"
    done = run_python("-m", "rightly", "--version", check=True)
    assert done.stdout.strip() == f"rightly {rightly.__version__}"
