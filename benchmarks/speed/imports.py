"""Time of `import rightly` and `rightly --help`, as ratios to `import torch`.

    python -m benchmarks.speed.imports [--rounds 5]

Wall time of a fresh interpreter for each, in turns, so that a busy machine slows all alike; the
best of each counts. The start of the interpreter itself is in all of them and is printed too.
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence

COMMANDS: dict[str, tuple[str, ...]] = {
    "python": ("-c", "pass"),
    "import torch": ("-c", "import torch"),
    "import rightly": ("-c", "import rightly"),
    "rightly --help": ("-m", "rightly", "--help"),
}
REFERENCE = "import torch"
TARGETS = {"import rightly": 0.2, "rightly --help": 0.5}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    best = time_commands(COMMANDS, parser.parse_args().rounds)
    print(*format_ratios(best), sep="\n")


def time_commands(commands: Mapping[str, Sequence[str]], rounds: int) -> dict[str, float]:
    """Seconds of the best of several runs of each command of this Python."""
    best = dict.fromkeys(commands, float("inf"))
    # One round more: the first fills the file cache and compiles what was changed.
    for turn in range(rounds + 1):
        for name, arguments in commands.items():
            start = time.perf_counter()
            subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
            seconds = time.perf_counter() - start
            best[name] = min(best[name], seconds) if turn else best[name]
    return best


def format_ratios(best: Mapping[str, float]) -> list[str]:
    """A line a command: seconds, ratio to the reference, and the target where there is one."""
    lines = [f"{'':16}{'seconds':>9}{'ratio':>8}{'target':>8}"]
    for name, seconds in best.items():
        ratio, target = seconds / best[REFERENCE], TARGETS.get(name)
        goal = "" if target is None else f"{target:8.2f}{'' if ratio <= target else '  MISSED'}"
        lines.append(f"{name:16}{seconds:9.3f}{ratio:8.3f}{goal}")
    return lines


if __name__ == "__main__":
    main()
