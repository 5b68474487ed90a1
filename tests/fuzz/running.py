"""Runs cases in a process of its own, which is started again after those that end or block it."""

import faulthandler
import multiprocessing
import os
import resource
import shutil
import signal
import tempfile
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

from tests.fuzz.target import Files, Target
from tests.fuzz.targets import load_target

TIMEOUT_S = 10.0  # a case that takes longer hangs
ADDRESS_SPACE = 4 * 2**30  # bytes beyond what the process has at its start
STARTING = threading.Lock()  # one at a time: the environment is of all threads
OUT_OF_MEMORY = ("allocat", "memory")  # in messages of libraries that have no MemoryError


class Failure(NamedTuple):
    """A case that broke a promise."""

    number: int
    kind: str  # the same for all cases of the same cause
    report: str


@dataclass(frozen=True)
class Work:
    """Cases of one target, from `first` on; without `count` until the time is over."""

    load: Callable[[], Target]
    samples: list[Files]
    seed: str
    first: int = 0
    count: int | None = None


def run(
    work: Work, seconds: float | None = None, timeout_s: float = TIMEOUT_S
) -> Iterator[int | Failure]:
    """Yields the number of every case that has ended, and each failure."""
    until = None if seconds is None else time.monotonic() + seconds
    last = None if work.count is None else work.first + work.count
    number = work.first
    while last is None or number < last:
        for event in _run_until_death(work, number, last, timeout_s):
            if isinstance(event, int):
                number = event + 1
            yield event
            if until is not None and time.monotonic() > until:
                return


def run_case(target: Target, files: Files) -> Failure | None:
    """Reads the files of one case; None where the reader kept its promises."""
    with tempfile.TemporaryDirectory(prefix="fuzz-") as name:
        folder = Path(name, "case")
        write_case(files, folder)
        before = _measure_memory("VmRSS")
        Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here on
        failure = _read(target, folder, files)
        used = _measure_memory("VmHWM") - before
        if failure is None and used > target.memory:
            allowed = target.memory // 2**20
            return Failure(0, "memory", f"took {used // 2**20:,} MiB, {allowed:,} are allowed")
        return failure


def write_case(files: Files, folder: Path) -> None:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def _read(target: Target, folder: Path, files: Files) -> Failure | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            target.read(folder)
    except target.errors as error:
        chain = _list_causes(error)
        if any(isinstance(one, MemoryError) or _is_out_of_memory(one) for one in chain):
            return _describe("memory", error)
        named = {*files, *(Path(name).name for name in files), folder.name}
        if not any(name in str(error) for name in named):
            return _describe("unnamed", error)
    except Exception as error:
        return _describe("unexpected", error)
    return None


def _list_causes(error: BaseException | None) -> list[BaseException]:
    chain = []
    while error is not None:
        chain.append(error)
        error = error.__cause__ or error.__context__
    return chain


def _is_out_of_memory(error: BaseException) -> bool:
    return isinstance(error, RuntimeError) and any(word in str(error) for word in OUT_OF_MEMORY)


def _describe(kind: str, error: BaseException) -> Failure:
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "rightly" in frame.filename] or frames
    where = f"{Path(ours[-1].filename).name}:{ours[-1].lineno}" if ours else ""
    lines = traceback.format_exception(error)
    return Failure(0, f"{kind}: {type(error).__name__} at {where}", "".join(lines)[-3000:])


def _run_until_death(
    work: Work, first: int, last: int | None, timeout_s: float
) -> Iterator[int | Failure]:
    """Events of one process; where it dies or hangs, that failure and the case's number."""
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    scratch = Path(tempfile.mkdtemp(prefix="fuzz-"))
    log = scratch / "log"
    process = context.Process(
        target=_work, args=(work, first, last, sender, log), name="fuzz", daemon=True
    )
    with STARTING:
        before = os.environ.get("TMPDIR")
        os.environ["TMPDIR"] = str(scratch)  # what a killed process leaves is removed below
        process.start()
        if before is None:
            del os.environ["TMPDIR"]
        else:
            os.environ["TMPDIR"] = before
    sender.close()
    number = None  # of the case that is being read
    try:
        while True:
            if not receiver.poll(timeout_s if number is not None else 120):
                os.kill(process.pid or 0, signal.SIGUSR1)
                time.sleep(0.5)
                yield Failure(number or first, "hang", _read_log(log))
                break
            event = receiver.recv()
            if event is None:
                return
            if isinstance(event, Failure):
                yield event
            elif number is not None and event == number:
                yield number
                number = None
            else:
                number = event
    except EOFError:
        process.join(10)
        yield Failure(number or first, f"died with {process.exitcode}", _read_log(log))
    finally:
        process.kill()
        process.join(30)
        shutil.rmtree(scratch, ignore_errors=True)
    yield number if number is not None else first


def _work(work: Work, first: int, last: int | None, sender: Connection, log: Path) -> None:
    """Each case's number is sent before it is read and again when it is done."""
    target = work.load()
    with log.open("w") as file:
        faulthandler.enable(file)
        faulthandler.register(signal.SIGUSR1, file)
        os.dup2(file.fileno(), 2)  # what C++ says before it aborts
        limit = _measure_memory("VmSize") + ADDRESS_SPACE
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        number = first
        while last is None or number < last:
            sender.send(number)
            failure = run_case(target, target.make_case(work.samples, work.seed, number))
            if failure is not None:
                sender.send(failure._replace(number=number))
            sender.send(number)
            number += 1
        sender.send(None)


def _read_log(log: Path) -> str:
    return log.read_text(errors="replace")[-3000:] if log.exists() else ""


def _measure_memory(kind: str) -> int:
    """Bytes of this process; the kind is one of the kernel's names for them."""
    status = Path("/proc/self/status").read_text()
    return 1024 * int(status.partition(f"{kind}:")[2].split()[0])


@dataclass(frozen=True)
class Loader:
    """Loads a target by name in the process that runs it."""

    name: str

    def __call__(self) -> Target:
        return load_target(self.name)
