"""Models of libraries bring their preprocessing, as the library would do it."""

import sys
import types
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from rightly.classifiers import Classifier, Preprocessing, open_model
from tests.classifiers.example_models import NORMALISED, Small, said


@pytest.mark.parametrize(
    ("spec", "package"),
    [
        ("timm:resnet50", "timm"),
        ("hf:vit", "transformers"),
        ("torchvision:resnet50", "torchvision"),
        ("onnx:model.onnx", "onnxruntime"),
    ],
)
def test_a_missing_package_is_named(monkeypatch, spec, package):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=f"needs the package {package}: pip install"):
        open_model(spec)


FACTORY = """
import torch
from torch import nn
from rightly.classifiers import Preprocessing

def plain():
    return nn.Sequential(nn.Flatten(), nn.Linear(3 * 4 * 4, 2))

def prepared():
    return plain(), Preprocessing((4, 4))

number = 3

def nothing():
    return 3
"""


def test_a_factory_of_the_users_makes_the_model(tmp_path, monkeypatch):
    (tmp_path / "my_factory.py").write_text(FACTORY)
    monkeypatch.chdir(tmp_path)
    paths = list(sys.path)
    classifier = open_model("py:my_factory:plain")
    assert classifier.name == "py:my_factory:plain"
    assert said(classifier, torch.rand(3, 3, 4, 4))[0].shape == (3, 2)
    assert open_model("py:my_factory:prepared").preprocessing.size == (4, 4)
    given = open_model("py:my_factory:prepared", preprocessing=NORMALISED)
    assert given.preprocessing == NORMALISED
    for name in ("number", "absent"):
        with pytest.raises(ValueError, match=f"must hold a function {name}"):
            open_model(f"py:my_factory:{name}")
    with pytest.raises(TypeError, match="got int"):
        open_model("py:my_factory:nothing")
    with pytest.raises(ValueError, match="py:package.module:factory"):
        open_model("py:my_factory")
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        open_model("py:no_such_module:plain")
    assert sys.path == paths


def transform_of(preprocessing):
    return lambda picture: preprocessing.normalise(preprocessing.geometry(picture)[None] / 255)[0]


CONFIGURED = Preprocessing((10, 10), 12, "bicubic", (0.4, 0.5, 0.6), (0.2, 0.3, 0.4))


def fake_timm(monkeypatch, does=CONFIGURED):
    timm, data = types.ModuleType("timm"), types.ModuleType("timm.data")

    def create_model(name, pretrained):
        if name != "small":
            raise RuntimeError(f"Unknown model ({name})")
        assert pretrained
        model = Small()
        model.pretrained_cfg = {"label_names": list("abcde")}
        return model

    timm.create_model, timm.list_models = create_model, lambda pretrained: ["small", "large"]
    data.resolve_model_data_config = lambda model: {
        "input_size": (3, 10, 10),
        "crop_pct": 0.8,
        "interpolation": "bicubic",
        "mean": (0.4, 0.5, 0.6),
        "std": (0.2, 0.3, 0.4),
        "crop_mode": "center",
    }
    data.create_transform = lambda is_training, **config: transform_of(does)
    monkeypatch.setitem(sys.modules, "timm", timm)
    monkeypatch.setitem(sys.modules, "timm.data", data)


def test_timm_models_bring_their_preprocessing(monkeypatch, images):
    fake_timm(monkeypatch)
    classifier = open_model("timm:small")
    assert classifier.preprocessing == CONFIGURED and classifier.class_names == tuple("abcde")
    assert said(classifier, images)[0].shape == (4, 5)
    assert open_model("timm:small", preprocessing=NORMALISED).preprocessing == NORMALISED
    with pytest.raises(ValueError, match="timm model 'smal' is not known: did you mean small"):
        open_model("timm:smal")


@pytest.mark.parametrize(
    "does",
    [
        Preprocessing((10, 10), 10, "bicubic", (0.4, 0.5, 0.6), (0.2, 0.3, 0.4)),
        Preprocessing((10, 10), (12, 12), "bicubic", (0.4, 0.5, 0.6), (0.2, 0.3, 0.4)),
        Preprocessing((10, 10), 12, "bicubic", (0.5, 0.5, 0.6), (0.2, 0.3, 0.4)),
        Preprocessing((10, 10), 12, "bicubic", (0.4, 0.5, 0.6), (0.2, 0.3, 0.5)),
        Preprocessing((11, 11), 12, "bicubic", (0.4, 0.5, 0.6), (0.2, 0.3, 0.4)),
    ],
)
def test_a_config_that_is_not_what_the_library_does_is_refused(monkeypatch, does):
    fake_timm(monkeypatch, does)
    with pytest.raises(ValueError, match="the preprocessing of timm:small is not"):
        open_model("timm:small")
    assert open_model("timm:small", preprocessing=does).preprocessing == does


