"""Classifiers from the libraries that ship them, each with its own idea of a config."""

import importlib
import sys
from collections.abc import Callable, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from rightly.classifiers.preprocessing import INTERPOLATIONS, Preprocessing, agreed
from rightly.optional import require
from rightly.registry import unknown_name

MODEL_SPECS = (
    "timm:NAME, hf:NAME_OR_DIR, torchvision:NAME, onnx:FILE, pt2:FILE, py:package.module:factory"
)


class LoadedModel(NamedTuple):
    """A model as its library gives it, with its preprocessing and class names where known."""

    model: Any
    preprocessing: Preprocessing | None = None
    class_names: tuple[str, ...] | None = None


def load_timm_model(name: str, with_preprocessing: bool) -> LoadedModel:
    """A pretrained model of timm, by any name that timm.create_model takes."""
    timm, data = require("timm"), require("timm.data")
    try:
        model = timm.create_model(name, pretrained=True)
    except RuntimeError as error:
        if "Unknown model" not in str(error):
            raise
        names = timm.list_models(pretrained=True)
        raise unknown_name("timm model", name, names, listed="timm.list_models()") from error
    config = data.resolve_model_data_config(model)
    names = _to_class_names((getattr(model, "pretrained_cfg", None) or {}).get("label_names"))
    if not with_preprocessing:
        return LoadedModel(model, None, names)
    transform = data.create_transform(**config, is_training=False)
    return LoadedModel(
        model, agreed(lambda: _read_timm_config(config), transform, f"timm:{name}"), names
    )


def load_hugging_face_model(name: str, with_preprocessing: bool) -> LoadedModel:
    """An image classifier of transformers, by its name on the hub or its folder."""
    transformers = require("transformers")
    model = transformers.AutoModelForImageClassification.from_pretrained(name)
    labels = getattr(model.config, "id2label", None) or {}
    names = _to_class_names([labels[i] for i in sorted(labels)])
    if not with_preprocessing:
        return LoadedModel(model, None, names)
    processor = transformers.AutoImageProcessor.from_pretrained(name)

    def transform(image: Any) -> Any:
        return processor(images=image, return_tensors="pt")["pixel_values"][0]

    config = processor.to_dict()
    return LoadedModel(
        model, agreed(lambda: _read_processor_config(config), transform, f"hf:{name}"), names
    )


def load_torchvision_model(name: str, with_preprocessing: bool) -> LoadedModel:
    """A model of torchvision with its default weights."""
    models = require("torchvision.models")
    try:
        weights = models.get_model_weights(name).DEFAULT
    except ValueError as error:
        names = models.list_models(module=models)
        raise unknown_name("torchvision model", name, names, listed="torchvision.models") from error
    model = models.get_model(name, weights=weights)
    names = _to_class_names(weights.meta.get("categories"))
    if not with_preprocessing:
        return LoadedModel(model, None, names)
    transform = weights.transforms()
    spec = f"torchvision:{name}"
    return LoadedModel(
        model, agreed(lambda: _read_torchvision_preset(transform), transform, spec), names
    )


def load_python_model(place: str, with_preprocessing: bool) -> LoadedModel:
    """The model that a function of the user's returns, with its Preprocessing where it does."""
    module_name, _, factory_name = place.rpartition(":")
    if not module_name or not factory_name:
        raise ValueError(f"a py: model must be py:package.module:factory, got 'py:{place}'")
    with add_working_folder():
        module = importlib.import_module(module_name)
        factory: Callable[[], Any] | None = getattr(module, factory_name, None)
        if not callable(factory):
            raise ValueError(f"{module_name} must hold a function {factory_name}, but does not")
        result = factory()
    if isinstance(result, tuple) and len(result) == 2 and isinstance(result[1], Preprocessing):
        return LoadedModel(*result)
    return LoadedModel(result)


def _read_timm_config(config: Mapping[str, Any]) -> Preprocessing:
    _, height, width = config["input_size"]
    whole = int(height / config["crop_pct"]), int(width / config["crop_pct"])
    return Preprocessing(
        (height, width),
        whole if config.get("crop_mode") == "squash" else min(whole),
        config["interpolation"],
        tuple(config["mean"]),
        tuple(config["std"]),
    )


def _read_torchvision_preset(transform: Any) -> Preprocessing:
    crop, whole = transform.crop_size, transform.resize_size
    return Preprocessing(
        (crop[0], crop[-1]),
        whole[0] if len(whole) == 1 else (whole[0], whole[1]),
        transform.interpolation.value,
        tuple(transform.mean),
        tuple(transform.std),
    )


def _read_processor_config(config: Mapping[str, Any]) -> Preprocessing:
    """The usual keys of Hugging Face's image processors; `agreed` finds out the unusual."""
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
    names = {number: name for name, number in INTERPOLATIONS.items()}
    interpolation = names[int(config.get("resample") or 0)]
    if not config.get("do_normalize"):
        return Preprocessing(size, resize, interpolation)
    # EfficientNet divides once more by std where its head is included.
    power = 2 if config.get("include_top") else 1
    std = tuple(value**power for value in config["image_std"])
    return Preprocessing(size, resize, interpolation, tuple(config["image_mean"]), std)


def _to_class_names(values: Any) -> tuple[str, ...] | None:
    return tuple(str(value) for value in values) if values else None


@contextmanager
def add_working_folder() -> Any:
    """Lets a module beside the user be found, as `python -m` would but a script does not."""
    here = str(Path.cwd())
    sys.path.insert(0, here)
    try:
        yield
    finally:
        sys.path.remove(here)
