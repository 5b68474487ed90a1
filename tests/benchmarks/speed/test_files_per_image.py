"""Counting the files in which code runs."""

import threading

import torch
from benchmarks.speed.files_per_image import TARGET, format_files, trace_files

from rightly import Predictions
from rightly.metrics import ece


def test_only_files_whose_functions_are_called_count():
    assert trace_files(lambda: None) == set()
    files = trace_files(lambda: ece([0.5, 0.9], [True, False]))
    assert "metrics/definitions.py" in files
    assert not any(name.startswith("predictions") for name in files)


def test_threads_that_work_starts_are_followed():
    def work():
        thread = threading.Thread(target=lambda: Predictions(2 * torch.eye(2)).classes)
        thread.start()
        thread.join()

    assert "predictions/predictions.py" in trace_files(work)


def test_a_file_of_several_steps_counts_once():
    lines = format_files({"collect": {"a.py", "b.py"}, "fit": {"b.py"}}, TARGET)
    assert lines[0] == "collect: 2 files" and lines[-1].startswith("together 2 of ")
    many = {f"{i}.py" for i in range(TARGET + 1)}
    assert "MISSED" in format_files({"fit": many}, TARGET)[-1] and "MISSED" not in lines[-1]
