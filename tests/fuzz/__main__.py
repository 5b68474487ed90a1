"""Reads damaged and forged files with every reader, and reports those that break a promise.

    python -m tests.fuzz --reader npz --mutations 20000     # one reader, so many files
    python -m tests.fuzz --minutes 10 --jobs 2              # all of them share the time
    python -m tests.fuzz --reader npz --seed 0 --case 123   # one case again, with its files

A case is known by reader, seed and number: `--first` goes on where a run was stopped.
"""

import argparse
import math
import os
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.fuzz.running import Failure, Loader, Work, run, run_case, write_case
from tests.fuzz.targets import NAMES, load_target

PROGRESS_S = 20.0


def main() -> int:
    parser = argparse.ArgumentParser("tests.fuzz", description=__doc__.partition("\n")[0])
    parser.add_argument("--reader", choices=NAMES, action="append", help="all of them by default")
    parser.add_argument("--mutations", type=int, help="files a reader")
    parser.add_argument("--minutes", type=float, help="for all readers together")
    parser.add_argument("--jobs", type=int, default=1, help="readers at a time")
    parser.add_argument("--seed", default="0", help="any text")
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--case", type=int, help="read only this one, here")
    parser.add_argument("--keep", type=Path, help="a folder for the files of failed cases")
    chosen = parser.parse_args()
    readers = chosen.reader or list(NAMES)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    if chosen.case is not None:
        return repeat(readers[0], chosen.seed, chosen.case, chosen.keep)
    if chosen.mutations is None and chosen.minutes is None:
        parser.error("give --mutations, --minutes or both")
    seconds = chosen.minutes and 60 * chosen.minutes / math.ceil(len(readers) / chosen.jobs)

    def count_failures(reader: str) -> int:
        options = (chosen.seed, chosen.first, chosen.mutations, seconds, chosen.keep)
        return fuzz(reader, *options).total()

    with ThreadPoolExecutor(chosen.jobs) as pool:  # each thread waits for a process of its own
        return 1 if sum(pool.map(count_failures, readers)) else 0


def fuzz(
    reader: str, seed: str, first: int, count: int | None, seconds: float | None, keep: Path | None
) -> Counter[str]:
    """Runs one reader's cases; returns how many failed, by kind."""
    began = shown = time.monotonic()
    target = load_target(reader)
    samples = target.make_samples()
    done, failures = 0, Counter[str]()
    for event in run(Work(Loader(reader), samples, seed, first, count), seconds):
        if isinstance(event, Failure):
            failures[event.kind] += 1
            if failures[event.kind] == 1:
                print(f"{reader}: {event.kind}\n{event.report}")
                print(
                    f"  again: python -m tests.fuzz --reader {reader} --seed {seed} "
                    f"--case {event.number}",
                    flush=True,
                )
                if keep is not None:
                    files = target.make_case(samples, seed, event.number)
                    write_case(files, keep / f"{reader}-{seed}-{event.number}")
            continue
        done += 1
        if time.monotonic() - shown > PROGRESS_S:
            shown = time.monotonic()
            print(f"{reader}: {done:,} cases, next --first {event + 1}", flush=True)
    took = time.monotonic() - began
    print(
        f"{reader}: {done:,} cases in {took:.0f} s, seed {seed}, {failures.total()} failures"
        + "".join(f"\n  {count} x {kind}" for kind, count in failures.most_common()),
        flush=True,
    )
    return failures


def repeat(reader: str, seed: str, number: int, keep: Path | None) -> int:
    target = load_target(reader)
    files = target.make_case(target.make_samples(), seed, number)
    if keep is not None:
        write_case(files, keep / f"{reader}-{seed}-{number}")
    failure = run_case(target, files)
    print("no failure" if failure is None else f"{failure.kind}\n{failure.report}")
    return 0 if failure is None else 1


if __name__ == "__main__":
    sys.exit(main())
