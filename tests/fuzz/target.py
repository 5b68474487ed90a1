"""What is fuzzed: a reader, files that it reads, and how these are changed."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

Files = dict[str, bytes]  # by name; a reader may read several


@dataclass(frozen=True)
class Target:
    """One reader. `read` raises only `errors`, each of which names a file, or what it gives is fit.

    Samples are the same whenever they are made, so that a case is known by its seed and number.
    """

    name: str
    errors: tuple[type[Exception], ...]  # what its documentation promises, and nothing else
    make_samples: Callable[[], list[Files]]
    mutate: Callable[[Random, list[Files]], Files]
    read: Callable[[Path], None]  # of the folder that holds the files
    memory: int = 512 * 2**20  # bytes that one case may take

    def make_case(self, samples: list[Files], seed: str, number: int) -> Files:
        """The files of one case, the same for the same seed and number."""
        return self.mutate(Random(f"{self.name}/{seed}/{number}"), samples)
