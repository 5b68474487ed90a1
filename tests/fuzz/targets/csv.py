"""Tables of labels beside images: a flat folder's, and iWildCam's two."""

import csv
import io
from pathlib import Path
from random import Random

from rightly.datasets import open_images
from tests.fuzz.mutators import WORDS, mutate_bytes, mutate_text
from tests.fuzz.target import Files, Target

TABLES = ("labels.csv", "metadata.csv", "categories.csv")
CELLS = ("", "0", "1", "-1", "07", "1.5", "1e3", "9" * 30, "9" * 5000, "²", "a.png", "a" * 200_000)
BREAKS = (b'"', b"\0", b"\r", b"\n\n", b",", b";", b"\xff\xfe", b"\xef\xbb\xbf", b"\x1a", b"\x85")


def make_samples() -> list[Files]:
    images = {f"{name}.png": b"not decoded here" for name in "abcd"}
    flat = [
        "file,label\na.png,ant\nb.png,bee\nc.png,ant\nd.png,cow\n",
        "a.png,0\nb.png,1\nc.png,0\nd.png,2\n",
        'id;x,path,"class_name"\n1,a.png,"ant, black"\n2,b.png,"bee\nwild"\n3,c.png,x\n4,d.png,x\n',
    ]
    wild = {f"train/{name}": content for name, content in images.items()}
    wild["metadata.csv"] = (
        b"split,location_remapped,y,filename\n"
        b"test,0,3,a.png\ntest,1,181,b.png\ntest,1,0,c.png\nval,2,7,d.png\n"
    )
    wild["categories.csv"] = b"name,y\nempty,0\ntayassu pecari,1\n"
    return [*({**images, "labels.csv": text.encode()} for text in flat), wild]


def mutate(random: Random, samples: list[Files]) -> Files:
    files = dict(random.choice(samples))
    name = random.choice([name for name in TABLES if name in files])
    data = files[name]
    if random.random() < 0.7:
        data = _change_cells(random, data.decode())
    if random.random() < 0.2:
        at = random.randint(0, len(data))
        data = data[:at] + random.choice(BREAKS) + data[at:]
    if random.random() < 0.2:
        data = mutate_bytes(random, data, data)
    if random.random() < 0.05:
        data = data.decode(errors="replace").encode(
            random.choice(("utf-16", "utf-8-sig", "cp500")), "replace"
        )
    files[name] = data
    return files


def _change_cells(random: Random, text: str) -> bytes:
    rows = list(csv.reader(io.StringIO(text)))
    for _ in range(random.randint(1, 3)):
        row = random.choice(rows)
        at = random.randrange(len(row) + 1)
        action = random.random()
        if action < 0.5 and at < len(row):
            row[at] = random.choice((mutate_text(random, row[at]), *CELLS, *WORDS))
        elif action < 0.6:
            row.insert(at, random.choice(CELLS))
        elif action < 0.7 and at < len(row):
            del row[at]
        elif action < 0.8:
            rows.insert(random.randrange(len(rows)), list(random.choice(rows)))
        elif action < 0.9 and len(rows) > 1:
            rows.remove(row)
    written = io.StringIO()
    csv.writer(written, delimiter="," if random.random() < 0.9 else ";").writerows(rows)
    return written.getvalue().encode("utf-8", "surrogatepass")


def read(folder: Path) -> None:
    layout, options = ("flat", {})
    if (folder / "metadata.csv").exists():
        layout, options = ("iwildcam", {"split": "test"})
    dataset = open_images(folder, layout=layout, **options)
    assert len(dataset) == len(dataset.names) and dataset.labels is not None
    assert all(isinstance(label, int) and label >= 0 for label in dataset.labels)
    assert dataset.fingerprint


TARGET = Target("csv", (ValueError, FileNotFoundError), make_samples, mutate, read)
