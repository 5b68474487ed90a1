"""The command line: one file a command, each of which parses and calls the library.

No module here loads torch, SciPy or matplotlib when it is imported: commands load what they need
when they run, so that help is there at once.
"""

import re
import sys
import traceback
import warnings
from collections.abc import Sequence
from typing import Annotated, cast

import typer
import typer.core

from rightly import __version__
from rightly.cli import (
    adapt_command,
    apply_command,
    benchmark_command,
    budget_command,
    card_command,
    collect_command,
    compare_command,
    demo_command,
    doctor_command,
    evaluate_command,
    export_command,
    fit_command,
    measure_command,
    methods_command,
    monitor_command,
    plot_command,
    predict_command,
    rank_command,
    recalibrate_command,
    report_command,
    serve_command,
    views_command,
)
from rightly.cli.added_options import add_import_option
from rightly.cli.console import ERR, OUT, ExitCode, print_line, show_warning, write_utf8
from rightly.cli.inputs import check_outputs

COMMANDS = {
    "demo": demo_command,
    "collect": collect_command,
    "doctor": doctor_command,
    "compare": compare_command,
    "rank": rank_command,
    "benchmark": benchmark_command,
    "methods": methods_command,
    "fit": fit_command,
    "evaluate": evaluate_command,
    "measure": measure_command,
    "apply": apply_command,
    "adapt": adapt_command,
    "recalibrate": recalibrate_command,
    "monitor": monitor_command,
    "report": report_command,
    "plot": plot_command,
    "views": views_command,
    "budget": budget_command,
    "export": export_command,
    "predict": predict_command,
    "serve": serve_command,
    "card": card_command,
}
EXIT_CODES = (
    "Exit codes: 0 done; 2 refused or failed; 3 a requirement missed; 4 drift alarm; "
    "5 the doctor found something; 130 interrupted."
)
# Arguments of the library whose options are called otherwise.
ARGUMENTS = {"tests": "on", "predictions": "test"}
VERBS = "(?:must|needs?|has|have|is|are|excludes?)"


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code (`ExitCode`).

    Bad input ends in one line on standard error. Any other exception is a bug: it is raised to a
    caller in Python, and printed whole for a caller in a shell.
    """
    write_utf8()
    with warnings.catch_warnings():
        warnings.showwarning = show_warning
        try:
            return _run(list(sys.argv[1:] if arguments is None else arguments))
        except Exception:
            if arguments is not None:
                raise
            traceback.print_exc()
            return ExitCode.FAILED


def _print_version(is_asked: bool) -> bool:
    if is_asked:
        print_line(f"rightly {__version__}")
        raise typer.Exit()
    return is_asked


def _describe(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print it and stop."
        ),
    ] = False,
) -> None:
    """How likely is each prediction of a classifier to be right?"""


def _build() -> typer.core.TyperGroup:
    app = typer.Typer(
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        epilog=EXIT_CODES,
    )
    app.callback()(_describe)
    for name, module in COMMANDS.items():
        # \b keeps the example on a line of its own, ready to be copied.
        command = check_outputs(add_import_option(module.run))
        app.command(name, epilog=f"\b\nExample: {module.EXAMPLE}")(command)
    return cast(typer.core.TyperGroup, typer.main.get_command(app))


def _run(arguments: list[str]) -> int:
    group = _build()
    if not arguments:
        group.main(["--help"], "rightly", standalone_mode=False)
        return ExitCode.FAILED  # a script that lost its command must not go on
    name = next((word for word in arguments if not word.startswith("-")), "")
    command = group.commands.get(name)
    title = f"rightly {name}" if command else "rightly"
    try:
        code = group.main(arguments, "rightly", standalone_mode=False)
    except typer.TyperException as error:
        return _refuse(f"{title}: {_describe_usage(error)} (see {title} --help)")
    except (ValueError, TypeError, OSError, ImportError) as error:
        return _refuse(f"{title}: {name_options(str(error), _list_options(command))}")
    except SystemExit:  # how Typer and Rich answer a pipe whose reader has gone
        _reset_consoles()
        return ExitCode.FAILED
    if code == ExitCode.INTERRUPTED:
        ERR.print("stopped")
    return code or ExitCode.DONE


def _reset_consoles() -> None:
    """Lets consoles print again that Rich silenced because the reader of a pipe had gone."""
    for console in (OUT, ERR):
        if console.quiet:
            console.print()  # throws away what was not written
            console.quiet = False


def _refuse(message: str) -> int:
    OUT.file.flush()  # what was printed before comes before
    print_line(message, ERR, style="red")
    return ExitCode.FAILED


def _describe_usage(error: typer.TyperException) -> str:
    """A usage error in one line, with the options that are close to a wrong one."""
    close = getattr(error, "possibilities", None)
    if close:
        return f"{error.message}: did you mean {' or '.join(close)}?"
    return " ".join(error.format_message().split()).rstrip(".")


def _list_options(command: object) -> dict[str, str]:
    """What a command calls its parameters, by the names of the arguments that they become."""
    return {
        parameter.name: max(parameter.opts, key=len)
        if parameter.param_type_name == "option"
        else (parameter.metavar or parameter.name.upper()).strip("[].")
        for parameter in getattr(command, "params", ())
    }


def name_options(message: str, options: dict[str, str]) -> str:
    """A message of the library with options instead of arguments.

    These are the first words of a message, and what is written as `name='value'`, `name=True` or
    `name=`. A
    registry refuses one name of several, so `metric` stands for `--metrics` too; `tests` stands for
    an argument TEST.
    """

    def find_option(name: str) -> str | None:
        names = (ARGUMENTS.get(name, name), name, f"{name}s", name.removesuffix("s"))
        return next((options[one] for one in names if one in options), None)

    def name_subject(subject: re.Match[str]) -> str:
        return re.sub(r"\b(?!and\b)\w+", lambda word: find_option(word[0]) or word[0], subject[0])

    def name_item(item: re.Match[str]) -> str:
        option = find_option(item[1])
        return f"{option} {item[2]}" if option else item[0]

    def name_value(pair: re.Match[str]) -> str:
        option = find_option(pair[1])
        return f"{option} {pair[2] or ''}".rstrip() if option else pair[0]

    message = re.sub(rf"^\w+(?:(?:, | and )\w+)*(?= {VERBS}\b)", name_subject, message)
    message = re.sub(rf"^(\w+)\['(.*?)'\](?= {VERBS}\b)", name_item, message)
    return re.sub(r"\b(?<!-)(\w+)=(?:True|'([^']*)'|(?=[\s,:;.)]|$))", name_value, message)
