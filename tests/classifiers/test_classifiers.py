"""Classifiers of every origin: what goes in, what comes out, and that they are left as found."""

import importlib.util
import json
import sys
import types
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from rightly.classifiers import Classifier, Preprocessing, open_model


class Small(nn.Module):
    """A convolution, a pool, and a head with a hidden layer, as mobile networks have."""

    def __init__(self, classes=5):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 6, 3), nn.BatchNorm2d(6), nn.ReLU())
        self.hidden, self.head = nn.Linear(6, 8), nn.Linear(8, classes)
        self.register_buffer("scale", torch.tensor(1.5), persistent=False)

    def penultimate(self, x):
        return self.hidden(self.body(x).mean((2, 3))).relu()

    def forward(self, x):
        return self.scale * self.head(self.penultimate(x))


@pytest.fixture
def small():
    torch.manual_seed(0)
    return Small().eval()


@pytest.fixture
def images():
    return torch.rand(4, 3, 12, 12, generator=torch.Generator().manual_seed(1))


def said(classifier, images, **options):
    with classifier.prepared():
        return classifier.forward(images, **options)


NORMALISED = Preprocessing(mean=(0.4, 0.5, 0.6), std=(0.2, 0.3, 0.4))


def test_a_module_gives_logits_after_normalisation(small, images):
    classifier = open_model(small, preprocessing=NORMALISED)
    logits, features = said(classifier, images)
    with torch.no_grad():
        by_hand = (images - torch.tensor([0.4, 0.5, 0.6])[:, None, None]) / torch.tensor(
            [0.2, 0.3, 0.4]
        )[:, None, None]
        assert torch.allclose(logits, small(by_hand), atol=1e-6)
    assert features is None and not logits.requires_grad
    assert classifier.class_count == 5 and classifier.name.endswith("Small")


@pytest.mark.parametrize(
    ("wrap", "output"),
    [
        (lambda logits: logits, None),
        (lambda logits: types.SimpleNamespace(logits=logits, loss=None), None),
        (lambda logits: {"logits": logits, "other": 0}, None),
        (lambda logits: {"scores": logits}, None),
        (lambda logits: {"scores": logits, "features": logits}, None),
        (lambda logits: (logits, "auxiliary"), None),
        (lambda logits: [logits], None),
        (lambda logits: logits.numpy(), None),
        (lambda logits: logits.double(), None),
        (lambda logits: ("auxiliary", logits), 1),
        (lambda logits: {"logits": 0, "main": logits}, "main"),
        (lambda logits: types.SimpleNamespace(logits=0, main=logits), "main"),
    ],
)
def test_logits_are_found_in_whatever_a_callable_returns(small, images, wrap, output):
    classifier = open_model(lambda x: wrap(small(x)), output=output)
    logits, _ = said(classifier, images)
    with torch.no_grad():
        assert torch.equal(logits, small(images)) and logits.dtype == torch.float32


