"""Arguments under which a method fits in no time, for tests whose point needs no good fit."""

from rightly.calibrators import CALIBRATORS

QUICK = {"epochs": 2, "hidden": (4,), "decays": (0.01,)}


def choose_quick_arguments(name):
    """Those of `QUICK` that a method takes: networks that are small, and trained once."""
    return {key: value for key, value in QUICK.items() if CALIBRATORS[name].takes(key)}
