"""Nobody ever sees half a file."""

import csv
import io
import os
import re
import socket
import sys
from pathlib import Path

import numpy as np
import pytest

import rightly
from rightly.cli import main
from rightly.files import check_target, write_atomically
from tests.conftest import make
from tests.processes import run_python

ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


def test_a_file_appears_whole(tmp_path):
    path = tmp_path / "a.txt"

    def write(part):
        part.write_text("whole")
        assert not path.exists() and part.parent == tmp_path

    write_atomically(path, write)
    assert path.read_text() == "whole"
    assert list(tmp_path.iterdir()) == [path]


def test_what_was_there_survives_a_failure(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("before")

    def fail(part):
        part.write_text("ha")
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="the disk is full"):
        write_atomically(path, fail)
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_a_missing_folder_is_named_before_anything_is_written(tmp_path):
    with pytest.raises(FileNotFoundError, match="the folder .*nowhere does not exist"):
        write_atomically(tmp_path / "nowhere" / "a.txt", lambda part: part.write_text("no"))


def make_link(path):
    (path.parent / "real.txt").write_text("real")
    path.symlink_to(path.parent / "real.txt")


def make_socket(path):
    with socket.socket(socket.AF_UNIX) as opened:
        opened.bind(str(path))


@pytest.mark.parametrize(
    ("make_it", "kind"),
    [
        (make_link, "a symbolic link to .*real.txt"),
        (lambda path: path.symlink_to("nowhere"), "a symbolic link to nowhere"),
        (os.mkfifo, "a named pipe"),
        (os.mkdir, "a folder"),
        (make_socket, "a socket"),
    ],
)
def test_only_plain_files_are_replaced(tmp_path, monkeypatch, make_it, kind):
    monkeypatch.chdir(tmp_path)  # the path of a socket must be short
    path = tmp_path / "a.safetensors"
    make_it(path)
    before = path.lstat()
    with pytest.raises(ValueError, match=f"a.safetensors: it is {kind}, .*new or plain file"):
        rightly.calibrator("ts").fit(*make(n=30)).save(path)
    after = path.lstat()
    assert (after.st_mode, after.st_ino) == (before.st_mode, before.st_ino)
    assert not list(tmp_path.glob(".*.part"))


def test_devices_are_not_replaced(tmp_path):
    with pytest.raises(ValueError, match="/dev/null: it is a device"):
        check_target("/dev/null")


