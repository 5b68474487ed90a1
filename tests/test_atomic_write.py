"""Nobody ever sees half a file."""

import pytest

from rightly.atomic_write import write_atomically


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
