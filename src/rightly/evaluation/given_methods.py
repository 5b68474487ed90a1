"""Methods given as objects: records, calibrators, and what builds calibrators."""

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from inspect import signature
from typing import Any, NamedTuple

from rightly.calibrators import CALIBRATORS, AnyCalibrator, Calibrator, FittedCalibrator, Method

# A name of the registry, a record, a calibrator, or a class or function that builds one.
MethodLike = str | Method | AnyCalibrator | Callable[..., Calibrator]
MethodLikes = str | Sequence[MethodLike] | Mapping[str, MethodLike]

ADAPTER = "docs/from-your-own-package.md shows how to wrap what another library fits"


class GivenMethods(NamedTuple):
    """Names to look up in the registry, records to fit, and what is fitted already."""

    names: str | Sequence[str] | None
    records: list[Method]
    fitted: dict[str, AnyCalibrator]

    @property
    def has_objects(self) -> bool:
        return bool(self.records or self.fitted)


def sort_given(methods: Any) -> GivenMethods:
    """What was given, by what has to be done with it; a mapping gives each a name of its own."""
    if methods is None or isinstance(methods, str):
        return GivenMethods(methods, [], {})
    is_named = isinstance(methods, Mapping)
    items = methods.items() if isinstance(methods, Mapping) else ((None, one) for one in methods)
    names: list[str] = []
    records: list[Method] = []
    fitted: dict[str, AnyCalibrator] = {}
    for given, item in items:
        if isinstance(item, str) and not is_named:
            names.append(item)
            continue
        name = given or find_name(item)
        taken = {*(CALIBRATORS[one].name for one in names if one in CALIBRATORS), *fitted}
        if name in taken | {record.name for record in records}:
            raise ValueError(
                f"methods must have different names, got {name!r} twice: name them, "
                "methods={'first': ..., 'second': ...}"
            )
        if isinstance(item, FittedCalibrator) or (isinstance(item, Calibrator) and item.is_fitted):
            fitted[name] = item
        else:
            records.append(to_record(name, item))
    return GivenMethods(names, records, fitted)


def find_name(item: Any) -> str:
    """What a table calls a method that was given as an object."""
    if isinstance(item, Method):
        return item.name
    if isinstance(item, Calibrator | FittedCalibrator):
        return item.title
    name = getattr(item.func if isinstance(item, partial) else item, "__name__", None)
    if not callable(item) or name is None:
        raise TypeError(
            "methods must be names, calibrators, or classes or functions that build one, got "
            f"{type(item).__name__}: {ADAPTER}"
        )
    if name == "<lambda>":
        raise ValueError("methods must have names, got a lambda: pass methods={'name': lambda: ..}")
    return str(name)


def to_record(name: str, item: Any) -> Method:
    """A record that builds the method, under this name and in no registry."""
    if isinstance(item, str):
        item = CALIBRATORS.find(item)
    if isinstance(item, Method):
        return replace(item, name=name, aliases=())
    if isinstance(item, Calibrator):
        return Method(name, partial(copy.deepcopy, item), "own")
    if not callable(item):
        raise TypeError(
            f"methods[{name!r}] must be a name, a calibrator, or a class or function that builds "
            f"one, got {type(item).__name__}: {ADAPTER}"
        )
    takes_seed = "seed" in signature(item).parameters
    return Method(name, item, "own", is_random=takes_seed)


def build_method(method: Method, **arguments: Any) -> Calibrator:
    """An unfitted calibrator of a record, which a class of another kind cannot give."""
    built = method.build(**arguments)
    if not isinstance(built, Calibrator):
        raise TypeError(
            f"methods[{method.name!r}] must build a rightly.Calibrator, got "
            f"{type(built).__name__}: {ADAPTER}"
        )
    return built


def find_record(method: str | Method) -> Method:
    """The record of a method that is given by its name or as a record of its own."""
    return CALIBRATORS.find(method) if isinstance(method, str) else method
