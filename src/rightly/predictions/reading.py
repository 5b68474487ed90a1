"""How files are read that do not say all of it: as logits or probabilities, with which labels."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Reading:
    """What a caller says about the files it names: the options of a command.

    `labels` are files of labels, each as `DATA=FILE`, or `FILE` for the only data set.
    """

    probabilities: bool = False
    labels: tuple[str, ...] = ()
    _used: dict[str, str] = field(default_factory=dict)  # data set by file of labels

    def find_labels(self, data: Path, has_own: bool) -> Path | None:
        """The file with the labels of a data set, if one was named."""
        pairs = [item.rpartition("=")[::2] for item in self.labels]
        own = [file for name, file in pairs if name and _are_same(name, data)]
        if own:
            return Path(own[-1])
        of_any = [file for name, file in pairs if not name]
        if has_own or not of_any:
            return None
        file = of_any[0]
        if len(of_any) > 1 or self._used.setdefault(file, str(data)) != str(data):
            raise ValueError(
                f"labels must say whose they are where there are several data sets: write "
                f"{data}={file}"
            )
        return Path(file)


def _are_same(name: str, data: Path) -> bool:
    return os.path.normpath(name) == os.path.normpath(data)


_READING: ContextVar[Reading | None] = ContextVar("reading", default=None)


def current_reading() -> Reading:
    """What is said about files now."""
    return _READING.get() or Reading()


@contextmanager
def read_files_as(probabilities: bool, labels: Sequence[str]) -> Iterator[None]:
    """Says how every file inside is read."""
    token = _READING.set(Reading(probabilities, tuple(labels)))
    try:
        yield
    finally:
        _READING.reset(token)