def test_a_module_that_returns_an_object_is_understood(small, images):
    class Wrapped(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = small

        def forward(self, x):
            return {"logits": self.inner(x)}

    logits, features = said(open_model(Wrapped()), images, features=True)
    with torch.no_grad():
        assert torch.equal(logits, small(images))
        assert torch.equal(features, small.penultimate(images))


@pytest.mark.parametrize(
    ("function", "error", "message"),
    [
        (lambda x: x, ValueError, r"shape \(4, classes\) for 4 images, got .* \(4, 3, 12, 12\)"),
        (lambda x: x.mean((2, 3))[:2], ValueError, r"got torch.float32 of shape \(2, 3\)"),
        (lambda x: x.mean((2, 3)).argmax(1), ValueError, "got torch.int64"),
        (lambda x: x.mean((2, 3)).long(), ValueError, "float logits"),
        (lambda x: "cat", TypeError, "must return logits.*got str"),
        (lambda x: None, TypeError, "got NoneType"),
        (lambda x: {"a": x, "b": x}, ValueError, r"gives \['a', 'b'\]: choose .* output="),
    ],
)
def test_outputs_that_are_no_logits_are_refused(images, function, error, message):
    with pytest.raises(error, match=message):
        said(open_model(function), images)


def test_an_output_that_is_not_there_is_refused(small, images):
    for wanted in ("main", 3):
        with pytest.raises(ValueError, match="output must name a part"):
            said(open_model(small, output=wanted), images)


def test_the_number_of_classes_may_not_change_between_batches(images):
    classifier = open_model(lambda x: torch.zeros(len(x), len(x)))
    with classifier.prepared():
        classifier.forward(images)
        with pytest.raises(ValueError, match="earlier batches had 4, got 3"):
            classifier.forward(images[:3])


def test_forward_outside_prepared_is_refused(small, images):
    classifier = open_model(small)
    with pytest.raises(RuntimeError, match=r"with classifier.prepared\(\)"):
        classifier.forward(images)
    said(classifier, images)
    with pytest.raises(RuntimeError):
        classifier.forward(images)


def state_of(module):
    return (
        [part.training for part in module.modules()],
        [(p.device, p.dtype, p.requires_grad, p.data_ptr(), p.grad) for p in module.parameters()],
        [(b.device, b.data_ptr(), float(b.sum())) for b in module.buffers()],
        [id(tensor) for tensor in (*module.parameters(), *module.buffers())],
    )


@pytest.mark.parametrize("device", ["cpu", "meta"])
@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("dtype", [None, torch.bfloat16])
def test_the_users_model_is_left_as_it_was_found(images, device, fails, dtype):
    model = Small().train()
    model.body[1].eval()  # a frozen batch norm in a model in training
    model.hidden.weight.requires_grad_(False)
    model(images).sum().backward()
    model.tied = model.head  # the same module twice
    before = state_of(model)
    values = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    classifier = open_model(model, device=device)
    try:
        with classifier.prepared(dtype, channels_last=True):
            assert not any(part.training for part in model.modules())
            assert all(p.device.type == device for p in model.parameters())
            assert all(p.dtype == (dtype or torch.float32) for p in model.parameters())
            logits, features = classifier.forward(images, features=True)
            assert logits.dtype == features.dtype == torch.float32
            assert not logits.requires_grad and logits.device.type == device
            if fails:
                raise KeyError("midway")
    except KeyError:
        assert fails
    assert state_of(model) == before
    assert all(torch.equal(tensor, values[name]) for name, tensor in model.state_dict().items())
    assert not any(part._forward_pre_hooks for part in model.modules())
    model(images).sum().backward()  # and it can still be trained


def test_a_model_that_fails_inside_is_restored_too(images):
    class Failing(Small):
        def forward(self, x):
            super().forward(x)
            raise ArithmeticError("inside the model")

    model = Failing().train()
    classifier = open_model(model)
    with pytest.raises(ArithmeticError), classifier.prepared():
        classifier.forward(images, features=True)
    assert all(part.training for part in model.modules())
    assert not any(part._forward_pre_hooks for part in model.modules())


def test_features_are_the_input_of_the_last_linear_layer(small, images):
    logits, features = said(open_model(small, features=True), images, features=True)
    with torch.no_grad():
        assert torch.equal(features, small.penultimate(images))
        assert torch.allclose(small.scale * small.head(features), logits, atol=1e-6)


def test_features_of_many_dimensions_are_flattened(images):
    class Tokens(nn.Module):
        def __init__(self):
            super().__init__()
            self.head = nn.Linear(12, 5)

        def forward(self, x):
            return self.head(input=x).mean((1, 2))

    _, features = said(open_model(Tokens()), images, features=True)
    assert torch.equal(features, images.flatten(1))


def test_features_may_come_with_the_output(images):
    def function(x):
        return {"logits": x.mean((2, 3)), "features": x[:, 0]}

    _, features = said(open_model(function, features=True), images, features=True)
    assert torch.equal(features, images[:, 0].flatten(1))


def test_features_that_cannot_be_had_are_refused(images):
    class Excited(nn.Module):
        """Its only linear layer is not the head."""

        def __init__(self):
            super().__init__()
            self.gate, self.head = nn.Linear(3, 7), nn.Conv2d(3, 5, 1)

        def forward(self, x):
            self.gate(x.mean((2, 3)))
            return self.head(x).mean((2, 3))

    with pytest.raises(ValueError, match="last nn.Linear that ran gives 7 values"):
        said(open_model(Excited()), images, features=True)
    with pytest.raises(ValueError, match="no nn.Linear ran"):
        said(open_model(lambda x: x.mean((2, 3))), images, features=True)
    with pytest.raises(ValueError, match="4 rows like logits"):
        wrong = open_model(lambda x: {"logits": x.mean((2, 3)), "features": x[:2]})
        said(wrong, images, features=True)


def test_fingerprints_follow_the_weights(small):
    first = open_model(small).fingerprint
    assert first == open_model(small).fingerprint and len(first) == 64
    held = open_model(lambda x: small(x)).fingerprint
    bound = open_model(small.forward).fingerprint
    with torch.no_grad():
        small.head.bias[0] += 1
    assert open_model(small).fingerprint != first
    assert open_model(small.forward).fingerprint != bound
    # The lambda below stands in the same place by name, so only the weights can differ.
    assert open_model(lambda x: small(x)).fingerprint != held
    buffered = Small()
    second = open_model(buffered).fingerprint
    buffered.scale += 1
    assert open_model(buffered).fingerprint != second
    halves = nn.Linear(2, 2).to(torch.bfloat16)
    assert len(open_model(halves).fingerprint) == 64


def test_unknown_specs_are_answered_with_the_known_ones():
    for spec in ("resnet50", "tim:resnet50", "timm:", "C:\\model.onnx"):
        with pytest.raises(
            ValueError, match="timm:NAME, hf:NAME_OR_DIR, torchvision:NAME"
        ) as error:
            open_model(spec)
        assert repr(spec) in str(error.value)


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
    with pytest.raises(ImportError, match=f"pip install {package}"):
        open_model(spec)


def test_devices_that_are_not_here_are_refused(small):
    if not torch.cuda.is_available():
        with pytest.raises(ValueError, match="torch sees no GPU"):
            open_model(small, device="cuda")
    assert open_model(small, device="cpu").device == torch.device("cpu")


def test_an_open_classifier_is_taken_as_it_is(small):
    classifier = open_model(small)
    assert open_model(classifier) is classifier
    with pytest.raises(ValueError, match="already open"):
        open_model(classifier, device="cpu")


def test_geometry_resizes_the_shorter_side_and_cuts_the_centre():
    picture = Image.fromarray(np.arange(40 * 60 * 3, dtype=np.uint8).reshape(40, 60, 3))
    cut = Preprocessing(size=(20, 30), resize=40).geometry(picture)
    assert cut.dtype == torch.uint8 and cut.shape == (3, 20, 30)
    assert np.array_equal(cut.permute(1, 2, 0).numpy(), np.asarray(picture)[10:30, 15:45])
    for interpolation in ("bilinear", "bicubic", "nearest", "lanczos"):
        given = Preprocessing((32, 32), 36, interpolation)
        assert given.geometry(picture).shape == (3, 32, 32)
        assert given.geometry(picture.rotate(90, expand=True)).shape == (3, 32, 32)


def test_geometry_without_resize_makes_the_picture_just_large_enough():
    wide = Image.new("RGB", (500, 100))
    assert Preprocessing((50, 50)).geometry(wide).shape == (3, 50, 50)
    assert Preprocessing((50, 400)).geometry(wide).shape == (3, 50, 400)
    same = Image.fromarray(np.random.default_rng(0).integers(0, 255, (8, 8, 3), np.uint8))
    kept = Preprocessing((8, 8)).geometry(same)
    assert np.array_equal(kept.permute(1, 2, 0).numpy(), np.asarray(same))
    assert Preprocessing().geometry(wide).shape == (3, 100, 500)
    assert Preprocessing(resize=20).geometry(wide).shape == (3, 20, 100)
    assert Preprocessing(resize=(30, 40)).geometry(wide).shape == (3, 30, 40)


@pytest.mark.parametrize("width", range(30, 47))
@pytest.mark.parametrize("size", [(7, 7), (20, 9), (9, 20)])
def test_the_crop_always_fits(width, size):
    picture = Image.new("RGB", (width, 31))
    for resize in (None, 20, 23, (20, 21)):
        assert Preprocessing(size, resize).geometry(picture).shape == (3, *size)


def test_geometry_wants_colour():
    with pytest.raises(ValueError, match="must be in RGB, got mode L"):
        Preprocessing().geometry(Image.new("L", (4, 4)))


def test_preprocessing_survives_json():
    for given in (
        Preprocessing(),
        Preprocessing((224, 192), 256, "bicubic", (0.1, 0.2, 0.3), (0.4, 0.5, 0.6)),
        Preprocessing((24, 24), (30, 40)),
    ):
        assert Preprocessing.from_dict(json.loads(json.dumps(given.as_dict()))) == given
    with pytest.raises(ValueError, match=r"no other keys.*got \['crop'\]"):
        Preprocessing.from_dict({"crop": 3})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"interpolation": "cubic"}, "interpolation must be one of .*got 'cubic'"),
        ({"std": (1.0, 0.0, 1.0)}, "std positive"),
        ({"size": (0, 3)}, "must be positive"),
        ({"size": (32, 32), "resize": 30}, "must fit into a picture resized to 30"),
        ({"size": (32, 32), "resize": (40, 31)}, "must fit"),
    ],
)
def test_preprocessing_that_cannot_be_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        Preprocessing(**options)


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
    with pytest.raises(ValueError, match="timm has no model 'smal'; near are small"):
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
    with pytest.raises(ValueError, match="torchvision has no model 'smaller'; near are small"):
        open_model("torchvision:smaller")


