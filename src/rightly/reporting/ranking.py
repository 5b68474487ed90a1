"""Ranks of calibrators over several classifiers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rightly.evaluation.compare import Comparison
from rightly.evaluation.results import FilePath, MethodRank, ResultTable, count, mean_ranks, unique
from rightly.reporting.formatting import format_units
from rightly.reporting.layout import Layout, lay_out_ranking


@dataclass(frozen=True, eq=False, repr=False)
class Ranking(ResultTable[MethodRank]):
    """Calibrators over several classifiers, best mean rank first.

    `skipped` names the calibrators that not every classifier has, `notes` holds those of the
    comparisons: where accuracy changed, and what should be known about single fits.
    """

    kind = "ranking"

    ranks: Sequence[MethodRank]
    classifiers: Sequence[str]
    skipped: Sequence[str] = ()
    notes: Sequence[str] = ()

    @property
    def rows(self) -> Sequence[MethodRank]:
        return self.ranks

    def to_records(self) -> list[dict[str, Any]]:
        return [
            {
                "calibrator": one.calibrator,
                "mean_rank": one.mean_rank,
                **{f"{metric}_mean": value for metric, value in one.mean.items()},
                **{f"{metric}_spread": value for metric, value in one.spread.items()},
                **{f"{metric}_rank": value for metric, value in one.rank.items()},
            }
            for one in self.ranks
        ]

    def lay_out(self) -> Layout:
        note = (
            f"Over {count(self.classifiers, 'classifier')}: mean over test sets ± standard "
            "deviation over classifiers; ranks count from 1 over metrics, test sets and "
            "classifiers, and ties share their mean. Values "
            f"{format_units(self.ranks[0].mean)}."
        )
        return lay_out_ranking(self.ranks, (note, *self.notes))

    def describe(self) -> dict[str, Any]:
        lists = {"classifiers": self.classifiers, "skipped": self.skipped, "notes": self.notes}
        return {name: list(values) for name, values in lists.items()}

    def plot(self, kind: str = "ranks", **options: Any) -> Any:
        """Draws the mean ranks as bars on `ax`, or new axes, and returns them."""
        import numpy as np

        from rightly.reporting.figures.studies import Bars, draw_bars

        if kind != "ranks":
            raise ValueError(f"kind must be 'ranks' for a ranking, got {kind!r}")
        value = np.array([one.mean_rank for one in self.ranks])
        bars = Bars([one.calibrator for one in self.ranks], value, value, value)
        return draw_bars(bars, label="mean rank", **options)

    def __repr__(self) -> str:
        size = f"{count(self.ranks, 'method')} over {count(self.classifiers, 'classifier')}"
        return f"<Ranking: {size}, best {self.ranks[0].calibrator}>"


def rank(comparisons: Mapping[str, Comparison | FilePath]) -> Ranking:
    """Mean, spread and mean rank of the calibrators that every classifier has.

    `comparisons` maps a classifier's name to its comparison, or the path of its JSON.
    """
    if not isinstance(comparisons, Mapping) or not comparisons:
        raise TypeError(
            "comparisons must map names of classifiers to comparisons or paths of their JSON, "
            f"got {type(comparisons).__name__}"
        )
    loaded = {
        name: one if isinstance(one, Comparison) else Comparison.load(one)
        for name, one in comparisons.items()
    }
    ranks = mean_ranks({name: one.results for name, one in loaded.items()})
    ranked = {one.calibrator for one in ranks}
    methods = unique(method for one in loaded.values() for method in one.methods)
    skipped = [name for name in methods if name not in ranked]
    notes = [f"With {name}: {note}" for name, one in loaded.items() for note in one.notes]
    return Ranking(ranks, list(loaded), skipped, notes)
