"""A classifier and its calibrator as one module, one folder, one file."""

import json
import pickle
import subprocess
import sys

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from PIL import Image

import rightly
from rightly import CALIBRATORS, CalibratedClassifier
from rightly.classifiers import Preprocessing
from rightly.deployment import export, open_deployed
from rightly.deployment.onnx_graph import _OfStack, quietly, traced
from tests.deployment.tiny_models import (
    NAMES,
    PREPROCESSING,
    VIEWS,
    Small,
    exported,
    fitted,
    pictures,
    predictions,
    rehearsed,
)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The same model in both kinds of files, and one with a budget."""
    folder = tmp_path_factory.mktemp("deployed")
    (folder / "budget").mkdir()
    return {
        ".onnx": exported(folder, ".onnx", accuracy=0.6),
        ".pt2": exported(folder, ".pt2", accuracy=0.6),
        "budget": exported(folder / "budget", ".onnx", budget=1.8),
    }


def as_tensor(images):
    return torch.from_numpy(images).permute(0, 3, 1, 2)


class TestModule:
    def test_forward_gives_scaled_logits_confidence_and_temperature(self):
        model = CalibratedClassifier(Small(), fitted())
        images = as_tensor(pictures(5)).float() / 255
        logits, confidence, temperature = model(images)
        raw = Small().eval()(PREPROCESSING.normalise(images))
        assert torch.allclose(logits, raw / temperature[:, None], atol=1e-5)
        assert torch.allclose(logits.softmax(-1).amax(-1), confidence, atol=1e-5)

    def test_predict_says_what_the_calibrator_says_about_collected_predictions(self):
        calibrator = fitted(threshold=0.7)
        images = list(pictures(20, seed=3))
        said = CalibratedClassifier(Small(), calibrator).predict(images)
        opened = rightly.classifiers.open_model(Small(), preprocessing=PREPROCESSING)
        data = rightly.datasets.adapters.open_torch_dataset([(image, 0) for image in images])
        found, _ = rightly.collect(opened, data, views=VIEWS)
        assert torch.equal(said.classes, found.classes)
        assert torch.allclose(said.confidence.double(), calibrator.confidence(found), atol=1e-6)
        assert torch.allclose(said.raw_confidence.double(), found.confidence, atol=1e-6)
        assert torch.equal(said.accept, calibrator.confidence(found) >= 0.7)
        assert torch.equal(said.view_classes, found.view_logits.argmax(-1))

    def test_each_image_is_judged_alone(self):
        model = CalibratedClassifier(Small(), fitted(budget=1.8))
        images = list(pictures(12, seed=3))
        together = model.predict(images).confidence
        alone = torch.cat([model.predict([image]).confidence for image in images])
        assert torch.allclose(together, alone, atol=1e-6)

    def test_a_budget_spares_views_but_not_what_they_would_have_said(self):
        calibrator = fitted(budget=1.8)
        model = CalibratedClassifier(Small(), calibrator)
        seen = []
        model.network.register_forward_hook(lambda *given: seen.append(len(given[1][0])))
        said = model.predict(list(pictures(100, seed=4)))
        spared = said.view_classes[:, 0] == -1
        assert 0 < spared.sum() < 100
        assert sum(seen) == 100 + len(calibrator.view_names) * int((~spared).sum())
        assert said.view_confidence[spared].isnan().all()
        assert said.confidence.isfinite().all()

    def test_the_classifier_stays_in_evaluation_mode(self):
        model = CalibratedClassifier(Small(), fitted()).train()
        images = list(pictures(3))
        assert torch.equal(model.predict(images).confidence, model.predict(images).confidence)

    def test_pictures_of_any_kind_are_shown_as_the_classifier_wants_them(self):
        model = CalibratedClassifier(Small(), fitted())
        grey = Image.fromarray(pictures(1, size=40)[0]).convert("L")
        said = model.predict([grey, Image.fromarray(pictures(1, size=64)[0]).convert("RGBA")])
        assert len(said) == 2
        assert len(model.predict(grey)) == 1

    def test_methods_that_need_features_get_them(self):
        model = CalibratedClassifier(Small(), fitted("proximity"))
        assert model.predict(list(pictures(3))).confidence.isfinite().all()

    def test_onnx_classifiers_are_taken_as_well(self, tmp_path):
        path = tmp_path / "c.onnx"
        given = torch.zeros(2, 3, 16, 16)
        with quietly():
            torch.onnx.export(
                Small().eval(),
                (given,),
                path,
                dynamo=True,
                verbose=False,
                dynamic_shapes=({0: torch.export.Dim("batch")},),
            )
        calibrator = fitted()
        calibrator.record = {}
        model = CalibratedClassifier(f"onnx:{path}", calibrator, preprocessing=PREPROCESSING)
        images = list(pictures(4))
        ours = CalibratedClassifier(Small(), fitted()).predict(images)
        assert torch.allclose(model.predict(images).confidence, ours.confidence, atol=1e-5)

    @pytest.mark.parametrize(
        ("images", "message"),
        [
            (torch.zeros(0, 3, 16, 16), "empty batch"),
            ([], "at least one picture"),
            (torch.zeros(2, 1, 16, 16), r"must have shape \(n, 3, h, w\)"),
            (torch.full((1, 3, 16, 16), 7.0), r"must lie in \[0, 1\]"),
            (torch.zeros(1, 3, 20, 20), r"must have the size \(16, 16\)"),
            (np.zeros((2, 16, 16, 3), np.uint8), r"list\(array\)"),
            ([np.zeros((16, 16, 5), np.uint8)], "1, 3 or 4 channels"),
            (["photo.jpg"], "must be a Pillow image"),
        ],
    )
    def test_what_shows_no_images_is_refused(self, images, message):
        model = CalibratedClassifier(Small(), fitted("temperature_scaling"))
        with pytest.raises((ValueError, TypeError), match=message):
            model.predict(images)


class TestIdentity:
    def test_other_weights_are_refused(self):
        with pytest.raises(ValueError, match="has weights"):
            CalibratedClassifier(Small(seed=1), fitted())

    def test_other_preprocessing_is_refused(self):
        with pytest.raises(ValueError, match="use the same preprocessing"):
            CalibratedClassifier(Small(), fitted(), preprocessing=Preprocessing((16, 16)))

    def test_other_views_are_refused(self):
        with pytest.raises(ValueError, match="views must be those"):
            CalibratedClassifier(Small(), fitted(), views=("hflip", "zoom"))

    def test_other_class_names_are_refused(self):
        with pytest.raises(ValueError, match="class 1 is 'lime' here and 'green' there"):
            CalibratedClassifier(Small(), fitted(), class_names=["red", "lime", "blue", "dark"])

    def test_another_number_of_classes_is_refused(self):
        calibrator = fitted()
        calibrator.record = {}
        model = CalibratedClassifier(Small(classes=5), calibrator, preprocessing=PREPROCESSING)
        with pytest.raises(ValueError, match="must have 4 classes"):
            model.predict(list(pictures(2)))

    def test_views_of_ones_own_come_with_their_functions(self):
        found, labels = predictions()
        own = rightly.Predictions(
            found.logits, found.view_logits[:, :1], view_names=["upside_down"]
        )
        calibrator = rightly.fit("ca_views", own, labels)
        with pytest.raises(ValueError, match="mapping from each name to a function"):
            CalibratedClassifier(Small(), calibrator, preprocessing=PREPROCESSING)
        views = {"upside_down": lambda images: images.flip(2)}
        model = CalibratedClassifier(Small(), calibrator, views, preprocessing=PREPROCESSING)
        assert model.predict(list(pictures(2))).view_classes.shape == (2, 1)

    def test_what_is_not_fitted_or_no_calibrator_is_refused(self):
        with pytest.raises(rightly.NotFittedError):
            CalibratedClassifier(Small(), rightly.calibrator("ca_views"))
        with pytest.raises(TypeError, match="calibrator"):
            CalibratedClassifier(Small(), "cal.safetensors")

    def test_a_method_that_looks_at_a_whole_batch_says_so(self):
        from rightly.calibrators.temperature_network import TemperatureNetwork

        calibrator = TemperatureNetwork("retrieved_scores").fit(*predictions())
        with pytest.raises(ValueError, match="looks at a whole batch"):
            CalibratedClassifier(Small(), calibrator)


class TestHub:
    def test_a_folder_is_written_and_read(self, tmp_path):
        model = CalibratedClassifier(Small(), fitted(accuracy=0.6))
        model.save_pretrained(tmp_path / "saved")
        written = {path.name for path in (tmp_path / "saved").iterdir()}
        assert written == {"config.json", "calibrator.safetensors", "README.md"}
        config = json.loads((tmp_path / "saved/config.json").read_text())
        assert config["views"] == list(VIEWS) and config["class_names"] == list(NAMES)
        loaded = CalibratedClassifier.from_pretrained(tmp_path / "saved", Small())
        images = list(pictures(5))
        assert torch.equal(loaded.predict(images).confidence, model.predict(images).confidence)
        assert loaded.threshold == model.threshold

    def test_a_folder_around_another_classifier_is_refused(self, tmp_path):
        CalibratedClassifier(Small(), fitted()).save_pretrained(tmp_path)
        with pytest.raises(ValueError, match="has weights"):
            CalibratedClassifier.from_pretrained(tmp_path, Small(seed=2))

    def test_parts_of_different_models_are_refused(self, tmp_path):
        CalibratedClassifier(Small(), fitted()).save_pretrained(tmp_path)
        fitted("temperature_scaling").save(tmp_path / "calibrator.safetensors")
        with pytest.raises(ValueError, match="save both together"):
            CalibratedClassifier.from_pretrained(tmp_path, Small())

    @pytest.mark.parametrize("damage", ["", "{", '{"format": "other"}', '{"version": 9}'])
    def test_a_damaged_config_is_refused(self, tmp_path, damage):
        CalibratedClassifier(Small(), fitted()).save_pretrained(tmp_path)
        (tmp_path / "config.json").write_text(damage)
        with pytest.raises(ValueError, match=r"config\.json"):
            CalibratedClassifier.from_pretrained(tmp_path, Small())

    def test_what_is_nowhere_is_not_looked_for_on_the_hub(self, tmp_path):
        with pytest.raises(FileNotFoundError, match="there is no folder"):
            CalibratedClassifier.from_pretrained(tmp_path / "nowhere", Small())

    def test_pushing_uploads_what_is_saved(self, monkeypatch):
        import huggingface_hub

        sent = {}

        class Api:
            def __init__(self, token=None):
                sent["token"] = token

            def create_repo(self, repo_id, private=None, exist_ok=False):
                return f"there/{repo_id}"

            def upload_folder(self, repo_id, folder_path, **options):
                from pathlib import Path

                sent["files"] = sorted(path.name for path in Path(folder_path).iterdir())

        monkeypatch.setattr(huggingface_hub, "HfApi", Api)
        where = CalibratedClassifier(Small(), fitted()).push_to_hub("me/model", token="t")
        assert where == "there/me/model"
        assert sent == {
            "token": "t",
            "files": ["README.md", "calibrator.safetensors", "config.json"],
        }


class TestFiles:
    @pytest.mark.parametrize("kind", [".onnx", ".pt2", "budget"])
    def test_a_file_says_what_torch_says(self, files, kind):
        arguments = {"budget": 1.8} if kind == "budget" else {"accuracy": 0.6}
        model = CalibratedClassifier(Small(), fitted(**arguments))
        deployed = open_deployed(files[kind])
        for count in (1, 3, 64):
            images = pictures(count, seed=9)
            ours, theirs = model.predict(as_tensor(images)).numpy(), deployed.predict(images)
            for name in ("confidence", "raw_confidence", "probabilities"):
                assert np.abs(getattr(ours, name) - getattr(theirs, name)).max() < 1e-5
            assert np.allclose(ours.temperature, theirs.temperature, rtol=1e-4)
            assert (ours.classes == theirs.classes).all()
            assert (ours.view_classes == theirs.view_classes).all()
            assert np.allclose(ours.view_confidence, theirs.view_confidence, 0, 1e-5, True)
            if kind == "budget":
                assert theirs.accept is None
            else:
                assert (ours.accept == theirs.accept).all()

    def test_the_graph_runs_in_onnxruntime_without_torch_or_rightly(self, files, tmp_path):
        images = pictures(5, seed=9)
        np.save(tmp_path / "x.npy", images.transpose(0, 3, 1, 2).astype(np.float32) / 255)
        code = (
            "import json, sys, numpy, onnxruntime\n"
            "s = onnxruntime.InferenceSession(sys.argv[1])\n"
            "names = ['probabilities', 'confidence', 'temperature', 'accept']\n"
            "p, c, t, a = s.run(names, {'images': numpy.load(sys.argv[2])})\n"
            "assert p.shape == (5, 4) and c.shape == t.shape == a.shape == (5,)\n"
            "assert not {'torch', 'rightly'} & set(sys.modules)\n"
            "print(json.loads(s.get_modelmeta().custom_metadata_map['rightly'])['method'], *c)\n"
        )
        run = [sys.executable, "-c", code, files[".onnx"], tmp_path / "x.npy"]
        method, *said = subprocess.run(
            run, capture_output=True, text=True, check=True
        ).stdout.split()
        assert method == "ca_views"
        ours = open_deployed(files[".onnx"]).predict(images).confidence
        assert np.allclose([float(value) for value in said], ours, atol=1e-6)

    @pytest.mark.parametrize("kind", [".onnx", ".pt2"])
    def test_identity_and_parity_are_in_the_file(self, files, kind):
        identity = open_deployed(files[kind]).identity
        assert identity["class_names"] == list(NAMES) and identity["views"] == list(VIEWS)
        assert identity["preprocessing"]["size"] == [16, 16]
        assert identity["preprocessing"]["mean"] == [0.4, 0.5, 0.5]
        assert len(identity["classifier"]["fingerprint"]) == 64
        assert identity["calibration"]["samples"] == 400
        assert identity["threshold"]["asked"] == {"accuracy": 0.6}
        assert identity["parity"]["images"] == 4 and identity["parity"]["confidence"] < 1e-5

    def test_no_path_of_this_machine_is_in_the_file(self, files):
        data = files[".onnx"].read_bytes()
        assert b"site-packages" not in data and b"/rightly/" not in data

    def test_the_outputs_stand_in_their_order(self, files):
        session = onnxruntime.InferenceSession(files[".onnx"])
        names = [output.name for output in session.get_outputs()]
        assert names[:4] == ["probabilities", "confidence", "temperature", "accept"]
        assert "accept" not in [
            output.name for output in onnxruntime.InferenceSession(files["budget"]).get_outputs()
        ]

    def test_weights_stand_once_in_a_graph_with_a_budget(self, files):
        shapes = [tuple(weight.dims) for weight in onnx.load(files["budget"]).graph.initializer]
        assert shapes.count((8, 3, 3, 3)) == 1

    @pytest.mark.parametrize("kind", [".onnx", ".pt2"])
    def test_damaged_files_are_refused(self, files, kind, tmp_path):
        data = files[kind].read_bytes()
        for i, damaged in enumerate([data[: len(data) // 2], b"", pickle.dumps({"a": 1})]):
            path = tmp_path / f"{i}{kind}"
            path.write_bytes(damaged)
            with pytest.raises(ValueError, match="is not a whole|no word of it"):
                open_deployed(path)

    def test_graphs_of_others_and_of_other_versions_are_refused(self, files, tmp_path):
        graph = onnx.load(files[".onnx"])
        note = graph.metadata_props[0]
        for value, message in [
            (note.value.replace('"version": 1', '"version": 99'), "format version 99"),
            ("{", "damaged description"),
            ('{"format": "rightly-deployed", "version": 1}', "damaged description"),
        ]:
            note.value = value
            onnx.save(graph, tmp_path / "m.onnx")
            with pytest.raises(ValueError, match=message):
                open_deployed(tmp_path / "m.onnx")
        del graph.metadata_props[:]
        onnx.save(graph, tmp_path / "m.onnx")
        with pytest.raises(ValueError, match="no word of it"):
            open_deployed(tmp_path / "m.onnx")

    def test_what_is_no_model_file_is_refused(self, tmp_path):
        with pytest.raises(FileNotFoundError, match="there is no model file"):
            open_deployed(tmp_path / "m.onnx")
        (tmp_path / "m.bin").write_bytes(b"x")
        with pytest.raises(ValueError, match=r"must end in \.onnx or \.pt2"):
            open_deployed(tmp_path / "m.bin")

    @pytest.mark.parametrize(
        ("images", "message"),
        [
            (np.zeros((0, 16, 16, 3), np.uint8), "empty batch"),
            (np.zeros((1, 20, 16, 3), np.uint8), "must have the size"),
        ],
    )
    def test_bad_batches_are_refused(self, files, images, message):
        with pytest.raises(ValueError, match=message):
            open_deployed(files[".onnx"]).predict(images)

    def test_a_file_that_differs_from_torch_is_not_written(self, tmp_path, monkeypatch):
        from rightly.deployment import exporting

        monkeypatch.setattr(exporting, "TOLERANCE", -1.0)
        model = CalibratedClassifier(Small(), fitted("temperature_scaling"))
        with pytest.raises(ValueError, match="nothing was written"):
            export(model, tmp_path / "m.onnx")
        assert not list(tmp_path.iterdir())

    def test_classes_that_only_rounding_tells_apart_are_no_difference(self, tmp_path):
        class Even(Small):
            def forward(self, images):
                return 1e-8 * super().forward(images)  # all classes as likely, in any engine

        calibrator = fitted("temperature_scaling")
        calibrator.record = {}
        model = CalibratedClassifier(Even(), calibrator, preprocessing=PREPROCESSING)
        export(model, tmp_path / "m.onnx")
        assert open_deployed(tmp_path / "m.onnx").predict(pictures(2)).confidence.max() < 0.26

    def test_functions_cannot_be_exported_and_say_so(self, tmp_path):
        calibrator = fitted("temperature_scaling")
        calibrator.record = {}
        module = Small().eval()
        model = CalibratedClassifier(
            lambda images: module(images), calibrator, preprocessing=PREPROCESSING
        )
        with pytest.raises(ValueError, match="must be a torch module or an ONNX file"):
            export(model, tmp_path / "m.onnx")
        with pytest.raises(ValueError, match="must be a torch module"):
            export(model, tmp_path / "m.pt2")


class TestGraft:
    @staticmethod
    def classifier(path, channels_last=False, batch=None, opset=18):
        class Elsewhere(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = Small().eval()

            def forward(self, pixels):
                given = pixels.permute(0, 3, 1, 2) if channels_last else pixels
                return self.inner(given)

        shape = (2, 16, 16, 3) if channels_last else (2, 3, 16, 16)
        given = torch.zeros(batch or shape[0], *shape[1:])
        dims = None if batch else ({0: torch.export.Dim("n")},)
        with quietly():
            torch.onnx.export(
                Elsewhere(),
                (given,),
                path,
                dynamo=True,
                verbose=False,
                dynamic_shapes=dims,
                opset_version=opset,
                input_names=["pixels"],
                output_names=["scores"],
            )

    @pytest.mark.parametrize("channels_last", [False, True])
    def test_a_calibrator_is_grafted_onto_somebodys_classifier(self, tmp_path, channels_last):
        self.classifier(tmp_path / "c.onnx", channels_last, opset=20)
        calibrator = fitted(accuracy=0.6)
        calibrator.record = {}
        model = CalibratedClassifier(
            f"onnx:{tmp_path / 'c.onnx'}", calibrator, preprocessing=PREPROCESSING
        )
        export(model, tmp_path / "m.onnx")
        ours = CalibratedClassifier(Small(), fitted(accuracy=0.6))
        images = pictures(10, seed=5)
        theirs = open_deployed(tmp_path / "m.onnx").predict(images)
        assert (
            np.abs(ours.predict(as_tensor(images)).numpy().confidence - theirs.confidence).max()
            < 1e-5
        )

    def test_a_classifier_for_one_batch_size_is_refused(self, tmp_path):
        self.classifier(tmp_path / "c.onnx", batch=1)
        calibrator = fitted("temperature_scaling")
        calibrator.record = {}
        model = CalibratedClassifier(
            f"onnx:{tmp_path / 'c.onnx'}", calibrator, preprocessing=PREPROCESSING
        )
        with pytest.raises(ValueError, match="batches of any size"):
            export(model, tmp_path / "m.onnx")


@pytest.mark.slow
@pytest.mark.parametrize("name", [*CALIBRATORS, "rightly, rehearsed", "rightly, neighbours"])
def test_every_calibrator_says_the_same_in_a_graph(name):
    if name == "rightly, rehearsed":
        calibrator = rehearsed()
        assert calibrator.starts.shape[0]  # hidden units are in the graph too
    elif name == "rightly, neighbours":
        calibrator = fitted("rightly", threshold=0.5, neighbours=50)
    else:
        arguments = {"epochs": 3} if name == "true_class_probability" else {}
        calibrator = fitted(name, threshold=0.5, **arguments)
    model = CalibratedClassifier(Small(), calibrator, preprocessing=PREPROCESSING)
    images = list(pictures(30, seed=8))
    said = model.predict(images).numpy()
    logits = torch.randn(8, 4)
    needs_features = "features" in model.calibrator.needs
    given = {"stacked": (logits, "looks")}
    if needs_features:
        given["features"] = (torch.ones(8, 8), "looks")
    with quietly():
        graph = traced(_OfStack(model.head), given, ["said_p", "said_c", "said_t", "said_a"])
    session = onnxruntime.InferenceSession(graph.SerializeToString())
    with torch.no_grad():
        shown = torch.cat([view(model.images_of(images)) for view in (lambda x: x, *model.views)])
        answer = model.network(PREPROCESSING.normalise(shown))
    taken = {value.name for value in session.get_inputs()}
    feed = {n: part.numpy() for n, part in zip(given, answer, strict=False) if n in taken}
    outputs = session.run(["said_p", "said_c", "said_t", "said_a"], feed)
    assert np.abs(outputs[0] - said.probabilities).max() < 1e-5
    assert np.abs(outputs[1] - said.confidence).max() < 1e-5
    assert np.allclose(outputs[2], said.temperature, rtol=1e-3)
    assert (outputs[3] == said.accept).all()
