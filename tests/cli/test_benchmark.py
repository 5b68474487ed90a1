"""`rightly benchmark`: tables in the terminal and in files, and what it refuses."""

import shutil

import pytest

from rightly.cli import main


@pytest.fixture(scope="module")
def folder(files, tmp_path_factory):
    root = tmp_path_factory.mktemp("classifiers")
    for name in ("one", "two"):
        (root / name).mkdir()
        for i, test in enumerate(("cal", "ind", "blur")):
            source = ("cal", "ind", "blur")[i if name == "one" else (i + 1) % 3]
            shutil.copy(files / f"{source}.npz", root / name / f"{test}.npz")
    return root


def test_a_folder_becomes_tables_tests_and_figures(folder, tmp_path, capsys):
    out = tmp_path / "out"
    arguments = ["benchmark", str(folder), "--out", str(out), "--methods", "uncalibrated,ts,spline"]
    arguments += ["--metrics", "ece", "--tests", "ind", "--figures", "ts"]
    assert main(arguments) == 0
    text = capsys.readouterr().out
    assert "mean rank" in text and "2 classifiers" in text and "floor" in text
    assert "With 2 classifiers and 2 tests no p can pass 5 %" in text
    assert (out / "table.tex").is_file() and (out / "figures" / "reliability-ind.pdf").is_file()
    assert main([*arguments, "--metrics", "brier"]) == 2
    error = capsys.readouterr().err
    assert "out must hold fits of the same data" in error and "with replace=True" in error
    assert main([*arguments, "--figures", "platt"]) == 2
    assert "figures must be methods that every classifier has" in capsys.readouterr().err


def test_what_is_not_a_folder_of_classifiers_is_refused(files, tmp_path, capsys):
    assert main(["benchmark", str(files), "--out", str(tmp_path / "out")]) == 2
    assert "directory must hold predictions as" in capsys.readouterr().err
    assert main(["benchmark", str(files / "no"), "--out", str(tmp_path / "out")]) == 2
    assert "directory must hold a folder for each classifier" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
