"""Logs: three formats, the same rows."""

import json

import numpy as np
import pytest

from rightly.monitoring.logs import LogWriter, read_log

ROWS = [
    {"class": 1, "confidence": 0.75, "shift_score": -0.5, "time": "2026-01-01T00:00:10+00:00"},
    {"class": 0, "confidence": 0.5, "shift_score": 0.25, "time": "2026-01-01T00:00:00Z"},
    {"class": 2, "confidence": 1.0, "shift_score": 3.0, "time": "2026-01-01T00:00:20"},
]


def write(path, rows):
    if path.suffix == ".csv":
        lines = [",".join(rows[0])] + [",".join(map(str, row.values())) for row in rows]
        path.write_text("\n".join(lines) + "\n")
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        pa = pytest.importorskip("pyarrow")
        pytest.importorskip("pyarrow.parquet").write_table(pa.Table.from_pylist(rows), path)
    return path


@pytest.mark.parametrize("name", ["log.csv", "log.jsonl", "log.parquet"])
def test_every_format_is_read_in_the_order_of_arrival(tmp_path, name):
    rows = [{**row, "label": 2, "other": "x"} for row in ROWS]
    log = read_log(write(tmp_path / name, rows))
    assert log.classes.tolist() == [1, 0, 2] and log.confidence.tolist() == [0.75, 0.5, 1.0]
    assert log.shift_score.tolist() == [-0.5, 0.25, 3.0]
    np.testing.assert_array_equal(np.diff(log.time), [-10, 20])
    assert log.label.tolist() == [2, 2, 2] and log.agreement is None


def test_times_that_cannot_be_right_are_ignored_with_a_warning(tmp_path):
    def read(*times):
        rows = [{**row, "time": at} for row, at in zip(ROWS, times, strict=True)]
        return read_log(write(tmp_path / "log.jsonl", rows)).time

    with pytest.warns(UserWarning, match="times more than an hour ahead .* in 1 rows"):
        assert read(9e9, 1.7e9, 1.7e9 + 1).tolist() == [1.7e9, 1.7e9, 1.7e9 + 1]
    with pytest.warns(UserWarning, match="times more than an hour ahead .* in 1 rows"):
        assert read(1.7e9, 1.7e9 + 1, 9e9).tolist() == [1.7e9, 1.7e9 + 1, 1.7e9 + 1]
    with pytest.warns(UserWarning, match="times more than an hour ahead .* in 3 rows"):
        assert read(9e9, 9e9, 9e9) is None
    with pytest.warns(UserWarning, match="2 rows more than an hour older than rows before them"):
        assert read(1.7e9, 1.6e9, 1.5e9).tolist() == [1.7e9, 1.6e9, 1.5e9]


def test_what_is_written_is_read_again(tmp_path, caplog):
    path = tmp_path / "log.jsonl"
    for now in (1.7e9, 1.7e9 + 5):  # another writer goes on
        writer = LogWriter(path)
        row = {"class": 1, "confidence": 0.5, "shift_score": -0.25, "agreement": None}
        writer.write([row, {**row, "class": 2}], now)
        writer.close()
    log = read_log(path)
    assert log.classes.tolist() == [1, 2, 1, 2] and log.agreement is None
    assert np.diff(log.time).tolist() == [0, 5, 0]
    with pytest.raises(ValueError, match="log must be a file that can be written"):
        LogWriter(tmp_path / "no" / "log.jsonl")


def test_a_folder_of_scores_is_read(tmp_path):
    for k in range(2):
        rows = [{"predicted_class": k, "confidence": 0.5, "shift_score": 0.1}]
        write(tmp_path / f"{k}.parquet", rows)
    log = read_log(tmp_path)
    assert log.classes.tolist() == [0, 1] and log.time is None and log.label is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"confidence": 1.5}, "row 1: confidence must be a number from 0 to 1, got '1.5'"),
        ({"class": "cat"}, "row 1: class must be a class number from 0 on, got 'cat'"),
        ({"class": -1}, "row 1: class must be a class number"),
        (
            {"shift_score": None},
            "must have shift_score in every row, but row 1 has none.*predict",
        ),
        ({"time": "soon"}, "row 1: time must be seconds since 1970 or ISO 8601, got 'soon'"),
        ({"agreement": 2}, "row 1: agreement must be a number from 0 to 1"),
    ],
)
def test_bad_values_are_named(tmp_path, change, message):
    with pytest.raises(ValueError, match=message):
        read_log(write(tmp_path / "log.jsonl", [{**ROWS[0], **change}]))


def test_what_is_no_log_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no log"):
        read_log(tmp_path / "none.csv")
    (tmp_path / "log.txt").write_text("x")
    with pytest.raises(ValueError, match=r"log must end in \.csv"):
        read_log(tmp_path / "log.txt")
    (tmp_path / "empty.csv").write_text("class,confidence,shift_score\n")
    with pytest.raises(ValueError, match="at least one row"):
        read_log(tmp_path / "empty.csv")
    (tmp_path / "bad.jsonl").write_text("[1]\n")
    with pytest.raises(ValueError, match="line 1 must be an object"):
        read_log(tmp_path / "bad.jsonl")
    (tmp_path / "bad.parquet").write_bytes(b"PAR1")
    with pytest.raises(ValueError, match="not a whole Parquet file"):
        read_log(tmp_path / "bad.parquet")
