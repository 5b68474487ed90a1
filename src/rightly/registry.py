"""Named records: those of the library, those registered at run time, those of installed packages.

A registry is a mapping from name to record, in the order in which the records are written. Aliases
are found, but not listed: files and tables hold canonical names. Installed packages add records by
an entry point whose group is the registry's, such as `rightly.metrics`; nothing else is imported.
"""

import warnings
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from importlib.metadata import entry_points
from types import ModuleType
from typing import Any, Protocol, TypeVar, runtime_checkable


@runtime_checkable
class Named(Protocol):
    @property
    def name(self) -> str: ...


MAX_LISTED = 8  # names in a message
# What names all records of a kind.
LISTED = {
    "method": "rightly fit --list",
    "metric": "rightly.metrics.METRICS",
    "view": "rightly collect --list",
    "shift": "rightly collect --list",
    "layout": "rightly collect --list",
}

Record = TypeVar("Record", bound=Any)  # a Named; issubclass refuses protocols with attributes

_REGISTRIES: "dict[type, Registry[Any]]" = {}  # by type of record: where `register` puts it


class Registry(Mapping[str, Record]):
    """Records of one type by name: built in, then registered, then of installed packages."""

    def __init__(
        self,
        kind: str,
        of: type[Any],
        records: Iterable[Record],
        group: str | None = None,
        base: type[Any] | None = None,
    ) -> None:
        self.kind, self.of = kind, of
        self.base = base  # subclasses may be registered in place of records: `of.from_class`
        self.group = group or f"rightly.{kind}s"
        self._records: dict[str, Record] = {}
        self._aliases: dict[str, str] = {}
        self._packages: dict[str, str] = {}  # what to install for a record, by its name
        self._installed: bool = False  # whether installed packages were asked
        for record in records:
            self.add(record)
        self._builtin = frozenset(self._records)
        _REGISTRIES[of] = self

    def add(self, record: Record) -> None:
        """Lists a record under its name; a name or alias that is taken is refused."""
        if not isinstance(record, self.of):
            raise TypeError(
                f"a {self.kind} must be a {self.of.__name__}, got {type(record).__name__}"
            )
        names = (record.name, *_aliases_of(record))
        taken = [name for name in names if name in self._records or name in self._aliases]
        if taken:
            raise ValueError(f"the {self.kind} {taken[0]!r} exists already: choose another name")
        self._records[record.name] = record
        self._aliases |= dict.fromkeys(_aliases_of(record), record.name)

    def remove(self, name: str) -> None:
        """Takes back what was registered at run time."""
        if name in self._builtin or name not in self._records:
            raise ValueError(f"the {self.kind} {name!r} was not registered at run time")
        record = self._records.pop(name)
        for alias in _aliases_of(record):
            del self._aliases[alias]

    def find(self, name: str) -> Record:
        """Return the record of this name or alias; an unknown name is refused."""
        try:
            return self[name]
        except KeyError:
            raise unknown_name(
                self.kind, name, self, self._aliases, LISTED.get(self.kind, "")
            ) from None

    @property
    def aliases(self) -> Mapping[str, str]:
        """Names of records by their aliases."""
        return self._aliases

    def package_of(self, name: str) -> str | None:
        """The installed package that a record comes from, None for all others."""
        self._ask_installed()
        return self._packages.get(name)

    def __getitem__(self, name: str) -> Record:
        if name not in self._records and name not in self._aliases:
            self._ask_installed()
        return self._records[self._aliases.get(name, name)]

    def __iter__(self) -> Iterator[str]:
        self._ask_installed()
        return iter(list(self._records))

    def __len__(self) -> int:
        self._ask_installed()
        return len(self._records)

    def __repr__(self) -> str:
        return f"<{len(self)} {self.kind}s: {', '.join(self)}>"

    def _ask_installed(self) -> None:
        """Adds the records of installed packages, once; one that fails is left out, and said."""
        if self._installed:
            return
        self._installed = True
        for point in entry_points(group=self.group):
            try:
                record = point.load()
                # `--import` may have registered the very same before.
                if record is not self._records.get(getattr(record, "name", "")):
                    self.add(record)
                if point.dist is not None:
                    self._packages[record.name] = point.dist.name
            except Exception as error:  # it is somebody else's code
                warnings.warn(
                    f"the {self.kind} {point.name!r} of {point.value} cannot be used: {error}",
                    UserWarning,
                    stacklevel=3,
                )


def register(record: Any) -> None:
    """Add a metric, calibrator, evidence, view or shift until the process ends.

    The record is a `Metric`, `Method`, `Evidence`, `View` or `Shift`, or a subclass of
    `Calibrator`, which is then found by its name in snake case: `MeanShift` as `mean_shift`.
    """
    registry = _REGISTRIES.get(type(record))
    if isinstance(record, type):
        for one in _REGISTRIES.values():
            if one.base is not None and issubclass(record, one.base):
                registry, record = one, one.of.from_class(record)
                break
    if registry is None:
        known = ", ".join(sorted(of.__name__ for of in _REGISTRIES))
        what = record.__name__ if isinstance(record, type) else type(record).__name__
        raise TypeError(f"record must be one of {known} or a subclass of Calibrator, got {what}")
    registry.add(record)


def register_module(module: ModuleType) -> None:
    """Adds the records at the top level of a module, those that are not there yet."""
    for value in vars(module).values():
        registry = _REGISTRIES.get(type(value))
        if registry is not None and registry.get(value.name) is not value:
            registry.add(value)


def unknown_name(
    argument: str,
    name: object,
    known: Iterable[str],
    aliases: Iterable[str] = (),
    listed: str = "",
) -> ValueError:
    """The error for a name that is none of those known: the closest one first, else a few of them.

    `listed` is what names all, such as a command.
    """
    names = list(known)
    close = get_close_matches(str(name), [*names, *aliases], n=1, cutoff=0.6)
    if not close and len(names) <= MAX_LISTED:
        return ValueError(f"{argument} must be one of {', '.join(names)}, got {name!r}")
    some = f"choose from {len(names)}, such as {', '.join(names[:3])}"
    remedy = f"did you mean {close[0]}?" if close else some
    listing = f" ({listed} names all)" if listed else ""
    return ValueError(f"{argument} {name!r} is not known: {remedy}{listing}")


def _aliases_of(record: Named) -> tuple[str, ...]:
    return tuple(getattr(record, "aliases", ()))
