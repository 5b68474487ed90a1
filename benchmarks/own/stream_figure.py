"""A stream of changing shifts: accuracy, and mean confidence before and after adapting.

    python -m benchmarks.own.stream_figure docs/figures/adapting.svg
    python -m benchmarks.own.stream_figure OUT.svg --predictions FOLDER --stream ind,fog,ind,snow

Without `--predictions`, those of the demo. FOLDER/cal.npz is fitted on; the sets of the stream come
one after another, and one that comes twice is divided. The calibrator is adapted to each window
alone.
"""

import argparse
from pathlib import Path

import rightly
from rightly.demo_data import AUGMENTED, TESTS, load_demo_set
from rightly.evaluation.data_sets import load_data_set
from rightly.reporting.figures.stream import draw_stream, measure_stream
from rightly.reporting.figures.style import save

STREAM = "ind,haze,ind,pixelate"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--predictions", type=Path, help="a folder; by default the demo's")
    parser.add_argument("--stream", default=STREAM)
    parser.add_argument("--method", default="rightly")
    parser.add_argument("--window", type=int, default=250)
    options = parser.parse_args()
    names = options.stream.split(",")
    sets = {
        name: load_demo_set(AUGMENTED if name == "cal" else name)
        if options.predictions is None
        else load_data_set(options.predictions / f"{name}.npz")
        for name in ("cal", *names)
    }
    fitted = rightly.calibrator(options.method).fit(*sets["cal"]).learn_shift(*sets["cal"])
    windows = measure_stream(fitted, sets, names, options.window)
    titled = [one._replace(shift=TESTS.get(one.shift, one.shift)) for one in windows]
    save(draw_stream(titled, options.window), options.out)
    for name in dict.fromkeys(names):
        here = [window for window in windows if window.shift == name]
        before, after = (
            sum(abs(getattr(one, field) - one.accuracy) for one in here) / len(here)
            for field in ("before", "after")
        )
        gaps = f"{100 * before:.1f} before, {100 * after:.1f} after"
        print(f"{name}: mean |confidence - accuracy| {gaps}")


if __name__ == "__main__":
    main()
