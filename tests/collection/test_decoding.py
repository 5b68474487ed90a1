"""Images are decoded in order, whatever threads do, and damaged ones are listed."""

import random
import threading
import time
import tracemalloc
import weakref
from collections import Counter
from dataclasses import replace

import pytest
import torch
from PIL import Image

from rightly.classifiers import open_model
from rightly.collection import CollectionLog, Plan, collect, collect_into, decoding
from rightly.collection.decoding import AHEAD, STEP
from rightly.datasets import ImageDataset, open_images
from rightly.predictions.store import Store
from tests.collection.tiny_model import (
    SMALL,
    Tiny,
    by_hand,
    class_folders,
    close,
    flat,
    picture,
    rows_in,
    same,
)


def test_the_order_does_not_depend_on_how_fast_pictures_are_decoded(tmp_path, shards_of):
    shards_of(16)
    images, model = open_images(flat(tmp_path / "images", 40)), Tiny()

    def slow(i):
        time.sleep(random.Random(i).random() / 100)
        return images.read(i)

    given = {"preprocessing": SMALL, "batch_size": 6}
    at_once = collect(model, images, **given, workers=1)
    same(collect(model, replace(images, read=slow), **given, workers=8), at_once)


def test_a_damaged_picture_stops_the_run_by_name(tmp_path):
    root = flat(tmp_path / "images", 5)
    (root / "0003.png").write_bytes((root / "0003.png").read_bytes()[:60])
    with pytest.raises(ValueError, match=r"0003\.png cannot be decoded: .*unreadable='skip'"):
        collect(Tiny(), root, preprocessing=SMALL)


@pytest.mark.parametrize("stored", [True, False])
def test_damaged_pictures_are_left_out_and_listed_where_asked(tmp_path, shards_of, stored):
    shards_of(4)
    root = class_folders(tmp_path / "images", 12)
    whole, labels = collect(Tiny(), root, preprocessing=SMALL)
    names = [str(file.relative_to(root)) for file in sorted(root.rglob("*.png"))]
    # One alone, and all four of the second shard.
    for i in (1, 4, 5, 6, 7):
        (root / names[i]).write_bytes(b"no picture")
    out = tmp_path / "preds" if stored else None
    with pytest.warns(UserWarning, match=f"5 of 12 images cannot be decoded.*{names[1]}"):
        found, left = collect(
            Tiny(), root, batch_size=2, preprocessing=SMALL, out=out, unreadable="skip"
        )
    rows = [0, 2, 3, 8, 9, 10, 11]
    close(found.logits, whole.logits[rows])
    assert torch.equal(left, labels[rows])
    if out:
        classifier = open_model(Tiny(), preprocessing=SMALL)
        settings = Plan(shard_size=4).settings(classifier, open_images(root))
        skipped = Store.begin(out, settings).skipped()
        assert [name for name, _ in skipped] == [names[i] for i in (1, 4, 5, 6, 7)]
        assert all(reason for _, reason in skipped)
        assert rows_in(out).num_rows == 7


@pytest.mark.filterwarnings("ignore:3 of 3 images")
@pytest.mark.parametrize("stored", [True, False])
def test_pictures_that_are_all_damaged_are_an_error(tmp_path, stored):
    root = flat(tmp_path / "images", 3)
    for file in root.iterdir():
        file.write_bytes(b"no picture")
    out = tmp_path / "preds" if stored else None
    with pytest.raises(ValueError, match=r"no image could be decoded; the first is 0000\.png"):
        collect(Tiny(), root, preprocessing=SMALL, unreadable="skip", out=out)