def fake_transformers(monkeypatch, config, does=CONFIGURED):
    class Processor:
        to_dict = staticmethod(lambda: config)

        def __call__(self, images, return_tensors):
            assert return_tensors == "pt"
            return {"pixel_values": transform_of(does)(images)[None]}

    class Model(Small):
        config = types.SimpleNamespace(id2label={1: "b", 0: "a", 2: "c", 3: "d", 4: "e"})

        def forward(self, pixel_values):
            return types.SimpleNamespace(logits=super().forward(pixel_values))

    module = types.ModuleType("transformers")
    module.AutoModelForImageClassification = types.SimpleNamespace(
        from_pretrained=lambda name: Model()
    )
    module.AutoImageProcessor = types.SimpleNamespace(from_pretrained=lambda name: Processor())
    monkeypatch.setitem(sys.modules, "transformers", module)


HF_CONFIG = {
    "do_resize": True,
    "do_center_crop": True,
    "do_rescale": True,
    "do_normalize": True,
    "resample": 3,
    "size": {"shortest_edge": 12},
    "crop_size": {"height": 10, "width": 10},
    "image_mean": [0.4, 0.5, 0.6],
    "image_std": [0.2, 0.3, 0.4],
}


def test_hugging_face_models_bring_their_preprocessing(monkeypatch, images):
    fake_transformers(monkeypatch, HF_CONFIG)
    classifier = open_model("hf:some/model")
    assert classifier.preprocessing == CONFIGURED and classifier.class_names == tuple("abcde")
    logits, features = said(classifier, images, features=True)
    assert logits.shape == (4, 5) and features.shape == (4, 8)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"size": {"height": 12, "width": 14}}, Preprocessing((10, 10), (12, 14), "bicubic")),
        (
            {"size": {"height": 12, "width": 14}, "do_center_crop": False},
            Preprocessing((12, 14), (12, 14), "bicubic"),
        ),
        ({"crop_pct": 0.8, "do_center_crop": None}, Preprocessing((12, 12), 15, "bicubic")),
        (
            {"crop_pct": 0.8, "do_center_crop": None, "size": {"shortest_edge": 384}},
            Preprocessing((384, 384), (384, 384), "bicubic"),
        ),
        ({"resample": 2}, Preprocessing((10, 10), 12)),
    ],
)
def test_processors_are_read_as_they_behave(monkeypatch, changes, expected):
    config = {**HF_CONFIG, "do_normalize": False, **changes}
    fake_transformers(monkeypatch, config, expected)
    assert open_model("hf:some/model").preprocessing == expected


@pytest.mark.parametrize(
    "changes",
    [{"size": {"longest_edge": 12}}, {"size": {"shortest_edge": 8}}, {"image_mean": None}],
)
def test_processors_that_cannot_be_read_are_refused(monkeypatch, changes):
    fake_transformers(monkeypatch, {**HF_CONFIG, **changes})
    with pytest.raises(ValueError, match=r"of hf:some/model .*give preprocessing="):
        open_model("hf:some/model")


def fake_torchvision(monkeypatch):
    transform = transform_of(CONFIGURED)
    preset = type("Preset", (), {"__call__": lambda self, picture: transform(picture)})()
    preset.crop_size, preset.resize_size = [10], [12]
    preset.mean, preset.std = [0.4, 0.5, 0.6], [0.2, 0.3, 0.4]
    preset.interpolation = types.SimpleNamespace(value="bicubic")
    weights = types.SimpleNamespace(transforms=lambda: preset, meta={"categories": list("abcde")})

    def get_model_weights(name):
        if name != "small":
            raise ValueError(f"Unknown model {name}")
        return types.SimpleNamespace(DEFAULT=weights)

    package, models = types.ModuleType("torchvision"), types.ModuleType("torchvision.models")
    models.get_model_weights, models.list_models = get_model_weights, lambda module: ["small"]
    models.get_model = lambda name, weights: Small()
    package.models = models
    monkeypatch.setitem(sys.modules, "torchvision", package)
    monkeypatch.setitem(sys.modules, "torchvision.models", models)


