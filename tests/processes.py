"""The only way tests start a process, so that all of them end and none inherits ignored signals.

`nohup make test &` ignores SIGHUP, SIGINT and SIGQUIT, and what is ignored stays so in children.
"""

import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from subprocess import DEVNULL, PIPE, STDOUT, CompletedProcess, Popen
from typing import Any

__all__ = ["DEVNULL", "PIPE", "STDOUT", "run", "run_python", "spawn"]

# Run in the new process before the command takes its place. `preexec_fn` would run in a fork of
# this process, where other threads may hold locks. Where the kernel can, the child is killed with
# the thread that started it: a test that times out ends without any `finally`.
START = """
import os, signal, sys
for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
    try:
        signal.signal(number, signal.SIG_DFL)
    except OSError:
        pass
signal.pthread_sigmask(signal.SIG_SETMASK, ())
if sys.platform == "linux":
    import ctypes
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
os.execvp(sys.argv[1], sys.argv[1:])
"""
END_S = 30  # for a killed process to be gone


@contextmanager
def spawn(command: Sequence[str | Path], **options: Any) -> Iterator[Popen[str]]:
    """Start a command in a session of its own; kill all of the session at the end.

    Options are those of `subprocess.Popen`; streams are text, and input is empty.
    """
    process = Popen(
        [sys.executable, "-I", "-S", "-c", START, *map(str, command)],
        start_new_session=True,
        **{"stdin": DEVNULL, "text": True, **options},
    )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(END_S)
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                stream.close()


def run(
    command: Sequence[str | Path], *, check: bool = False, timeout: float = 100, **options: Any
) -> CompletedProcess[str]:
    """Run a command to its end and return what it printed; `check` refuses a failure."""
    pipes = {"stdout": PIPE, "stderr": PIPE}
    with spawn(command, **pipes, **options) as process:
        printed, errors = process.communicate(timeout=timeout)
    assert not check or process.returncode == 0, f"{process.returncode}: {errors}"
    return CompletedProcess(list(command), process.returncode, printed, errors)


def run_python(*arguments: str | Path, **options: Any) -> CompletedProcess[str]:
    """Run this Python with these arguments to its end."""
    return run([sys.executable, *arguments], **options)