def test_class_names_must_fit_the_logits(monkeypatch, images):
    fake_torchvision(monkeypatch)
    monkeypatch.setattr(
        sys.modules["torchvision.models"], "get_model", lambda name, weights: Small(classes=4)
    )
    with pytest.raises(ValueError, match="class names say 5, got 4"):
        said(open_model("torchvision:small"), images)


def write_onnx(path, nodes, inputs, outputs, constants=()):
    import onnx

    info = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node(*node[:3], **node[3]) for node in nodes],
        "small",
        [info(name, kind, shape) for name, kind, shape in inputs],
        [info(name, kind, shape) for name, kind, shape in outputs],
        [onnx.numpy_helper.from_array(value, name) for name, value in constants],
    )
    opsets = [onnx.helper.make_opsetid("", 17)]
    model = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=9)
    onnx.save(model, path)
    return f"onnx:{path}"


def mean_graph(path, shape, axes=(2, 3), kind=1, features=False, names=("logits",)):
    """A graph whose logits are the mean colours."""
    nodes = [("ReduceMean", ["x"], [name], {"axes": list(axes), "keepdims": 0}) for name in names]
    outputs = [(name, kind, [None, 3]) for name in names]
    if features:
        nodes.append(("Flatten", ["x"], ["features"], {}))
        outputs.append(("features", kind, [None, None]))
    return write_onnx(path, nodes, [("x", kind, shape)], outputs)


