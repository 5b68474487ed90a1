"""Callbacks that calibrate after training, beside the libraries whose trainers call them."""

import sys

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import rightly
from rightly.deployment import training
from tests.test_doc_code import DOCS, read_blocks


def make_data(n, seed):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 4, generator=generator)
    y = (x[:, :3] + torch.randn(n, 3, generator=generator)).argmax(-1)
    return x, y


def make_network():
    """Too sure of itself, and right more often than not."""
    network = nn.Sequential(nn.Linear(4, 3), nn.Dropout(0.5))
    with torch.no_grad():
        network[0].weight.copy_(3 * torch.eye(3, 4))
        network[0].bias.zero_()
    return network


def fit_by_hand(model, x, y):
    """Confidences of these very samples."""
    model.eval()
    with torch.no_grad():
        predictions = rightly.Predictions(model(x))
    return rightly.fit(predictions, y, "temperature_scaling").confidence(predictions), predictions


def test_a_module_is_calibrated_in_batches_and_left_as_it_was(tmp_path):
    (x, y), model, out = make_data(300, 1), make_network(), tmp_path / "cal.safetensors"
    batches = DataLoader(TensorDataset(x, y), batch_size=64)
    training.calibrate_module(model, batches, out, threshold=0.7)
    assert model.training  # and dropout was off meanwhile:
    expected, predictions = fit_by_hand(model, x, y)
    loaded = rightly.load_calibrator(out)
    assert torch.allclose(loaded.confidence(predictions), expected, atol=1e-6)
    assert loaded.threshold == 0.7 and expected.std() > 0.05


def test_loaders_that_give_something_else_are_refused():
    with pytest.raises(ValueError, match="loader must yield batches of calibration samples"):
        training.calibrate_module(make_network(), [])
    with pytest.raises(TypeError, match=r"pairs \(inputs, labels\), got dict"):
        training._split_pair({"x": 1})
    with pytest.raises(TypeError, match="mappings with 'labels', got one with x: name them by"):
        training._split_labels({"x": 1}, "labels")


@pytest.mark.parametrize(
    ("library", "make"),
    [
        ("transformers", lambda: training.make_transformers_callback([])),
        ("evaluate", lambda: training.make_evaluate_metric("ece")),
        ("lightning", lambda: training.make_lightning_callback([])),
    ],
)
def test_a_missing_library_is_named(monkeypatch, library, make):
    monkeypatch.setitem(sys.modules, library, None)
    monkeypatch.delitem(sys.modules, "pytorch_lightning", raising=False)
    with pytest.raises(ImportError, match=f"pip install {library}"):
        make()


def make_module(lightning):
    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.network = make_network()

        def forward(self, x):
            return self.network(x)

        def training_step(self, batch):
            return nn.functional.cross_entropy(self(batch[0]), batch[1])

        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters(), 0.01)

    return Module()


def make_bert(transformers):
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "intermediate_size": 8}
    config = transformers.BertConfig(vocab_size=11, num_attention_heads=2, num_labels=3, **sizes)
    torch.manual_seed(0)
    return transformers.BertForSequenceClassification(config)


def make_rows(x, y):
    """The same data as a model of text takes them."""
    words = (x * 2 + 5).long().clamp(0, 10)
    return [{"input_ids": row, "labels": label} for row, label in zip(words, y, strict=True)]


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
def test_lightning_calibrates_what_it_has_trained(loadable_torchvision, tmp_path):
    lightning = pytest.importorskip("lightning.pytorch")

    x, y = make_data(300, 1)
    cal = DataLoader(TensorDataset(x, y), batch_size=128)
    callback = training.make_lightning_callback(cal, tmp_path / "cal.safetensors")
    trainer = lightning.Trainer(
        max_epochs=1,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        callbacks=[callback],
        default_root_dir=tmp_path,
    )
    module = make_module(lightning)
    trainer.fit(module, DataLoader(TensorDataset(*make_data(200, 0)), batch_size=50))
    expected, predictions = fit_by_hand(module, x, y)
    loaded = rightly.load_calibrator(tmp_path / "cal.safetensors")
    for calibrator in (callback.calibrator, loaded):
        assert torch.allclose(calibrator.confidence(predictions), expected, atol=1e-6)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
def test_transformers_calibrates_what_it_has_trained(loadable_torchvision, tmp_path):
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    model = make_bert(transformers)
    x, y = make_data(300, 1)
    rows = make_rows(x, y)
    cal = DataLoader(rows[100:], batch_size=64)
    callback = training.make_transformers_callback(cal, tmp_path / "cal.safetensors")
    arguments = transformers.TrainingArguments(
        tmp_path / "out",
        max_steps=3,
        use_cpu=True,
        report_to=[],
        save_strategy="no",
        disable_tqdm=True,
    )
    trainer = transformers.Trainer(model, arguments, train_dataset=rows[:100], callbacks=[callback])
    trainer.train()
    model.eval()
    with torch.no_grad():
        logits = model(torch.stack([row["input_ids"] for row in rows[100:]])).logits
    predictions = rightly.Predictions(logits)
    expected = rightly.fit(predictions, y[100:], "temperature_scaling").confidence(predictions)
    assert torch.allclose(callback.calibrator.confidence(predictions), expected, atol=1e-6)
    assert (tmp_path / "cal.safetensors").is_file()


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["ece", "nll"])
def test_a_metric_of_evaluate_has_the_value_of_ours(
    name, loadable_torchvision, tmp_path, monkeypatch
):
    pytest.importorskip("evaluate")
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    rng = np.random.default_rng(0)
    probabilities, labels = rng.dirichlet(np.ones(3), 100), rng.integers(0, 3, 100)
    metric = training.make_evaluate_metric(name)
    for half in (slice(0, 50), slice(50, 100)):
        metric.add_batch(predictions=probabilities[half], references=labels[half])
    if name == "nll":
        expected = rightly.metrics.nll(probabilities, labels)
    else:
        correct = probabilities.argmax(-1) == labels
        expected = rightly.metrics.ece(probabilities.max(-1), correct)
    assert metric.compute() == {name: pytest.approx(expected, abs=1e-12)}


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
def test_the_code_about_other_libraries_runs_as_written(
    loadable_torchvision, tmp_path, monkeypatch
):
    lightning, transformers = map(pytest.importorskip, ("lightning.pytorch", "transformers"))
    for library in ("accelerate", "evaluate"):
        pytest.importorskip(library)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    (x, y), train = make_data(300, 1), make_data(200, 0)
    probabilities = torch.softmax(make_network().eval()(x), -1).detach().double().numpy()
    names = {
        "model": make_network(),
        "module": make_module(lightning),
        "bert": make_bert(transformers),
        "cal_loader": DataLoader(TensorDataset(x, y), batch_size=100),
        "train_loader": DataLoader(TensorDataset(*train), batch_size=100),
        "cal_batches": DataLoader(make_rows(x, y), batch_size=100),
        "train_set": make_rows(*train),
        "probabilities": probabilities / probabilities.sum(-1, keepdims=True),
        "labels": y.numpy(),
    }
    blocks = read_blocks(DOCS / "libraries.md", "python")
    assert len(blocks) == 4
    for code in blocks:
        exec(compile(code, "libraries.md", "exec"), names)  # noqa: S102
    for stem in ("cal", "lightning", "transformers"):
        assert rightly.load_calibrator(tmp_path / f"{stem}.safetensors").class_count == 3