def test_torchvision_models_bring_their_preprocessing(monkeypatch, images):
    fake_torchvision(monkeypatch)
    classifier = open_model("torchvision:small")
    assert classifier.preprocessing == CONFIGURED and classifier.class_names == tuple("abcde")
    assert said(classifier, images)[0].shape == (4, 5)
    with pytest.raises(ValueError, match="torchvision model 'smaller' is not known"):
        open_model("torchvision:smaller")


def noise():
    pixels = np.random.default_rng(0).integers(0, 256, (301, 377, 3), np.uint8)
    return Image.fromarray(pixels).resize((188, 150))


@pytest.fixture
def torchvision(loadable_torchvision):
    return pytest.importorskip("torchvision")


@pytest.mark.filterwarnings("ignore")
def test_real_timm_models(torchvision, tmp_path):
    timm = pytest.importorskip("timm")
    for name in ("resnet10t", "mobilenetv3_small_050", "vit_tiny_patch16_224"):
        model = timm.create_model(name, pretrained=False).eval()
        timm.models.save_for_hf(model, tmp_path / name, safe_serialization=True)
        classifier = open_model(f"timm:local-dir:{tmp_path / name}")
        config = timm.data.resolve_model_data_config(model)
        theirs = timm.data.create_transform(**config, is_training=False)(noise())[None]
        batch = classifier.preprocessing.geometry(noise())[None] / 255
        assert torch.allclose(classifier.preprocessing.normalise(batch), theirs, atol=1e-5)
        logits, features = said(classifier, batch, features=True)
        with torch.no_grad():
            assert torch.allclose(logits, model(theirs), atol=1e-4)
            last = model.forward_head(model.forward_features(theirs), pre_logits=True)
            assert torch.allclose(features, last, atol=1e-4)


@pytest.mark.filterwarnings("ignore")
def test_real_torchvision_models(torchvision, tmp_path, monkeypatch):
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    cache = tmp_path / "hub" / "checkpoints"
    cache.mkdir(parents=True)
    for name in ("resnet18", "mobilenet_v3_small"):
        weights = torchvision.models.get_model_weights(name).DEFAULT
        model = torchvision.models.get_model(name).eval()
        torch.save(model.state_dict(), cache / Path(weights.url).name)
        classifier = open_model(f"torchvision:{name}")
        theirs = weights.transforms()(noise())[None]
        batch = classifier.preprocessing.geometry(noise())[None] / 255
        logits, features = said(classifier, batch, features=True)
        with torch.no_grad():
            assert torch.allclose(logits, model(theirs), atol=1e-4)
        assert classifier.class_names[:2] == ("tench", "goldfish") and features.ndim == 2


@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("loadable_torchvision")  # transformers imports it where it is
def test_real_hugging_face_models(tmp_path):
    transformers = pytest.importorskip("transformers", exc_type=Exception)
    names = {0: "cat", 1: "dog", 2: "emu"}
    config = transformers.ViTConfig(
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        id2label=names,
        label2id={name: i for i, name in names.items()},
    )
    model = transformers.ViTForImageClassification(config).eval()
    model.save_pretrained(tmp_path)
    processor = transformers.ViTImageProcessor()
    processor.save_pretrained(tmp_path)
    classifier = open_model(f"hf:{tmp_path}")
    assert isinstance(classifier, Classifier) and classifier.class_names == ("cat", "dog", "emu")
    batch = classifier.preprocessing.geometry(noise())[None] / 255
    logits, features = said(classifier, batch, features=True)
    theirs = processor(images=noise(), return_tensors="pt")["pixel_values"]
    with torch.no_grad():
        # Its resize in torch rounds a little differently than Pillow's.
        assert torch.allclose(logits, model(theirs).logits, atol=0.02)
    assert features.shape == (1, 32)


def test_class_names_must_fit_the_logits(monkeypatch, images):
    fake_torchvision(monkeypatch)
    monkeypatch.setattr(
        sys.modules["torchvision.models"], "get_model", lambda name, weights: Small(classes=4)
    )
    with pytest.raises(ValueError, match="class names say 5, got 4"):
        said(open_model("torchvision:small"), images)
