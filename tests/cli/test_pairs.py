"""`rightly evaluate --pairs`: confidences without logits."""

import json

import numpy as np
import pytest

from rightly.cli import main
from rightly.cli.evaluate import PAIR_KINDS
from rightly.metrics import METRICS, measure_all


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    rng = np.random.default_rng(0)
    confidence = rng.random(150).round(3)
    correct = rng.random(150) < confidence
    path = tmp_path_factory.mktemp("pairs") / "pairs.csv"
    both = zip(confidence, correct, strict=True)
    lines = [f"{i}.png,{c},{str(a).lower()}" for i, (c, a) in enumerate(both)]
    path.write_text("name,confidence,correct\n" + "\n".join(lines) + "\n")
    return path, confidence, correct


def test_every_metric_of_pairs_is_printed_with_its_interval(pairs, tmp_path, capsys):
    path, confidence, correct = pairs
    table = tmp_path / "a.json"
    assert main(["evaluate", "--pairs", str(path), "--resamples", "100", "--json", str(table)]) == 0
    printed = capsys.readouterr().out
    assert "150 samples" in printed and "coverage_at_risk" in printed
    rows = {row["metric"]: row for row in json.loads(table.read_text())["rows"]}
    assert {name: row["value"] for name, row in rows.items()} == measure_all(confidence, correct)
    assert set(rows) == {name for name, one in METRICS.items() if one.inputs == "confidence"}
    assert all(row["low"] <= row["value"] <= row["high"] for row in rows.values())


@pytest.mark.parametrize("kind", PAIR_KINDS)
def test_every_figure_of_pairs_can_be_drawn(kind, pairs, tmp_path):
    out = tmp_path / "a.svg"
    options = ["--no-intervals", "--metrics", "ece", "--plot", str(out), "--kind", kind]
    assert main(["evaluate", "--pairs", str(pairs[0]), *options]) == 0
    assert "<svg" in out.read_text()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("cat,dog\n1,2\n", "must have the columns confidence and correct"),
        ("confidence,correct\n0.5,maybe\n", "row 2: confidence must be a number"),
        ("confidence,correct\n0.5\n", "row 2"),
        ("confidence,correct\n97,1\n", "confidence must lie in [0, 1]"),
        ("confidence,correct\n", "confidence must be a non-empty vector"),
    ],
)
def test_a_table_that_holds_no_pairs_is_refused(text, message, tmp_path, capsys):
    (tmp_path / "a.csv").write_text(text)
    assert main(["evaluate", "--pairs", str(tmp_path / "a.csv")]) == 2
    assert message in " ".join(capsys.readouterr().err.split())


def test_a_metric_of_probabilities_cannot_be_measured(pairs, capsys):
    assert main(["evaluate", "--pairs", str(pairs[0]), "--metrics", "nll"]) == 2
    assert "metrics must be of (confidence, correct), got nll" in capsys.readouterr().err
