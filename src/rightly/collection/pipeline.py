"""From a classifier and images to stored predictions: the only slow step, done once.

    images --decode, resize--> bytes --[0, 1]--> shifts --> views --normalise--> classifier
           threads, ahead of the model             each of them once for every image

Images are taken in shards of a fixed size. A shard is stored when it is complete, so
that a run can be killed at any moment and resumes where it was.
"""

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import torch

from rightly.classifiers import Classifier, Preprocessing, open_model
from rightly.collection.decoding import CollectionLog
from rightly.collection.forward import combine_blocks, compute_blocks
from rightly.collection.plan import DEFAULT_VIEWS, Plan
from rightly.datasets import ImageDataset, open_images
from rightly.datasets.image_dataset import abbreviate
from rightly.predictions import Predictions, load
from rightly.predictions.accuracy import warn_at_chance
from rightly.predictions.store import Block, Store
from rightly.tensor_shapes import Labels


def collect(
    model: Any,
    dataset: Any,
    views: Sequence[str] = DEFAULT_VIEWS,
    shifts: Sequence[str] = (),
    batch_size: int = 256,
    device: str | torch.device = "auto",
    out: str | os.PathLike[str] | None = None,
    *,
    features: bool = False,
    preprocessing: Preprocessing | None = None,
    output: str | int | None = None,
    images: Mapping[str, Any] | None = None,
    precision: str = "float32",
    dtype: str = "float32",
    seed: int = 0,
    unreadable: str = "stop",
    workers: int | None = None,
    advance: Callable[[int], object] = lambda count: None,
) -> tuple[Predictions, Labels | None]:
    """Runs a classifier once over a data set and over the views of every image.

    `model` is a spec such as "timm:resnet50", a module or a function; `dataset` a folder, a torch
    Dataset or a Hugging Face one (`images` holds further arguments of `open_images`). With `out`
    the rows are stored as a Parquet data set as they come; without, they are only returned.
    """
    plan = Plan(tuple(views), tuple(shifts), features, precision, dtype, seed, unreadable)
    classifier = open_model(
        model, device=device, preprocessing=preprocessing, features=features, output=output
    )
    if not isinstance(dataset, ImageDataset):
        dataset = open_images(dataset, **(images or {}))
    log = CollectionLog()
    if out is not None:
        with Store.claim(Path(out), plan.settings(classifier, dataset)) as store:
            collect_into(store, classifier, dataset, plan, batch_size, workers, advance, log)
            _warn(dataset, log, store.skipped())
        return _warn_unrelated(*load(out))
    shards = plan.shards(len(dataset))
    blocks = compute_blocks(classifier, dataset, plan, shards, batch_size, workers, advance, log)
    whole = combine_blocks([block for _, block in blocks])
    _warn(dataset, log, whole.skipped)
    class_names = dataset.class_names or classifier.class_names
    return _warn_unrelated(*_to_predictions(whole, plan, class_names, classifier.fingerprint))


def collect_into(
    store: Store,
    classifier: Classifier,
    images: ImageDataset,
    plan: Plan,
    batch_size: int = 256,
    workers: int | None = None,
    advance: Callable[[int], object] = lambda count: None,
    log: CollectionLog | None = None,
) -> None:
    """Writes the shards that a store still lacks."""
    todo = store.missing()
    advance(len(images) - sum(len(plan.rows(k, len(images))) for k in todo))
    empty: dict[int, Block] = {}
    blocks = compute_blocks(classifier, images, plan, todo, batch_size, workers, advance, log)
    with closing(blocks):  # when a write fails, the classifier is restored at once
        for k, block in blocks:
            if len(block.image):
                store.write(k, block)
            else:
                empty[k] = block
    for k, block in empty.items():  # last, because they take their columns from the others
        store.write(k, block)


def _warn(images: ImageDataset, log: CollectionLog, skipped: Sequence[tuple[str, str]]) -> None:
    messages = list(images.notes)
    for mode, count in log.converted.items():
        messages.append(f"{count} images of mode {mode} were converted to RGB")
    if skipped:
        names = abbreviate([name for name, _ in skipped])
        messages.append(
            f"{len(skipped)} of {len(images)} images cannot be decoded and are left out: {names}"
        )
    for text in messages:
        warnings.warn(text, UserWarning, stacklevel=3)


def _warn_unrelated(
    predictions: Predictions, labels: Labels | None
) -> tuple[Predictions, Labels | None]:
    if labels is not None:
        as_is = predictions.unshifted()
        warn_at_chance("the collection", predictions[as_is], labels[as_is])
    return predictions, labels


def _to_predictions(
    whole: Block, plan: Plan, class_names: Sequence[str] | None, fingerprint: str
) -> tuple[Predictions, Labels | None]:
    if not len(whole.image):
        name, reason = whole.skipped[0]
        raise ValueError(f"no image could be decoded; the first is {name}: {reason}")
    predictions = Predictions(
        whole.logits,
        whole.view_logits,
        whole.features,
        plan.views or None,
        class_names,
        whole.shift if plan.shifts else None,
        plan.shifts,
        whole.image,
        whole.image_hash,
        fingerprint,
    )
    return predictions, None if whole.labels is None else torch.from_numpy(whole.labels)
