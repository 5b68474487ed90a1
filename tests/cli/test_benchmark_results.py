"""`rightly benchmark` on a folder of results."""

import json

import pytest

from rightly.cli import main


def test_it_reads_what_compare_wrote(files, tmp_path, capsys):
    arguments = ["compare", str(files / "cal.npz"), f"t={files / 'ind.npz'}"]
    arguments += ["--no-intervals"]
    folder = tmp_path / "results"
    folder.mkdir()
    tables = [str(folder / "a.json"), str(folder / "b.json")]
    main([*arguments, "--methods", "uncalibrated,spline", "--json", tables[0]])
    main([*arguments, "--methods", "uncalibrated,spline,multi_isotonic", "--json", tables[1]])
    capsys.readouterr()
    assert main(["benchmark", str(folder)]) == 0
    captured = capsys.readouterr()
    assert "uncalibrated" in captured.out and "spline" in captured.out
    assert "mean rank" in captured.out and "2 classifiers" in captured.out
    assert "multi_isotonic is left out: a does not have it." in captured.out
    out = tmp_path / "ranking.json"
    assert main(["benchmark", str(folder), "--json", str(out)]) == 0
    document = json.loads(out.read_text())
    assert (document["format"], document["version"]) == ("rightly-results", 2)
    assert document["kind"] == "benchmark" and document["classifiers"] == ["a", "b"]
    ranks = {row["calibrator"]: row["rank"] for row in document["rows"] if row["metric"] == "ece"}
    assert sum(ranks.values()) == pytest.approx(3) and set(ranks) == {"uncalibrated", "spline"}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"format": "rightly-results", "version": 3, "rows": []}, "has format version 3"),
        ({"format": "rightly-results", "version": 2, "kind": "ranking"}, "must hold a comparison"),
        ({"format": "rightly-view-cost", "version": 1}, "must be JSON of results"),
        ({"rows": []}, "must be JSON of results"),
    ],
)
def test_other_files_and_versions_are_refused(tmp_path, capsys, content, words):
    (tmp_path / "t.json").write_text(json.dumps(content))
    assert main(["benchmark", str(tmp_path)]) == 2
    assert words in capsys.readouterr().err
