"""A finding: what is wrong with a data set, how that shows, and what to do."""

from dataclasses import asdict, dataclass
from typing import Any

ERROR = "error"  # results on these data are wrong
WARNING = "warning"  # results may mislead


@dataclass(frozen=True)
class Finding:
    """What is wrong with a data set, in plain language with numbers, and what to do about it."""

    data_set: str
    name: str  # the check that found it, as docs/doctor.md lists them
    severity: str
    found: str
    remedy: str

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        return f"{self.data_set}: {self.severity}, {self.name}: {self.found}; {self.remedy}"


def name_classes(classes: list[int], names: tuple[str, ...] | None, most: int = 10) -> str:
    """Some classes by number, and by name where they have any."""
    texts = [str(k) if names is None else f"{k} ({names[k]})" for k in classes[:most]]
    more = f" and {len(classes) - most} more" if len(classes) > most else ""
    return ", ".join(texts) + more
