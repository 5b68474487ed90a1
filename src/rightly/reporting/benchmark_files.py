"""Files and figures of a benchmark: tables in every format, values, comparisons, and a page."""

import math
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rightly.checks import check_choice
from rightly.evaluation.ranking import FIGURE
from rightly.evaluation.results import ResultTable, count, encode_csv
from rightly.files import write_atomically
from rightly.reporting import markup

if TYPE_CHECKING:
    from rightly.evaluation.benchmark import Benchmark

KINDS = (FIGURE, "reliability", "roc", "risk-coverage")
USUAL = ("uncalibrated", "temperature_scaling")  # and the best of the others
DRAWN = (".pdf", ".svg")  # for papers, and for pages


def write_benchmark(
    benchmark: "Benchmark", folder: Path, figures: Sequence[str] | None = None
) -> list[Path]:
    """Writes all files; `figures` names the methods drawn, by default the usual ones."""
    drawn = choose_methods(benchmark, figures)
    folder.mkdir(parents=True, exist_ok=True)
    written = _write_table(benchmark, folder / "table")
    if benchmark.tests is not None:
        written += _write_table(benchmark.tests, folder / "tests")
    written.append(folder / "benchmark.json")
    benchmark.to_json(written[-1])
    written.append(folder / "values.csv")
    _write_text(written[-1], encode_csv(benchmark.list_values()))
    (folder / "comparisons").mkdir(exist_ok=True)
    for name, comparison in benchmark.comparisons.items():
        written.append(folder / "comparisons" / f"{name}.json")
        comparison.to_json(written[-1])
    pictures = _draw_all(benchmark, folder / "figures", drawn)
    written += pictures
    tables: list[ResultTable[Any]] = (
        [benchmark] if benchmark.tests is None else [benchmark, benchmark.tests]
    )
    body = "".join(f"<h2>{one.kind.capitalize()}</h2>{one._repr_html_()}" for one in tables)
    images = [path.relative_to(folder).as_posix() for path in pictures if path.suffix == ".svg"]
    for one in images:
        name = escape(Path(one).stem)
        body += f'<h2>{name}</h2><img src="{escape(one)}" alt="{name}">'
    written.append(folder / "index.html")
    _write_text(written[-1], markup.to_page("Benchmark", body))
    return written


def _write_table(table: ResultTable[Any], stem: Path) -> list[Path]:
    formats = {
        ".md": table.to_markdown,
        ".tex": table.to_latex,
        ".csv": table.to_csv,
        ".html": table.to_html,
    }
    for ending, write in formats.items():
        write(stem.with_suffix(ending))
    return [stem.with_suffix(ending) for ending in formats]


def _draw_all(benchmark: "Benchmark", folder: Path, methods: Sequence[str]) -> list[Path]:
    from rightly.reporting.figures.style import save

    folder.mkdir(exist_ok=True)
    figures: dict[str, Any] = {}
    if benchmark.tests is not None:
        for test in benchmark.tests.metrics:
            figures[f"critical-difference-{test.metric}"] = benchmark.tests.plot(metric=test.metric)
    has_confidences = benchmark.store is not None
    for i, dataset in enumerate(benchmark.datasets if has_confidences else ()):
        stem = f"reliability-{_to_stem(dataset, i)}"
        figures[stem] = benchmark.plot("reliability", methods=methods, dataset=dataset)
    for kind in ("roc", "risk-coverage") if has_confidences else ():
        figures[kind] = benchmark.plot(kind, methods=methods)
    paths = [folder / f"{stem}{ending}" for stem in figures for ending in DRAWN]
    for path in paths:
        save(figures[path.name.removesuffix(path.suffix)], path)
    return paths


def _to_stem(dataset: str, number: int) -> str:
    """A test set's name in that of a file, where it can be: shifts have colons."""
    safe = "".join(c if c.isalnum() or c in "-_." else "-" for c in dataset)
    return safe if safe == dataset else f"{safe}-{number}"


def _write_text(path: Path, text: str) -> None:
    write_atomically(path, lambda part: part.write_text(text, encoding="utf-8"))


def draw_benchmark(
    benchmark: "Benchmark",
    kind: str,
    methods: Sequence[str] | None = None,
    dataset: str | None = None,
    metric: str | None = None,
) -> Any:
    """Draws one kind of figure and returns one of its axes."""
    check_choice("kind", kind, KINDS)
    if kind == FIGURE:
        if benchmark.tests is None:
            raise ValueError(
                f"the figure {kind} needs two classifiers and two methods, got "
                f"{count(benchmark.classifiers, 'classifier')} and "
                f"{count(benchmark.methods, 'method')}: add some"
            )
        return benchmark.tests.plot(kind, metric)
    if dataset is not None:
        check_choice("dataset", dataset, benchmark.datasets)
    from rightly.reporting.figures.classifier_grids import draw_curve_grid, draw_reliability_grid

    chosen = choose_methods(benchmark, methods)
    datasets = benchmark.datasets if dataset is None else [dataset]
    panels = {
        (classifier, name): {
            method: benchmark.read_outcomes(classifier, method, name) for method in chosen
        }
        for classifier in benchmark.classifiers
        for name in (datasets[:1] if kind == "reliability" else datasets)
    }
    if kind != "reliability":
        return draw_curve_grid(kind, panels)
    single = {
        (classifier, method): one
        for (classifier, _), of_methods in panels.items()
        for method, one in of_methods.items()
    }
    return draw_reliability_grid(single, datasets[0])


def choose_methods(benchmark: "Benchmark", methods: Sequence[str] | None = None) -> list[str]:
    """The methods to draw: those named, or the usual ones and the best by mean rank."""
    if methods is not None:
        unknown = [name for name in methods if name not in benchmark.methods]
        if unknown or not methods:
            raise ValueError(
                "figures must be methods that every classifier has, "
                f"{', '.join(benchmark.methods)}; got {', '.join(unknown) or 'none'}"
            )
        return list(methods)
    usual = [name for name in USUAL if name in benchmark.methods]
    ranks: dict[str, list[float]] = {}
    for row in benchmark.rows:
        if row.dataset == benchmark.grid.datasets[-1] and not math.isnan(row.rank):
            ranks.setdefault(row.calibrator, []).append(row.rank)
    others = [name for name in ranks if name not in usual]
    best = min(others, key=lambda name: sum(ranks[name]) / len(ranks[name]), default=None)
    return usual if best is None else [*usual, best]
