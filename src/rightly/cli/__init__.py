"""The command line."""

import argparse
import warnings
from collections.abc import Sequence

from rightly import __version__
from rightly.cli import (
    applying,
    calibrating,
    choosing,
    collecting,
    demonstrating,
    deploying,
    fitting,
    plotting,
    reporting,
    serving,
)
from rightly.cli.consoles import ERR, show_warning


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; bad input ends in one line that says what is wrong, and status 2."""
    parser = argparse.ArgumentParser(
        prog="rightly", description="How likely is each prediction to be right?"
    )
    parser.add_argument("--version", action="version", version=f"rightly {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    collecting.add_commands(commands)
    calibrating.add_commands(commands)
    fitting.add_commands(commands)
    choosing.add_commands(commands)
    applying.add_commands(commands)
    deploying.add_commands(commands)
    serving.add_commands(commands)
    plotting.add_commands(commands)
    reporting.add_commands(commands)
    demonstrating.add_commands(commands)
    chosen = parser.parse_args(arguments)
    with warnings.catch_warnings():
        warnings.showwarning = show_warning
        try:
            chosen.run(chosen)
        except (ValueError, TypeError, OSError, ImportError) as error:
            told = f"rightly {chosen.command}: {error}"
            ERR.print(told, style="red", soft_wrap=True, markup=False)  # 'rightly[ray]' is no style
            return 2
        except KeyboardInterrupt:
            ERR.print("stopped")
            return 130
    return 0