@pytest.mark.parametrize(
    ("shape", "axes", "size", "batch"),
    [
        (["n", 3, "h", "w"], (2, 3), None, None),
        (["n", 3, 12, 12], (2, 3), (12, 12), None),
        (["n", "channels", "h", "w"], (2, 3), None, None),
        (["n", 12, 12, 3], (1, 2), (12, 12), None),
        (["n", "h", "w", 3], (1, 2), None, None),
        ([1, 3, 12, 12], (2, 3), (12, 12), 1),
        ([3, 3, 12, 12], (2, 3), (12, 12), 3),
    ],
)
def test_onnx_graphs_tell_their_input_themselves(tmp_path, images, shape, axes, size, batch):
    pytest.importorskip("onnxruntime")
    classifier = open_model(mean_graph(tmp_path / "m.onnx", shape, axes), device="cpu")
    assert classifier.preprocessing == Preprocessing(size)
    assert classifier.backend.batch_size == batch
    logits, _ = said(classifier, images)
    assert torch.allclose(logits, images.mean((2, 3)), atol=1e-6) and logits.shape == (4, 3)


def test_onnx_graphs_may_be_in_half_precision_and_name_their_features(tmp_path, images):
    pytest.importorskip("onnxruntime")
    spec = mean_graph(tmp_path / "m.onnx", ["n", 3, "h", "w"], kind=10, features=True)
    logits, features = said(open_model(spec, features=True), images, features=True)
    assert logits.dtype == features.dtype == torch.float32
    assert torch.allclose(logits, images.mean((2, 3)), atol=2e-3)
    assert torch.allclose(features, images.flatten(1), atol=2e-3)


