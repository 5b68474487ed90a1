"""Two runs and one folder; shards that were copied, renamed or cut. Real processes, real files."""

import os
import platform
import re
import shutil
import signal
import sys
import time

import pyarrow.parquet
import pytest

import rightly
from rightly.collection import collect
from rightly.deployment.batch_inference import apply
from rightly.predictions.parquet import SKIPPED
from rightly.predictions.store import LOCK
from tests.collection.tiny_model import SMALL, Tiny, class_folders
from tests.processes import PIPE, STDOUT, spawn

SLOW = """
import time
from pathlib import Path

import torch


class Slow(torch.nn.Linear):
    def forward(self, images):
        Path("working").touch()
        time.sleep(0.05)
        return super().forward(images.mean((2, 3)))


def model():
    made = Slow(3, 3)
    with torch.no_grad():
        made.weight.copy_(torch.eye(3))
        made.bias.zero_()
    return made
"""
COLLECT = "collect py:slow:model images --views hflip --quiet -b 4 --out preds"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "slow.py").write_text(SLOW)
    class_folders(tmp_path / "images", 60)
    return tmp_path


def start(folder, *options):
    command = [sys.executable, "-m", "rightly", *COLLECT.split(), *options]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return spawn(command, cwd=folder, stdout=PIPE, stderr=STDOUT, env=environment)


@pytest.mark.long
def test_of_two_runs_with_other_settings_one_is_refused(folder):
    with start(folder, "--seed", "0") as first, start(folder, "--seed", "1") as second:
        printed = [first.communicate()[0], second.communicate()[0]]
    codes = [first.returncode, second.returncode]
    assert sorted(codes) == [0, 2], printed
    winner, refused = codes.index(0), printed[codes.index(2)]
    # While the other runs, or after it.
    assert re.search(r"process \d+ on .* is writing to|holds another collection", refused)
    assert len(rightly.load(folder / "preds")[0]) == 60
    with start(folder, "--seed", str(winner)) as again:
        assert "was complete" in again.communicate()[0]
    assert not (folder / "preds" / LOCK).exists()


@pytest.mark.long
def test_a_killed_run_leaves_no_lock_that_matters(folder):
    with start(folder) as killed:
        while not (folder / "working").exists():
            assert killed.poll() is None
            time.sleep(0.01)
        words = f"process {killed.pid} on .* is writing to .*: wait until"
        with pytest.raises(ValueError, match=words):
            collect(Tiny(), folder / "images", out=folder / "preds", preprocessing=SMALL)
        killed.send_signal(signal.SIGKILL)
        killed.communicate()
    assert (folder / "preds" / LOCK).exists()
    with start(folder) as again:
        printed = again.communicate()[0]
    assert again.returncode == 0, printed
    assert [path.suffix for path in (folder / "preds").iterdir()] == [".parquet"]


def test_what_a_live_writer_has_not_finished_stays(folder):
    out = folder / "preds"
    collect(Tiny(), folder / "images", out=out, preprocessing=SMALL)
    with spawn(["sleep", "60"]) as writer:
        parts = [out / f".part-000000.parquet.{platform.node()}.{writer.pid}.part"]
        parts.append(out / ".part-000000.parquet.another-host.4711.part")
        old = out / ".part-000000.parquet.old-host.4711.part"
        for part in (*parts, old):
            part.write_bytes(b"PAR1")
        os.utime(old, (0, 0))
        collect(Tiny(), folder / "images", out=out, preprocessing=SMALL)
        assert all(part.exists() for part in parts) and not old.exists()
    collect(Tiny(), folder / "images", out=out, preprocessing=SMALL)
    assert not parts[0].exists()


@pytest.fixture
def preds(folder, shards_of):
    shards_of(20)
    collect(Tiny(), folder / "images", views=("hflip",), shifts=("jpeg",), out=folder / "preds")
    return folder / "preds"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("part-000003.parquet", "no other Parquet files than its shards .*part-000002.parquet"),
        ("part-000000 (1).parquet", r"has part-000000 \(1\).parquet: remove it, or move"),
        ("copy.parquet", "has copy.parquet: remove it"),
        ("part-000001.parquet", "images 0 to 19, not 20 to 39, as if .* copy: remove it and run"),
    ],
)
def test_a_copied_shard_is_refused_with_the_remedy(preds, name, message):
    shutil.copy(preds / "part-000000.parquet", preds / name)
    with pytest.raises(ValueError, match=message):
        rightly.load(preds)
    (preds / name).unlink()
    collect(Tiny(), preds.parent / "images", views=("hflip",), shifts=("jpeg",), out=preds)
    assert len(rightly.load(preds)[0]) == 120


def test_apply_refuses_the_same_shards(preds, tmp_path):
    saved = tmp_path / "c.safetensors"
    rightly.calibrator("ts").fit(*rightly.load(preds)).save(saved)
    shutil.copy(preds / "part-000000.parquet", preds / "part-000001.parquet")
    with pytest.raises(ValueError, match="as if it were another shard's copy"):
        apply(saved, preds, tmp_path / "scores")


def test_missing_and_doubled_rows_are_refused(preds):
    shard = preds / "part-000001.parquet"
    table = pyarrow.parquet.read_table(shard)
    for rows, message in ((range(39), "has 39 rows, not 40"), ([*range(39), 0], "twice: remove")):
        pyarrow.parquet.write_table(table.take(list(rows)), shard, write_page_checksum=True)
        with pytest.raises(ValueError, match=message):
            rightly.load(preds)
    # A row that was skipped, and says so, is missed by nobody.
    metadata = {**table.schema.metadata, SKIPPED: b'[["a.png", "bad"]]'}
    kept = table.filter(pyarrow.compute.not_equal(table["image"], 20))
    pyarrow.parquet.write_table(kept.replace_schema_metadata(metadata), shard)
    assert len(rightly.load(preds)[0]) == 118