def test_an_input_is_not_replaced_by_whatever_name_it_goes(tmp_path):
    path, folder = tmp_path / "cal.npz", tmp_path / "set"
    path.write_bytes(b"input")
    folder.mkdir()
    (folder / "part-000000.parquet").write_bytes(b"input")
    os.link(path, tmp_path / "hard.npz")
    for target, source in (
        (path, path),
        (path, tmp_path / "set" / ".." / "cal.npz"),
        (tmp_path / "hard.npz", str(path)),
        (folder / "part-000000.parquet", folder),
    ):
        with pytest.raises(ValueError, match="is read as input .*another path"):
            write_atomically(target, lambda part: part.write_bytes(b"output"), [source])
        assert target.read_bytes() == b"input"
    write_atomically(tmp_path / "new", lambda part: part.write_bytes(b"output"), [path, None, 3])


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Predictions and a calibrator fitted on them, where commands run."""
    monkeypatch.chdir(tmp_path)
    predictions, labels = make(n=60)
    rightly.save("cal.npz", predictions, labels)
    rightly.calibrator("ts").fit(predictions, labels).save("c.safetensors")
    return tmp_path


@pytest.mark.parametrize(
    "command",
    [
        "fit cal.npz --method ts --out cal.npz",
        "predict c.safetensors cal.npz --out cal.npz",
        "predict c.safetensors cal.npz --out c.safetensors",
        "report ts test=cal.npz --cal cal.npz --out ./cal.npz",
        "report c.safetensors cal.npz --out c.safetensors",
        "evaluate c.safetensors cal.npz --no-intervals --json cal.npz",
        "compare cal.npz other=cal.npz --methods ts --no-intervals --json cal.npz",
        "export timm:resnet18 c.safetensors --out c.safetensors",
        "evaluate c.safetensors cal.npz --card c.safetensors",
        "adapt c.safetensors cal.npz --out c.safetensors",
        "views cal.npz --json cal.npz",
    ],
)
def test_no_command_replaces_its_input(files, capsys, command):
    before = {path: path.read_bytes() for path in files.iterdir()}
    assert main(command.split()) == 2
    assert "is read as input" in capsys.readouterr().err.replace("\n", " ")
    assert {path: path.read_bytes() for path in files.iterdir()} == before


def test_the_library_does_not_replace_its_input_either(files):
    from rightly.deployment.batch_inference import apply
    from rightly.deployment.export import export_model

    os.link("cal.npz", "cal.csv")
    with pytest.raises(ValueError, match="is read as input"):
        apply("c.safetensors", "cal.npz", "cal.csv")
    with pytest.raises(ValueError, match="is read as input"):
        rightly.report("c.safetensors", {"test": "cal.npz"}, "cal.npz")
    (files / "cal.csv").rename("model.onnx")
    with pytest.raises(ValueError, match="is read as input"):
        export_model("onnx:model.onnx", "c.safetensors", "model.onnx")


NAMES = ["=1+1", "+a", "-b", "@c", "\tx", "Käfer", "a=b", "7", "x", "y"]
OTHERWISE = ["'=1+1", "'+a", "'-b", "'@c", "'\tx", "Käfer", "a=b", "7", "x", "y"]


def test_no_cell_of_a_table_is_a_formula(files):
    predictions, labels = rightly.load("cal.npz")
    named = rightly.Predictions(predictions.logits, class_names=NAMES)
    rightly.save("named.npz", named, labels)
    rightly.calibrator("ts").fit(predictions, labels).save("c.safetensors")
    assert main(["predict", "c.safetensors", "named.npz", "--out", "out.csv"]) == 0
    with (files / "out.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 60
    for row in rows:
        assert row["class_name"] == OTHERWISE[int(row["predicted_class"])]
        assert 0 <= float(row["confidence"]) <= 1
    evaluation = rightly.evaluate("c.safetensors", {"=cmd()": "cal.npz", "-2": "cal.npz"})
    rows = list(csv.DictReader(io.StringIO(evaluation.to_csv())))
    assert {row["dataset"] for row in rows} == {"'=cmd()", "'-2"}
    assert {float(row["value"]) for row in rows}  # numbers, of either sign, stay numbers


def test_text_is_utf8_whatever_the_locale_says(files):
    predictions, labels = rightly.load("cal.npz")
    named = rightly.Predictions(predictions.logits, class_names=NAMES)
    rightly.save("named.npz", named, labels)
    commands = [
        ["predict", "c.safetensors", "named.npz", "--out", "out.csv"],
        ["evaluate", "c.safetensors", "named.npz", "--no-intervals", "--json", "out.json"],
        ["evaluate", "c.safetensors", "Käse=named.npz", "--no-intervals", "--card", "card.md"],
    ]
    program = (
        "from rightly.cli import main\n"
        f"for command in {commands!a}:\n"
        "    assert main(command) == 0, command\n"
    )
    locale = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    options = ["-W", "error::EncodingWarning"]
    run_python(*options, "-c", program, env={**ENVIRONMENT, **locale}, check=True)
    assert "Käfer" in (files / "out.csv").read_text(encoding="utf-8")


def test_all_text_files_are_opened_as_utf8():
    """Where the locale's encoding would be used, Python warns; the package asks for no other."""
    folder = Path(rightly.__file__).parent
    calls = re.compile(r"\.(?:read_text|write_text)\(((?:[^()]|\([^()]*\))*)\)")
    missing = [
        f"{path.relative_to(folder)}: {call[0]}"
        for path in sorted(folder.rglob("*.py"))
        for call in calls.finditer(path.read_text(encoding="utf-8"))
        if "encoding=" not in call[1]
    ]
    assert missing == []


def test_a_file_that_cannot_be_written_whole_is_named(tmp_path):
    """A limit on the size of files fails in the same place as a full disk."""
    np.save(tmp_path / "logits.npy", np.random.default_rng(0).normal(size=(500, 10)))
    program = (
        "import resource, numpy as np, rightly\n"
        "predictions = rightly.Predictions(np.load('logits.npy'))\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
        "try:\n"
        "    rightly.save('big.npz', predictions)\n"
        "except OSError as error:\n"
        "    print(error.errno, error)\n"
    )
    # -B: a compiled module that is cut short at the limit would break later imports.
    result = run_python("-B", "-c", program, cwd=tmp_path, env=ENVIRONMENT)
    assert "cannot write big.npz: File too large" in result.stdout, result.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["logits.npy"]