def test_onnx_graphs_that_do_not_fit_are_refused(tmp_path, images):
    pytest.importorskip("onnxruntime")
    fixed = mean_graph(tmp_path / "m.onnx", ["n", 3, 12, 12], names=("a", "b"))
    with pytest.raises(ValueError, match="features .* no output called 'features'"):
        open_model(fixed, features=True)
    with pytest.raises(ValueError, match=r"images of size \(12, 12\).*got size \(10, 10\)"):
        open_model(fixed, preprocessing=Preprocessing((10, 10)))
    with pytest.raises(ValueError, match=r"gives \['a', 'b'\]: choose"):
        said(open_model(fixed), images)
    assert said(open_model(fixed, output="b"), images)[0].shape == (4, 3)
    grey = mean_graph(tmp_path / "grey.onnx", ["n", 1, 12, 12])
    with pytest.raises(ValueError, match=r"one float batch of images.*\['n', 1, 12, 12\]"):
        open_model(grey)
    with pytest.raises(FileNotFoundError, match="no model file nothing.onnx"):
        open_model("onnx:nothing.onnx")
    (tmp_path / "text.onnx").write_text("not a graph")
    with pytest.raises(ValueError, match="cannot be loaded as an ONNX graph"):
        open_model(f"onnx:{tmp_path / 'text.onnx'}")


def test_onnx_fingerprints_see_weights_beside_the_graph(tmp_path):
    pytest.importorskip("onnxruntime")
    spec = mean_graph(tmp_path / "m.onnx", ["n", 3, 12, 12])
    alone = open_model(spec).fingerprint
    (tmp_path / "m.onnx.data").write_bytes(b"weights")
    assert open_model(spec).fingerprint != alone


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_an_exported_onnx_classifier_agrees_with_torch(tmp_path, small, images):
    pytest.importorskip("onnxscript")
    pytest.importorskip("onnxruntime")
    path = tmp_path / "small.onnx"
    dynamic = {"x": {0: torch.export.Dim("n", min=1, max=64)}}
    torch.onnx.export(small, (images,), path, dynamo=True, dynamic_shapes=dynamic, verbose=False)
    classifier = open_model(
        f"onnx:{path}", preprocessing=Preprocessing((12, 12), None, *("bilinear",))
    )
    for n in (1, 3, 4):
        logits, _ = said(classifier, images[:n])
        with torch.no_grad():
            assert torch.allclose(logits, small(images[:n]), atol=1e-5)


@pytest.mark.parametrize("batch", ["dynamic", "fixed"])
def test_exported_programs_are_run(tmp_path, small, images, batch):
    dynamic = {"x": {0: torch.export.Dim("n", min=1, max=64)}} if batch == "dynamic" else None
    program = torch.export.export(small, (images[:3],), dynamic_shapes=dynamic)
    torch.export.save(program, tmp_path / "small.pt2")
    classifier = open_model(f"pt2:{tmp_path / 'small.pt2'}")
    assert classifier.preprocessing.size == (12, 12)
    assert classifier.backend.batch_size == (None if batch == "dynamic" else 3)
    for n in (1, 2, 4):
        logits, _ = said(classifier, images[:n])
        with torch.no_grad():
            assert torch.allclose(logits, small(images[:n]), atol=1e-5)
    assert len(classifier.fingerprint) == 64
    with pytest.raises(ValueError, match="no nn.Linear ran"):
        said(classifier, images, features=True)


def test_programs_that_do_not_fit_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="no model file"):
        open_model("pt2:nothing.pt2")
    (tmp_path / "text.pt2").write_text("no program")
    with pytest.raises(ValueError, match="cannot be loaded as an exported program"):
        open_model(f"pt2:{tmp_path / 'text.pt2'}")
    torch.export.save(torch.export.export(nn.Linear(3, 2), (torch.rand(4, 3),)), tmp_path / "l.pt2")
    with pytest.raises(ValueError, match=r"one batch of images.*\(4, 3\)"):
        open_model(f"pt2:{tmp_path / 'l.pt2'}")


def noise():
    pixels = np.random.default_rng(0).integers(0, 256, (301, 377, 3), np.uint8)
    return Image.fromarray(pixels).resize((188, 150))


@pytest.fixture(scope="module")
def torchvision():
    """The real one; a CUDA build on a CPU torch lacks two operators, which are declared here."""
    found = importlib.util.find_spec("torchvision")
    if found is None:
        pytest.skip("torchvision is not installed")
    built_for_cuda = "+cu" in Path(found.origin).with_name("version.py").read_text()
    library = None
    if built_for_cuda and torch.version.cuda is None and "torchvision" not in sys.modules:
        library = torch.library.Library("torchvision", "DEF")
        for name in ("nms", "qnms"):
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    import torchvision

    yield torchvision
    del library  # until here: the operators vanish with it


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
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
