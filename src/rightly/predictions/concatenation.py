"""Predictions of one classifier joined row after row; images of different files are renumbered."""

from collections.abc import Sequence
from dataclasses import replace
from uuid import uuid4

import torch
from torch import Tensor

from rightly.predictions.predictions import Predictions, Source
from rightly.predictions.validation import derive_images
from rightly.tensor_shapes import Labels


def concatenate(parts: Sequence[Predictions]) -> Predictions:
    """Joins predictions of one classifier, row after row.

    Images of different files get new numbers; parts of one file, and parts that the caller
    numbered, keep theirs.
    """
    shift_names = _check_parts(parts)
    first = parts[0]

    def join(name: str) -> Tensor | None:
        if getattr(first, name) is None:
            return None
        return torch.cat([getattr(part, name) for part in parts])

    shift = None
    if any(part.shift is not None for part in parts):
        shift = torch.cat(
            [torch.zeros_like(part.classes) if part.shift is None else part.shift for part in parts]
        )
    whole = Predictions(
        torch.cat([part.logits for part in parts]),
        join("view_logits"),
        join("features"),
        first.view_names or None,
        first.class_names,
        shift,
        shift_names,
    )
    image, numbering = _join_images(parts, shift)
    return whole._replace(
        image=image,
        image_hash=join("image_hash") if all(p.image_hash is not None for p in parts) else None,
        fingerprint=first.fingerprint if all(p.fingerprint for p in parts) else None,
        source=_join_sources(parts, numbering),
    )


def _check_parts(parts: Sequence[Predictions]) -> tuple[str, ...]:
    """The names of all shifts, of parts that fit together."""
    if not parts:
        raise ValueError("concatenate needs at least one Predictions, got none")
    first = parts[0]
    for part in parts[1:]:
        for name in ("class_count", "view_names", "class_names"):
            if getattr(part, name) != getattr(first, name):
                raise ValueError(
                    f"all parts must have the same {name}: "
                    f"got {getattr(first, name)} and {getattr(part, name)}"
                )
        if part.fingerprint != first.fingerprint and part.fingerprint and first.fingerprint:
            raise ValueError(
                "all parts must be predictions of one classifier, but their fingerprints are "
                f"{first.fingerprint[:12]} and {part.fingerprint[:12]}"
            )
        for name in ("view_logits", "features"):
            if (getattr(part, name) is None) != (getattr(first, name) is None):
                raise ValueError(f"either all parts must have {name} or none: some have, some not")
    shift_names = max((part.shift_names for part in parts), key=len)
    for part in parts:
        if part.shift_names != shift_names[: len(part.shift_names)]:
            raise ValueError(
                "all parts must number their shifts alike: "
                f"got shift_names {shift_names} and {part.shift_names}"
            )
    return shift_names


def _join_images(
    parts: Sequence[Predictions], shift: Labels | None
) -> tuple[Labels | None, str | None]:
    """Numbers of the images in all parts, and who gave them."""
    numbered = [part for part in parts if part.image is not None]
    numberings = {part.source.numbering for part in numbered}
    if numbered and len(numbered) == len(parts) and len(numberings) == 1:
        return torch.cat([part.images() for part in parts]), numberings.pop()
    if all(part.image is not None or bool(part.unshifted().all()) for part in parts):
        return (_renumber(parts), uuid4().hex) if numbered else (None, None)
    # Shifted rows that nobody numbered: by position, unless that separates rows of one image.
    image = derive_images(shift)
    if image is None or (numbered and _splits_images(parts, image)):
        return None, None
    return image, uuid4().hex


def _join_sources(parts: Sequence[Predictions], numbering: str | None) -> Source:
    """What all parts have in common; only parts of one file still come from it."""
    sources = [part.source for part in parts]
    first = sources[0]
    if all(source == first for source in sources):
        return replace(first, numbering=numbering)
    is_same = all(source.classifier == first.classifier for source in sources)
    return Source(classifier=first.classifier if is_same else None, numbering=numbering)


def _renumber(parts: Sequence[Predictions]) -> Labels:
    """Numbers from 0 on that two rows share only where numbering and number are the same.

    A part without numbers counts as a numbering of its own.
    """
    keys = [
        (i, None) if part.image is None else part.source.numbering for i, part in enumerate(parts)
    ]
    numbers: list[Tensor] = [part.images() for part in parts]
    start = 0
    for key in dict.fromkeys(keys):
        members = [i for i in range(len(parts)) if keys[i] == key]
        values, ranks = torch.cat([numbers[i] for i in members]).unique(return_inverse=True)
        sizes = [len(parts[i]) for i in members]
        for i, ranked in zip(members, ranks.split(sizes), strict=True):
            numbers[i] = start + ranked
        start += len(values)
    return torch.cat(numbers)


def _splits_images(parts: Sequence[Predictions], image: Labels) -> bool:
    """Whether rows that share an image in a numbered part got different numbers."""
    sizes = [len(part) for part in parts]
    numbered = [
        (part, rows)
        for part, rows in zip(parts, image.split(sizes), strict=True)
        if part.image is not None
    ]
    before = _renumber([part for part, _ in numbered])
    pairs = torch.stack([before, torch.cat([rows for _, rows in numbered])], 1)
    return len(pairs.unique(dim=0)) > len(before.unique())
