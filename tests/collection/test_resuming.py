"""A run that was stopped at any moment goes on where it was."""

import itertools
import os
import random
import signal
import sys
import time
from contextlib import contextmanager

import numpy as np
import pyarrow.dataset
import pyarrow.parquet
import pytest

import rightly
from rightly.classifiers import Preprocessing
from rightly.collection import collect
from tests.collection.tiny_model import SMALL, Tiny, class_folders, flat, rows_in, same
from tests.processes import PIPE, run, spawn


class Stopped(Exception):  # noqa: N818
    pass


def stop_after(count):
    def progress(step, done, total):
        if done >= count:
            raise Stopped

    return progress


@pytest.mark.parametrize("images_before", [1, 8, 13, 20, 29, 30])
def test_a_run_goes_on_where_it_was(tmp_path, shards_of, images_before):
    shards_of(8)
    root, out, model = class_folders(tmp_path / "images", 30), tmp_path / "preds", Tiny()
    given = {"views": ("hflip",), "shifts": ("jpeg",), "batch_size": 4, "preprocessing": SMALL}
    given["allow_random"] = True  # what is not checked is not shown more often either
    expected = collect(model, root, **given)
    whole, model.shown = model.shown, 0
    with pytest.raises(Stopped):
        collect(model, root, **given, out=out, progress=stop_after(images_before))
    shards = {path: path.stat().st_mtime_ns for path in out.glob("part-*")}
    # The callback of the last batch of a shard comes before the shard is written.
    assert len(shards) == (images_before - 1) // 8
    kept = min(30, -(-images_before // 4) * 4)  # every batch, also those of an unfinished shard
    model.shown, steps = 0, []
    same(
        collect(model, root, **given, out=out, progress=lambda *step: steps.append(step)), expected
    )
    assert model.shown == (30 - kept) * whole // 30
    assert not list(out.glob(".*"))
    assert all(path.stat().st_mtime_ns == written for path, written in shards.items())
    assert steps[-1] == ("collecting", 30, 30)
    rows = rows_in(out)
    places = zip(rows["shift"].to_pylist(), rows["image"].to_pylist(), strict=True)
    assert sorted(places) == [*itertools.product(range(2), range(30))]


def test_a_finished_run_does_not_ask_the_model_again(tmp_path, shards_of):
    shards_of(8)
    root, out, model = flat(tmp_path / "images", 20), tmp_path / "preds", Tiny()
    first = collect(model, root, out=out, preprocessing=SMALL)
    model.shown, steps = 0, []
    same(
        collect(
            model, root, out=out, preprocessing=SMALL, progress=lambda *step: steps.append(step)
        ),
        first,
    )
    assert model.shown == 0
    assert steps == [("collecting", 20, 20)]


def test_progress_adds_up_when_the_short_last_shard_is_there(tmp_path, shards_of):
    shards_of(8)
    root, out, steps = flat(tmp_path / "images", 20), tmp_path / "preds", []
    collect(Tiny(), root, out=out, preprocessing=SMALL)
    (out / "part-000000.parquet").unlink()
    collect(
        Tiny(),
        root,
        out=out,
        preprocessing=SMALL,
        batch_size=8,
        progress=lambda *step: steps.append(step),
    )
    assert [done for _, done, _ in steps] == [12, 20]


def test_a_second_run_with_anything_else_is_refused(tmp_path):
    root, out = flat(tmp_path / "images", 5), tmp_path / "preds"
    collect(Tiny(), root, views=("hflip",), out=out, preprocessing=SMALL)
    before = {path: path.read_bytes() for path in out.iterdir()}
    other = flat(tmp_path / "other", 6)
    for model, images, changes, words in (
        (Tiny(), root, {"views": ("blur",)}, r"views was \['hflip'\], now \['blur'\]"),
        (Tiny(), root, {"shifts": ("jpeg",)}, "shifts was"),
        (Tiny(seed=1), root, {}, "model_fingerprint was"),
        (Tiny(), other, {}, "images was 5, now 6; images_fingerprint was"),
        (Tiny(), root, {"preprocessing": Preprocessing((8, 8))}, "preprocessing was"),
        (Tiny(), root, {"dtype": "float16"}, "dtype was float32, now float16"),
        (Tiny(), root, {"seed": 1}, "seed was 0, now 1"),
        (Tiny(), root, {"features": True}, "features was False, now True"),
    ):
        given = {"views": ("hflip",), "preprocessing": SMALL} | changes
        with pytest.raises(ValueError, match=f"holds another collection .*{words}"):
            collect(model, images, **given, out=out)
    assert {path: path.read_bytes() for path in out.iterdir()} == before


def test_a_full_disk_can_be_mended_and_the_run_completed(tmp_path, shards_of, monkeypatch):
    shards_of(4)
    root, out = flat(tmp_path / "images", 10), tmp_path / "preds"
    write, left = pyarrow.parquet.write_table, itertools.count()

    def full(*given, **named):
        if next(left) == 1:
            raise OSError(28, "No space left on device")
        write(*given, **named)

    monkeypatch.setattr(pyarrow.parquet, "write_table", full)
    with pytest.raises(OSError, match="part-000001.parquet.*No space left.*same command again"):
        collect(Tiny(), root, out=out, preprocessing=SMALL)
    names = sorted(path.name for path in out.iterdir())
    assert names == [".partial-000001.parquet", "part-000000.parquet"]  # there was room for it
    same(
        collect(Tiny(), root, out=out, preprocessing=SMALL),
        collect(Tiny(), root, preprocessing=SMALL),
    )


SLOW_MODEL = """
import time
from pathlib import Path

import pyarrow.parquet
import torch

write_table = pyarrow.parquet.write_table


def slowly(table, where, **others):
    Path(where).write_bytes(b"PAR1 and nothing more for a while")
    time.sleep(0.1)
    write_table(table, where, **others)


class Slow(torch.nn.Linear):
    def forward(self, images):
        time.sleep(0.005)
        return super().forward(images.mean((2, 3)))


def model():
    torch.set_num_threads(1)
    pyarrow.parquet.write_table = slowly  # so that some kills meet half a file
    made = Slow(3, 10)
    with torch.no_grad():
        made.weight.copy_(torch.arange(30.0).reshape(10, 3).sin())
        made.bias.zero_()
    Path("ready").touch()
    return made
"""


@contextmanager
def started(folder, out):
    """A run of the command that has just begun to collect."""
    ready = folder / "ready"
    ready.unlink(missing_ok=True)
    command = [sys.executable, "-m", "rightly", "collect", "py:slow_model:model", "images"]
    command += ["--layout", "cifar10", "--split", "test", "--out", out]
    command += ["--views", "hflip", "--shifts", "contrast", "-b", "128", "-j", "1", "--quiet"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with (
        (folder / "log").open("a") as log,
        spawn(command, cwd=folder, stdout=log, stderr=log, env=environment) as process,
    ):
        while not ready.exists() and process.poll() is None:
            time.sleep(0.005)
        yield process


@pytest.mark.long
def test_killed_at_twenty_moments_it_ends_as_if_undisturbed(tmp_path):
    count, shards = 10_000, 10
    (tmp_path / "slow_model.py").write_text(SLOW_MODEL)
    pixels = np.random.default_rng(0).integers(0, 256, (count, 3073), np.uint8)
    pixels[:, 0] %= 10  # CIFAR-10 has the label before the pixels
    home = tmp_path / "images" / "cifar-10-batches-bin"
    home.mkdir(parents=True)
    (home / "test_batch.bin").write_bytes(pixels.tobytes())

    with started(tmp_path, "undisturbed") as process:
        begin = time.monotonic()
        assert process.wait() == 0, (tmp_path / "log").read_text()
        whole = time.monotonic() - begin  # of the collecting alone, without the start of Python
    expected, draws, kills = rows_in(tmp_path / "undisturbed"), random.Random(0), 0
    assert expected.num_rows == 2 * count
    for folder in itertools.count():
        out, ended = tmp_path / f"killed{folder}", False
        while not ended:
            with started(tmp_path, out.name) as process:
                if kills < 20:
                    # Soon, so that several kills meet one folder at different stages.
                    time.sleep(draws.random() * whole / 3)
                    process.send_signal(signal.SIGKILL)
                status = process.wait()
            assert status in (0, -signal.SIGKILL), (tmp_path / "log").read_text()
            kills += status == -signal.SIGKILL
            ended = status == 0
            for shard in out.glob("part-*"):
                assert pyarrow.parquet.read_metadata(shard).num_rows in (2 * 1024, 2 * 784)
        assert rows_in(out).equals(expected, check_metadata=True)
        same(rightly.load(out), rightly.load(tmp_path / "undisturbed"))
        names = {path.name for path in out.iterdir()}
        assert names == {f"part-{k:06d}.parquet" for k in range(shards)}
        if kills == 20:
            break


def test_a_first_shard_without_a_picture_is_stored_too(tmp_path, shards_of):
    shards_of(2)
    root, out = flat(tmp_path / "images", 5), tmp_path / "preds"
    for i in (0, 1):
        (root / f"000{i}.png").write_bytes(b"no picture")
    with pytest.warns(UserWarning, match="2 of 5 images cannot be decoded"):
        found, _ = collect(Tiny(), root, preprocessing=SMALL, out=out, unreadable="skip")
    assert len(found) == len(rows_in(out)) == 3
    assert sorted(path.name for path in out.iterdir())[0] == "part-000000.parquet"


SLOWER_MODEL = """
import os
import time
from pathlib import Path

import torch


class Slower(torch.nn.Linear):
    shown = 0

    def forward(self, images):
        time.sleep(float(os.environ["PAUSE"]) * len(images))
        Slower.shown += len(images)
        Path("shown").write_text(str(Slower.shown))
        return super().forward(images.mean((2, 3)))


def model():
    torch.set_num_threads(1)
    made = Slower(3, 3)
    with torch.no_grad():
        made.weight.copy_(torch.eye(3))
        made.bias.zero_()
    return made
"""


@pytest.mark.parametrize(("stop", "lost"), [(signal.SIGINT, 8), (signal.SIGKILL, 300)])
def test_after_ctrl_c_every_batch_is_kept_and_after_a_kill_all_but_seconds(tmp_path, stop, lost):
    (tmp_path / "slower.py").write_text(SLOWER_MODEL)
    class_folders(tmp_path / "images", 600)  # one shard
    command = [sys.executable, "-m", "rightly", "collect", "py:slower:model", "images"]
    command += ["--views", "", "-b", "8", "--quiet", "--out", "preds"]
    command.append("--allow-random")  # without the passes that look for training mode

    def collect_until(condition):
        environment = {**os.environ, "PAUSE": "0.02"}
        with spawn(command, cwd=tmp_path, stdout=PIPE, stderr=PIPE, env=environment) as process:
            while process.poll() is None and not condition():
                time.sleep(0.01)
            process.send_signal(stop)
            printed = "".join(process.communicate())
        return process.returncode, printed

    def count():
        try:
            return int((tmp_path / "shown").read_text() or 0)
        except FileNotFoundError:
            return 0

    def is_saved():  # after a kill, what was saved every few seconds remains
        saved = list((tmp_path / "preds").glob(".partial-*.parquet"))
        return count() >= 40 and (stop == signal.SIGINT or bool(saved))

    code, printed = collect_until(is_saved)
    assert code == (130 if stop == signal.SIGINT else -stop), printed
    before = count()
    run(command, cwd=tmp_path, env={**os.environ, "PAUSE": "0"}, check=True)
    assert 600 <= before + count() <= 600 + lost
    assert len(rightly.load(tmp_path / "preds")[0]) == 600
