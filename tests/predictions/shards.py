"""Rows of a small data set that tests of reading and of writing share."""

import numpy as np

from rightly.predictions.store import Block

CLASSES, VIEWS, SHIFTS = 3, ("rotation", "hflip"), ("contrast:2", "jpeg")


def asked(**changes):
    return {
        "model": "py:mine:model",
        "images_fingerprint": "abc",
        "views": list(VIEWS),
        "shifts": list(SHIFTS),
        "features": True,
        "class_names": ["ant", "bee", "cow"],
        "dtype": "float32",
        "shards": 2,
    } | changes


def block_of(rows, plan=None, labelled=True, skipped=()):
    """Rows that depend on image and shift alone, so that each is known wherever it turns up."""
    plan = plan or asked()
    shown = len(plan["shifts"]) + 1
    index, shift = np.tile(np.asarray(rows), shown), np.repeat(np.arange(shown), len(rows))
    key = (10 * index + shift)[:, None]
    columns = np.arange(CLASSES)
    logits = np.sin(key + columns).astype(np.float32)
    views = [np.sin(key + columns + 100 * (i + 1)) for i in range(len(plan["views"]))]
    return Block(
        index,
        [f"{i}.png" for i in index],
        index % CLASSES if labelled else None,
        shift,
        logits,
        np.stack(views, 1).astype(np.float32) if views else None,
        np.cos(key + np.arange(4)).astype(np.float32) if plan["features"] else None,
        tuple(skipped),
    )
