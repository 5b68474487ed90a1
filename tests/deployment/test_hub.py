"""A saved folder, here and on the Hub."""

import json

import pytest
import torch

from rightly import CalibratedClassifier
from tests.deployment.tiny_models import NAMES, VIEWS, Small, fitted, pictures


def test_a_folder_is_written_and_read(tmp_path):
    model = CalibratedClassifier(Small(), fitted(threshold=0.6))
    model.save_pretrained(tmp_path / "saved")
    written = {path.name for path in (tmp_path / "saved").iterdir()}
    assert written == {"config.json", "calibrator.safetensors", "README.md"}
    config = json.loads((tmp_path / "saved/config.json").read_text())
    assert config["views"] == list(VIEWS) and config["class_names"] == list(NAMES)
    loaded = CalibratedClassifier.from_pretrained(tmp_path / "saved", Small())
    images = list(pictures(5))
    assert torch.equal(loaded.predict(images).confidence, model.predict(images).confidence)
    assert loaded.threshold == model.threshold


def test_a_folder_around_another_classifier_is_refused(tmp_path):
    CalibratedClassifier(Small(), fitted()).save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="has weights"):
        CalibratedClassifier.from_pretrained(tmp_path, Small(seed=2))


def test_parts_of_different_models_are_refused(tmp_path):
    CalibratedClassifier(Small(), fitted()).save_pretrained(tmp_path)
    fitted("temperature_scaling").save(tmp_path / "calibrator.safetensors")
    with pytest.raises(ValueError, match="use the two that were written together"):
        CalibratedClassifier.from_pretrained(tmp_path, Small())


@pytest.mark.parametrize("damage", ["", "{", '{"format": "other"}', '{"version": 9}'])
def test_a_damaged_config_is_refused(tmp_path, damage):
    CalibratedClassifier(Small(), fitted()).save_pretrained(tmp_path)
    (tmp_path / "config.json").write_text(damage)
    with pytest.raises(ValueError, match=r"config\.json"):
        CalibratedClassifier.from_pretrained(tmp_path, Small())


def test_what_is_nowhere_is_not_looked_for_on_the_hub(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        CalibratedClassifier.from_pretrained(tmp_path / "nowhere", Small())


def test_a_repository_is_fetched_from_the_hub(tmp_path, monkeypatch):
    import huggingface_hub

    model = CalibratedClassifier(Small(), fitted(threshold=0.7))
    model.save_pretrained(tmp_path)
    asked = {}

    def fetch(repository, allow_patterns):
        asked[repository] = sorted(allow_patterns)
        return str(tmp_path)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", fetch)
    assert CalibratedClassifier.from_pretrained("me/model", Small()).threshold == 0.7
    assert asked == {"me/model": ["README.md", "calibrator.safetensors", "config.json"]}


def test_a_card_that_somebody_edited_is_kept(tmp_path):
    model = CalibratedClassifier(Small(), fitted())
    model.save_pretrained(tmp_path)
    (tmp_path / "README.md").write_text("mine")
    model.save_pretrained(tmp_path)
    assert (tmp_path / "README.md").read_text() == "mine"


def test_pushing_uploads_what_is_saved(monkeypatch):
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


@pytest.mark.parametrize("held", [(), ("config.json",), ("calibrator.safetensors", "other")])
def test_an_odd_folder_is_told_what_it_lacks(tmp_path, held):
    for name in held:
        (tmp_path / name).write_text("{}")
    lacks = [name for name in ("config.json", "calibrator.safetensors") if name not in held]
    holds = ", ".join(sorted(held)) or "nothing"
    words = rf"but lacks {' and '.join(lacks)} \(it holds {holds}\)"
    with pytest.raises(FileNotFoundError, match=words):
        CalibratedClassifier.from_pretrained(tmp_path, Small())
