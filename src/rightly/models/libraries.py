"""Classifiers from the libraries that ship them, each with its own idea of a config."""

import importlib
import sys
from collections.abc import Callable, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from rightly.models.preprocessing import INTERPOLATIONS, Preprocessing, check_agreement


class Opened(NamedTuple):
    """A model as its library gives it, and what the library knows about it."""

    model: Any
    preprocessing: Preprocessing | None = None
    class_names: tuple[str, ...] | None = None


def timm_model(name: str, with_preprocessing: bool) -> Opened:
    """A pretrained model of timm, by any name that timm.create_model takes."""
    timm, data = needed("timm"), needed("timm.data", "timm")
    try:
        model = timm.create_model(name, pretrained=True)
    except RuntimeError as error:
        if "Unknown model" not in str(error):
            raise
        close = timm.list_models(f"*{name.split('.')[0][:6]}*", pretrained=True)[:5]
        raise ValueError(f"timm has no model {name!r}; near are {close}") from error
    config = data.resolve_model_data_config(model)
    names = _names((getattr(model, "pretrained_cfg", None) or {}).get("label_names"))
    if not with_preprocessing:
        return Opened(model, None, names)
    size = tuple(config["input_size"][1:])
    whole = [int(side / config["crop_pct"]) for side in size]
    squashed = config.get("crop_mode") == "squash"
    preprocessing = Preprocessing(
        size,
        (whole[0], whole[1]) if squashed else min(whole),
        config["interpolation"],
        tuple(config["mean"]),
        tuple(config["std"]),
    )
    transform = data.create_transform(**config, is_training=False)
    check_agreement(preprocessing, transform, f"timm:{name}")
    return Opened(model, preprocessing, names)


def hugging_face_model(name: str, with_preprocessing: bool) -> Opened:
    """An image classifier of transformers, by its name on the hub or its folder."""
    transformers = needed("transformers")
    model = transformers.AutoModelForImageClassification.from_pretrained(name)
    labels = getattr(model.config, "id2label", None) or {}
    names = _names([labels[i] for i in sorted(labels)])
    if not with_preprocessing:
        return Opened(model, None, names)
    processor = transformers.AutoImageProcessor.from_pretrained(name)
    preprocessing = _of_processor(processor.to_dict(), name)

    def transform(picture: Any) -> Any:
        return processor(images=picture, return_tensors="pt")["pixel_values"][0]

    check_agreement(preprocessing, transform, f"hf:{name}")
    return Opened(model, preprocessing, names)


def torchvision_model(name: str, with_preprocessing: bool) -> Opened:
    """A model of torchvision with its default weights."""
    models = needed("torchvision.models", "torchvision")
    try:
        weights = models.get_model_weights(name).DEFAULT
    except ValueError as error:
        raise ValueError(f"torchvision has no model {name!r}: {error}") from error
    model = models.get_model(name, weights=weights)
    names = _names(weights.meta.get("categories"))
    if not with_preprocessing:
        return Opened(model, None, names)
    transform = weights.transforms()
    crop, whole = transform.crop_size, transform.resize_size
    preprocessing = Preprocessing(
        (crop[0], crop[-1]),
        whole[0] if len(whole) == 1 else (whole[0], whole[1]),
        transform.interpolation.value,
        tuple(transform.mean),
        tuple(transform.std),
    )
    check_agreement(preprocessing, transform, f"torchvision:{name}")
    return Opened(model, preprocessing, names)


def own_model(place: str, with_preprocessing: bool) -> Opened:
    """What a function of the user's gives: a model, or a model and its Preprocessing."""
    module_name, _, factory_name = place.rpartition(":")
    if not module_name or not factory_name:
        raise ValueError(f"a py: model must be py:package.module:factory, got 'py:{place}'")
    with _working_folder_importable():
        module = importlib.import_module(module_name)
        factory: Callable[[], Any] | None = getattr(module, factory_name, None)
        if not callable(factory):
            raise ValueError(f"{module_name} must hold a function {factory_name}, but does not")
        made = factory()
    if isinstance(made, tuple) and len(made) == 2 and isinstance(made[1], Preprocessing):
        return Opened(*made)
    return Opened(made)


def needed(module: str, package: str = "") -> Any:
    """An optional library, loaded now, or an error that names what to install."""
    package = package or module
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module.split(".")[0]:
            raise
        raise ImportError(
            f"this model needs the package {package}: pip install {package}"
        ) from error
    except RuntimeError as error:  # how torchvision answers a torch it was not built for
        raise ImportError(f"{package} is installed but cannot be loaded: {error}") from error


def _of_processor(config: Mapping[str, Any], name: str) -> Preprocessing:
    """The usual keys of Hugging Face's image processors; `check_agreement` finds the unusual."""
    resize: int | tuple[int, int] | None = None
    size: tuple[int, int] | None = None
    if config.get("do_resize"):
        sides = config["size"]
        if "shortest_edge" in sides:
            resize = int(sides["shortest_edge"])
        elif "height" in sides:
            resize = (int(sides["height"]), int(sides["width"]))
    if isinstance(resize, int) and config.get("crop_pct"):
        # ConvNeXt: below 384 pixels resize and crop, from there on squash.
        side = resize
        size = (side, side)
        resize = int(side / config["crop_pct"]) if side < 384 else size
    elif isinstance(resize, tuple):
        size = resize
    if config.get("do_center_crop"):
        crop = config["crop_size"]
        size = (int(crop["height"]), int(crop["width"]))
    numbers = {number: known for known, number in INTERPOLATIONS.items()}
    interpolation = numbers[int(config.get("resample") or 0)]
    if not config.get("do_normalize"):
        return Preprocessing(size, resize, interpolation)
    mean, std = config["image_mean"], config["image_std"]
    return Preprocessing(size, resize, interpolation, tuple(mean), tuple(std))


def _names(found: Any) -> tuple[str, ...] | None:
    return tuple(str(name) for name in found) if found else None


@contextmanager
def _working_folder_importable() -> Any:
    """Lets a module beside the user be found, as `python -m` would but a script does not."""
    here = str(Path.cwd())
    sys.path.insert(0, here)
    try:
        yield
    finally:
        sys.path.remove(here)
