"""`rightly demo`: calibrators compared on packaged data."""

from dataclasses import replace
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from rightly.cli.console import ERR, OUT, print_line, print_sentence, print_skipped
from rightly.cli.options import Import, Methods, check_outputs, option, select_given, select_names

if TYPE_CHECKING:
    from rightly.evaluation.compare import Comparison

EXAMPLE = "rightly demo --out report.html"
FUNCTIONS = ()
BASE, OWN = "temperature_scaling", "correctness_logistic"
AUGMENTED_OWN, ADAPTED_OWN = f"{OWN}, augmented", f"{OWN}, augmented, adapted"
STREAM = ("ind", "haze", "ind", "pixelate")
WINDOW = 250


def run(
    modules: Import = None,
    methods: Methods = None,
    out: Annotated[Path, option("out", metavar="FILE")] = Path("rightly-demo-report.html"),
) -> None:
    """Compare calibrators on packaged data and write a report."""
    from rightly.demo_data import CALIBRATION, TESTS
    from rightly.evaluation.compare import compare
    from rightly.reporting import report
    from rightly.reporting.terminal import render_comparison, show

    check_outputs([out])
    folder = Path(str(files("rightly.demo_data")))
    cal = folder / f"{CALIBRATION}.npz"  # with shift augmentation
    tests = {title: folder / f"{name}.npz" for name, title in TESTS.items()}
    OUT.print(
        "A ResNet-20 on CIFAR-10: each calibrator fitted on 5,000 predictions, tested on clean "
        "images and under two shifts that none was fitted on.\n"
    )
    if methods is None:
        comparison, sentences = _compare_defaults(cal, tests)
    else:
        comparison = compare(cal, tests, methods=select_names(methods), progress=True)
        sentences = []
    print_skipped(comparison.skipped)
    show(OUT, render_comparison, comparison)
    for sentence in sentences:
        print_sentence(sentence)
    if find_spec("jinja2") is None:
        print_line("no report: it needs jinja2, pip install 'rightly[report]'", ERR)
    else:
        report(
            OWN,
            tests,
            out,
            cal=cal,
            title="a ResNet-20 on CIFAR-10",
            progress=True,
            command="rightly demo" + (f" --methods {methods}" if methods else ""),
            **select_given(methods=select_names(methods)),
        )
        print_line(f"\nA report on {OWN}, augmented: {out.resolve()}")
    if methods is None:
        _draw_stream(comparison, out.with_name(f"{out.stem}-stream.svg"))


def _compare_defaults(cal: Path, tests: dict[str, Path]) -> tuple["Comparison", list[str]]:
    """Baselines, the paper's and ours; ours with shift augmentation; and that adapted."""
    from rightly.demo_data import CALIBRATION, load_demo_set
    from rightly.evaluation.compare import compare

    plain = compare(load_demo_set(CALIBRATION), tests, progress=True)
    augmented = compare(cal, tests, methods=(OWN,), progress=True)
    adapted = compare(cal, tests, methods=(BASE, OWN), adapt=True, progress=True)
    rows = [
        *plain.results,
        *(row._replace(calibrator=AUGMENTED_OWN) for row in augmented.results),
        *(row._replace(calibrator=ADAPTED_OWN) for row in adapted.results if row.calibrator == OWN),
    ]
    notes = [
        *plain.notes,
        "Augmented: fitted on 1,000 of the images under eight other shifts too.",
        "Adapted: to each test set as a batch, without its labels.",
    ]
    calibrators = {**plain.calibrators, AUGMENTED_OWN: augmented.calibrators[OWN]}
    shown = replace(plain, results=rows, notes=notes, calibrators=calibrators)
    return shown, summarise(shown, adapted)


def summarise(comparison: "Comparison", adapted: "Comparison") -> list[str]:
    """What the table means, in three sentences."""
    values = {
        (row.calibrator, row.dataset, row.metric): f"{100 * row.value:.1f} %"
        for row in (
            *comparison.results,
            *(row._replace(calibrator=f"{row.calibrator}, adapted") for row in adapted.results),
        )
    }
    known, *shifts = comparison.datasets

    def under_shift(name: str) -> str:
        return " and ".join(values[name, shift, "ece"] for shift in shifts)

    right = {name: f"{100 * share:.0f} %" for name, share in comparison.accuracy.items()}
    return [
        f"In distribution little is amiss: confidence misses accuracy by "
        f"{values['uncalibrated', known, 'ece']} before (ECE) and {values[BASE, known, 'ece']} "
        f"after temperature scaling; {OWN} tells right from wrong better (AUROC "
        f"{values[OWN, known, 'auroc']}, not {values[BASE, known, 'auroc']}), for four forward "
        f"passes per image instead of one.",
        f"Under {' and '.join(shifts)} the classifier is right only "
        f"{' and '.join(right[s] for s in shifts)} of the time instead of {right[known]}, and does "
        f"not notice: after temperature scaling confidence misses by {under_shift(BASE)}, with the "
        f"paper's ca_views by {under_shift('ca_views')}, with {OWN} by {under_shift(OWN)}, and "
        f"fitted with shift augmentation by {under_shift(AUGMENTED_OWN)}.",
        f"A batch tells what one image cannot: adapted to each test set without its labels, that "
        f"calibrator misses by {under_shift(ADAPTED_OWN)} (rightly adapt, serve --adapt), "
        f"temperature scaling by {under_shift(f'{BASE}, adapted')}.",
    ]


def _draw_stream(comparison: "Comparison", path: Path) -> None:
    """A stream that changes from set to set and back."""
    from rightly.demo_data import AUGMENTED, TESTS, load_demo_set

    if find_spec("matplotlib") is None:
        print_line("no picture: it needs matplotlib, pip install 'rightly[plots]'", ERR)
        return
    from rightly.reporting.figures.stream import draw_stream, measure_stream
    from rightly.reporting.figures.style import save

    stream = [TESTS[name] for name in STREAM]
    fitted = comparison.calibrators[AUGMENTED_OWN].learn_shift(*load_demo_set(AUGMENTED))
    save(draw_stream(measure_stream(fitted, comparison.tests, stream, WINDOW), WINDOW), path)
    print_line(f"A stream under changing shifts: {path.resolve()}")