def test_grey_and_transparent_pictures_are_converted_and_said_so(tmp_path):
    root = flat(tmp_path / "images", 5)
    picture(1, "L").save(root / "0001.png")
    picture(2, "RGBA").save(root / "0002.png")
    picture(3, "L").save(root / "0003.png")
    with pytest.warns(UserWarning) as warned:
        found, _ = collect(Tiny(), root, views=(), preprocessing=SMALL)
    assert sorted(str(warning.message) for warning in warned) == [
        "1 images of mode RGBA were converted to RGB",
        "2 images of mode L were converted to RGB",
    ]
    for i in range(5):
        Image.open(root / f"000{i}.png").convert("RGB").save(root / f"000{i}.png")
    close(found.logits, by_hand(Tiny(), sorted(root.iterdir()))[0])


def test_conversions_are_counted_right_by_many_threads(tmp_path):
    class Slow(Counter):
        """Leaves time for another thread between reading and writing a count."""

        def __getitem__(self, mode):
            before = super().__getitem__(mode)
            time.sleep(0.002)
            return before

    root = tmp_path / "images"
    root.mkdir()
    for i in range(24):
        picture(i, "L").save(root / f"{i:02d}.png")
    images, log = open_images(root), CollectionLog(converted=Slow())
    classifier = open_model(Tiny(), preprocessing=SMALL)
    store = Store.begin(tmp_path / "preds", Plan(()).settings(classifier, images))
    collect_into(store, classifier, images, Plan(()), workers=8, log=log)
    assert dict(log.converted) == {"L": 24}


def test_pictures_of_different_sizes_need_the_size_of_the_model(tmp_path):
    root = flat(tmp_path / "images", 3)
    picture(9, size=(20, 20)).save(root / "0001.png")
    with pytest.raises(
        ValueError, match=r"0001\.png is \(20, 20\) and others are \(12, 16\): give"
    ):
        collect(Tiny(), root)


def test_the_odd_picture_is_named_however_fast_it_is_decoded(tmp_path):
    root = flat(tmp_path / "images", STEP + 4)
    odd = f"{STEP:04d}.png"
    picture(9, size=(20, 20)).save(root / odd)
    images, seen = open_images(root), threading.Event()

    def read(i):
        if i == 0:
            seen.wait(10)
        found = images.read(i)
        if i > STEP:  # by then the odd one, before it in the same thread, is all done
            seen.set()
        return found

    with pytest.raises(ValueError, match=rf"{odd} is \(20, 20\) and others are \(12, 16\)"):
        collect(Tiny(), replace(images, read=read), workers=2)


@pytest.mark.long
def test_memory_does_not_grow_with_the_number_of_images(tmp_path, monkeypatch):
    batch_size, side, lock = 16, 32, threading.RLock()
    now, most, made = Counter(), Counter(), decoding.Batch

    def count(what, by):
        with lock:
            now[what] += by
            most[what] = max(most[what], now[what])

    def read(i):
        count("pictures read ahead", 1)
        return picture(i, size=(side, side))

    shown = [0]

    def done(step, number, total):
        count("pictures read ahead", shown[0] - number)
        shown[0] = number

    def batch(*given):
        whole = made(*given)
        count("batches alive", 1)
        weakref.finalize(whole, count, "batches alive", -1)
        return whole

    monkeypatch.setattr(decoding, "Batch", batch)
    classifier, peaks = open_model(Tiny()), {}
    for n in (64, 300, 3000):  # the first is there to load what is loaded once
        images = ImageDataset(tuple(str(i) for i in range(n)), read)
        asked = Plan(("hflip",), ("contrast",), shard_size=64)
        store = Store.begin(tmp_path / str(n), asked.settings(classifier, images))
        now.clear()
        shown[0] = 0
        most.clear()
        tracemalloc.start()
        collect_into(store, classifier, images, asked, batch_size, progress=done)
        peaks[n] = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        # Those that wait, one that was taken from them, and two that are with the model.
        assert AHEAD * batch_size <= most["pictures read ahead"] <= (AHEAD + 3) * batch_size
        assert 1 <= most["batches alive"] <= AHEAD
        assert len(rows_in(store.path)) == 2 * n
    pixels = (3000 - 300) * 3 * side * side
    assert peaks[3000] - peaks[300] < pixels / 10
