"""The command line: one file per command, each of which parses and calls the library.

No module here loads torch, SciPy or matplotlib when it is imported: commands load what they need
when they run, so that help is there at once.
"""

import os
import sys
import traceback
import warnings
from collections.abc import Sequence
from typing import Annotated, cast

import typer
import typer.core

from rightly import __version__
from rightly.cli import (
    adapt,
    benchmark,
    collect,
    compare,
    demo,
    doctor,
    evaluate,
    export,
    fit,
    monitor,
    predict,
    report,
    serve,
    views,
)
from rightly.cli.console import ERR, OUT, ExitCode, print_line, show_warning, write_utf8

COMMANDS = {
    "demo": demo,
    "collect": collect,
    "doctor": doctor,
    "fit": fit,
    "evaluate": evaluate,
    "compare": compare,
    "benchmark": benchmark,
    "report": report,
    "predict": predict,
    "adapt": adapt,
    "monitor": monitor,
    "views": views,
    "export": export,
    "serve": serve,
}
EXIT_CODES = (
    "Exit codes: 0 done; 2 refused or failed; 3 requirement not met; 4 drift alarm; "
    "5 findings of the doctor; 130 interrupted."
)
COMPLETION = "_RIGHTLY_COMPLETE"  # set by a shell that completes a line


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code (`ExitCode`).

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
        typer.Option("--version", callback=_print_version, is_eager=True, help="Version."),
    ] = False,
) -> None:
    """Calibrated confidence for classifiers: how likely is each prediction to be correct?"""


def build_group() -> typer.core.TyperGroup:
    """All commands, with the options that install shell completion."""
    app = typer.Typer(
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        epilog=EXIT_CODES,
    )
    app.callback()(_describe)
    for name, module in COMMANDS.items():
        # \b keeps the example on a line of its own, ready to be copied.
        app.command(name, epilog=f"\b\nExample: {module.EXAMPLE}")(module.run)
    return cast(typer.core.TyperGroup, typer.main.get_command(app))


def _run(arguments: list[str]) -> int:
    group = build_group()
    if not arguments and COMPLETION not in os.environ:
        group.main(["--help"], "rightly", standalone_mode=False)
        return ExitCode.FAILED  # a script that lost its command must not go on
    name = next((word for word in arguments if not word.startswith("-")), "")
    title = f"rightly {name}" if name in group.commands else "rightly"
    try:
        code = group.main(arguments, "rightly", standalone_mode=False)
    except typer.TyperException as error:
        return _refuse(f"{title}: {_describe_usage(error)} (see {title} --help)")
    except (ValueError, TypeError, OSError, ImportError) as error:
        return _refuse(f"{title}: {error}")
    except SystemExit as error:
        if COMPLETION in os.environ:
            return int(error.code or 0)
        _reset_consoles()  # how Typer and Rich answer a pipe whose reader has gone
        return ExitCode.FAILED
    if code == ExitCode.INTERRUPTED:
        ERR.print("stopped")
    return code or ExitCode.DONE


def _reset_consoles() -> None:
    """Let consoles print again that Rich silenced because the reader of a pipe had gone."""
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
